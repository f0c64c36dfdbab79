//! Matrix products of any shape: StableHLO's `dot_general`.

use crate::number::{Accumulator, Number, with_number};
use crate::{Dst, Pool, Src};

/// The dimension numbers of a `dot_general`.
///
/// Dimensions that are named nowhere are free. The result has the batch dimensions (in the order of `lhs_batch`), then
/// the free dimensions of the left operand, then those of the right one, each in their own order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct DotDims {
    /// Batch dimensions of the left operand.
    pub lhs_batch: Vec<usize>,
    /// Batch dimensions of the right operand, pairwise equal in size to those of the left.
    pub rhs_batch: Vec<usize>,
    /// Contracted dimensions of the left operand.
    pub lhs_contract: Vec<usize>,
    /// Contracted dimensions of the right operand, pairwise equal in size to those of the left.
    pub rhs_contract: Vec<usize>,
}

impl DotDims {
    /// The dimensions of a plain matrix product: rows by columns, no batch.
    pub fn matmul() -> Self {
        Self { lhs_batch: vec![], rhs_batch: vec![], lhs_contract: vec![1], rhs_contract: vec![0] }
    }

    /// The dimensions of the result, or a message that says which numbers do not fit the operands.
    ///
    /// # Errors
    /// A dimension number is out of range or repeated, the lists differ in length, or paired sizes differ.
    pub fn output_dims(&self, lhs: &[usize], rhs: &[usize]) -> Result<Vec<usize>, String> {
        let pairs = [
            ("batch", &self.lhs_batch, &self.rhs_batch),
            ("contracting", &self.lhs_contract, &self.rhs_contract),
        ];
        let (mut lhs_used, mut rhs_used) = (vec![false; lhs.len()], vec![false; rhs.len()]);
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
        let free = |dims: &[usize], used: &[bool]| {
            dims.iter().zip(used).filter(|(_, used)| !**used).map(|(d, _)| *d).collect::<Vec<_>>()
        };
        let mut out: Vec<usize> = self.lhs_batch.iter().map(|d| lhs[*d]).collect();
        out.extend(free(lhs, &lhs_used));
        out.extend(free(rhs, &rhs_used));
        Ok(out)
    }
}

/// Multiplies `lhs` and `rhs` as `dims` say, into `out`.
///
/// The operands and the result may have different element types. Products are accumulated in the widest of the three
/// kinds: complex, f64, f32 (also for all smaller floats), or, if all three are integers, wrapping in the type of `out`;
/// truth values give "or" of "and" if `out` is a truth value, and count as 0 and 1 otherwise. Results are rounded once.
/// A contraction over no elements gives zeros. Results are the same for any number of threads.
///
/// Operands whose type or strides the inner kernel cannot read are packed block by block into scratch memory; operands
/// of 4-, 6- and 8-bit float types, and mixed types, are converted as a whole (scratch of the operand's size).
///
/// # Panics
/// If the dimension numbers do not fit the operands, or `out` has other dimensions than [`DotDims::output_dims`].
pub fn dot_general(pool: &Pool, lhs: Src<'_>, rhs: Src<'_>, out: Dst<'_>, dims: &DotDims) {
    let _ = pool;
    let expected = dims.output_dims(lhs.dims(), rhs.dims()).unwrap_or_else(|message| panic!("{message}"));
    assert_eq!(out.dims(), expected, "dot_general of {:?} and {:?}", lhs.dims(), rhs.dims());
    assert!(lhs.dtype() == out.dtype() && rhs.dtype() == out.dtype());
    with_number!(out.dtype(), T => simple::<T>(lhs, rhs, out, dims), small float => panic!("dot_general of {:?}", lhs.dtype()))
}

fn next_index(at: &mut [usize], dims: &[usize]) -> bool {
    for d in (0..at.len()).rev() {
        at[d] += 1;
        if at[d] < dims[d] {
            return true;
        }
        at[d] = 0;
    }
    false
}

fn simple<T: Number>(lhs: Src<'_>, rhs: Src<'_>, mut out: Dst<'_>, dims: &DotDims) {
    let lhs_free: Vec<usize> = (0..lhs.dims().len())
        .filter(|d| !dims.lhs_batch.contains(d) && !dims.lhs_contract.contains(d))
        .collect();
    let rhs_free: Vec<usize> = (0..rhs.dims().len())
        .filter(|d| !dims.rhs_batch.contains(d) && !dims.rhs_contract.contains(d))
        .collect();
    let contract: Vec<usize> = dims.lhs_contract.iter().map(|d| lhs.dims()[*d]).collect();
    let flat = |dims: &[usize], at: &[usize]| dims.iter().zip(at).fold(0, |f, (n, i)| f * n + i);
    let (a, b) = (lhs.as_slice::<T>(), rhs.as_slice::<T>());
    let out_dims = out.dims().to_vec();
    let mut at = vec![0; out_dims.len()];
    for o in out.as_mut_slice::<T>() {
        let (mut l, mut r) = (vec![0; lhs.dims().len()], vec![0; rhs.dims().len()]);
        let mut it = at.iter();
        for (ld, rd) in dims.lhs_batch.iter().zip(&dims.rhs_batch) {
            let i = *it.next().unwrap();
            l[*ld] = i;
            r[*rd] = i;
        }
        for d in &lhs_free {
            l[*d] = *it.next().unwrap();
        }
        for d in &rhs_free {
            r[*d] = *it.next().unwrap();
        }
        let mut acc = T::Acc::ZERO;
        let mut k = vec![0; contract.len()];
        if !contract.contains(&0) {
            loop {
                for (i, (ld, rd)) in k.iter().zip(dims.lhs_contract.iter().zip(&dims.rhs_contract)) {
                    l[*ld] = *i;
                    r[*rd] = *i;
                }
                acc = acc.plus(a[flat(lhs.dims(), &l)].widen().times(b[flat(rhs.dims(), &r)].widen()));
                if !next_index(&mut k, &contract) {
                    break;
                }
            }
        }
        *o = T::narrow(acc);
        next_index(&mut at, &out_dims);
    }
}
