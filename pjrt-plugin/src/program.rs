//! Programs in the formats in which hosts pass them.

use std::fmt;
use std::sync::Arc;

use prost::Message;

use crate::core::allocate;
use crate::error::Result;
use crate::proto::{HloModule, HloModuleConfig, HloModuleWithConfig, OpSharding, ProgramShape, Shape};
use crate::sharding::Sharding;

/// The format of a program (`PJRT_Program`).
///
/// ```
/// use pjrt_plugin::ProgramFormat;
///
/// assert_eq!(ProgramFormat::from_name(b"hlo"), Some(ProgramFormat::Hlo));
/// assert_eq!(ProgramFormat::Mlir.name(), "mlir");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProgramFormat {
    /// `mlir`: StableHLO as a portable artifact (VHLO bytecode), MLIR bytecode or MLIR text. JAX, GoMLX and ZML use it.
    Mlir,
    /// `hlo`: a serialized `HloModuleProto`. PyTorch/XLA and TensorFlow use it.
    Hlo,
    /// `hlo_with_config`: a serialized `HloModuleProtoWithConfig`. Hosts accept it as the format of an optimized program.
    HloWithConfig,
}

impl ProgramFormat {
    /// Returns the name of the format in the C API.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mlir => "mlir",
            Self::Hlo => "hlo",
            Self::HloWithConfig => "hlo_with_config",
        }
    }

    /// Returns the format with a name of the C API, or `None` if the name is unknown.
    #[must_use]
    pub fn from_name(name: &[u8]) -> Option<Self> {
        [Self::Mlir, Self::Hlo, Self::HloWithConfig]
            .into_iter()
            .find(|format| format.name().as_bytes() == name)
    }
}

/// A program: its format and its bytes. A clone shares the bytes.
///
/// ```
/// use pjrt_plugin::{Program, ProgramFormat};
///
/// let program = Program::new(ProgramFormat::Mlir, *b"module {}");
/// assert_eq!(program.code(), b"module {}");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Program {
    format: ProgramFormat,
    code: Arc<Vec<u8>>,
}

impl Program {
    /// Creates a program from its format and its bytes.
    #[must_use]
    pub fn new(format: ProgramFormat, code: impl Into<Vec<u8>>) -> Self {
        Self { format, code: Arc::new(code.into()) }
    }

    /// Returns the format.
    #[must_use]
    pub fn format(&self) -> ProgramFormat {
        self.format
    }

    /// Returns the bytes.
    #[must_use]
    pub fn code(&self) -> &[u8] {
        &self.code
    }

    /// Returns the program with the shardings of its parameters and outputs. PyTorch/XLA does not support the
    /// [Shardings](crate::ext::Shardings) extension, and reads them from the optimized program
    /// ([`optimized_program`](crate::PjrtExecutable::optimized_program)). Without them, it treats one partition's part of an
    /// output as the whole output. A program is returned unchanged if its format is not `hlo`, if it cannot be decoded, or
    /// if it has one output and `outputs` another number of shardings.
    #[must_use]
    pub fn with_shardings(&self, parameters: &[Sharding], outputs: &[Sharding]) -> Self {
        if self.format != ProgramFormat::Hlo {
            return self.clone();
        }
        let Ok(module) = HloModule::decode(self.code()) else { return self.clone() };
        let shape = ProgramShape::decode(&*module.host_program_shape).unwrap_or_default();
        let [whole] = &of_shapes(std::slice::from_ref(&shape.result.unwrap_or_default()), outputs)[..] else {
            return self.clone();
        };
        let shardings = HloModule {
            host_program_shape: Vec::new(),
            spmd_output_sharding: Some(whole.clone()),
            spmd_parameters_shardings: of_shapes(&shape.parameters, parameters),
        };
        // The concatenation of two encodings of a message type is the encoding of the merged message.
        let mut code = self.code.to_vec();
        shardings.encode(&mut code).expect("a vector grows");
        Self::new(self.format, code)
    }

