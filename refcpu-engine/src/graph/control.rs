//! Operations that run bodies as programs, and barriers.

use super::Shape;
use super::body::{Body, check_body};
use super::check::{Check, need, need_dims, same};
use super::operation::{Cost, Execution, Operation, elements};
use refcpu_kernels::DType;

/// Iterations that a loop is taken to have: nobody knows before it ran.
const ASSUMED_TRIPS: f64 = 100.0;

/// Carried values, then invariant ones; the carried ones are the results. Both bodies take all operands.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct While {
    /// Number of carried values.
    pub carried: usize,
    /// Whether to go on.
    pub condition: Body,
    /// The next carried values.
    pub body: Body,
}

impl Operation for While {
    fn verify(&self, x: &[&Shape], y: &[&Shape]) -> Check {
        need(y.len() == self.carried && x.len() >= self.carried, "carried values")?;
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

/// Index (i32; out of range means the last), then what the branches take.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Case {
    /// The branches.
    pub branches: Vec<Body>,
}

impl Operation for Case {
    fn verify(&self, x: &[&Shape], y: &[&Shape]) -> Check {
        need(!self.branches.is_empty() && !x.is_empty(), "no branches")?;
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

/// A graph over scalars, for the elements of all operands, which have the results' dimensions. Any number of results.
impl Operation for Body {
    fn verify(&self, x: &[&Shape], y: &[&Shape]) -> Check {
        need(x.iter().all(|s| y.first().is_some_and(|r| s.dims == r.dims)), "sizes differ")?;
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

/// Runs a body for each position of a mesh on parts of the operands.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Manual {
    /// How operands are cut and results joined.
    pub spec: Box<ManualSpec>,
    /// What runs.
    pub body: Body,
}

impl Operation for Manual {
    fn verify(&self, x: &[&Shape], y: &[&Shape]) -> Check {
        let (spec, b) = (&self.spec, &self.body);
        let shardings = spec.inputs.len() == x.len() && spec.outputs.len() == y.len();
        need(shardings, "one sharding for each array")?;
        let arrays = b.parameters().len() == x.len() && b.results().len() == y.len();
        need(arrays, "the body takes other arrays")?;
        need_dims(&spec.axes, spec.mesh.len(), "no such axes")?;
        need(spec.positions().is_some_and(|n| n <= 1 << 16), "too many devices")?;
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

/// How `sdy.manual_computation` cuts its operands for its body and joins its results: for each operand and result,
/// and each of its dimensions, the mesh axes (by number) that it is cut along, from major to minor.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ManualSpec {
    /// Sizes of the mesh's axes.
    pub mesh: Vec<usize>,
    /// The axes that the body is manual over; it runs once for each position along them.
    pub axes: Vec<usize>,
    /// How operands are cut.
    pub inputs: Vec<Vec<Vec<usize>>>,
    /// How results are joined.
    pub outputs: Vec<Vec<Vec<usize>>>,
    /// The devices at the mesh's positions.
    pub device_ids: Vec<usize>,
}

impl ManualSpec {
    /// How often the body runs.
    fn positions(&self) -> Option<usize> {
        self.axes.iter().try_fold(1usize, |n, a| n.checked_mul(self.mesh[*a]))
    }

    /// Checks that a part is what cutting the whole gives.
    fn check(&self, whole: &Shape, part: &Shape, cut: &[Vec<usize>]) -> Check {
        need(whole.dtype == part.dtype && whole.rank() == part.rank(), "parts of another type")?;
        let fits = |d: usize| {
            let axes = cut.get(d).map_or(&[][..], Vec::as_slice);
            let count = axes.iter().try_fold(1usize, |n, a| n.checked_mul(*self.mesh.get(*a)?));
            count.and_then(|n| n.checked_mul(part.dims[d])) == Some(whole.dims[d])
        };
        need((0..whole.rank()).all(fits), "parts of other sizes")
    }
}

/// Results equal operands; nothing is moved across.
#[derive(Debug)]
pub struct Barrier;

impl Operation for Barrier {
    fn verify(&self, x: &[&Shape], y: &[&Shape]) -> Check {
        need(x.len() == y.len(), "as many results as operands")?;
        x.iter().zip(y).try_for_each(|(a, b)| same(a, b))
    }

    fn cost(&self, _x: &[&Shape], _y: &[&Shape]) -> Option<Cost> {
        None
    }

    fn execution(&self, _x: &[&Shape], _y: &[&Shape]) -> Execution {
        Execution::Compiled
    }
}
