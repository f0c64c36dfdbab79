//! The computations of a module, whose instructions are decoded individually.

use std::collections::HashMap;
use std::rc::Rc;

use prost::Message;
use prost::bytes::Bytes;

use super::proto;
use super::shape::Shape;
use crate::{Error, ErrorKind};

/// A computation with instructions that have not been decoded.
pub(super) struct Computation {
    pub(super) name: String,
    /// The local id of the root instruction.
    pub(super) root: u32,
    pub(super) instructions: Vec<Bytes>,
    parameters: Option<Rc<[Parameter]>>,
}

/// A parameter of a computation.
pub(super) struct Parameter {
    pub(super) shape: Shape,
    pub(super) metadata: Option<proto::Metadata>,
    pub(super) sharding: Option<proto::Sharding>,
    pub(super) frontend_attributes: Option<proto::FrontendAttributes>,
}

/// The computations of a module in its order. Called computations precede their callers, so there is no recursion.
pub(super) struct Computations {
    list: Vec<Computation>,
    by_id: HashMap<i64, usize>,
}

/// Returns the id of an instruction within its computation. Newer writers store the id of the computation in the upper
/// half of some ids.
pub(super) fn local_id(id: i64) -> u32 {
    id as u32
}

/// Returns an error about malformed protocol buffers.
pub(super) fn malformed(what: &str, error: &prost::DecodeError) -> Error {
    Error::new(ErrorKind::Malformed, format!("{what}: {}", decode_problem(error)))
}

/// Returns the description of a decoding error. A message type that is nested in itself is mentioned once,
/// regardless of the depth of the error.
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

    /// Returns the index of the computation with this name.
    pub(super) fn position_of_name(&self, name: &str) -> Option<usize> {
        self.list.iter().position(|computation| computation.name == name)
    }

    /// Returns the index of the computation with this id.
    pub(super) fn position(&self, id: i64) -> Option<usize> {
        self.by_id.get(&id).copied()
    }

    /// Returns the parameters of a computation, by parameter number.
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
            let shape = probe.shape.ok_or_else(|| error(format!("parameter {number} has no shape")))?;
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
