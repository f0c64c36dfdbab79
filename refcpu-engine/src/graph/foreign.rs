//! Custom calls of code that is not the program's: handlers that the host has registered.

use refcpu_kernels::DType;

/// A call of a handler: what the program says about it besides its arrays.
///
/// Operands and results are in the order of memory that the handler expects, row-major over dimensions that may be permuted;
/// which dimensions the handler is told is said here.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ForeignCall {
    /// The name of the handler.
    pub target: String,
    /// Its parameters, by name.
    pub attributes: Vec<(String, ForeignAttribute)>,
    /// True if the call does something beyond computing its results.
    pub has_side_effect: bool,
    /// The dimensions of each operand.
    pub operand_dims: Vec<Vec<i64>>,
    /// The dimensions of each result.
    pub result_dims: Vec<Vec<i64>>,
    /// Operands and the results that begin with their contents: to the handler they are the same array.
    pub aliases: Vec<(usize, usize)>,
    /// Why a run that comes to the call fails: its operands or parameters are not those of the handler. None for a call that
    /// is made; what it is given, the handler checks.
    pub refusal: Option<String>,
}

/// A parameter of a handler.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ForeignAttribute {
    /// A number, as bytes.
    Scalar(DType, Vec<u8>),
    /// Numbers, one after the other.
    Array(DType, Vec<u8>),
    /// Text.
    String(String),
    /// Parameters by name.
    Dictionary(Vec<(String, ForeignAttribute)>),
}
