//! Types of values.

use std::fmt;
use std::sync::Arc;

use super::{DYNAMIC, Dim, ElementType, QuantizedType, Str};

/// The type of a value. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Type {
    /// `tensor<2x3xf32>`.
    Tensor(TensorType),
    /// `tensor<*xf32>`: a tensor of unknown rank, which StableHLO does not have.
    UnrankedTensor(Box<Type>),
    /// `memref<2x3xf32>`: a mutable buffer, which only `custom_call` uses.
    Buffer(TensorType),
    /// `f32`, `i64`, `index`: a number. Such types occur in attributes only, not as types of values.
    Scalar(ElementType),
    /// `!quant.uniform<...>` outside a tensor type.
    Quantized(Arc<QuantizedType>),
    /// `!stablehlo.token`.
    Token,
    /// `!stablehlo.future<...>`: the results of an asynchronous operation.
    Future(Arc<[Type]>),
    /// `tuple<...>`.
    Tuple(Arc<[Type]>),
    /// `(...) -> (...)`.
    Function(Arc<FunctionType>),
    /// `none`.
    None,
    /// `!shape.witness`.
    Witness,
    /// A type of a dialect that this crate does not model, as text without the leading `!`.
    Opaque(Str),
}

impl Type {
    /// Returns the tensor type; `None` for other types.
    pub fn as_tensor(&self) -> Option<&TensorType> {
        match self {
            Type::Tensor(tensor) => Some(tensor),
            _ => None,
        }
    }

    /// Returns `true` if the type is a token.
    pub fn is_token(&self) -> bool {
        matches!(self, Type::Token)
    }
}

impl From<TensorType> for Type {
    fn from(tensor: TensorType) -> Self {
        Type::Tensor(tensor)
    }
}

/// A ranked tensor type: sizes, element type, and the bounds, quantization and encoding if it has them. Takes the size
/// of one pointer, and is cheap to clone.
///
/// ```
/// use pjrt_stablehlo::ir::{DYNAMIC, ElementType, TensorType};
///
/// let image = TensorType::new(ElementType::F32, [3, 224, 224]);
/// assert_eq!(image.to_string(), "tensor<3x224x224xf32>");
/// assert_eq!(image.num_elements(), Some(150_528));
///
/// let batch = image.with_dims([DYNAMIC, 3, 224, 224]);
/// assert_eq!(batch.to_string(), "tensor<?x3x224x224xf32>");
/// assert_eq!(batch.static_dims(), None);
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct TensorType(Arc<TensorTypeData>);

#[derive(PartialEq, Eq, Hash)]
struct TensorTypeData {
    dims: Box<[i64]>,
    bounds: Box<[i64]>,
    element_type: ElementType,
    quantization: Option<Arc<QuantizedType>>,
    encoding: Option<Str>,
}

impl TensorType {
    /// Creates a tensor type with these sizes and element type. [`DYNAMIC`] means an unknown size.
    ///
    /// For quantized tensors use [`TensorType::quantized`].
    pub fn new(element_type: ElementType, dims: impl Into<Box<[i64]>>) -> Self {
        TensorType::from_parts(dims.into(), Box::default(), element_type, None, None)
    }

    /// Creates a type of tensors with quantized elements.
    pub fn quantized(quantization: Arc<QuantizedType>, dims: impl Into<Box<[i64]>>) -> Self {
        TensorType::from_parts(dims.into(), Box::default(), ElementType::Quantized, Some(quantization), None)
    }

    pub(crate) fn from_parts(
        dims: Box<[i64]>,
        bounds: Box<[i64]>,
        element_type: ElementType,
        quantization: Option<Arc<QuantizedType>>,
        encoding: Option<Str>,
    ) -> Self {
        TensorType(Arc::new(TensorTypeData { dims, bounds, element_type, quantization, encoding }))
    }

    /// Returns the sizes. [`DYNAMIC`] means an unknown size.
    pub fn dims(&self) -> &[i64] {
        &self.0.dims
    }

    /// Returns the sizes; `None` if any of them is dynamic.
    pub fn static_dims(&self) -> Option<&[i64]> {
        (!self.is_dynamic()).then_some(&*self.0.dims)
    }

    /// Returns the size of dimension `index`, or its bound if it is dynamic.
    ///
    /// # Panics
    /// Panics if `index` is not less than the rank.
    pub fn dim(&self, index: usize) -> Dim {
        match self.0.dims[index] {
            DYNAMIC => {
                Dim::Dynamic { bound: self.0.bounds.get(index).copied().filter(|&bound| bound != DYNAMIC) }
            }
            size => Dim::Static(size),
        }
    }

    /// Returns the number of dimensions.
    pub fn rank(&self) -> usize {
        self.0.dims.len()
    }

    /// Returns `true` if the size of any dimension is dynamic.
    pub fn is_dynamic(&self) -> bool {
        self.0.dims.contains(&DYNAMIC)
    }

    /// Returns the bounds of `#stablehlo.bounds`: one for each dimension, with [`DYNAMIC`] for dimensions without a
    /// bound; or an empty list.
    pub fn bounds(&self) -> &[i64] {
        &self.0.bounds
    }

