//! Shapes: the types of arrays, tokens and buffers, and tuples of them.

use super::proto;
use crate::ir::{DYNAMIC, ElementType, TensorType, Type};
use crate::limits::MAX_RANK;
use crate::{Error, ErrorKind};

// The codes of XLA's `PrimitiveType` that are not element types.
const INVALID: i32 = 0;
const TUPLE: i32 = 13;
const OPAQUE: i32 = 14;
const TOKEN: i32 = 17;
const BUFFER: i32 = 34;

/// The shape of an instruction's value. The decoder of protocol buffers limits the nesting depth.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Shape {
    /// An array, a token or a buffer.
    Leaf(Type),
    /// A tuple.
    Tuple {
        elements: Vec<Shape>,
        /// The index of each element's first leaf, followed by the number of leaves.
        starts: Vec<usize>,
    },
}

impl Shape {
    pub(super) fn tuple(elements: Vec<Shape>) -> Shape {
        let mut starts = vec![0];
        starts.extend(elements.iter().scan(0, |end, element| {
            *end += element.leaf_count();
            Some(*end)
        }));
        Shape::Tuple { elements, starts }
    }

    pub(super) fn read(shape: &proto::Shape) -> Result<Shape, Error> {
        match shape.element_type {
            TUPLE => {
                let elements = shape.tuple_shapes.iter().map(Shape::read).collect::<Result<_, _>>()?;
                Ok(Shape::tuple(elements))
            }
            TOKEN => Ok(Shape::Leaf(Type::Token)),
            BUFFER => match shape.tuple_shapes.first() {
                Some(contents) => Ok(Shape::Leaf(Type::Buffer(array(contents)?))),
                None => Err(Error::new(ErrorKind::Malformed, "the shape of a buffer has no contents")),
            },
            _ => Ok(Shape::Leaf(Type::Tensor(array(shape)?))),
        }
    }

    /// Returns the number of arrays, tokens and buffers.
    pub(super) fn leaf_count(&self) -> usize {
        match self {
            Shape::Leaf(_) => 1,
            Shape::Tuple { starts, .. } => starts.last().copied().unwrap_or(0),
        }
    }

    /// Returns the types of all arrays, tokens and buffers, in order.
    pub(super) fn leaves(&self) -> Vec<Type> {
        let mut leaves = Vec::with_capacity(self.leaf_count());
        self.push_leaves(&mut leaves);
        leaves
    }

    fn push_leaves(&self, leaves: &mut Vec<Type>) {
        match self {
            Shape::Leaf(ty) => leaves.push(ty.clone()),
            Shape::Tuple { elements, .. } => elements.iter().for_each(|element| element.push_leaves(leaves)),
        }
    }

    /// Returns the type of a single value of StableHLO with this shape.
    pub(super) fn ty(&self) -> Type {
        match self {
            Shape::Leaf(ty) => ty.clone(),
            Shape::Tuple { elements, .. } => Type::Tuple(elements.iter().map(Shape::ty).collect()),
        }
    }

    /// Returns the elements of a tuple. A shape that is not a tuple counts as its only element.
    pub(super) fn elements(&self) -> &[Shape] {
        match self {
            Shape::Leaf(_) => std::slice::from_ref(self),
            Shape::Tuple { elements, .. } => elements,
        }
    }

    /// Returns the leaf at a path through nested tuples.
    pub(super) fn leaf_at(&self, path: &[i64]) -> Option<usize> {
        let mut shape = self;
        let mut leaf = 0;
        for &step in path {
            let Shape::Tuple { elements, starts } = shape else { return None };
            let step = usize::try_from(step).ok()?;
            shape = elements.get(step)?;
            leaf += starts[step];
        }
        matches!(shape, Shape::Leaf(_)).then_some(leaf)
    }
}

