//! The table of opcodes.

use super::elementwise;
use super::instruction::Instruction;
use super::reader::Reader;
use crate::Error;
use crate::ir::ValueId;

impl Reader {
    /// Adds the operations for an instruction, and returns the arrays and tokens of its value.
    pub(super) fn leaves_of(&mut self, at: &Instruction) -> Result<Vec<ValueId>, Error> {
        let opcode = &*at.proto.opcode;
        // The message is present for dense operands, too, but empty.
        if !at.proto.sparsity_config.is_empty() {
            return Err(at.unsupported("sparse operands ('sparsity_config') are not supported"));
        }
        match opcode {
            // Values and tuples.
            "constant" => self.constant(at),
            "tuple" => Ok(at.leaves()),
            "get-tuple-element" => self.get_tuple_element(at),
            "copy" => self.copy(at),
            "domain" | "copy-start" | "async-update" => Ok(at.operand(0)?.leaves.clone()),
            "add-dependency" => self.add_dependency(at),
            "opt-barrier" => self.optimization_barrier(at),
            "after-all" => self.after_all(at),
            // The starting instruction provides the results.
            done if done.ends_with("-done") => Ok(at.operand(0)?.leaves.clone()),

            // Calls and control flow.
            "call" if at.proto.is_composite => self.composite_call(at),
            "call" | "fusion" | "async-start" => self.call(at),
            "while" => self.while_loop(at),
            "conditional" => self.conditional(at),
            "map" => self.map(at),
            "reduce" => self.reduce(at),
            "sort" => self.sort(at),
            "scan" => self.scan(at),
            "custom-call" => self.custom_call(at),

            // Shapes and positions of elements.
            "bitcast" => self.bitcast(at),
            "bitcast-convert" => self.bitcast_convert(at),
            "broadcast" => self.broadcast(at),
            "reshape" => self.reshape(at),
            "dynamic-reshape" => self.dynamic_reshape(at),
            "transpose" => self.transpose(at),
            "reverse" => self.reverse(at),
            "slice" => self.slice(at),
            "pad" => self.pad(at),
            "concatenate" => self.concatenate(at),
            "iota" => self.iota(at),
            "get-dimension-size" => self.get_dimension_size(at),
            "set-dimension-size" => self.set_dimension_size(at),
            "dynamic-slice" => self.dynamic_slice(at),
            "dynamic-update-slice" => self.dynamic_update_slice(at),
            "gather" => self.gather(at),
            "scatter" => self.scatter(at),

            // Numerics.
            "dot" => self.dot(at),
            "ragged-dot" => self.ragged_dot(at),
            "convolution" => self.convolution(at),
            "reduce-window" => self.reduce_window(at),
            "select-and-scatter" => self.select_and_scatter(at),
            "fft" => self.fft(at),
            "cholesky" => self.cholesky(at),
            "triangular-solve" => self.triangular_solve(at),
            "batch-norm-training" | "batch-norm-inference" | "batch-norm-grad" => self.batch_norm(at),
            "rng" => self.rng(at),
            "rng-bit-generator" => self.rng_bit_generator(at),
            "topk" => self.top_k(at),
            "mulhi" => self.mulhi(at),
            "erf" | "acos" | "acosh" | "asin" | "asinh" | "atanh" | "cosh" | "sinh" => self.function_of(at),
            "stochastic-convert" => self.stochastic_convert(at),

            // Communication.
            "all-reduce" | "all-reduce-start" => self.all_reduce(at),
            "all-gather" | "all-gather-start" => self.all_gather(at),
            "all-to-all" => self.all_to_all(at),
            "ragged-all-to-all" => self.ragged_all_to_all(at),
            "reduce-scatter" => self.reduce_scatter(at),
            "collective-broadcast" => self.collective_broadcast(at),
            "collective-permute" | "collective-permute-start" => self.collective_permute(at),
            "infeed" => self.infeed(at),
            "outfeed" => self.outfeed(at),
            "send" => self.send(at),
            "recv" => self.recv(at),

            _ => match elementwise::counterpart(opcode) {
                Some(code) => self.elementwise(at, code),
                None => Err(at.unsupported(format!("the opcode '{opcode}' is not supported"))),
            },
        }
    }
}
