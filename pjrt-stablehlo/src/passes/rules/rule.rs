//! How an operation is replaced.

use crate::Error;
use crate::formulas::{self, Binary, Unary};
use crate::ir::{Operation, ValueId};
use crate::passes::rewrite::{Rewriter, unsupported};

/// Gives the value that takes the place of an operation's only result.
pub(crate) type ValueRule = for<'m> fn(&mut Rewriter<'m>, &'m Operation) -> Result<ValueId, Error>;

/// How an operation is replaced.
#[derive(Clone, Copy)]
pub(crate) enum Rewrite {
    /// By a formula of a float, which is computed in `f32` if it is narrower.
    Real(Unary),
    /// The same, or by one of a complex number.
    RealOrComplex(Unary, Unary),
    /// By a formula of two floats, which are converted to `f32` if they are narrower.
    Reals(Binary),
    /// By a formula of a float of any width.
    Float(Unary),
    /// By the value of its only result.
    Value(ValueRule),
    /// By the values of its results.
    Values(for<'m> fn(&mut Rewriter<'m>, &'m Operation) -> Result<Vec<ValueId>, Error>),
    /// By a block of the program, whose end gives the results.
    Blocks(for<'m> fn(&mut Rewriter<'m>, &'m Operation) -> Result<(), Error>),
}

impl Rewrite {
    /// Puts other operations in the place of one. Gives the values of its results, unless they are still to come.
    pub(crate) fn apply<'m>(
        self,
        r: &mut Rewriter<'m>,
        op: &'m Operation,
    ) -> Result<Option<Vec<ValueId>>, Error> {
        let value = match self {
            Rewrite::Real(formula) => {
                let x = real_operand(r, op)?;
                formulas::at_least_f32(&mut r.b, formula, x)
            }
            Rewrite::RealOrComplex(_, formula) if is_complex(r, op)? => {
                let [x] = r.operands(op)?;
                formula(&mut r.b, x)
            }
            Rewrite::RealOrComplex(formula, _) => return Rewrite::Real(formula).apply(r, op),
            Rewrite::Reals(formula) => {
                let [x, y] = r.operands(op)?;
                require_real(r, op, x)?;
                formulas::both_at_least_f32(&mut r.b, formula, x, y)
            }
            Rewrite::Float(formula) => {
                let x = real_operand(r, op)?;
                formula(&mut r.b, x)
            }
            Rewrite::Value(rule) => rule(r, op)?,
            Rewrite::Values(rule) => return rule(r, op).map(Some),
            Rewrite::Blocks(rule) => return rule(r, op).map(|()| None),
        };
        Ok(Some(vec![value]))
    }

    /// How many operands the function of floats has that this is a formula of.
    pub(crate) fn operands_of_formula(self) -> Option<usize> {
        match self {
            Rewrite::Real(_) | Rewrite::RealOrComplex(..) | Rewrite::Float(_) => Some(1),
            Rewrite::Reals(_) => Some(2),
            Rewrite::Value(_) | Rewrite::Values(_) | Rewrite::Blocks(_) => None,
        }
    }
}

/// Whether an operation is of complex numbers.
fn is_complex(r: &Rewriter<'_>, op: &Operation) -> Result<bool, Error> {
    let [x] = r.operands(op)?;
    Ok(r.b.element(x).is_complex())
}

/// The operand of a function of real numbers.
fn real_operand(r: &Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    let [x] = r.operands(op)?;
    require_real(r, op, x)?;
    Ok(x)
}

/// Fails for elements that are not floats.
pub(crate) fn require_real(r: &Rewriter<'_>, op: &Operation, x: ValueId) -> Result<(), Error> {
    let element = r.b.element(x);
    if !element.is_float() {
        return Err(unsupported(format!(
            "{} of {element} cannot be decomposed, only of floats",
            op.kind.name()
        )));
    }
    Ok(())
}
