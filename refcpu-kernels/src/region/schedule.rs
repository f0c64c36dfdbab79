//! Rewrites of the list of nodes before it is lowered: dead nodes, order, fused multiplications.

use super::OutputSpec;
use super::node::Node;
use crate::ComputeType;
use crate::tile::{Opcode, TileOp};

/// Returns the live nodes in an order that keeps few values alive: depth first from the outputs.
pub(super) fn schedule(nodes: &[Node], outputs: &[OutputSpec]) -> Vec<u32> {
    let mut done = vec![false; nodes.len()];
    let mut order = vec![];
    let mut stack: Vec<(u32, bool)> = vec![];
    for output in outputs {
        stack.push((output.node, false));
        while let Some((id, expanded)) = stack.pop() {
            if done[id as usize] {
                continue;
            }
            if expanded {
                done[id as usize] = true;
                order.push(id);
            } else {
                stack.push((id, true));
                stack.extend(nodes[id as usize].args().iter().rev().map(|a| (*a, false)));
            }
        }
    }
    order
}

/// Returns the nodes that outputs need, renumbered so that operands precede their users.
pub(super) fn compacted(nodes: Vec<Node>, mut outputs: Vec<OutputSpec>) -> (Vec<Node>, Vec<OutputSpec>) {
    let order = schedule(&nodes, &outputs);
    let mut number = vec![0u32; nodes.len()];
    let mut kept = Vec::with_capacity(order.len());
    for id in order {
        number[id as usize] = kept.len() as u32;
        let mut node = nodes[id as usize].clone();
        if let Node::Op { args, .. } = &mut node {
            args.iter_mut().for_each(|a| *a = number[*a as usize]);
        }
        kept.push(node);
    }
    outputs.iter_mut().for_each(|o| o.node = number[o.node as usize]);
    (kept, outputs)
}

/// Merges a multiplication into the addition or subtraction that is its only user. Both operations still
/// round.
pub(super) fn fuse_multiply_adds(nodes: &mut [Node], outputs: &[OutputSpec]) {
    let mut uses = vec![0u32; nodes.len()];
    for o in outputs {
        uses[o.node as usize] += 1;
    }
    for id in schedule(nodes, outputs) {
        for a in nodes[id as usize].args() {
            uses[*a as usize] += 1;
        }
    }
    for id in 0..nodes.len() {
        let Node::Op {
            opcode: Opcode::Tile(op @ (TileOp::Add | TileOp::Subtract)), ty, args: [x, y, _], ..
        } = nodes[id]
        else {
            continue;
        };
        if ty != ComputeType::F32 && ty != ComputeType::F64 {
            continue;
        }
        let product = |of: u32| match nodes[of as usize] {
            Node::Op { opcode: Opcode::Tile(TileOp::Multiply), args: [a, b, _], .. }
                if uses[of as usize] == 1 =>
            {
                Some((a, b))
            }
            _ => None,
        };
        let (opcode, a, b, c) = match (op, product(x), product(y)) {
            (TileOp::Add, Some((a, b)), _) => (Opcode::MulAdd, a, b, y),
            (TileOp::Add, _, Some((a, b))) => (Opcode::MulAdd, a, b, x),
            (_, Some((a, b)), _) => (Opcode::MulSub, a, b, y),
            (_, _, Some((a, b))) => (Opcode::NegMulAdd, a, b, x),
            _ => continue,
        };
        nodes[id] = Node::Op { opcode, ty, args: [a, b, c], arity: 3 };
    }
}
