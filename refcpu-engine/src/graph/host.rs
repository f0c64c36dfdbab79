//! Communication with the host, and calls of its handlers.

use super::Shape;
use super::check::{Check, counts, need};
use super::operation::{Execution, Operation};
use refcpu_kernels::DType;

/// Sends an array to the host. The operands are the array and a token; the result is a token. Tokens are arrays without elements.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HostSend {
    /// The channel, which identifies the callback of the host.
    pub channel: i64,
}

impl Operation for HostSend {
    fn verify(&self, x: &[&Shape], y: &[&Shape]) -> Check {
        counts(x, y, 2, 1)?;
        need(is_token(x[1]) && is_token(y[0]), "the last operand and the result are not tokens")
    }

    fn is_pure(&self) -> bool {
        false
    }

    fn has_effect(&self) -> bool {
        true
    }

    fn execution(&self, _x: &[&Shape], _y: &[&Shape]) -> Execution {
        Execution::Compiled
    }
}

/// Receives an array from the host. The operand is a token; the results are the array and a token.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HostReceive {
    /// The channel, which identifies the callback of the host.
    pub channel: i64,
}

impl Operation for HostReceive {
    fn verify(&self, x: &[&Shape], y: &[&Shape]) -> Check {
        counts(x, y, 1, 2)?;
        need(is_token(x[0]) && is_token(y[1]), "the operand and the last result are not tokens")
    }

    fn is_pure(&self) -> bool {
        false
    }

    fn has_effect(&self) -> bool {
        true
    }

    fn execution(&self, _x: &[&Shape], _y: &[&Shape]) -> Execution {
        Execution::Compiled
    }
}

fn is_token(s: &Shape) -> bool {
    s.dtype == DType::Pred && *s.dims == [0]
}

/// A call of a handler, as the program states it.
///
/// Operands and results have the memory layouts that the handler expects: row-major over dimensions that may be permuted.
/// `operand_dims` and `result_dims` are the dimensions that the handler is given.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ForeignCall {
    /// The name of the handler.
    pub target: String,
    /// The attributes that are passed to the handler, by name.
    pub attributes: Vec<(String, ForeignAttribute)>,
    /// `true` if the call has effects other than its results.
    pub has_side_effect: bool,
    /// The dimensions of each operand.
    pub operand_dims: Vec<Vec<i64>>,
    /// The dimensions of each result.
    pub result_dims: Vec<Vec<i64>>,
    /// Pairs of an operand and a result that begins with the contents of the operand. The handler sees one array.
    pub aliases: Vec<(usize, usize)>,
    /// The error of a run that reaches the call, because its operands or attributes do not fit the handler; `None` for a call
    /// that can run. The handler checks the contents of its arguments.
    pub refusal: Option<String>,
}

/// An attribute of a call of a handler.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ForeignAttribute {
    /// A number, as its type and its bytes.
    Scalar(DType, Vec<u8>),
    /// Consecutive numbers.
    Array(DType, Vec<u8>),
    /// A string.
    String(String),
    /// Attributes by name.
    Dictionary(Vec<(String, ForeignAttribute)>),
}

/// Calls a handler that the host has registered, with the operands and results of the node.
impl Operation for ForeignCall {
    fn verify(&self, x: &[&Shape], y: &[&Shape]) -> Check {
        counts(x, y, self.operand_dims.len(), self.result_dims.len())?;
        let size = |dims: &[i64]| dims.iter().try_fold(1i64, |n, d| n.checked_mul(*d).filter(|_| *d >= 0));
        let mut told = self.operand_dims.iter().chain(&self.result_dims).zip(x.iter().chain(y));
        need(
            told.all(|(dims, s)| size(dims) == i64::try_from(s.len()).ok()),
            "the dimensions given to the handler do not fit the arrays",
        )?;
        need(
            self.aliases.iter().all(|(i, k)| *i < x.len() && *k < y.len() && x[*i] == y[*k]),
            "a result has a different type than the operand that it aliases",
        )
    }

    fn is_pure(&self) -> bool {
        !self.has_side_effect
    }

    fn has_effect(&self) -> bool {
        self.has_side_effect
    }
}
