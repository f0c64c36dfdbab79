//! Static and dynamic sizes, their bounds, and the compatibility of types.

use std::sync::Arc;

use crate::ir::{DYNAMIC, ElementType, QuantizedType, TensorType, Type};

/// Returns `true` if two sizes can be equal at run time.
pub(crate) fn sizes_agree(a: i64, b: i64) -> bool {
    a == b || a == DYNAMIC || b == DYNAMIC
}

/// Returns `true` if two shapes can be equal at run time.
pub(crate) fn shapes_agree(a: &[i64], b: &[i64]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(&a, &b)| sizes_agree(a, b))
}

/// Returns `true` if a tensor can have these sizes and bounds at run time: no static size of either exceeds a bound of
/// the other.
pub(super) fn fits_shape(dims: &[i64], bounds: &[i64], tensor: &TensorType) -> bool {
    let fits = |sizes: &[i64], bounds: &[i64]| {
        let mut pairs = sizes.iter().zip(bounds);
        pairs.all(|(&size, &bound)| size == DYNAMIC || bound == DYNAMIC || size <= bound)
    };
    shapes_agree(dims, tensor.dims()) && fits(dims, tensor.bounds()) && fits(tensor.dims(), bounds)
}

/// Returns `true` if the element types of two tensors are compatible. Quantized element types must agree in the storage
/// type, the expressed type, and per-tensor or per-axis quantization; scales, zero points and the quantized dimension
/// may differ.
pub(crate) fn elements_compatible(a: &TensorType, b: &TensorType) -> bool {
    has_elements(b, a.element_type(), a.quantization())
}

/// Returns `true` if the element type of a tensor is compatible with this element type and quantization.
pub(super) fn has_elements(
    tensor: &TensorType,
    element_type: ElementType,
    quantization: Option<&Arc<QuantizedType>>,
) -> bool {
    match (quantization, tensor.quantization()) {
        (Some(a), Some(b)) => {
            let storage = |quantization: &QuantizedType| {
                (quantization.storage_type, quantization.storage_min, quantization.storage_max)
            };
            storage(a) == storage(b)
                && a.expressed_type == b.expressed_type
                && a.axis.is_some() == b.axis.is_some()
        }
        (None, None) => element_type == tensor.element_type(),
        _ => false,
    }
}

/// Returns `true` if two tensor types can be equal at run time.
pub(super) fn tensors_compatible(a: &TensorType, b: &TensorType) -> bool {
    a == b || fits_shape(a.dims(), a.bounds(), b) && elements_compatible(a, b)
}

/// Returns `true` if two types can be equal at run time: "compatible" in section "Type inference" of the StableHLO
/// specification.
///
/// A dynamic size is compatible with every size that does not exceed its bound. For quantized element types, scales,
/// zero points and the quantized dimension may differ. A declared type must be compatible with the inferred type, but
/// need not equal it.
///
/// ```
/// use pjrt_stablehlo::ir::{DYNAMIC, ElementType, TensorType, Type};
/// use pjrt_stablehlo::types_compatible;
///
/// let ty = |dims: &[i64]| Type::from(TensorType::new(ElementType::F32, dims));
/// assert!(types_compatible(&ty(&[2, 3]), &ty(&[DYNAMIC, 3])));
/// assert!(!types_compatible(&ty(&[2, 3]), &ty(&[DYNAMIC, 4])));
/// ```
pub fn types_compatible(a: &Type, b: &Type) -> bool {
    match (a, b) {
        (Type::Tensor(a), Type::Tensor(b)) | (Type::Buffer(a), Type::Buffer(b)) => tensors_compatible(a, b),
        (Type::Tuple(a), Type::Tuple(b)) | (Type::Future(a), Type::Future(b)) => {
            Arc::ptr_eq(a, b) || a.len() == b.len() && a.iter().zip(&**b).all(|(a, b)| types_compatible(a, b))
        }
        (a, b) => a == b,
    }
}

