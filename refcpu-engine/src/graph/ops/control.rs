//! Control flow: operations that run bodies as programs, and barriers.

use crate::graph::operation::{
    Check, Cost, Execution, Operation, check_body, elements, need, need_dims, same,
};
use crate::graph::{Body, Shape};
use refcpu_kernels::DType;

/// The number of iterations that cost analysis assumes for a loop, whose actual number is unknown before it runs.
const ASSUMED_TRIPS: f64 = 100.0;

/// A loop. The operands are the carried values, then the invariant ones; the results are the carried ones. Both bodies take all
/// operands.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct While {
    /// The number of carried values.
    pub carried: usize,
    /// The body that computes whether to run another iteration.
    pub condition: Body,
    /// The body that computes the next carried values.
    pub body: Body,
}

impl Operation for While {
    fn verify(&self, x: &[&Shape], y: &[&Shape]) -> Check {
        need(
            y.len() == self.carried && x.len() >= self.carried,
            "the numbers of operands and results do not fit the number of carried values",
        )?;
        x.iter().zip(y).try_for_each(|(a, b)| same(a, b))?;
        let inputs: Vec<Shape> = x.iter().map(|s| (*s).clone()).collect();
        check_body(&self.condition, &inputs, &[Shape::scalar(DType::Pred)])?;
        check_body(&self.body, &inputs, &inputs[..self.carried])
    }

    fn cost(&self, _x: &[&Shape], _y: &[&Shape]) -> Option<Cost> {
        None
    }

    fn bodies(&self) -> Vec<&Body> {
        vec![&self.condition, &self.body]
    }

    fn runs(&self, _y: &[&Shape]) -> Vec<(f64, &Body)> {
        vec![(ASSUMED_TRIPS, &self.condition), (ASSUMED_TRIPS, &self.body)]
    }

    fn execution(&self, _x: &[&Shape], _y: &[&Shape]) -> Execution {
        Execution::Compiled
    }
}

/// A branch. The operands are the index (i32), then the operands of the branches. An index out of range selects the last branch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Case {
    /// The branches.
    pub branches: Vec<Body>,
}

impl Operation for Case {
    fn verify(&self, x: &[&Shape], y: &[&Shape]) -> Check {
        need(!self.branches.is_empty() && !x.is_empty(), "there are no branches or no index")?;
        same(x[0], &Shape::scalar(DType::S32))?;
        let inputs: Vec<Shape> = x[1..].iter().map(|s| (*s).clone()).collect();
        let results: Vec<Shape> = y.iter().map(|s| (*s).clone()).collect();
        self.branches.iter().try_for_each(|b| check_body(b, &inputs, &results))
    }

    fn cost(&self, _x: &[&Shape], _y: &[&Shape]) -> Option<Cost> {
        None
    }

    fn bodies(&self) -> Vec<&Body> {
        self.branches.iter().collect()
    }

    fn runs(&self, _y: &[&Shape]) -> Vec<(f64, &Body)> {
        self.branches.iter().max_by_key(|branch| branch.size()).map(|b| (1.0, b)).into_iter().collect()
    }

    fn execution(&self, _x: &[&Shape], _y: &[&Shape]) -> Execution {
        Execution::Compiled
    }
}

/// A graph over scalars that is applied to the elements of all operands. The operands have the dimensions of the results, of
/// which there may be several.
impl Operation for Body {
    fn verify(&self, x: &[&Shape], y: &[&Shape]) -> Check {
        need(
            x.iter().all(|s| y.first().is_some_and(|r| s.dims == r.dims)),
            "the operands and results differ in dimensions",
        )?;
        check_body(self, &Shape::scalars(x), &Shape::scalars(y))
    }

    fn cost(&self, _x: &[&Shape], _y: &[&Shape]) -> Option<Cost> {
        None
    }

    fn bodies(&self) -> Vec<&Body> {
        vec![self]
    }

    fn runs(&self, y: &[&Shape]) -> Vec<(f64, &Body)> {
        vec![(elements(y, 0), self)]
    }

    fn execution(&self, _x: &[&Shape], _y: &[&Shape]) -> Execution {
        Execution::Compiled
    }
}

