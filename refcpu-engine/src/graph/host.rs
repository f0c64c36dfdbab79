//! Communication with the host, and calls of its code.

use super::Shape;
use super::check::{Check, counts, need};
use super::operation::{Execution, Operation};
use refcpu_kernels::DType;

/// Sends an array to the host: array, token to token. Tokens are arrays without elements.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HostSend {
    /// The number by which the host knows what to do with it.
    pub channel: i64,
}

impl Operation for HostSend {
    fn verify(&self, x: &[&Shape], y: &[&Shape]) -> Check {
        counts(x, y, 2, 1)?;
        need(is_token(x[1]) && is_token(y[0]), "no token")
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

/// Receives an array from the host: token to array, token.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HostReceive {
    /// The number by which the host knows what to send.
    pub channel: i64,
}

impl Operation for HostReceive {
    fn verify(&self, x: &[&Shape], y: &[&Shape]) -> Check {
        counts(x, y, 1, 2)?;
        need(is_token(x[0]) && is_token(y[1]), "no token")
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

/// Runs a handler that the host has registered; operands and results are the call's.
impl Operation for ForeignCall {
    fn verify(&self, x: &[&Shape], y: &[&Shape]) -> Check {
        counts(x, y, self.operand_dims.len(), self.result_dims.len())?;
        let size = |dims: &[i64]| dims.iter().try_fold(1i64, |n, d| n.checked_mul(*d).filter(|_| *d >= 0));
        let mut told = self.operand_dims.iter().chain(&self.result_dims).zip(x.iter().chain(y));
        need(
            told.all(|(dims, s)| size(dims) == i64::try_from(s.len()).ok()),
            "a handler that is told other dimensions",
        )?;
        need(
            self.aliases.iter().all(|(i, k)| *i < x.len() && *k < y.len() && x[*i] == y[*k]),
            "a result of a handler that is not as the operand whose memory it has",
        )
    }

    fn is_pure(&self) -> bool {
        !self.has_side_effect
    }

    fn has_effect(&self) -> bool {
        self.has_side_effect
    }
}
