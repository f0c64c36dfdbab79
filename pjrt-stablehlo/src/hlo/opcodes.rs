//! The table of opcodes.

use super::elementwise;
use super::instruction::Instruction;
use super::reader::Reader;
use crate::Error;
use crate::ir::ValueId;

/// Translates the instructions of an opcode, as [`Reader::leaves_of`] does.
type Translation = fn(&mut Reader, &Instruction) -> Result<Vec<ValueId>, Error>;

/// The translation of each opcode that is not that of an elementwise operation of StableHLO.
const TRANSLATIONS: &[(&str, Translation)] = &[
    // Values and tuples.
    ("constant", Reader::constant),
    ("tuple", Reader::tuple),
    ("get-tuple-element", Reader::get_tuple_element),
    ("copy", Reader::copy),
    ("domain", Reader::first_operand),
    ("copy-start", Reader::first_operand),
    ("async-update", Reader::first_operand),
    ("add-dependency", Reader::add_dependency),
    ("opt-barrier", Reader::optimization_barrier),
    ("after-all", Reader::after_all),
    // Calls and control flow.
    ("call", Reader::call),
    ("fusion", Reader::call),
    ("async-start", Reader::call),
    ("while", Reader::while_loop),
    ("conditional", Reader::conditional),
    ("map", Reader::map),
    ("reduce", Reader::reduce),
    ("sort", Reader::sort),
    ("scan", Reader::scan),
    ("custom-call", Reader::custom_call),
    // Shapes and positions of elements.
    ("bitcast", Reader::bitcast),
    ("bitcast-convert", Reader::bitcast_convert),
    ("broadcast", Reader::broadcast),
    ("reshape", Reader::reshape),
    ("dynamic-reshape", Reader::dynamic_reshape),
    ("transpose", Reader::transpose),
    ("reverse", Reader::reverse),
    ("slice", Reader::slice),
    ("pad", Reader::pad),
    ("concatenate", Reader::concatenate),
    ("iota", Reader::iota),
    ("get-dimension-size", Reader::get_dimension_size),
    ("set-dimension-size", Reader::set_dimension_size),
    ("dynamic-slice", Reader::dynamic_slice),
    ("dynamic-update-slice", Reader::dynamic_update_slice),
    ("gather", Reader::gather),
    ("scatter", Reader::scatter),
    // Numerics.
    ("dot", Reader::dot),
    ("ragged-dot", Reader::ragged_dot),
    ("convolution", Reader::convolution),
    ("reduce-window", Reader::reduce_window),
    ("select-and-scatter", Reader::select_and_scatter),
    ("fft", Reader::fft),
    ("cholesky", Reader::cholesky),
    ("triangular-solve", Reader::triangular_solve),
    ("batch-norm-training", Reader::batch_norm),
    ("batch-norm-inference", Reader::batch_norm),
    ("batch-norm-grad", Reader::batch_norm),
    ("rng", Reader::rng),
    ("rng-bit-generator", Reader::rng_bit_generator),
    ("topk", Reader::top_k),
    ("mulhi", Reader::mulhi),
    ("erf", Reader::function_of),
    ("acos", Reader::function_of),
    ("acosh", Reader::function_of),
    ("asin", Reader::function_of),
    ("asinh", Reader::function_of),
    ("atanh", Reader::function_of),
    ("cosh", Reader::function_of),
    ("sinh", Reader::function_of),
    ("stochastic-convert", Reader::stochastic_convert),
    // Communication.
    ("all-reduce", Reader::all_reduce),
    ("all-reduce-start", Reader::all_reduce),
    ("all-gather", Reader::all_gather),
    ("all-gather-start", Reader::all_gather),
    ("all-to-all", Reader::all_to_all),
    ("ragged-all-to-all", Reader::ragged_all_to_all),
    ("reduce-scatter", Reader::reduce_scatter),
    ("collective-broadcast", Reader::collective_broadcast),
    ("collective-permute", Reader::collective_permute),
    ("collective-permute-start", Reader::collective_permute),
    ("infeed", Reader::infeed),
    ("outfeed", Reader::outfeed),
    ("send", Reader::send),
    ("recv", Reader::recv),
];

impl Reader {
    /// Adds the operations for an instruction, and returns the arrays and tokens of its value.
    pub(super) fn leaves_of(&mut self, at: &Instruction) -> Result<Vec<ValueId>, Error> {
        let opcode = &*at.proto.opcode;
        // The message is present for dense operands, too, but empty.
        if !at.proto.sparsity_config.is_empty() {
            return Err(at.unsupported("sparse operands ('sparsity_config') are not supported"));
        }
        if opcode == "call" && at.proto.is_composite {
            return self.composite_call(at);
        }
        // The starting instruction provides the results.
        if opcode.ends_with("-done") {
            return self.first_operand(at);
        }
        if let Some((_, translate)) = TRANSLATIONS.iter().find(|(name, _)| *name == opcode) {
            return translate(self, at);
        }
        match elementwise::counterpart(opcode) {
            Some(code) => self.elementwise(at, code),
            None => Err(at.unsupported(format!("the opcode '{opcode}' is not supported"))),
        }
    }

    fn tuple(&mut self, at: &Instruction) -> Result<Vec<ValueId>, Error> {
        Ok(at.leaves())
    }

    fn first_operand(&mut self, at: &Instruction) -> Result<Vec<ValueId>, Error> {
        Ok(at.operand(0)?.leaves.clone())
    }
}