/// Returns `true` if values of one type can be accumulated in another: its elements have the same kind and at least as
/// many bits. Floats of all widths can be mixed, as in MLIR's verifier, because frameworks accumulate narrow floats in
/// wide ones and the reverse.
pub(crate) fn is_promotable(from: &TensorType, to: &TensorType) -> bool {
    match (from.quantization(), to.quantization()) {
        (Some(a), Some(b)) => {
            a.expressed_type == b.expressed_type && a.storage_type.bits() <= b.storage_type.bits()
        }
        (None, None) => {
            let (from, to) = (from.element_type(), to.element_type());
            let is_integer = |ty: ElementType| ty.is_integer() || ty == ElementType::I1;
            let same_kind = is_integer(from) && is_integer(to) || from.is_complex() && to.is_complex();
            from.is_float() && to.is_float() || same_kind && from.bits() <= to.bits()
        }
        _ => false,
    }
}

/// Returns the type of a scalar with the element type of a tensor.
pub(crate) fn scalar_of(tensor: &TensorType) -> Type {
    Type::Tensor(tensor.with_dims([]))
}

/// A size and its bound. [`DYNAMIC`] means an unknown size or bound.
pub(crate) type Size = (i64, i64);

/// Applies a function to a size, or to its bound if the size is dynamic.
pub(crate) fn map_size(size: Size, apply: impl Fn(i64) -> Option<i64>) -> Option<Size> {
    Some(match size {
        (DYNAMIC, DYNAMIC) => size,
        (DYNAMIC, bound) => (DYNAMIC, apply(bound)?),
        (size, _) => (apply(size)?, DYNAMIC),
    })
}

/// The sizes of a tensor's dimensions, and the bounds of dynamic sizes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shape {
    dims: Vec<i64>,
    /// Empty if no size has a bound, otherwise one for each size.
    bounds: Vec<i64>,
}

impl FromIterator<Size> for Shape {
    fn from_iter<T: IntoIterator<Item = Size>>(sizes: T) -> Self {
        let sizes = sizes.into_iter();
        let mut shape = Shape { dims: Vec::with_capacity(sizes.size_hint().0), bounds: Vec::new() };
        for (size, bound) in sizes {
            shape.dims.push(size);
            if bound != DYNAMIC || !shape.bounds.is_empty() {
                shape.bounds.resize(shape.dims.len() - 1, DYNAMIC);
                shape.bounds.push(bound);
            }
        }
        shape
    }
}

impl From<&[i64]> for Shape {
    fn from(dims: &[i64]) -> Self {
        Shape { dims: dims.into(), bounds: Vec::new() }
    }
}

impl Shape {
    /// Returns the shape of a tensor.
    pub(crate) fn of(tensor: &TensorType) -> Shape {
        Shape { dims: tensor.dims().into(), bounds: tensor.bounds().into() }
    }

    /// Returns the size of one dimension of a tensor.
    pub(crate) fn size_of(tensor: &TensorType, index: usize) -> Size {
        (tensor.dims()[index], tensor.bounds().get(index).copied().unwrap_or(DYNAMIC))
    }

    /// Returns a shape of this rank with dynamic sizes.
    pub(crate) fn dynamic(rank: usize) -> Shape {
        std::iter::repeat_n((DYNAMIC, DYNAMIC), rank).collect()
    }

    pub(crate) fn dims(&self) -> &[i64] {
        &self.dims
    }

    /// Returns the bounds in the form of [`TensorType::bounds`]; empty if there are none.
    pub(crate) fn bounds(&self) -> &[i64] {
        if self.bounds.iter().all(|&bound| bound == DYNAMIC) { &[] } else { &self.bounds }
    }

    pub(crate) fn size(&self, index: usize) -> Size {
        (self.dims[index], self.bounds.get(index).copied().unwrap_or(DYNAMIC))
    }

