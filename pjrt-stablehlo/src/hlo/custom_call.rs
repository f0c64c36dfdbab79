//! Custom calls.

use super::instruction::Instruction;
use super::proto;
use super::reader::Reader;
use super::shape::{self, Shape};
use crate::ir::{BackendConfig, CustomCallApiVersion, Ints, Layouts, OutputOperandAlias, Str, ValueId, ops};
use crate::{Error, ErrorKind, text};

impl Reader {
    /// Operands that are tuples are not flattened. The elements of a result tuple become results.
    pub(super) fn custom_call(&mut self, at: &Instruction) -> Result<Vec<ValueId>, Error> {
        let operands: Vec<ValueId> = at.operands.iter().map(|operand| self.packed(operand)).collect();
        let called_computations = (0..at.proto.called_computation_ids.len())
            .map(|index| self.called(at, index).map(|computation| self.function(computation)))
            .collect::<Result<Box<[Str]>, Error>>()?;
        let api_version = u64::try_from(at.proto.custom_call_api_version).ok();
        let api_version = api_version.and_then(CustomCallApiVersion::from_code).ok_or_else(|| {
            at.unsupported(format!(
                "the custom call API version {} is not supported",
                at.proto.custom_call_api_version
            ))
        })?;
        let (operand_layouts, result_layouts) = layouts(at)?;
        let op = ops::CustomCall {
            call_target_name: at.proto.custom_call_target.as_str().into(),
            has_side_effect: at.proto.custom_call_has_side_effect,
            backend_config: backend_config(at, api_version)?,
            // XLA treats an unspecified version as the original one.
            api_version: match api_version {
                CustomCallApiVersion::Unspecified => CustomCallApiVersion::Original,
                given => given,
            },
            called_computations,
            operand_layouts,
            result_layouts,
            output_operand_aliases: at.proto.output_operand_aliasing.iter().map(alias).collect(),
            result_tilings: None,
        };
        let elements = at.shape.elements();
        let results = self.code.op_of_types(op, &operands, elements.iter().map(Shape::ty));
        let mut leaves = Vec::new();
        for (result, element) in results.into_iter().zip(elements) {
            self.unpacked(result, element, &mut leaves);
        }
        Ok(leaves)
    }
}

fn alias(alias: &proto::OutputOperandAliasing) -> OutputOperandAlias {
    OutputOperandAlias {
        output_tuple_indices: alias.output_shape_index.as_slice().into(),
        operand_index: alias.operand_index,
        operand_tuple_indices: alias.operand_shape_index.as_slice().into(),
    }
}

/// Returns the backend configuration: a dictionary for the typed interface, which XLA stores as text, otherwise bytes.
fn backend_config(at: &Instruction, api_version: CustomCallApiVersion) -> Result<BackendConfig, Error> {
    let bytes = &at.proto.backend_config;
    if bytes.is_empty() && !at.proto.backend_config_payload.is_empty() {
        return Err(at.unsupported("a configuration in 'backend_config_payload' is not supported"));
    }
    if api_version != CustomCallApiVersion::TypedFfi {
        return Ok(BackendConfig::Bytes(bytes.clone().into()));
    }
    let malformed = || at.error(ErrorKind::Malformed, "the backend_config is not a dictionary of attributes");
    if bytes.is_empty() {
        return Ok(BackendConfig::Dictionary(Default::default()));
    }
    let dictionary = std::str::from_utf8(bytes).ok().and_then(|text| text::parse_dictionary(text).ok());
    dictionary.map(BackendConfig::Dictionary).ok_or_else(malformed)
}

/// Returns the layouts of operands and results, if the call requires layouts.
fn layouts(at: &Instruction) -> Result<(Option<Layouts>, Option<Layouts>), Error> {
    if !at.proto.constrain_layout {
        return Ok((None, None));
    }
    let operands: Layouts = at.proto.operand_shapes_with_layout.iter().map(layout).collect();
    if operands.len() != at.operands.len() {
        return Err(at.invalid(format!(
            "expected {} operand layouts, found {}",
            at.operands.len(),
            operands.len()
        )));
    }
    let results: Layouts = match (&at.proto.shape, &at.shape) {
        (Some(shape), Shape::Leaf(_)) => std::iter::once(layout(shape)).collect(),
        (Some(shape), Shape::Tuple { .. }) => shape.tuple_shapes.iter().map(layout).collect(),
        (None, _) => Box::default(),
    };
    Ok((Some(operands), Some(results)))
}

fn layout(shape: &proto::Shape) -> Ints {
    shape::minor_to_major(shape).into()
}
