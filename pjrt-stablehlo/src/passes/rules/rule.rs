//! The kinds of rules.

use crate::Error;
use crate::formulas::{self, Binary, Unary};
use crate::ir::{Operation, ValueId};
use crate::passes::rewrite::{Rewriter, unsupported};

/// A function that returns the value that replaces an operation's only result.
pub(crate) type ValueRule = for<'m> fn(&mut Rewriter<'m>, &'m Operation) -> Result<ValueId, Error>;

/// The kind of a rule.
#[derive(Clone, Copy)]
pub(crate) enum Rewrite {
    /// A formula of a float, which is computed in `f32` for narrower types.
    Real(Unary),
    /// A formula of a float, which is computed in `f32` for narrower types, and a formula of a complex number.
    RealOrComplex(Unary, Unary),
    /// A formula of a complex number. The operation of real numbers has none.
    Complex(Unary),
    /// A formula of two complex numbers. The operation of real numbers has none.
    Complexes(Binary),
    /// A formula of two floats, which are converted to `f32` if they are narrower.
    Reals(Binary),
    /// A formula of a float of any width.
    Float(Unary),
    /// A function that returns the operation's only result.
    Value(ValueRule),
    /// A function that returns the operation's results.
    Values(for<'m> fn(&mut Rewriter<'m>, &'m Operation) -> Result<Vec<ValueId>, Error>),
    /// A function that requests the copy of a block, whose end provides the results.
    Blocks(for<'m> fn(&mut Rewriter<'m>, &'m Operation) -> Result<(), Error>),
}

impl Rewrite {
    /// Adds the operations that replace `op`. Returns the values of its results, unless a block provides them later.
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
            Rewrite::Complex(formula) => {
                let [x] = r.operands(op)?;
                formula(&mut r.b, x)
            }
            Rewrite::Complexes(formula) => {
                let [x, y] = r.operands(op)?;
                formula(&mut r.b, x, y)
            }
            Rewrite::Reals(formula) => {
                let [x, y] = r.operands(op)?;
                require_real(r, op, x)?;
                formulas::both_at_least_f32(&mut r.b, formula, x, y)
            }
            Rewrite::Float(formula) => {
                let x = real_operand(r, op)?;
                formulas::with_sign(&mut r.b, &[x], |b, x| formula(b, x[0]))
            }
            Rewrite::Value(rule) => rule(r, op)?,
            Rewrite::Values(rule) => return rule(r, op).map(Some),
            Rewrite::Blocks(rule) => return rule(r, op).map(|()| None),
        };
        Ok(Some(vec![value]))
    }

    /// Returns `true` if operations of real numbers have no rule.
    pub(crate) fn is_of_complex_numbers(self) -> bool {
        matches!(self, Rewrite::Complex(_) | Rewrite::Complexes(_))
    }

    /// Returns the number of operands, if the rule is a formula of floats.
    pub(crate) fn operands_of_formula(self) -> Option<usize> {
        match self {
            Rewrite::Real(_) | Rewrite::RealOrComplex(..) | Rewrite::Float(_) => Some(1),
            Rewrite::Reals(_) => Some(2),
            Rewrite::Complex(_) | Rewrite::Complexes(_) => None,
            Rewrite::Value(_) | Rewrite::Values(_) | Rewrite::Blocks(_) => None,
        }
    }
}

/// Returns `true` if the operand is complex.
fn is_complex(r: &Rewriter<'_>, op: &Operation) -> Result<bool, Error> {
    let [x] = r.operands(op)?;
    Ok(r.b.element(x).is_complex())
}

/// Returns the operand of a function of real numbers.
fn real_operand(r: &Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    let [x] = r.operands(op)?;
    require_real(r, op, x)?;
    Ok(x)
}

/// Returns an error for elements that are not floats.
pub(crate) fn require_real(r: &Rewriter<'_>, op: &Operation, x: ValueId) -> Result<(), Error> {
    let element = r.b.element(x);
    if !element.is_float() {
        return Err(unsupported(format!(
            "{} of element type {element} cannot be decomposed, expected a float type",
            op.kind.name()
        )));
    }
    Ok(())
}
