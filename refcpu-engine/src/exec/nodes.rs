//! The nodes of a run: processes of the operating system, each of which runs some of the lanes of the same program.

use super::process::Process;
use super::{Result, RunError};
use crate::plan::Plan;

/// The connection of a run with the runs of the same program on other nodes.
pub trait Transport: Sync {
    /// Executes transfers at the same time, and returns when all of them are complete. A node without a part in a collective
    /// calls this without transfers.
    ///
    /// The n-th send of this run to a node with a tag belongs to the n-th receive of that node's run with this tag from this
    /// node, and has the same size.
    ///
    /// # Errors
    /// Returns an error if another node has failed.
    fn transfer(&self, transfers: &mut [Transfer<'_>]) -> Result<()>;
}

/// A transfer of bytes between this node and another.
#[derive(Debug)]
pub struct Transfer<'a> {
    /// The other node.
    pub node: usize,
    /// The tag.
    pub tag: u64,
    /// The bytes.
    pub bytes: Bytes<'a>,
}

/// The bytes of a [`Transfer`], with its direction.
#[derive(Debug)]
pub enum Bytes<'a> {
    /// Bytes that are sent.
    Send(&'a [u8]),
    /// Memory that receives bytes.
    Receive(&'a mut [u8]),
}

/// The nodes that run the lanes of a plan.
#[derive(Clone, Copy)]
pub struct Nodes<'a> {
    /// The node of each lane.
    pub of_lane: &'a [usize],
    /// The node of this run.
    pub own: usize,
    /// The connection with the other nodes.
    pub transport: &'a dyn Transport,
}

impl Nodes<'_> {
    /// Returns the lanes of this node.
    pub fn lanes(&self) -> impl Iterator<Item = usize> {
        (0..self.of_lane.len()).filter(|lane| self.of_lane[*lane] == self.own)
    }
}

/// The nodes of a run, and the place of each lane.
pub(super) struct Places<'a> {
    pub(super) nodes: Nodes<'a>,
    /// The process of each lane of the plan.
    pub(super) processes: Vec<Process>,
    /// The lanes of this node.
    pub(super) own: Vec<usize>,
}

impl<'a> Places<'a> {
    pub(super) fn new(plan: &Plan, nodes: Nodes<'a>) -> Result<Self> {
        let count = plan.lanes();
        if nodes.of_lane.len() != count || !plan.lanes_are_devices() {
            return Err(RunError::invalid(format!(
                "the nodes have {} lanes, but the program has {count}, or runs on whole arrays",
                nodes.of_lane.len()
            )));
        }
        let processes = (0..count).map(|lane| Process::of_lane(plan, lane)).collect();
        Ok(Self { nodes, processes, own: nodes.lanes().collect() })
    }
}
