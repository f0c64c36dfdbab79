//! The result of type inference.

use std::sync::Arc;

use super::context::list;
use super::shape::{
    Shape, elements_compatible, fits_shape, has_elements, tensors_compatible, types_compatible,
};
use crate::Constraint;
use crate::Error;
use crate::ir::{DYNAMIC, ElementType, QuantizedType, TensorType, Type};

/// The part of a result's type that an operation's operands, attributes and regions determine, as
/// [`infer_result_types`](crate::infer_result_types) returns it.
///
/// Dynamic sizes are [`DYNAMIC`](crate::ir::DYNAMIC), and the declared type may have static sizes in their place. For
/// quantized element types, the operands determine the storage type and the expressed type; the program chooses scales,
/// zero points and the quantized dimension.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Inferred {
    /// The whole type.
    Type(Type),
    /// A tensor of this shape. The program chooses the element type, as for `convert` and `dot_general`.
    Shape {
        /// The sizes.
        dims: Box<[i64]>,
        /// The bounds of dynamic sizes, in the form of [`TensorType::bounds`].
        bounds: Box<[i64]>,
    },
    /// A tensor with this element type. The program chooses the shape, as for `reshape`.
    Elements {
        /// The element type.
        element_type: ElementType,
        /// The parameters of quantized elements.
        quantization: Option<Arc<QuantizedType>>,
    },
    /// Nothing: the program chooses the type, as for `custom_call`.
    Declared,
}

/// An inferred type, and the constraints that a result with another declared type violates.
pub(crate) struct ResultRule {
    pub(crate) inferred: Inferred,
    pub(crate) shape: Option<Constraint>,
    pub(crate) elements: Option<Constraint>,
}

pub(crate) type Results = Result<Vec<ResultRule>, Error>;

impl ResultRule {
    /// Creates a rule for the whole type.
    pub(super) fn of(ty: impl Into<Type>, constraint: impl Into<Option<Constraint>>) -> Self {
        let constraint = constraint.into();
        ResultRule { inferred: Inferred::Type(ty.into()), shape: constraint, elements: constraint }
    }

    /// Creates a rule for the shape of a tensor.
    pub(super) fn shape_of(shape: Shape, constraint: impl Into<Option<Constraint>>) -> Self {
        let (dims, bounds) = shape.into_parts();
        let inferred = Inferred::Shape { dims, bounds };
        ResultRule { inferred, shape: constraint.into(), elements: None }
    }

    /// Creates a rule for the element type of a tensor.
    pub(super) fn elements_of(tensor: &TensorType, constraint: impl Into<Option<Constraint>>) -> Self {
        let inferred = Inferred::Elements {
            element_type: tensor.element_type(),
            quantization: tensor.quantization().cloned(),
        };
        ResultRule { inferred, shape: None, elements: constraint.into() }
    }

    /// Creates a rule that accepts every type.
    pub(super) fn declared() -> Self {
        ResultRule { inferred: Inferred::Declared, shape: None, elements: None }
    }

    /// Returns the rule with another constraint for the element type.
    pub(super) fn with_elements(self, constraint: impl Into<Option<Constraint>>) -> Self {
        ResultRule { elements: constraint.into(), ..self }
    }

    /// Checks that a declared type is compatible with the inferred one.
    ///
    /// # Errors
    /// Returns the violated constraint and a description of the expected type.
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
                let mut expected = format!("a tensor of shape {}", list(dims));
                if bounds.iter().any(|bound| *bound != DYNAMIC) {
                    expected += &format!(" with bounds {}", list(bounds));
                }
                Err((self.shape, expected))
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
