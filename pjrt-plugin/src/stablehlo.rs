//! Conversions from the types of `pjrt-stablehlo`, which reads programs, to those of this crate (feature `stablehlo`).
//!
//! A compiler reads a program with [`Program::parse`] and takes the types of its arrays from its [`Signature`]. The errors of
//! `pjrt-stablehlo` become those of PJRT through `?`:
//!
//! ```
//! use pjrt_plugin::{ElementType, ErrorCode, Program, ProgramFormat, Result, Signature};
//!
//! fn compile(program: &Program) -> Result<Signature> {
//!     Signature::of(&program.parse()?)
//! }
//!
//! let code = |ty: &str| {
//!     let text = format!("module @double {{ func.func @main(%x: {ty}) -> {ty} {{
//!         %0 = stablehlo.add %x, %x : {ty}
//!         return %0 : {ty}
//!     }} }}");
//!     Program::new(ProgramFormat::Mlir, text)
//! };
//! let signature = compile(&code("tensor<4xf32>"))?;
//! assert_eq!((&*signature.name, signature.parameters[0].element_type()), ("double", ElementType::F32));
//! let error = compile(&code("tensor<?xf32>")).unwrap_err();
//! assert_eq!(error.code(), ErrorCode::Unimplemented);
//! # Ok::<(), pjrt_plugin::Error>(())
//! ```

use pjrt_stablehlo::ir::{self, Attribute, Function};
use pjrt_stablehlo::versions::{CURRENT_VERSION, MINIMUM_VERSION};
use pjrt_stablehlo::{ErrorKind, Module};

use crate::attributes::PluginAttributes;
use crate::element_type::ElementType;
use crate::error::{Error, ErrorCode, Result};
use crate::program::{Program, ProgramFormat};
use crate::signature::{ArraySpec, Signature};

/// The key of the payload with the name of the operation that an error of `pjrt-stablehlo` concerns.
pub const OP_PAYLOAD: &str = "stablehlo.op";

/// The key of the payload with the location of that operation in the user's program.
pub const LOCATION_PAYLOAD: &str = "stablehlo.location";

/// The attribute by which JAX specifies the memory of an argument or a result.
const MEMORY_KIND: &str = "mhlo.memory_kind";

impl Signature {
    /// Returns the signature of the function `main` of a program (feature `stablehlo`), with the name of the module, or `main` if
    /// it has none. Arrays are in the memories that JAX's attribute `mhlo.memory_kind` specifies. The parameters with
    /// `tf.aliasing_output`, or with `jax.buffer_donor = true`, are donated. See the [example](crate::stablehlo) of the module.
    ///
    /// # Errors
    ///
    /// Returns INVALID_ARGUMENT if the program has no function `main`, or UNIMPLEMENTED if an argument or a result is not an array
    /// of a static size.
    pub fn of(module: &Module) -> Result<Self> {
        let main = main(module)?;
        let spec = |what: &str, index: usize, ty: &ir::Type, kind: Option<&Attribute>| {
            let spec = ArraySpec::try_from(ty).map_err(|error| error.context(format!("{what} {index}")))?;
            Ok(match kind.and_then(Attribute::as_str) {
                Some(kind) => spec.with_memory_kind(kind),
                None => spec,
            })
        };
        let parameters = main.argument_types().iter().enumerate();
        let parameter = |(i, ty)| spec("parameter", i, ty, main.argument_attribute(i, MEMORY_KIND));
        let outputs = main.result_types().iter().enumerate();
        let output = |(i, ty)| spec("output", i, ty, main.result_attribute(i, MEMORY_KIND));
        Ok(Self {
            name: module.name.as_deref().unwrap_or("main").to_owned(),
            donated: (0..parameters.len()).filter(|index| is_donated(main, *index)).collect(),
            parameters: parameters.map(parameter).collect::<Result<_>>()?,
            outputs: outputs.map(output).collect::<Result<_>>()?,
        })
    }
}

/// Returns the function of a program that hosts call.
///
/// # Errors
///
/// Returns INVALID_ARGUMENT if the program has no function `main`.
pub fn main(module: &Module) -> Result<&Function> {
    module.main().ok_or_else(|| Error::invalid_argument("the program has no function 'main'"))
}