    /// Converts the program to a format that hosts accept as an optimized program. Hosts pass `hlo` but do not accept it.
    ///
    /// # Errors
    ///
    /// Returns RESOURCE_EXHAUSTED if there is not enough memory.
    pub(crate) fn as_optimized(&self) -> Result<Self> {
        if self.format != ProgramFormat::Hlo {
            return Ok(self.clone());
        }
        // The configuration consists of the layouts that the module declares for its parameters and its result.
        let shape = HloModule::decode(self.code()).map(|module| module.host_program_shape);
        let config = shape.ok().map(|entry_computation_layout| HloModuleConfig { entry_computation_layout });
        let with_config = HloModuleWithConfig { hlo_module: allocate::copy(&self.code)?, config };
        let mut code = allocate::with_capacity(with_config.encoded_len())?;
        with_config.encode(&mut code).expect("a vector grows");
        Ok(Self::new(ProgramFormat::HloWithConfig, code))
    }
}

/// Returns the shardings of arrays as the shardings of shapes, which may be a tuple of the arrays.
fn of_shapes(shapes: &[Shape], arrays: &[Sharding]) -> Vec<OpSharding> {
    /// Numbers of `xla.PrimitiveType` and `xla.OpSharding.Type`.
    const TUPLE_SHAPE: u32 = 13;
    const TUPLE_SHARDING: i32 = 2;
    let all = || arrays.iter().map(Sharding::to_proto).collect();
    match shapes {
        // Hosts expect one sharding for an empty tuple.
        [shape] if shape.element_type == TUPLE_SHAPE && arrays.is_empty() => {
            vec![Sharding::Replicated.to_proto()]
        }
        [shape] if shape.element_type == TUPLE_SHAPE => {
            vec![OpSharding { r#type: TUPLE_SHARDING, tuple_shardings: all(), ..OpSharding::default() }]
        }
        _ => all(),
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Program({}, {} bytes)", self.format.name(), self.code.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_get_hlo_back_with_its_configuration() {
        let shape = vec![0x12, 0x00];
        let module = HloModule { host_program_shape: shape.clone(), ..HloModule::default() }.encode_to_vec();
        let sent = Program::new(ProgramFormat::Hlo, module.clone());
        let optimized = sent.as_optimized().unwrap();
        assert_eq!(optimized.format(), ProgramFormat::HloWithConfig);
        let read = HloModuleWithConfig::decode(optimized.code()).unwrap();
        assert_eq!(read.hlo_module, module);
        assert_eq!(read.config.unwrap().entry_computation_layout, shape);
        assert_eq!(optimized.as_optimized().unwrap(), optimized);
    }
    #[test]
    fn shardings_of_a_tuple_are_a_tuple_of_shardings() {
        let array = Shape { element_type: 11, dimensions: vec![4], ..Shape::default() };
        let sent = |result: Shape| {
            let shape = ProgramShape { parameters: vec![array.clone()], result: Some(result) };
            let module = HloModule { host_program_shape: shape.encode_to_vec(), ..HloModule::default() };
            Program::new(ProgramFormat::Hlo, module.encode_to_vec())
        };
        let halves = Sharding::Tiled {
            tile_assignment_dimensions: vec![2],
            tile_assignment_devices: vec![0, 1],
            replicate_on_last_tile_dim: false,
        };
        let read = |program: &Program| {
            let said = program.with_shardings(&[Sharding::Replicated], std::slice::from_ref(&halves));
            HloModule::decode(said.code()).unwrap()
        };
        let of_array = read(&sent(array.clone()));
        assert_eq!(of_array.spmd_output_sharding, Some(halves.to_proto()));
        assert_eq!(of_array.spmd_parameters_shardings, [Sharding::Replicated.to_proto()]);
        let of_tuple = read(&sent(Shape { element_type: 13, ..Shape::default() }));
        assert_eq!(of_tuple.spmd_output_sharding.unwrap().tuple_shardings, [halves.to_proto()]);
        assert!(!of_tuple.host_program_shape.is_empty());
        let empty = sent(Shape { element_type: 13, ..Shape::default() });
        let of_nothing =
            HloModule::decode(empty.with_shardings(&[Sharding::Replicated], &[]).code()).unwrap();
        assert_eq!(of_nothing.spmd_output_sharding, Some(Sharding::Replicated.to_proto()));
    }
}
