//! Matrix products of any shape: StableHLO's `dot_general`.

mod engine;
mod gemm;
#[cfg(target_arch = "x86_64")]
mod int8;
mod kernel;
mod matvec;
mod operand;
mod product;
#[cfg(test)]
mod tests;
#[cfg(target_arch = "x86_64")]
mod x86;

pub(crate) use self::gemm::{GemmShape, Output, multiply as multiply_blocks};
pub(crate) use self::kernel::panels;
pub(crate) use self::operand::{Index, Left, Right, pad};
pub(crate) use self::product::{Operand, Operands, Visit, compute_type, multiply, with_compute};
#[cfg(target_arch = "x86_64")]
use crate::DType;
use crate::few::Few;
use crate::view::SyncPtr;
use crate::{Dst, Pool, Src};

/// The dimension numbers of a `dot_general`.
///
/// Dimensions that are not listed are free. The result has the batch dimensions (in the order of
/// `lhs_batch`), then the free dimensions of the left operand, then those of the right one, each in their own
/// order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct DotDims {
    /// The batch dimensions of the left operand.
    pub lhs_batch: Vec<usize>,
    /// The batch dimensions of the right operand, whose sizes equal those of the left one in order.
    pub rhs_batch: Vec<usize>,
    /// The contracted dimensions of the left operand.
    pub lhs_contract: Vec<usize>,
    /// The contracted dimensions of the right operand, whose sizes equal those of the left one in order.
    pub rhs_contract: Vec<usize>,
}

impl DotDims {
    /// Returns the dimension numbers of a plain matrix product: rows by columns, without batch.
    pub fn matmul() -> Self {
        Self { lhs_batch: vec![], rhs_batch: vec![], lhs_contract: vec![1], rhs_contract: vec![0] }
    }

    /// Returns the dimensions of the result.
    ///
    /// # Errors
    /// Returns an error if a dimension number is out of range or repeated, if the lists differ in length, or
    /// if paired sizes differ.
    pub fn output_dims(&self, lhs: &[usize], rhs: &[usize]) -> Result<Vec<usize>, String> {
        self.check(lhs, rhs)?;
        Ok(self.sizes(lhs, rhs).collect())
    }

    fn check(&self, lhs: &[usize], rhs: &[usize]) -> Result<(), String> {
        let pairs = [
            ("batch", &self.lhs_batch, &self.rhs_batch),
            ("contracting", &self.lhs_contract, &self.rhs_contract),
        ];
        let unused = |rank| Few::from_elem(false, rank);
        let (mut lhs_used, mut rhs_used) = (unused(lhs.len()), unused(rhs.len()));
        for (kind, ls, rs) in pairs {
            if ls.len() != rs.len() {
                return Err(format!("{} {kind} dimensions on the left, {} on the right", ls.len(), rs.len()));
            }
            for (&l, &r) in ls.iter().zip(rs) {
                if l >= lhs.len() || r >= rhs.len() {
                    return Err(format!(
                        "{kind} dimensions {l} and {r} of operands of rank {} and {}",
                        lhs.len(),
                        rhs.len()
                    ));
                }
                if lhs[l] != rhs[r] {
                    return Err(format!(
                        "{kind} dimensions {l} and {r} have sizes {} and {}",
                        lhs[l], rhs[r]
                    ));
                }
                if std::mem::replace(&mut lhs_used[l], true) || std::mem::replace(&mut rhs_used[r], true) {
                    return Err(format!("{kind} dimension {l} or {r} is named twice"));
                }
            }
        }
        Ok(())
    }

    /// Returns the dimensions of the result, for operands that [`Self::check`] accepts.
    fn sizes<'a>(&'a self, lhs: &'a [usize], rhs: &'a [usize]) -> impl Iterator<Item = usize> + 'a {
        let batch = self.lhs_batch.iter().map(|d| lhs[*d]);
        let rows = free(lhs.len(), &self.lhs_batch, &self.lhs_contract).map(|d| lhs[d]);
        let cols = free(rhs.len(), &self.rhs_batch, &self.rhs_contract).map(|d| rhs[d]);
        batch.chain(rows).chain(cols)
    }
}

/// Returns the dimensions that are not listed.
fn free<'a>(rank: usize, batch: &'a [usize], contract: &'a [usize]) -> impl Iterator<Item = usize> + 'a {
    (0..rank).filter(|d| !batch.contains(d) && !contract.contains(d))
}