    pub(crate) fn set(&mut self, index: usize, (size, bound): Size) {
        self.dims[index] = size;
        if bound != DYNAMIC && self.bounds.is_empty() {
            self.bounds.resize(self.dims.len(), DYNAMIC);
        }
        if let Some(place) = self.bounds.get_mut(index) {
            *place = bound;
        }
    }

    pub(crate) fn sizes(&self) -> impl Iterator<Item = Size> + '_ {
        (0..self.dims.len()).map(|index| self.size(index))
    }

    /// Returns the sizes, and the bounds in the form of [`Shape::bounds`].
    pub(super) fn into_parts(mut self) -> (Box<[i64]>, Box<[i64]>) {
        if self.bounds().is_empty() {
            self.bounds.clear();
        }
        (self.dims.into(), self.bounds.into())
    }

    /// Returns a tensor type with this shape and the element type of another tensor.
    pub(crate) fn like(self, tensor: &TensorType) -> TensorType {
        self.tensor(tensor.element_type(), tensor.quantization().cloned())
    }

    /// Returns a tensor type with this shape.
    pub(crate) fn tensor(
        self,
        element_type: ElementType,
        quantization: Option<Arc<QuantizedType>>,
    ) -> TensorType {
        let (dims, bounds) = self.into_parts();
        TensorType::from_parts(dims, bounds, element_type, quantization, None)
    }

    /// Intersects the shape with that of another tensor: static sizes and lower bounds take precedence. Returns `false`
    /// if the two cannot be equal at run time.
    pub(crate) fn intersect(&mut self, tensor: &TensorType) -> bool {
        if tensor.rank() != self.dims.len() {
            return false;
        }
        for index in 0..tensor.rank() {
            let merged = match (self.size(index), Shape::size_of(tensor, index)) {
                ((DYNAMIC, a), (DYNAMIC, DYNAMIC)) | ((DYNAMIC, DYNAMIC), (DYNAMIC, a)) => (DYNAMIC, a),
                ((DYNAMIC, a), (DYNAMIC, b)) => (DYNAMIC, a.min(b)),
                ((DYNAMIC, bound), (size, _)) | ((size, _), (DYNAMIC, bound)) => {
                    if bound != DYNAMIC && size > bound {
                        return false;
                    }
                    (size, DYNAMIC)
                }
                ((a, _), (b, _)) if a == b => (a, DYNAMIC),
                _ => return false,
            };
            self.set(index, merged);
        }
        true
    }

    /// Widens the shape so that it includes that of another tensor: a size becomes dynamic if it is dynamic in either,
    /// with the greater bound. Returns `false` if static sizes differ.
    pub(crate) fn unite(&mut self, tensor: &TensorType) -> bool {
        if tensor.rank() != self.dims.len() {
            return false;
        }
        for index in 0..tensor.rank() {
            let united = match (self.size(index), Shape::size_of(tensor, index)) {
                ((DYNAMIC, DYNAMIC), _) | (_, (DYNAMIC, DYNAMIC)) => (DYNAMIC, DYNAMIC),
                ((DYNAMIC, a), (DYNAMIC, b)) | ((DYNAMIC, a), (b, _)) | ((a, _), (DYNAMIC, b)) => {
                    (DYNAMIC, a.max(b))
                }
                ((a, _), (b, _)) if a == b => (a, DYNAMIC),
                _ => return false,
            };
            self.set(index, united);
        }
        true
    }
}

