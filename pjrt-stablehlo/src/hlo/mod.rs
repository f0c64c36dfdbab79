//! Reads HLO: XLA's `HloModuleProto` and `HloModuleProtoWithConfig`, which PyTorch/XLA, TensorFlow and older GoMLX send.
//!
//! The entry computation becomes the function `main`. Called and fused computations become functions, those that an
//! operation applies become its regions. Tuples are taken apart: an array of a tuple is a value of its own, and arguments
//! and results of `main` are the arrays of the parameters and of the root in order, as hosts pass them. What StableHLO lacks
//! is expressed in it (see [`decompositions`]); copies, layouts, schedules and what else is for XLA's own passes go away.
//! Asynchronous operations run where they start.
//!
//! Called computations and operands stand before what uses them, as XLA writes them, and instructions are read one by one:
//! nothing recurses in proportion to the input but messages of tuples, which nest at most as deep as messages may.

mod attributes;
mod collectives;
mod computations;
mod control;
mod custom_call;
mod decompositions;
mod elementwise;
mod emitter;
mod expansions;
mod indexing;
mod instruction;
mod linear;
mod literal;
mod locations;
mod module;
mod movement;
mod opcodes;
mod proto;
mod random;
mod reader;
mod shape;
mod sharding;
mod transfers;
mod windows;

#[cfg(test)]
mod element_type_tests;
#[cfg(test)]
mod tests;

use prost::Message;

use crate::{Bytes, Error, ErrorKind, Module};

/// Whether the bytes are an `HloModuleProtoWithConfig` rather than an `HloModuleProto`; `None` when they are neither.
///
/// A message of protocol buffers has nothing that marks it. A module has computations with instructions in field 3, where the
/// other message has no field; that one has a module in field 1, where a module has its name.
pub(crate) fn recognise(program: &Bytes) -> Option<bool> {
    let probe = |bytes: prost::bytes::Bytes| proto::Probe::decode(bytes).ok();
    let is_module = |probe: &proto::Probe| {
        probe.computations.iter().any(|computation| !computation.instructions.is_empty())
    };
    let outer = probe(prost::bytes::Bytes::from_owner(program.clone()))?;
    if is_module(&outer) {
        return Some(false);
    }
    is_module(&probe(outer.name_or_module)?).then_some(true)
}

/// Reads an `HloModuleProto`; nothing has been verified.
pub(crate) fn read(program: &Bytes) -> Result<Module, Error> {
    let module = proto::Module::decode(prost::bytes::Bytes::from_owner(program.clone()))
        .map_err(|error| computations::malformed("the program is not an HloModuleProto", &error))?;
    module::read(module, program.len())
}

/// Reads an `HloModuleProtoWithConfig`; nothing has been verified.
pub(crate) fn read_with_config(program: &Bytes) -> Result<Module, Error> {
    let what = "the program is not an HloModuleProtoWithConfig";
    let outer = proto::ModuleWithConfig::decode(prost::bytes::Bytes::from_owner(program.clone()))
        .map_err(|error| computations::malformed(what, &error))?;
    let module =
        outer.module.ok_or_else(|| Error::new(ErrorKind::Malformed, format!("{what}: it has no module")))?;
    let mut module = module::read(module, program.len())?;
    module::add_config(&mut module, &outer.config.unwrap_or_default());
    Ok(module)
}
