//! The dialects whose attributes and types have their own encoding.

use super::encoder::Writer;
use super::entries::Dialect;
use super::{builtin, chlo, quant, sdy, stablehlo, vhlo};

/// The dialects that this crate decodes.
pub(super) const DIALECTS: &[Dialect] = &[
    Dialect { name: builtin::NAME, attribute: Some(builtin::attribute), ty: Some(builtin::ty) },
    Dialect { name: vhlo::NAME, attribute: Some(vhlo::attribute), ty: Some(vhlo::ty) },
    Dialect { name: stablehlo::NAME, attribute: Some(stablehlo::attribute), ty: Some(stablehlo::ty) },
    Dialect { name: "chlo", attribute: Some(chlo::attribute), ty: None },
    Dialect { name: sdy::NAME, attribute: Some(sdy::attribute), ty: None },
    Dialect { name: quant::NAME, attribute: None, ty: Some(quant::ty) },
];

/// The dialects that this crate encodes, in the order in which they are tried. Shardy's is first because StableHLO has
/// meshes, too, but only in its own attributes. Attributes of CHLO are written as text.
pub(super) const WRITERS: &[Writer] = &[
    Writer { attribute: sdy::encode_attribute, ..writer(sdy::NAME) },
    Writer { attribute: vhlo::encode_attribute, ty: vhlo::encode_type, ..writer(vhlo::NAME) },
    Writer {
        attribute: builtin::encode_attribute,
        ty: builtin::encode_type,
        location: Some(builtin::encode_location),
        ..writer(builtin::NAME)
    },
    Writer { attribute: stablehlo::encode_attribute, ty: stablehlo::encode_type, ..writer(stablehlo::NAME) },
    Writer { ty: quant::encode_type, ..writer(quant::NAME) },
];

/// Returns the functions of a dialect without attributes and types.
const fn writer(name: &'static str) -> Writer {
    Writer { name, attribute: |_, _| Ok(None), ty: |_, _| Ok(None), location: None }
}
