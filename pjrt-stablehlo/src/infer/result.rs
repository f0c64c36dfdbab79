//! What inference gives.

use std::sync::Arc;

use super::shape::{
    Shape, elements_compatible, fits_shape, has_elements, tensors_compatible, types_compatible,
};
use crate::Constraint;
use crate::Error;
use crate::ir::{ElementType, QuantizedType, TensorType, Type};

/// What an operation's operands, attributes and regions say about the type of one of its results.
///
/// Sizes are [`DYNAMIC`](crate::ir::DYNAMIC) where they are not known before run time; a declared type may know more.
/// Of a quantized element type, storage and expressed type follow from the operands; scales, zero points and the
/// quantized dimension are the program's choice.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Inferred {
    /// The whole type.
    Type(Type),
    /// A tensor of this shape; the program chooses its elements, as for `convert` and `dot_general`.
    Shape {
        /// Sizes.
        dims: Box<[i64]>,
        /// Bounds of unknown sizes, as [`TensorType::bounds`] has them.
        bounds: Box<[i64]>,
    },
    /// A tensor of these elements; the program chooses its shape, as for `reshape`.
    Elements {
        /// Type of one element.
        element_type: ElementType,
        /// Parameters of quantized elements.
        quantization: Option<Arc<QuantizedType>>,
    },
    /// Nothing: the program chooses the type, as for `custom_call`.
    Declared,
}

/// An inferred type and the constraints that a result breaks whose declared type differs.
pub(crate) struct ResultRule {
    pub(crate) inferred: Inferred,
    pub(crate) shape: Option<Constraint>,
    pub(crate) elements: Option<Constraint>,
}

pub(crate) type Results = Result<Vec<ResultRule>, Error>;

impl ResultRule {
    /// The whole type.
    pub(super) fn of(ty: impl Into<Type>, constraint: impl Into<Option<Constraint>>) -> Self {
        let constraint = constraint.into();
        ResultRule { inferred: Inferred::Type(ty.into()), shape: constraint, elements: constraint }
    }

    /// A shape.
    pub(super) fn shape_of(shape: Shape, constraint: impl Into<Option<Constraint>>) -> Self {
        let (dims, bounds) = shape.into_parts();
        let inferred = Inferred::Shape { dims, bounds };
        ResultRule { inferred, shape: constraint.into(), elements: None }
    }

    /// The elements of a tensor.
    pub(super) fn elements_of(tensor: &TensorType, constraint: impl Into<Option<Constraint>>) -> Self {
        let inferred = Inferred::Elements {
            element_type: tensor.element_type(),
            quantization: tensor.quantization().cloned(),
        };
        ResultRule { inferred, shape: None, elements: constraint.into() }
    }

    /// Nothing.
    pub(super) fn declared() -> Self {
        ResultRule { inferred: Inferred::Declared, shape: None, elements: None }
    }

    /// The same with another constraint for the element type.
    pub(super) fn with_elements(self, constraint: impl Into<Option<Constraint>>) -> Self {
        ResultRule { elements: constraint.into(), ..self }
    }

    /// Whether a declared type is one that the inferred one can turn out to be; otherwise the constraint that it breaks
    /// and what was expected.
    pub(crate) fn check(&self, found: &Type) -> Result<(), (Option<Constraint>, String)> {
        match (&self.inferred, found) {
            (Inferred::Type(Type::Tensor(expected)), Type::Tensor(tensor)) => {
                if tensors_compatible(expected, tensor) {
                    return Ok(());
                }
                let elements = !elements_compatible(expected, tensor);
                Err((if elements { self.elements } else { self.shape }, expected.to_string()))
            }
            (Inferred::Type(expected), found) => {
                if types_compatible(expected, found) {
                    Ok(())
                } else {
                    Err((self.shape, expected.to_string()))
                }
            }
            (Inferred::Shape { dims, bounds }, Type::Tensor(tensor)) => {
                if fits_shape(dims, bounds, tensor) {
                    return Ok(());
                }
                Err((self.shape, format!("a tensor of shape {}", super::context::list(dims))))
            }
            (Inferred::Elements { element_type, quantization }, Type::Tensor(tensor)) => {
                if has_elements(tensor, *element_type, quantization.as_ref()) {
                    return Ok(());
                }
                let expected = Shape::default().tensor(*element_type, quantization.clone());
                Err((self.elements, format!("elements of {expected}")))
            }
            (Inferred::Shape { .. } | Inferred::Elements { .. }, _) => {
                Err((self.shape, "a tensor".to_owned()))
            }
            (Inferred::Declared, _) => Ok(()),
        }
    }
}
