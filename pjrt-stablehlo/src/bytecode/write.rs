//! The writer of MLIR bytecode: modules, meshes and functions.

use super::body::write_body;
use super::correspondence::VHLO_FUNCTION;
use super::file_writer::{OpHead, Writer};
use super::output::Output;
use super::sections::FORMAT_PROPERTIES;
use crate::ir::{Attribute, Function, MeshDeclaration, Module, Presence};
use crate::versions::{CURRENT_VERSION, MINIMUM_VERSION, Version};
use crate::{Error, ErrorKind};

/// The writer that files without VHLO name.
const PRODUCER: &str = concat!("pjrt-stablehlo ", env!("CARGO_PKG_VERSION"));

/// The format of files without VHLO: the newest one in which dictionaries contain the attributes of operations. Properties,
/// which replace these, are encoded without names, so that a reader whose form of an operation has one attribute more
/// or less refuses them.
const UNVERSIONED_FORMAT: u64 = FORMAT_PROPERTIES - 1;

/// The first versions of VHLO with the formats of bytecode in which they are written.
const FORMATS: &[((u32, u32), u64)] = &[((0, 9), 0), ((0, 10), 1), ((0, 12), 3), ((0, 14), 4), ((0, 15), 6)];

/// Writes a module as StableHLO bytecode: MLIR bytecode with the operations, attributes and types of the `stablehlo`
/// dialect and the others that the module uses.
///
/// The bytecode has no compatibility guarantee, like that of MLIR's own writer: the reader must have the operations, and the
/// attributes that they state. It may have further optional attributes, because attributes are written with their names.
/// [`write_portable_artifact`] writes for readers of other versions.
/// [`parse`](crate::parse) reads an equal module from the result, except that resources become dense elements.
///
/// # Errors
/// Returns an error of kind [`ErrorKind::Invalid`] if an operation lacks a required attribute or uses a value that is
/// not defined before it, [`ErrorKind::TooLarge`] if an attribute or type exceeds a [limit](crate::limits), and
/// [`ErrorKind::Unsupported`] if an attribute has no encoding.
///
/// # Panics
/// Panics if an operation refers to values or regions of another body.
///
/// ```
/// let text = "func.func @main(%x: tensor<f32>) -> tensor<f32> { return %x : tensor<f32> }";
/// let module = pjrt_stablehlo::parse(text.to_owned())?;
/// let bytecode: Vec<u8> = pjrt_stablehlo::write_bytecode(&module)?;
/// assert_eq!(pjrt_stablehlo::parse(bytecode)?.to_string(), module.to_string());
/// # Ok::<(), pjrt_stablehlo::Error>(())
/// ```
pub fn write_bytecode(module: &Module) -> Result<Vec<u8>, Error> {
    write(Writer::new(None, UNVERSIONED_FORMAT), module, PRODUCER)
}

/// Writes a module as a portable artifact: StableHLO in its versioned form VHLO, as MLIR bytecode.
///
/// Every StableHLO library of `version` or newer reads the artifact, with
/// `mlir::stablehlo::deserializePortableArtifact`. Operations, attributes and types outside VHLO, such as Shardy's, are
/// written in the encoding of their dialect.
///
/// # Errors
/// Returns an error of kind [`ErrorKind::Unsupported`] that names the operation and the version that is needed if
/// `version` cannot express the module, and if `version` is not between
/// [`MINIMUM_VERSION`] and [`CURRENT_VERSION`]. Returns the errors of [`write_bytecode`].
///
/// # Panics
/// Panics if an operation refers to values or regions of another body.
///
/// ```
/// use pjrt_stablehlo::versions::Version;
/// use pjrt_stablehlo::write_portable_artifact;
///
/// let text = "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
///     %0 = stablehlo.tan %x : tensor<4xf32>
///     return %0 : tensor<4xf32>
/// }";
/// let module = pjrt_stablehlo::parse(text.to_owned())?;
/// let artifact: Vec<u8> = write_portable_artifact(&module, Version::new(1, 9, 0))?;
/// assert_eq!(pjrt_stablehlo::parse(artifact)?.source_version, Some(Version::new(1, 9, 0)));
///
/// let error = write_portable_artifact(&module, Version::new(1, 0, 0)).unwrap_err();
/// assert!(error.to_string().contains("stablehlo.tan: VHLO 1.0.0 does not have this operation, which needs VHLO 1.4.0"));
/// # Ok::<(), pjrt_stablehlo::Error>(())
/// ```
pub fn write_portable_artifact(module: &Module, version: Version) -> Result<Vec<u8>, Error> {
    let number = |version: Version| (version.major, version.minor);
    if !(number(MINIMUM_VERSION)..=number(CURRENT_VERSION)).contains(&number(version)) {
        let message = format!(
            "VHLO {version} is not supported, expected a version from {MINIMUM_VERSION} to {CURRENT_VERSION}"
        );
        return Err(Error::new(ErrorKind::Unsupported, message));
    }
    let formats = FORMATS.iter().filter(|(since, _)| *since <= number(version));
    let format = formats.map(|(_, format)| *format).max().unwrap_or(0);
    write(Writer::new(Some(version), format), module, &format!("StableHLO_v{version}"))
}

