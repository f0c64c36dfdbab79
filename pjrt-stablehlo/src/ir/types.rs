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
    /// `tensor<*xf32>`: only in programs that are not StableHLO proper.
    UnrankedTensor(Box<Type>),
    /// `memref<2x3xf32>`: a mutable buffer, an operand or result of `custom_call`.
    Buffer(TensorType),
    /// `f32`, `i64`, `index`: a number outside of a tensor; in attributes, never the type of a value.
    Scalar(ElementType),
    /// `!quant.uniform<...>` outside of a tensor.
    Quantized(Arc<QuantizedType>),
    /// `!stablehlo.token`.
    Token,
    /// `!stablehlo.future<...>`.
    Future(Arc<[Type]>),
    /// `tuple<...>`.
    Tuple(Arc<[Type]>),
    /// `(...) -> (...)`.
    Function(Arc<FunctionType>),
    /// `none`.
    None,
    /// `!shape.witness`.
    Witness,
    /// A type of a dialect that this crate does not know, as its text without the leading `!`.
    Opaque(Str),
}

impl Type {
    /// The tensor type, when it is one.
    pub fn as_tensor(&self) -> Option<&TensorType> {
        match self {
            Type::Tensor(tensor) => Some(tensor),
            _ => None,
        }
    }

    /// Whether the type is a token.
    pub fn is_token(&self) -> bool {
        matches!(self, Type::Token)
    }
}

impl From<TensorType> for Type {
    fn from(tensor: TensorType) -> Self {
        Type::Tensor(tensor)
    }
}

/// A ranked tensor type: shape, element type, and what is attached to them. One pointer; cheap to clone.
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
    /// A tensor type with these sizes ([`DYNAMIC`] for unknown ones) and element type.
    ///
    /// For quantized tensors use [`TensorType::quantized`].
    pub fn new(element_type: ElementType, dims: impl Into<Box<[i64]>>) -> Self {
        TensorType::from_parts(dims.into(), Box::default(), element_type, None, None)
    }

    /// A tensor of quantized elements.
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

    /// The sizes, with [`DYNAMIC`] for those that are not known.
    pub fn dims(&self) -> &[i64] {
        &self.0.dims
    }

    /// The sizes when all of them are known.
    pub fn static_dims(&self) -> Option<&[i64]> {
        (!self.is_dynamic()).then_some(&*self.0.dims)
    }

    /// Size of dimension `index`, with its bound if it is dynamic.
    ///
    /// # Panics
    /// When `index` is not below the rank.
    pub fn dim(&self, index: usize) -> Dim {
        match self.0.dims[index] {
            DYNAMIC => {
                Dim::Dynamic { bound: self.0.bounds.get(index).copied().filter(|&bound| bound != DYNAMIC) }
            }
            size => Dim::Static(size),
        }
    }

    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        self.0.dims.len()
    }

    /// Whether any size is unknown.
    pub fn is_dynamic(&self) -> bool {
        self.0.dims.contains(&DYNAMIC)
    }

    /// The bounds of `#stablehlo.bounds`: empty, or one for each dimension with [`DYNAMIC`] where there is none.
    pub fn bounds(&self) -> &[i64] {
        &self.0.bounds
    }

    /// Number of elements; `None` when a size is unknown or the product does not fit.
    pub fn num_elements(&self) -> Option<u64> {
        let sizes = self.static_dims()?;
        if sizes.contains(&0) {
            return Some(0);
        }
        sizes.iter().try_fold(1u64, |product, &size| product.checked_mul(u64::try_from(size).ok()?))
    }

    /// Type of one element. [`ElementType::Quantized`] when [`TensorType::quantization`] says more.
    pub fn element_type(&self) -> ElementType {
        self.0.element_type
    }

    /// The quantization parameters of a quantized tensor.
    pub fn quantization(&self) -> Option<&Arc<QuantizedType>> {
        self.0.quantization.as_ref()
    }

    /// The type in which elements are stored: the quantization's storage type, or the element type itself.
    pub fn storage_type(&self) -> ElementType {
        self.0.quantization.as_ref().map_or(self.0.element_type, |quantization| quantization.storage_type)
    }

    /// An encoding other than `#stablehlo.bounds`, as its text.
    pub fn encoding(&self) -> Option<&str> {
        self.0.encoding.as_deref()
    }

    /// The same type with other sizes; bounds are dropped.
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

    /// Whether both tensors have the same element type, quantization included.
    pub fn same_element_type(&self, other: &TensorType) -> bool {
        self.0.element_type == other.0.element_type && self.0.quantization == other.0.quantization
    }
}

/// The type of a function: what it takes and gives.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct FunctionType {
    /// Types of the arguments.
    pub inputs: Vec<Type>,
    /// Types of the results.
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
    /// MLIR's text of the type.
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