/// Returns the type of an array. The size in the shape is the bound of a dynamic dimension.
fn array(shape: &proto::Shape) -> Result<TensorType, Error> {
    let element_type = element_type(shape.element_type)?;
    let rank = shape.dimensions.len();
    if rank > MAX_RANK {
        let message = format!("an array has {rank} dimensions, expected at most {MAX_RANK}");
        return Err(Error::new(ErrorKind::TooLarge, message));
    }
    let is_dynamic = |index: usize| shape.is_dynamic_dimension.get(index).copied().unwrap_or(false);
    let mut dims = shape.dimensions.clone();
    let mut bounds = Vec::new();
    for (index, size) in dims.iter_mut().enumerate() {
        // XLA writes a dynamic dimension without a bound with the number that equals `DYNAMIC`.
        if *size < 0 && !(is_dynamic(index) && *size == DYNAMIC) {
            let message = format!("expected a nonnegative size of dimension {index}, found {size}");
            return Err(Error::new(ErrorKind::Malformed, message));
        }
        if is_dynamic(index) {
            bounds.resize(rank, DYNAMIC);
            bounds[index] = std::mem::replace(size, DYNAMIC);
        }
    }
    Ok(TensorType::from_parts(dims.into(), bounds.into(), element_type, None, None))
}

/// Returns the element type with this code of XLA's.
pub(super) fn element_type(number: i32) -> Result<ElementType, Error> {
    let unsupported = || {
        let found = match number {
            INVALID => "no element type".to_owned(),
            TUPLE => "tuples".to_owned(),
            OPAQUE => "values of XLA's type 'opaque'".to_owned(),
            TOKEN => "tokens".to_owned(),
            BUFFER => "buffers".to_owned(),
            other => format!("the unknown type code {other}"),
        };
        Error::new(ErrorKind::Unsupported, format!("expected an array of numbers or booleans, found {found}"))
    };
    ElementType::from_xla_number(number).ok_or_else(unsupported)
}

/// Returns the dimensions of an array from minor to major. Without a layout, the order is row-major.
pub(super) fn minor_to_major(shape: &proto::Shape) -> Vec<i64> {
    match &shape.layout {
        Some(layout) if layout.minor_to_major.len() == shape.dimensions.len() => {
            layout.minor_to_major.clone()
        }
        _ => (0..shape.dimensions.len() as i64).rev().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array_of(code: i32, dimensions: &[i64]) -> proto::Shape {
        proto::Shape { element_type: code, dimensions: dimensions.into(), ..proto::Shape::default() }
    }

    #[test]
    fn tuples_are_flattened_in_order() {
        let inner = proto::Shape {
            element_type: TUPLE,
            tuple_shapes: vec![array_of(4, &[2]), array_of(TOKEN, &[])],
            ..proto::Shape::default()
        };
        let outer = proto::Shape {
            element_type: TUPLE,
            tuple_shapes: vec![array_of(11, &[]), inner],
            ..proto::Shape::default()
        };
        let shape = Shape::read(&outer).unwrap();
        let leaves: Vec<String> = shape.leaves().iter().map(Type::to_string).collect();
        assert_eq!(leaves, ["tensor<f32>", "tensor<2xi32>", "!stablehlo.token"]);
        assert_eq!(shape.leaf_at(&[1, 1]), Some(2));
        assert_eq!(shape.leaf_at(&[1]), None);
        assert_eq!(shape.leaf_at(&[0, 0]), None);
        assert_eq!(shape.ty().to_string(), "tuple<tensor<f32>, tuple<tensor<2xi32>, !stablehlo.token>>");
    }

    #[test]
    fn dynamic_dimensions_keep_their_bounds() {
        let mut shape = array_of(11, &[4, 3, DYNAMIC]);
        shape.is_dynamic_dimension = vec![true, false, true];
        let ty = Shape::read(&shape).unwrap().ty();
        assert_eq!(ty.to_string(), "tensor<?x3x?xf32, #stablehlo.bounds<4, ?, ?>>");
    }

    #[test]
    fn invalid_shapes_give_errors() {
        assert!(Shape::read(&array_of(11, &[-1])).is_err());
        assert!(Shape::read(&array_of(14, &[])).is_err());
        assert!(Shape::read(&array_of(11, &[1; MAX_RANK + 1])).is_err());
        assert!(Shape::read(&array_of(BUFFER, &[])).is_err());
    }
}
