//! The reader of HLO: XLA's `HloModuleProto` and `HloModuleProtoWithConfig`, which PyTorch/XLA, TensorFlow and older
//! versions of GoMLX send.
//!
//! The entry computation becomes the function `main`. Called and fused computations become functions, and computations
//! that an operation applies become its regions. Tuples are flattened: each array of a tuple is a value, and the
//! arguments and results of `main` are the arrays of the parameters and of the root, in the order in which hosts pass
//! them. Operations that StableHLO lacks are expressed by others (see [`expansions`]). Copies, layouts, schedules and
//! other information for XLA's passes are dropped. Asynchronous operations run where they start.
//!
//! XLA writes called computations and operands before their uses, and instructions are read one by one. Therefore the
//! reader does not recurse in proportion to the input, except for the messages of nested tuples, whose depth the
//! decoder of protocol buffers limits.

mod attributes;
mod collectives;
mod computations;
mod control;
mod custom_call;
mod elementwise;
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

/// Returns whether the bytes are an `HloModuleProtoWithConfig` rather than an `HloModuleProto`; `None` if they are
/// neither.
///
/// Protocol buffers have no signature. A module has computations with instructions in field 3, which the other message
/// does not have; that message has a module in field 1, where a module has its name.
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

/// Reads an `HloModuleProto` without verifying the program.
pub(crate) fn read(program: &Bytes) -> Result<Module, Error> {
    let module = proto::Module::decode(prost::bytes::Bytes::from_owner(program.clone()))
        .map_err(|error| computations::malformed("the program is not an HloModuleProto", &error))?;
    module::read(module, program.len())
}

/// Reads an `HloModuleProtoWithConfig` without verifying the program.
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