fn write(mut writer: Writer, module: &Module, producer: &str) -> Result<Vec<u8>, Error> {
    let mut code = Output::default();
    code.varint_with_flag(1, false);
    let written = write_module(&mut writer, module, &mut code);
    written.map_err(|error| error.in_op("builtin.module", &module.location))?;
    Ok(writer.finish(producer, &code))
}

fn write_module(writer: &mut Writer, module: &Module, code: &mut Output) -> Result<(), Error> {
    let name = module.name.iter().map(|name| ("sym_name".into(), Attribute::String(name.clone())));
    let head = OpHead {
        form: writer.native_form("builtin.module")?,
        location: &module.location,
        own: name.collect(),
        discardable: &module.attributes,
        result_types: Vec::new(),
        operands: Vec::new(),
        regions: (1, true),
    };
    writer.op_head(code, head)?;
    let mut region = Output::default();
    // One block, without values.
    region.count(1);
    region.count(0);
    region.varint_with_flag((module.meshes().len() + module.functions().len()) as u64, false);
    for mesh in module.meshes() {
        write_mesh(writer, mesh, &mut region).map_err(|error| error.in_op("sdy.mesh", &mesh.location))?;
    }
    for function in module.functions() {
        let written = write_function(writer, function, &mut region);
        written.map_err(|error| error.in_op("func.func", &function.location))?;
    }
    writer.isolated_region(code, &region);
    Ok(())
}

fn write_mesh(writer: &mut Writer, mesh: &MeshDeclaration, out: &mut Output) -> Result<(), Error> {
    writer.encoder.require_mixed_dialects(|| "meshes of Shardy".to_owned())?;
    let head = OpHead {
        form: writer.native_form("sdy.mesh")?,
        location: &mesh.location,
        own: mesh.own_attributes(),
        discardable: &mesh.attributes,
        result_types: Vec::new(),
        operands: Vec::new(),
        regions: (0, false),
    };
    writer.op_head(out, head)
}

fn write_function(writer: &mut Writer, function: &Function, out: &mut Output) -> Result<(), Error> {
    let mut own = function.own_attributes();
    let form = match writer.version {
        None => writer.native_form("func.func")?,
        Some(_) => {
            for &name in VHLO_FUNCTION {
                if !own.iter().any(|(known, _)| *known == name) {
                    let is_list = name.ends_with("_attrs");
                    let empty = if is_list { Attribute::Array([].into()) } else { "".into() };
                    own.push((name.into(), empty));
                }
            }
            let attributes = VHLO_FUNCTION.iter().map(|&name| (name.into(), Presence::Required));
            writer.form("vhlo.func_v1", || Some(attributes.collect()))?
        }
    };
    let head = OpHead {
        form,
        location: &function.location,
        own,
        discardable: &function.attributes,
        result_types: Vec::new(),
        operands: Vec::new(),
        regions: (1, true),
    };
    writer.op_head(out, head)?;
    let region = write_body(writer, &function.body)?;
    writer.isolated_region(out, &region);
    Ok(())
}
