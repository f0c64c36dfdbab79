//! The custom calls to which refcpu's Python package lowers JAX's linear algebra.

use super::{CompileError, Result};
use pjrt_stablehlo::ir::{Attribute, DictionaryAttribute, Str};
use refcpu_kernels::linalg::{LinalgOp, SvdVectors};

/// A function that creates an operation from the attributes of a call.
type Make = fn(&mut Attributes<'_>) -> Result<LinalgOp>;

/// The targets and their operations. A call has `api_version` 4, and a dictionary with exactly the attributes that are read
/// here. Its operands and results are those of the [`LinalgOp`].
const TARGETS: &[(&str, Make)] = &[
    ("refcpu.cholesky_update", |_| Ok(LinalgOp::CholeskyUpdate)),
    ("refcpu.eig", |a| Ok(LinalgOp::Eig { left: a.flag("left")?, right: a.flag("right")? })),
    ("refcpu.eigh", |a| Ok(LinalgOp::Eigh { lower: a.flag("lower")? })),
    ("refcpu.geqp3", |_| Ok(LinalgOp::Geqp3)),
    ("refcpu.hessenberg", |_| Ok(LinalgOp::Hessenberg)),
    ("refcpu.lu", |_| Ok(LinalgOp::Lu)),
    ("refcpu.lu_pivots_to_permutation", |a| {
        Ok(LinalgOp::LuPivotsToPermutation { size: a.size("permutation_size")? })
    }),
    ("refcpu.ormqr", |a| Ok(LinalgOp::Ormqr { left: a.flag("left")?, transpose: a.flag("transpose")? })),
    ("refcpu.schur", |a| Ok(LinalgOp::Schur { vectors: a.flag("compute_schur_vectors")? })),
    ("refcpu.svd", |a| {
        Ok(LinalgOp::Svd(match (a.flag("compute_uv")?, a.flag("full_matrices")?) {
            (false, _) => SvdVectors::Nothing,
            (true, false) => SvdVectors::Thin,
            (true, true) => SvdVectors::Full,
        }))
    }),
    ("refcpu.tridiagonal", |a| Ok(LinalgOp::Tridiagonal { lower: a.flag("lower")? })),
    ("refcpu.tridiagonal_solve", |a| {
        Ok(LinalgOp::TridiagonalSolve { perturb_singular: a.flag("perturb_singular")? })
    }),
];

/// Returns the operation of a target; `None` if the target is not in the table.
///
/// # Errors
/// Returns an error if the attributes of the call do not fit the operation.
pub(super) fn linalg_op(target: &str, entries: Option<&DictionaryAttribute>) -> Result<Option<LinalgOp>> {
    let Some((_, make)) = TARGETS.iter().find(|(name, _)| *name == target) else { return Ok(None) };
    let mut attributes = Attributes::new(target, entries);
    let op = make(&mut attributes)?;
    attributes.check_all_read()?;
    Ok(Some(op))
}

/// The attributes of a call, with the names of those that were read.
pub(super) struct Attributes<'a> {
    target: &'a str,
    entries: &'a [(Str, Attribute)],
    read: Vec<&'static str>,
}

impl<'a> Attributes<'a> {
    /// Creates a reader of the attributes of a call of `target`.
    pub(super) fn new(target: &'a str, entries: Option<&'a DictionaryAttribute>) -> Self {
        Self { target, entries: entries.map_or(&[][..], DictionaryAttribute::entries), read: Vec::new() }
    }

    /// Checks that the call has no attribute that was not read.
    ///
    /// # Errors
    /// Returns an error if it has one.
    pub(super) fn check_all_read(&self) -> Result<()> {
        match self.entries.iter().find(|(name, _)| !self.read.contains(&&**name)) {
            Some((name, _)) => Err(CompileError::invalid(format!(
                "{} does not accept the attribute {name:?} in its backend_config",
                self.target
            ))),
            None => Ok(()),
        }
    }

    pub(super) fn flag(&mut self, name: &'static str) -> Result<bool> {
        self.typed(name, "a boolean", Attribute::as_bool)
    }

    /// Reads one of these letters, which are the options of LAPACK.
    pub(super) fn letter(&mut self, name: &'static str, letters: &[u8]) -> Result<u8> {
        let what = format!("the character code of one of the letters {}", String::from_utf8_lossy(letters));
        self.typed(name, &what, |a| u8::try_from(a.as_i64()?).ok().filter(|letter| letters.contains(letter)))
    }

    pub(super) fn size(&mut self, name: &'static str) -> Result<usize> {
        self.typed(name, "a non-negative integer", |a| usize::try_from(a.as_i64()?).ok())
    }

    fn typed<T>(
        &mut self,
        name: &'static str,
        what: &str,
        read: impl Fn(&Attribute) -> Option<T>,
    ) -> Result<T> {
        self.read.push(name);
        let target = self.target;
        let Some((_, attribute)) = self.entries.iter().find(|(n, _)| **n == *name) else {
            return Err(CompileError::invalid(format!(
                "{target} needs the attribute {name:?} in its backend_config: {what}"
            )));
        };
        read(attribute).ok_or_else(|| {
            CompileError::invalid(format!(
                "the attribute {name:?} of {target} must be {what}, not {}",
                attribute.kind()
            ))
        })
    }
}
