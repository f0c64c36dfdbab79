//! The dialects whose attributes and types have their own encoding.

use super::entries::Dialect;
use super::{builtin, chlo, quant, sdy, stablehlo, vhlo};

/// The dialects that this crate decodes.
pub(super) const DIALECTS: &[Dialect] = &[
    Dialect { name: "builtin", attribute: Some(builtin::attribute), ty: Some(builtin::ty) },
    Dialect { name: "vhlo", attribute: Some(vhlo::attribute), ty: Some(vhlo::ty) },
    Dialect { name: "stablehlo", attribute: Some(stablehlo::attribute), ty: Some(stablehlo::ty) },
    Dialect { name: "chlo", attribute: Some(chlo::attribute), ty: None },
    Dialect { name: "sdy", attribute: Some(sdy::attribute), ty: None },
    Dialect { name: "quant", attribute: None, ty: Some(quant::ty) },
];
