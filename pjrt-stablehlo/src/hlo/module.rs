//! Modules: the signature of the entry computation, and the attributes of its parameters and results.

use super::computations::Computations;
use super::locations::Locations;
use super::proto;
use super::reader::{Reader, frontend_attributes};
use super::shape::Shape;
use super::sharding;
use crate::ir::{Attribute, DictionaryAttribute, ElementType, Module, Str};
use crate::{Error, ErrorKind};

/// The entries of a dictionary of attributes.
type Attributes = Vec<(Str, Attribute)>;

fn malformed(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Malformed, message)
}

/// Reads a module, which takes `program_len` bytes.
pub(super) fn read(proto: proto::Module, program_len: usize) -> Result<Module, Error> {
    let computations = Computations::new(proto.computations)?;
    // The id may be 0, which is also the default. It is considered absent only if no computation has that id.
    let entry = computations
        .position(proto.entry_computation_id)
        .or_else(|| computations.position_of_name(&proto.entry_computation_name))
        .ok_or_else(|| malformed("the program has no entry computation"))?;
    let locations = Locations::new(proto.stack_frame_index.unwrap_or_default());
    let mut reader = Reader::new(computations, locations, program_len);
    reader.name_function(entry, "main");

    let (mut main, root) = reader.read_function(entry)?;
    let mut arguments = parameter_attributes(&mut reader, entry)?;
    let parameters = reader.computations.parameters(entry)?;
    let shapes: Vec<&Shape> = parameters.iter().map(|parameter| &parameter.shape).collect();
    add_aliases(&mut arguments, &shapes, &root, proto.input_output_alias.unwrap_or_default())?;
    add_donors(&mut arguments, &shapes, proto.buffer_donor.unwrap_or_default())?;
    main.argument_attributes = dictionaries(arguments);
    let root_sharding = reader.root_sharding.take();
    let mut results = Vec::new();
    for sharding in sharding::per_leaf(root_sharding.as_ref(), root.leaf_count())? {
        results.push(reader.attributes(sharding.as_ref(), None)?);
    }
    main.result_attributes = dictionaries(results);

    let mut module = Module::new();
    module.name = Some(proto.name.into());
    let mut attributes = spmd_shardings(proto.spmd_output_sharding, &proto.spmd_parameters_shardings)?;
    attributes.extend(proto.frontend_attributes.as_ref().and_then(frontend_attributes));
    module.attributes = DictionaryAttribute::new(attributes);
    let others = reader.called_functions()?;
    for function in std::iter::once(main).chain(others) {
        module
            .add_function(function)
            .map_err(|function| malformed(format!("two computations are named '{}'", function.name)))?;
    }
    Ok(module)
}

/// Returns the attributes of the arrays of each parameter of a computation.
fn parameter_attributes(reader: &mut Reader, computation: usize) -> Result<Vec<Attributes>, Error> {
    let mut attributes = Vec::new();
    for parameter in reader.computations.parameters(computation)?.iter() {
        for sharding in sharding::per_leaf(parameter.sharding.as_ref(), parameter.shape.leaf_count())? {
            attributes.push(reader.attributes(sharding.as_ref(), parameter.frontend_attributes.as_ref())?);
        }
    }
    Ok(attributes)
}

/// Adds to the attributes of each argument the result with which it shares its memory.
fn add_aliases(
    arguments: &mut [Attributes],
    parameters: &[&Shape],
    root: &Shape,
    aliases: proto::InputOutputAlias,
) -> Result<(), Error> {
    for entry in aliases.entries {
        let argument = leaf(parameters, entry.parameter_number, &entry.parameter_shape_index);
        let result = root.leaf_at(&entry.output_shape_index);
        let (Some(argument), Some(result)) = (argument, result) else {
            return Err(malformed(format!(
                "input_output_alias: parameter {} or result {:?} is not an array of the program",
                entry.parameter_number, entry.output_shape_index
            )));
        };
        let value = Attribute::Integer { value: result as i64, ty: ElementType::I32 };
        arguments[argument].push(("tf.aliasing_output".into(), value));
    }
    Ok(())
}

/// Adds to the attributes of each argument whether the program may use its memory for any result.
fn add_donors(
    arguments: &mut [Attributes],
    parameters: &[&Shape],
    donors: proto::BufferDonor,
) -> Result<(), Error> {
    for entry in donors.entries {
        let argument = leaf(parameters, entry.parameter_number, &entry.parameter_shape_index);
        let argument = argument.ok_or_else(|| {
            malformed(format!(
                "buffer_donor: parameter {} is not an array of the program",
                entry.parameter_number
            ))
        })?;
        arguments[argument].push(("jax.buffer_donor".into(), Attribute::Bool(true)));
    }
    Ok(())
}

/// Returns the module's attributes about the shardings of its parameters and results.
fn spmd_shardings(
    output: Option<proto::Sharding>,
    parameters: &[proto::Sharding],
) -> Result<Attributes, Error> {
    let mut attributes = Attributes::new();
    if let Some(output) = output {
        attributes.push(("mhlo.spmd_output_sharding".into(), sharding::attribute(&output)?.1));
    }
    if !parameters.is_empty() {
        let shardings = parameters.iter().map(|sharding| Ok(sharding::attribute(sharding)?.1));
        let shardings = shardings.collect::<Result<Vec<_>, Error>>()?;
        attributes.push(("mhlo.spmd_parameters_shardings".into(), Attribute::Array(shardings.into())));
    }
    Ok(attributes)
}

/// Sets the module's numbers of partitions and replicas.
pub(super) fn add_config(module: &mut Module, config: &proto::ModuleConfig) {
    let counts =
        [("mhlo.num_partitions", config.num_partitions), ("mhlo.num_replicas", config.replica_count)];
    let counts = counts.into_iter().filter(|(_, count)| *count > 0);
    let counts = counts
        .map(|(name, value)| (name.into(), Attribute::Integer { value, ty: ElementType::I32 }))
        .chain(module.attributes.entries().iter().cloned());
    module.attributes = DictionaryAttribute::new(counts.collect());
}

/// Returns the argument of `main` for a path in a parameter.
fn leaf(parameters: &[&Shape], number: i64, path: &[i64]) -> Option<usize> {
    let number = usize::try_from(number).ok()?;
    let before: usize = parameters.get(..number)?.iter().map(|shape| shape.leaf_count()).sum();
    Some(before + parameters.get(number)?.leaf_at(path)?)
}

/// Returns the dictionaries of arguments or results, or an empty list if all of them are empty.
fn dictionaries(attributes: Vec<Attributes>) -> Vec<DictionaryAttribute> {
    if attributes.iter().all(Vec::is_empty) {
        return Vec::new();
    }
    attributes.into_iter().map(DictionaryAttribute::new).collect()
}
