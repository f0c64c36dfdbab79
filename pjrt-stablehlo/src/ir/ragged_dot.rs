//! The dimension numbers of `chlo.ragged_dot`.

use super::{Attribute, DotDimensionNumbers};

/// The value of the attribute `#chlo.ragged_dot`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RaggedDotDimensionNumbers {
    pub(crate) dot: DotDimensionNumbers,
    /// The dimension of the left operand that is divided into groups.
    pub(crate) ragged: i64,
    /// The dimension of the right operand that enumerates the groups.
    pub(crate) group: Option<i64>,
}

impl RaggedDotDimensionNumbers {
    /// The name of the attribute.
    pub(crate) const NAME: &str = "ragged_dot_dimension_numbers";

    /// Reads `#chlo.ragged_dot<lhs_batching_dimensions = [0], ...>`, which readers store as text.
    ///
    /// # Errors
    /// Returns a description of the expected attribute.
    pub(crate) fn from_attribute(attribute: &Attribute) -> Result<Self, &'static str> {
        const LISTS: &str = "lists of dimensions";
        let Attribute::Opaque(text) = attribute else { return Err(LISTS) };
        let list = |name: &str| -> Result<Box<[i64]>, &'static str> {
            let Some((_, rest)) = text.split_once(name) else { return Ok(Box::default()) };
            let (_, rest) = rest.split_once('[').ok_or(LISTS)?;
            let (inner, _) = rest.split_once(']').ok_or(LISTS)?;
            let numbers = inner.split(',').map(str::trim).filter(|number| !number.is_empty());
            numbers.map(|number| number.parse().map_err(|_| LISTS)).collect()
        };
        let ragged = list("lhs_ragged_dimensions")?;
        let groups = list("rhs_group_dimensions")?;
        let ([ragged], [] | [_]) = (&*ragged, &*groups) else {
            return Err("one ragged and at most one group dimension");
        };
        Ok(RaggedDotDimensionNumbers {
            dot: DotDimensionNumbers {
                lhs_batching_dimensions: list("lhs_batching_dimensions")?,
                rhs_batching_dimensions: list("rhs_batching_dimensions")?,
                lhs_contracting_dimensions: list("lhs_contracting_dimensions")?,
                rhs_contracting_dimensions: list("rhs_contracting_dimensions")?,
            },
            ragged: *ragged,
            group: groups.first().copied(),
        })
    }
}