fn is_donated(main: &Function, index: usize) -> bool {
    main.argument_attribute(index, "tf.aliasing_output").is_some()
        || main.argument_attribute(index, "jax.buffer_donor").and_then(Attribute::as_bool) == Some(true)
}

impl Program {
    /// Reads and verifies the program with `pjrt-stablehlo`, according to its [format](Self::format) (feature `stablehlo`).
    ///
    /// # Errors
    ///
    /// Returns INVALID_ARGUMENT if the program is not in its format or is invalid, or UNIMPLEMENTED if `pjrt-stablehlo` does not
    /// support it.
    pub fn parse(&self) -> Result<Module> {
        let module = match self.format() {
            ProgramFormat::Mlir => pjrt_stablehlo::parse(self.code()),
            ProgramFormat::Hlo => pjrt_stablehlo::parse_hlo(self.code()),
            ProgramFormat::HloWithConfig => pjrt_stablehlo::parse_hlo_with_config(self.code()),
        };
        module.map_err(|error| Error::from(error).context("cannot read the program"))
    }
}

impl PluginAttributes {
    /// Sets the oldest and the newest version of StableHLO to those that `pjrt-stablehlo` reads (feature `stablehlo`), so that
    /// hosts send programs in the newest version that both sides support.
    #[must_use]
    pub fn with_stablehlo_versions(self) -> Self {
        self.with_stablehlo_minimum_version(MINIMUM_VERSION.components())
            .with_stablehlo_current_version(CURRENT_VERSION.components())
    }
}

/// Converts an error of a reader, the verifier or a pass. The message contains the operation and its location, which are
/// payloads too ([`OP_PAYLOAD`], [`LOCATION_PAYLOAD`]).
impl From<pjrt_stablehlo::Error> for Error {
    fn from(error: pjrt_stablehlo::Error) -> Self {
        let code = match error.kind {
            ErrorKind::Unsupported => ErrorCode::Unimplemented,
            // An input that exceeds a limit is at fault itself: more memory would not help.
            _ => ErrorCode::InvalidArgument,
        };
        let mut converted = Self::new(code, error.to_string());
        if let Some(op) = &error.op {
            converted = converted.with_payload(OP_PAYLOAD, op.as_bytes());
        }
        if !error.location.is_unknown() {
            converted = converted.with_payload(LOCATION_PAYLOAD, error.location.brief().to_string());
        }
        converted
    }
}

/// Converts the type of a tensor of static size to the specification of an array in the default memory.
///
/// # Errors
///
/// Returns UNIMPLEMENTED for tuples, tokens, quantized tensors and tensors of dynamic size, which are not arrays of PJRT.
impl TryFrom<&ir::Type> for ArraySpec {
    type Error = Error;

    fn try_from(ty: &ir::Type) -> Result<Self> {
        let unsupported = || {
            Error::unimplemented(format!(
                "expected an array of static size as an argument or a result, found {ty}"
            ))
        };
        let tensor = ty.as_tensor().ok_or_else(unsupported)?;
        let element_type = ElementType::try_from(tensor.element_type()).map_err(|_| unsupported())?;
        Ok(Self::new(element_type, tensor.static_dims().ok_or_else(unsupported)?))
    }
}

/// # Errors
///
/// Returns UNIMPLEMENTED for types without an equivalent in PJRT: `index`, `tf32` and quantized types.
impl TryFrom<ir::ElementType> for ElementType {
    type Error = Error;

    fn try_from(ty: ir::ElementType) -> Result<Self> {
        let same = |other: &&Self| other.xla_number() as i32 == ty.xla_number();
        let found = Self::ALL.iter().find(same).copied();
        found.ok_or_else(|| {
            Error::unimplemented(format!("PJRT has no arrays of the element type {}", ty.name()))
        })
    }
}

/// # Errors
///
/// Returns UNIMPLEMENTED for tokens, which are not elements in StableHLO.
impl TryFrom<ElementType> for ir::ElementType {
    type Error = Error;

