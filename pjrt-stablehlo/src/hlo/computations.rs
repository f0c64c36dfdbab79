//! The computations of a module, and their instructions one at a time.

use std::collections::HashMap;
use std::rc::Rc;

use prost::Message;
use prost::bytes::Bytes;

use super::proto;
use super::shape::Shape;
use crate::{Error, ErrorKind};

/// A computation whose instructions have not been decoded.
pub(super) struct Computation {
    pub(super) name: String,
    /// Local id of the instruction that gives the result.
    pub(super) root: u32,
    pub(super) instructions: Vec<Bytes>,
    parameters: Option<Rc<[Parameter]>>,
}

/// What a computation takes.
pub(super) struct Parameter {
    pub(super) shape: Shape,
    pub(super) metadata: Option<proto::Metadata>,
    pub(super) sharding: Option<proto::Sharding>,
    pub(super) frontend_attributes: Option<proto::FrontendAttributes>,
}

/// The computations of a module, in its order: called ones come before their callers, so there is no recursion.
pub(super) struct Computations {
    list: Vec<Computation>,
    by_id: HashMap<i64, usize>,
}

/// The id of an instruction within its computation. Newer writers put a number of the computation into the upper half of
/// some of an instruction's ids.
pub(super) fn local_id(id: i64) -> u32 {
    id as u32
}

/// An error about the encoding.
pub(super) fn malformed(what: &str, error: &prost::DecodeError) -> Error {
    Error::new(ErrorKind::Malformed, format!("{what}: {}", decode_problem(error)))
}

/// What is wrong with an encoding. Messages that nest in themselves are named once, however deep the problem is.
fn decode_problem(error: &prost::DecodeError) -> String {
    let text = error.to_string();
    let mut parts: Vec<&str> = text.split(": ").collect();
    parts.dedup();
    parts.join(": ")
}

impl Computations {
    pub(super) fn new(list: Vec<proto::Computation>) -> Result<Self, Error> {
        let mut by_id = HashMap::new();
        for (index, computation) in list.iter().enumerate() {
            if by_id.insert(computation.id, index).is_some() {
                let message = format!("two computations have the id {}", computation.id);
                return Err(Error::new(ErrorKind::Malformed, message));
            }
        }
        let list = list.into_iter().map(|computation| Computation {
            name: computation.name,
            root: local_id(computation.root_id),
            instructions: computation.instructions,
            parameters: None,
        });
        Ok(Computations { list: list.collect(), by_id })
    }

    pub(super) fn get(&self, index: usize) -> &Computation {
        &self.list[index]
    }

    /// Where the computation of this name stands.
    pub(super) fn position_of_name(&self, name: &str) -> Option<usize> {
        self.list.iter().position(|computation| computation.name == name)
    }

    /// Where the computation of this id stands.
    pub(super) fn position(&self, id: i64) -> Option<usize> {
        self.by_id.get(&id).copied()
    }

    /// What a computation takes, by parameter number.
    pub(super) fn parameters(&mut self, index: usize) -> Result<Rc<[Parameter]>, Error> {
        let computation = &mut self.list[index];
        if let Some(parameters) = &computation.parameters {
            return Ok(parameters.clone());
        }
        let error = |message: String| {
            Error::new(ErrorKind::Malformed, format!("computation '{}': {message}", computation.name))
        };
        let mut numbered = Vec::new();
        for instruction in &computation.instructions {
            let probe = proto::ParameterProbe::decode(instruction.clone());
            let probe = probe.map_err(|failure| error(decode_problem(&failure)))?;
            if probe.opcode == "parameter" {
                numbered.push((probe.parameter_number, probe));
            }
        }
        numbered.sort_by_key(|(number, _)| *number);
        let mut parameters = Vec::with_capacity(numbered.len());
        for (number, probe) in numbered {
            if number != parameters.len() as i64 {
                return Err(error(format!(
                    "expected parameter {}, found parameter {number}",
                    parameters.len()
                )));
            }
            let shape = probe.shape.ok_or_else(|| error(format!("parameter {number} lacks a shape")))?;
            parameters.push(Parameter {
                shape: Shape::read(&shape)?,
                metadata: probe.metadata,
                sharding: probe.sharding,
                frontend_attributes: probe.frontend_attributes,
            });
        }
        let parameters: Rc<[Parameter]> = parameters.into();
        computation.parameters = Some(parameters.clone());
        Ok(parameters)
    }
}