/// Runs a body on parts of the operands for each position of a mesh.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Manual {
    /// The split of operands and results.
    pub spec: Box<ManualSpec>,
    /// The body.
    pub body: Body,
}

impl Operation for Manual {
    fn verify(&self, x: &[&Shape], y: &[&Shape]) -> Check {
        let (spec, b) = (&self.spec, &self.body);
        let shardings = spec.inputs.len() == x.len() && spec.outputs.len() == y.len();
        need(shardings, "the number of shardings is not the number of operands and results")?;
        let arrays = b.parameters().len() == x.len() && b.results().len() == y.len();
        need(arrays, "the numbers of the body's parameters and results do not fit the operation")?;
        need_dims(&spec.axes, spec.mesh.len(), "the manual axes are not distinct axes of the mesh")?;
        need(
            spec.positions().is_some_and(|n| n <= 1 << 16),
            "the mesh has more than 65536 positions along the manual axes",
        )?;
        let parts = b.parameters().iter().chain(b.results()).map(|v| b.shape(*v));
        let cuts = spec.inputs.iter().chain(&spec.outputs);
        x.iter()
            .chain(y)
            .zip(parts.zip(cuts))
            .try_for_each(|(whole, (part, cut))| spec.check(whole, part, cut))
    }

    fn cost(&self, _x: &[&Shape], _y: &[&Shape]) -> Option<Cost> {
        None
    }

    fn bodies(&self) -> Vec<&Body> {
        vec![&self.body]
    }

    fn runs(&self, _y: &[&Shape]) -> Vec<(f64, &Body)> {
        vec![(self.spec.positions().unwrap_or_default() as f64, &self.body)]
    }

    fn is_pure(&self) -> bool {
        false
    }

    fn execution(&self, _x: &[&Shape], _y: &[&Shape]) -> Execution {
        Execution::Compiled
    }
}

/// The split of a `sdy.manual_computation`. For each operand and result, and each of its dimensions, it contains the indices of
/// the mesh axes that the dimension is split along, from major to minor.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ManualSpec {
    /// The sizes of the mesh axes.
    pub mesh: Vec<usize>,
    /// The manual axes. The body runs once for each position along them.
    pub axes: Vec<usize>,
    /// The split of each operand.
    pub inputs: Vec<Vec<Vec<usize>>>,
    /// The split of each result.
    pub outputs: Vec<Vec<Vec<usize>>>,
    /// The devices at the positions of the mesh.
    pub device_ids: Vec<usize>,
}

impl ManualSpec {
    /// Returns the number of times that the body runs.
    fn positions(&self) -> Option<usize> {
        self.axes.iter().try_fold(1usize, |n, a| n.checked_mul(self.mesh[*a]))
    }

    /// Checks that the type of a part is the result of splitting the whole array.
    fn check(&self, whole: &Shape, part: &Shape, cut: &[Vec<usize>]) -> Check {
        need(
            whole.dtype == part.dtype && whole.rank() == part.rank(),
            "a part differs from its array in element type or rank",
        )?;
        let fits = |d: usize| {
            let axes = cut.get(d).map_or(&[][..], Vec::as_slice);
            let count = axes.iter().try_fold(1usize, |n, a| n.checked_mul(*self.mesh.get(*a)?));
            count.and_then(|n| n.checked_mul(part.dims[d])) == Some(whole.dims[d])
        };
        need((0..whole.rank()).all(fits), "the dimensions of a part do not fit the split of its array")
    }
}

/// Returns the operands. No operation is moved across it.
#[derive(Debug)]
pub struct Barrier;

impl Operation for Barrier {
    fn verify(&self, x: &[&Shape], y: &[&Shape]) -> Check {
        need(x.len() == y.len(), "the numbers of operands and results differ")?;
        x.iter().zip(y).try_for_each(|(a, b)| same(a, b))
    }

    fn cost(&self, _x: &[&Shape], _y: &[&Shape]) -> Option<Cost> {
        None
    }

    fn execution(&self, _x: &[&Shape], _y: &[&Shape]) -> Execution {
        Execution::Compiled
    }
}