    fn try_from(ty: ElementType) -> Result<Self> {
        let same = |other: &&Self| other.xla_number() == ty.xla_number() as i32;
        let found = Self::ALL.iter().find(same).copied();
        found
            .ok_or_else(|| Error::unimplemented(format!("StableHLO has no tensors of the element type {ty}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(main: &str) -> Program {
        Program::new(ProgramFormat::Mlir, main)
    }

    #[test]
    fn element_types_come_back_from_a_conversion() {
        for ty in ElementType::ALL.iter().filter(|ty| **ty != ElementType::Token) {
            let other = ir::ElementType::try_from(*ty).unwrap();
            assert_eq!(ElementType::try_from(other).unwrap(), *ty);
        }
        for (ty, name) in [
            (ElementType::Pred, "i1"),
            (ElementType::S4, "i4"),
            (ElementType::U64, "ui64"),
            (ElementType::F8E4M3FN, "f8E4M3FN"),
            (ElementType::C128, "complex<f64>"),
        ] {
            assert_eq!(ir::ElementType::try_from(ty).unwrap().name(), name);
        }
        assert!(ir::ElementType::try_from(ElementType::Token).is_err());
        let without: Vec<_> = ir::ElementType::ALL
            .iter()
            .filter(|ty| ElementType::try_from(**ty).is_err())
            .map(|ty| ty.name())
            .collect();
        assert_eq!(without.len() + ElementType::ALL.len() - 1, ir::ElementType::ALL.len(), "{without:?}");
        assert!(without.contains(&"index") && without.contains(&"tf32"), "{without:?}");
    }

    #[test]
    fn signatures_have_memory_kinds_and_donated_parameters() {
        let text = r#"func.func @main(
            %x: tensor<2x3xbf16> {tf.aliasing_output = 0 : i32}, %y: tensor<i1> {mhlo.memory_kind = "pinned_host"},
            %z: tensor<ui8> {jax.buffer_donor = true}, %w: tensor<ui8> {jax.buffer_donor = false}
        ) -> (tensor<2x3xbf16> {mhlo.memory_kind = "device"}) { return %x : tensor<2x3xbf16> }"#;
        let signature = Signature::of(&program(text).parse().unwrap()).unwrap();
        assert_eq!(signature.name, "main");
        let matrix = ArraySpec::new(ElementType::BF16, [2, 3]);
        assert_eq!(signature.parameters[0], matrix);
        assert_eq!(
            signature.parameters[1],
            ArraySpec::new(ElementType::Pred, []).with_memory_kind("pinned_host")
        );
        assert_eq!(signature.outputs, [matrix.with_memory_kind("device")]);
        assert_eq!(signature.donated, [0, 2]);
    }

    #[test]
    fn errors_keep_their_code_operation_and_location() {
        let text = "func.func @main(%x: tensor<2xf32>) -> tensor<3xf32> {
            %0 = stablehlo.negate %x : (tensor<2xf32>) -> tensor<3xf32> loc(\"model.py\":7:1)
            return %0 : tensor<3xf32>
        }";
        let error = program(text).parse().unwrap_err();
        assert_eq!(error.code(), ErrorCode::InvalidArgument);
        for part in ["cannot read the program: line 2", "stablehlo.negate (C1)", "model.py\":7:1"] {
            assert!(error.message().contains(part), "{part}: {error}");
        }
        let payload =
            |key: &str| error.payloads().iter().find(|(name, _)| name == key).map(|(_, value)| &value[..]);
        assert_eq!(payload(OP_PAYLOAD), Some(&b"stablehlo.negate"[..]));
        assert_eq!(payload(LOCATION_PAYLOAD), Some(&b"\"model.py\":7:1"[..]));
        let unsupported = pjrt_stablehlo::Error::new(ErrorKind::Unsupported, "no such dialect");
        assert_eq!(Error::from(unsupported).code(), ErrorCode::Unimplemented);
    }

    #[test]
    fn arrays_without_a_static_size_are_refused_by_their_type() {
        let text =
            "func.func @main(%x: tensor<f32>, %y: tensor<?xf32>) -> tensor<f32> { return %x : tensor<f32> }";
        let error = Signature::of(&program(text).parse().unwrap()).unwrap_err();
        assert_eq!(error.code(), ErrorCode::Unimplemented);
        assert!(
            error.message().contains("parameter 1") && error.message().contains("tensor<?xf32>"),
            "{error}"
        );
        let error = Signature::of(&program("module {}").parse().unwrap()).unwrap_err();
        assert!(error.message().contains("no function 'main'"), "{error}");
    }
}