/// Multiplies `lhs` and `rhs` according to `dims`, and writes the result to `out`.
///
/// The operands and the result may have different element types. If one of the three types is f64 or contains
/// it, products are accumulated in f64, otherwise in f32; as complex numbers, if the result is complex. If
/// the result is an integer, they wrap in its type. If the result is a boolean, booleans are combined with
/// "and" and accumulated with "or"; otherwise they are treated as 0 and 1. Results are rounded once. A
/// contraction over no elements results in zeros. Results do not depend on the number of threads.
///
/// Operands whose strides the inner kernel cannot read are packed block by block to scratch memory, and
/// 16-bit floats and small integers are converted in this step. Operands of 4-, 6- and 8-bit float types, and
/// of unusual combinations of types, are converted as a whole (with scratch memory of the operand's size).
///
/// # Panics
/// Panics if the dimension numbers do not match the operands, if the dimensions of `out` are not
/// [`DotDims::output_dims`], if `out` is an integer and an operand is not, or if an operand is complex and
/// `out` is not.
pub fn dot_general(pool: &Pool, lhs: Src<'_>, rhs: Src<'_>, mut out: Dst<'_>, dims: &DotDims) {
    dims.check(lhs.dims(), rhs.dims()).unwrap_or_else(|message| panic!("{message}"));
    let fits = dims.sizes(lhs.dims(), rhs.dims()).eq(out.dims().iter().copied());
    assert!(fits, "dot_general of {:?} and {:?} to {:?}", lhs.dims(), rhs.dims(), out.dims());
    with_compute!(compute_type(lhs.dtype(), rhs.dtype(), out.dtype()), U => general::<U>(pool, lhs, rhs, &mut out, dims))
}

/// The sizes and strides of some dimensions of an array.
type Sides = Few<(usize, usize)>;

/// Returns the sizes and row-major strides of some dimensions of an array.
fn sides(dims: &[usize], of: impl Iterator<Item = usize>) -> Sides {
    of.map(|d| (dims[d], dims[d + 1..].iter().product())).collect()
}

fn general<U: Operands>(pool: &Pool, lhs: Src<'_>, rhs: Src<'_>, out: &mut Dst<'_>, dims: &DotDims) {
    let lhs_batch = sides(lhs.dims(), dims.lhs_batch.iter().copied());
    let rhs_batch = sides(rhs.dims(), dims.rhs_batch.iter().copied());
    let rows = sides(lhs.dims(), free(lhs.dims().len(), &dims.lhs_batch, &dims.lhs_contract));
    let cols = sides(rhs.dims(), free(rhs.dims().len(), &dims.rhs_batch, &dims.rhs_contract));
    let (lhs_depth, rhs_depth) = contraction(
        sides(lhs.dims(), dims.lhs_contract.iter().copied()),
        sides(rhs.dims(), dims.rhs_contract.iter().copied()),
    );
    let count = |dims: &[(usize, usize)]| dims.iter().map(|d| d.0).product::<usize>();
    let shape = GemmShape {
        batch: count(&lhs_batch),
        rows: count(&rows),
        cols: count(&cols),
        depth: count(&lhs_depth),
    };
    if out.is_empty() {
        return;
    }
    #[cfg(target_arch = "x86_64")]
    if (lhs.dtype(), rhs.dtype(), out.dtype()) == (DType::S8, DType::S8, DType::S32) && int8::available(shape)
    {
        let ptr = |s: &Src<'_>| s.as_ptr().cast::<i8>();
        let (batch, outer, depth) = (Index::new(lhs_batch), Index::new(rows), Index::new(lhs_depth));
        let a = int8::Matrix { ptr: ptr(&lhs), batch, outer, depth };
        let (batch, outer, depth) = (Index::new(rhs_batch), Index::new(cols), Index::new(rhs_depth));
        let b = int8::Matrix { ptr: ptr(&rhs), batch, outer, depth };
        // SAFETY: `available` returned `true`. The operands are readable, and nothing else accesses `out`
        // during the call, which has the sizes of `shape`.
        unsafe { int8::multiply(pool, shape, &a, &b, SyncPtr::new(out)) };
        return;
    }
    let output = Output {
        ptr: SyncPtr::new(out),
        batch: Index::Uniform(shape.rows * shape.cols),
        row: shape.cols,
        store: U::store(out.dtype()),
    };
    let [lhs_batch, rows, lhs_depth] = [lhs_batch, rows, lhs_depth].map(Index::new);
    let [rhs_batch, rhs_depth, cols] = [rhs_batch, rhs_depth, cols].map(Index::new);
    U::with_operand(lhs, &lhs_batch, &rows, &lhs_depth, &mut |a| {
        // SAFETY: nothing else accesses `out` during the call, and its size is batch times rows times
        // columns.
        let product = &mut |b: &Operand<'_, U>| unsafe { multiply(pool, shape, a, b, &output) };
        U::with_operand(rhs, &rhs_batch, &rhs_depth, &cols, product);
    });
}

/// Returns the contracted dimensions of both sides in the order in which most sides have a single stride.
/// Sums do not depend on the order.
fn contraction(lhs: Sides, rhs: Sides) -> (Sides, Sides) {
    if lhs.len() < 2 {
        return (lhs, rhs);
    }
    let sorted = |key: &dyn Fn(usize) -> usize| {
        let mut order: Few<usize> = (0..lhs.len()).collect();
        order.sort_by_key(|i| std::cmp::Reverse(key(*i)));
        let pick = |side: &Sides| order.iter().map(|i| side[*i]).collect();
        (pick(&lhs), pick(&rhs))
    };
    let uniform = |side: &Sides| usize::from(Index::new(side.iter().copied()).stride().is_some());
    let candidates = [sorted(&|i| lhs[i].1), sorted(&|i| rhs[i].1)];
    candidates.into_iter().rev().max_by_key(|(l, r)| uniform(l) + uniform(r)).expect("two candidates")
}