/// Returns the size of the concatenation of two dimensions.
pub(crate) fn concatenated(a: Size, b: Size) -> Option<Size> {
    let known = |(size, bound): Size| if size == DYNAMIC { bound } else { size };
    if a.0 != DYNAMIC && b.0 != DYNAMIC {
        return Some((a.0.checked_add(b.0)?, DYNAMIC));
    }
    Some(match (known(a), known(b)) {
        (DYNAMIC, _) | (_, DYNAMIC) => (DYNAMIC, DYNAMIC),
        (a, b) => (DYNAMIC, a.checked_add(b)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(size: i64, bound: i64) -> TensorType {
        [(size, bound)].into_iter().collect::<Shape>().tensor(ElementType::F32, None)
    }

    const UNKNOWN: Size = (DYNAMIC, DYNAMIC);

    #[test]
    fn merged_sizes_are_the_most_specific() {
        for (a, b, expected) in [
            ((3, DYNAMIC), (3, DYNAMIC), Some((3, DYNAMIC))),
            ((3, DYNAMIC), (4, DYNAMIC), None),
            ((3, DYNAMIC), UNKNOWN, Some((3, DYNAMIC))),
            ((3, DYNAMIC), (DYNAMIC, 4), Some((3, DYNAMIC))),
            ((3, DYNAMIC), (DYNAMIC, 2), None),
            (UNKNOWN, UNKNOWN, Some(UNKNOWN)),
            (UNKNOWN, (DYNAMIC, 4), Some((DYNAMIC, 4))),
            ((DYNAMIC, 3), (DYNAMIC, 4), Some((DYNAMIC, 3))),
        ] {
            for (a, b) in [(a, b), (b, a)] {
                let mut shape = Shape::of(&tensor(a.0, a.1));
                let merged = shape.intersect(&tensor(b.0, b.1)).then(|| shape.size(0));
                assert_eq!(merged, expected, "{a:?} and {b:?}");
            }
        }
    }

    #[test]
    fn united_sizes_are_the_least_specific() {
        for (a, b, expected) in [
            ((3, DYNAMIC), (3, DYNAMIC), Some((3, DYNAMIC))),
            ((3, DYNAMIC), (4, DYNAMIC), None),
            ((3, DYNAMIC), UNKNOWN, Some(UNKNOWN)),
            ((3, DYNAMIC), (DYNAMIC, 2), Some((DYNAMIC, 3))),
            (UNKNOWN, (DYNAMIC, 4), Some(UNKNOWN)),
            ((DYNAMIC, 3), (DYNAMIC, 4), Some((DYNAMIC, 4))),
        ] {
            for (a, b) in [(a, b), (b, a)] {
                let mut shape = Shape::of(&tensor(a.0, a.1));
                let united = shape.unite(&tensor(b.0, b.1)).then(|| shape.size(0));
                assert_eq!(united, expected, "{a:?} and {b:?}");
            }
        }
    }

    #[test]
    fn bounds_stay_with_their_sizes_whenever_they_come() {
        let shape: Shape = [(3, DYNAMIC), UNKNOWN, (DYNAMIC, 4), (5, DYNAMIC)].into_iter().collect();
        assert_eq!(shape.bounds(), [DYNAMIC, DYNAMIC, 4, DYNAMIC]);
        let mut shape = Shape::from(&[2, DYNAMIC][..]);
        assert!(shape.bounds().is_empty());
        shape.set(1, (DYNAMIC, 7));
        assert_eq!((shape.size(0), shape.bounds()), ((2, DYNAMIC), &[DYNAMIC, 7][..]));
        shape.set(1, (6, DYNAMIC));
        assert_eq!(shape.into_parts(), ([2, 6].into(), [].into()));
    }

    #[test]
    fn concatenated_sizes_add_up_and_so_do_bounds() {
        assert_eq!(concatenated((3, DYNAMIC), (4, DYNAMIC)), Some((7, DYNAMIC)));
        assert_eq!(concatenated((3, DYNAMIC), (DYNAMIC, 4)), Some((DYNAMIC, 7)));
        assert_eq!(concatenated((DYNAMIC, 3), (DYNAMIC, 4)), Some((DYNAMIC, 7)));
        assert_eq!(concatenated((3, DYNAMIC), UNKNOWN), Some(UNKNOWN));
        assert_eq!(concatenated((i64::MAX, DYNAMIC), (1, DYNAMIC)), None);
    }
}
