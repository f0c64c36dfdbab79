//! Plans as bytes.
//!
//! What is written is the graph that the plan was made of, and the plan is made again when it is read: that takes
//! milliseconds, and damaged or hostile bytes cannot give a plan that the compiler would not make.

use super::{Donation, Plan};
use crate::compile::{CompileError, plan_from_graph};
use crate::graph::{Graph, Reader, Wire, WireError, verify};
use pjrt_sharding::Sharding;

/// First bytes of a stored plan.
const MAGIC: &[u8] = b"refcpu plan\n";

/// Counts changes of the format.
const VERSION: u32 = 2;

/// What a plan says about its parameters and results besides their types.
pub(crate) struct Interface {
    pub(crate) donations: Vec<Donation>,
    pub(crate) parameters: Vec<Option<Sharding>>,
    pub(crate) results: Vec<Option<Sharding>>,
}

impl Plan {
    /// The plan as bytes for [`Self::from_bytes`] of the same version of refcpu.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        VERSION.put(&mut out);
        env!("CARGO_PKG_VERSION").as_bytes().to_vec().put(&mut out);
        self.num_replicas.put(&mut out);
        self.num_partitions.put(&mut out);
        self.global_view.put(&mut out);
        self.graph.put(&mut out);
        for p in &self.parameters {
            p.donation.put(&mut out);
            p.sharding.put(&mut out);
        }
        for r in &self.results {
            r.sharding.put(&mut out);
        }
        out
    }

    /// A plan from bytes that [`Self::to_bytes`] gave.
    ///
    /// # Errors
    /// If the bytes are no plan of this version, or are damaged.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, CompileError> {
        let invalid = |e: WireError| CompileError::invalid(format!("this is no plan of refcpu: {e}"));
        let rest = bytes
            .strip_prefix(MAGIC)
            .ok_or_else(|| CompileError::invalid("this is no plan of refcpu: it begins otherwise"))?;
        let mut r = Reader::new(rest);
        let version = u32::get(&mut r).map_err(invalid)?;
        let package = if version == VERSION { Vec::<u8>::get(&mut r).map_err(invalid)? } else { Vec::new() };
        if version != VERSION || package != env!("CARGO_PKG_VERSION").as_bytes() {
            return Err(CompileError::invalid(format!(
                "a plan of format {version} of refcpu {}, this is format {VERSION} of refcpu {}",
                String::from_utf8_lossy(&package),
                env!("CARGO_PKG_VERSION")
            )));
        }
        let (graph, interface, replicas, partitions, global) = contents(&mut r).map_err(invalid)?;
        verify(&graph).map_err(|e| CompileError::invalid(format!("this is no plan of refcpu: {e}")))?;
        let mut plan = plan_from_graph(graph, interface, true)?;
        plan.num_replicas = replicas;
        plan.num_partitions = partitions;
        plan.global_view = global;
        Ok(plan)
    }
}

type Contents = (Graph, Interface, usize, usize, bool);

fn contents(r: &mut Reader<'_>) -> Result<Contents, WireError> {
    let (replicas, partitions, global) = (usize::get(r)?, usize::get(r)?, bool::get(r)?);
    if replicas == 0 || partitions == 0 || replicas.checked_mul(partitions).is_none_or(|n| n > 1 << 20) {
        return r.fail("no such number of devices");
    }
    let graph = Graph::get(r)?;
    let mut interface = Interface { donations: vec![], parameters: vec![], results: vec![] };
    for p in graph.parameters() {
        interface.donations.push(Donation::get(r)?);
        let sharding = Option::<Sharding>::get(r)?;
        if sharding.as_ref().is_some_and(|s| !fits(s, &graph.shape(*p).dims, partitions)) {
            return r.fail("a sharding that does not fit its parameter");
        }
        interface.parameters.push(sharding);
    }
    for v in graph.results() {
        let sharding = Option::<Sharding>::get(r)?;
        if sharding.as_ref().is_some_and(|s| !fits(s, &graph.shape(*v).dims, partitions)) {
            return r.fail("a sharding that does not fit its result");
        }
        interface.results.push(sharding);
    }
    if !r.at_end() {
        return r.fail("data after the end");
    }
    Ok((graph, interface, replicas, partitions, global))
}

/// True if a sharding cuts an array of these dimensions into equal parts, and gives every partition one.
fn fits(s: &Sharding, dims: &[usize], partitions: usize) -> bool {
    let cuts = s.parts.iter().zip(dims).all(|(n, d)| *n > 0 && d.is_multiple_of(*n));
    let inside = |p: &Vec<usize>| p.len() == dims.len() && p.iter().zip(&s.parts).all(|(i, n)| i < n);
    s.parts.len() == dims.len() && s.position.len() == partitions && cuts && s.position.iter().all(inside)
}

impl Wire for u8 {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(*self);
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, WireError> {
        Ok(r.take(1)?[0])
    }
}

impl Wire for Donation {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Donation::None => out.push(0),
            Donation::Any => out.push(1),
            Donation::Result(k) => {
                out.push(2);
                k.put(out);
            }
        }
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, WireError> {
        match u8::get(r)? {
            0 => Ok(Donation::None),
            1 => Ok(Donation::Any),
            2 => usize::get(r).map(Donation::Result),
            _ => r.fail("no such donation"),
        }
    }
}

impl Wire for Sharding {
    fn put(&self, out: &mut Vec<u8>) {
        self.parts.put(out);
        self.position.put(out);
        self.summed.put(out);
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, WireError> {
        Ok(Sharding { parts: Wire::get(r)?, position: Wire::get(r)?, summed: Wire::get(r)? })
    }
}