    /// Returns the number of elements; `None` if a size is dynamic or the number does not fit in `u64`.
    pub fn num_elements(&self) -> Option<u64> {
        let sizes = self.static_dims()?;
        if sizes.contains(&0) {
            return Some(0);
        }
        sizes.iter().try_fold(1u64, |product, &size| product.checked_mul(u64::try_from(size).ok()?))
    }

    /// Returns the type of the elements. [`ElementType::Quantized`] if [`TensorType::quantization`] has the parameters.
    pub fn element_type(&self) -> ElementType {
        self.0.element_type
    }

    /// Returns the quantization parameters; `None` if the elements are not quantized.
    pub fn quantization(&self) -> Option<&Arc<QuantizedType>> {
        self.0.quantization.as_ref()
    }

    /// Returns the type that stores the elements: the storage type of quantized elements, otherwise the element type.
    pub fn storage_type(&self) -> ElementType {
        self.0.quantization.as_ref().map_or(self.0.element_type, |quantization| quantization.storage_type)
    }

    /// Returns the text of an encoding other than `#stablehlo.bounds`; `None` if there is none.
    pub fn encoding(&self) -> Option<&str> {
        self.0.encoding.as_deref()
    }

    /// Returns this type with other sizes and without bounds.
    pub fn with_dims(&self, dims: impl Into<Box<[i64]>>) -> TensorType {
        let data = &*self.0;
        TensorType::from_parts(
            dims.into(),
            Box::default(),
            data.element_type,
            data.quantization.clone(),
            data.encoding.clone(),
        )
    }

    /// Returns this type with other elements, which are not quantized.
    pub fn with_element_type(&self, element_type: ElementType) -> TensorType {
        let data = &*self.0;
        let (dims, bounds) = (data.dims.clone(), data.bounds.clone());
        TensorType::from_parts(dims, bounds, element_type, None, data.encoding.clone())
    }

    /// Returns `true` if the element types are equal, including quantization parameters.
    pub fn same_element_type(&self, other: &TensorType) -> bool {
        self.0.element_type == other.0.element_type && self.0.quantization == other.0.quantization
    }
}

/// The type of a function: the types of its arguments and results.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct FunctionType {
    /// The types of the arguments.
    pub inputs: Vec<Type>,
    /// The types of the results.
    pub results: Vec<Type>,
}

impl fmt::Debug for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("tensor<")?;
        self.fmt_contents(f)?;
        if self.0.bounds.iter().any(|&bound| bound != DYNAMIC) {
            f.write_str(", #stablehlo.bounds<")?;
            for (index, &bound) in self.0.bounds.iter().enumerate() {
                f.write_str(if index == 0 { "" } else { ", " })?;
                fmt_dim(f, bound)?;
            }
            f.write_str(">")?;
        }
        if let Some(encoding) = &self.0.encoding {
            write!(f, ", {encoding}")?;
        }
        f.write_str(">")
    }
}

impl TensorType {
    fn fmt_contents(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for &dim in &self.0.dims {
            fmt_dim(f, dim)?;
            f.write_str("x")?;
        }
        match &self.0.quantization {
            Some(quantization) => write!(f, "{quantization}"),
            None => write!(f, "{}", self.0.element_type),
        }
    }
}

fn fmt_dim(f: &mut fmt::Formatter<'_>, dim: i64) -> fmt::Result {
    if dim == DYNAMIC { f.write_str("?") } else { write!(f, "{dim}") }
}

fn fmt_types(f: &mut fmt::Formatter<'_>, types: &[Type]) -> fmt::Result {
    for (index, ty) in types.iter().enumerate() {
        f.write_str(if index == 0 { "" } else { ", " })?;
        write!(f, "{ty}")?;
    }
    Ok(())
}

impl fmt::Display for FunctionType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(")?;
        fmt_types(f, &self.inputs)?;
        f.write_str(") -> ")?;
        match &*self.results {
            [single] if !matches!(single, Type::Function(_)) => write!(f, "{single}"),
            results => {
                f.write_str("(")?;
                fmt_types(f, results)?;
                f.write_str(")")
            }
        }
    }
}

impl fmt::Display for Type {
    /// Writes the type in MLIR's syntax.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Tensor(tensor) => write!(f, "{tensor}"),
            Type::UnrankedTensor(element) => write!(f, "tensor<*x{element}>"),
            Type::Buffer(buffer) => {
                f.write_str("memref<")?;
                buffer.fmt_contents(f)?;
                f.write_str(">")
            }
            Type::Scalar(element) => write!(f, "{element}"),
            Type::Quantized(quantized) => write!(f, "{quantized}"),
            Type::Token => f.write_str("!stablehlo.token"),
            Type::Future(types) => {
                f.write_str("!stablehlo.future<")?;
                fmt_types(f, types)?;
                f.write_str(">")
            }
            Type::Tuple(types) => {
                f.write_str("tuple<")?;
                fmt_types(f, types)?;
                f.write_str(">")
            }
            Type::Function(function) => write!(f, "{function}"),
            Type::None => f.write_str("none"),
            Type::Witness => f.write_str("!shape.witness"),
            Type::Opaque(text) => write!(f, "!{text}"),
        }
    }
}
