//! Signatures of programs: the name and the types of the arrays, for which hosts ask.

use crate::element_type::ElementType;
use crate::layout::dense_size;
use crate::memory::Memory;

/// The name of a program and the types of its arrays, which
/// [`PjrtExecutable::signature`](crate::PjrtExecutable::signature) returns.
///
/// With the feature `stablehlo`, `Signature::of` reads it from a program.
///
/// ```
/// use pjrt_plugin::{ArraySpec, ElementType, Signature};
///
/// let array = ArraySpec::new(ElementType::F32, [2, 3]);
/// let mut signature = Signature::new("double", [array.clone()], [array]);
/// signature.donated.push(0);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Signature {
    /// The name of the program, which is usually that of its module.
    pub name: String,
    /// The parameters on each device. The SDK checks the arguments of every execution against them.
    pub parameters: Vec<ArraySpec>,
    /// The outputs on each device.
    pub outputs: Vec<ArraySpec>,
    /// The indices of the parameters whose arguments are donated. The host can exclude some of them from an execution.
    pub donated: Vec<usize>,
}

impl Signature {
    /// Creates a signature without donated parameters.
    #[must_use]
    pub fn new(
        name: impl Into<String>,
        parameters: impl Into<Vec<ArraySpec>>,
        outputs: impl Into<Vec<ArraySpec>>,
    ) -> Self {
        Self {
            name: name.into(),
            parameters: parameters.into(),
            outputs: outputs.into(),
            donated: Vec::new(),
        }
    }
}

/// The specification of a parameter or an output: element type, dimensions and memory kind.
///
/// ```
/// use pjrt_plugin::{ArraySpec, ElementType, Memory};
///
/// let matrix = ArraySpec::new(ElementType::F32, [2, 3]).with_memory_kind(Memory::PINNED_HOST);
/// assert_eq!((matrix.dims(), matrix.memory_kind()), (&[2, 3][..], Some("pinned_host")));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArraySpec {
    element_type: ElementType,
    dims: Vec<i64>,
    memory_kind: Option<String>,
}

impl ArraySpec {
    /// Creates the specification of an array in the default memory of its device.
    #[must_use]
    pub fn new(element_type: ElementType, dims: impl Into<Vec<i64>>) -> Self {
        Self { element_type, dims: dims.into(), memory_kind: None }
    }

    /// Sets the kind of the memory.
    #[must_use]
    pub fn with_memory_kind(mut self, kind: impl Into<String>) -> Self {
        self.memory_kind = Some(kind.into());
        self
    }

    /// Returns the element type.
    #[must_use]
    pub fn element_type(&self) -> ElementType {
        self.element_type
    }

    /// Returns the dimensions.
    #[must_use]
    pub fn dims(&self) -> &[i64] {
        &self.dims
    }

    /// Returns the size of the dense array in bytes, with elements as in the host's memory ([`ElementType::byte_size`]). It is
    /// `usize::MAX` for arrays that exceed the address space; the SDK refuses programs with them.
    #[must_use]
    pub fn dense_size(&self) -> usize {
        dense_size(&self.dims, self.element_type.byte_size()).unwrap_or(usize::MAX)
    }

    /// Returns `true` if the array is in a memory of the host.
    pub(crate) fn is_on_host(&self) -> bool {
        matches!(self.memory_kind(), Some(Memory::PINNED_HOST | Memory::UNPINNED_HOST))
    }

    /// Returns the kind of the memory; `None` is the default memory of the device.
    #[must_use]
    pub fn memory_kind(&self) -> Option<&str> {
        self.memory_kind.as_deref()
    }
}
