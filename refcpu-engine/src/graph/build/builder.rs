//! Adds nodes to a graph, and finds equal nodes that it already contains.

use super::fold::fold;
use crate::graph::{Constant, Definition, Graph, Node, Op, Shape, ValueId, ops};
use pjrt_stablehlo::ir::Location;
use refcpu_kernels::DType;
use refcpu_kernels::region::{Direction, Order};
use refcpu_kernels::tile::TileOp;
use std::collections::HashMap;

/// The maximum size in bytes of a constant that is compared with others.
const COMPARED_BYTES: usize = 4096;

/// A builder of [`Graph`]s. Operands are added before their users.
#[derive(Default)]
pub struct Builder {
    graph: Graph,
    known: HashMap<(Op, Vec<ValueId>, Vec<Shape>), ValueId>,
    location: Location,
}

impl Builder {
    /// Creates a builder of an empty graph.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the graph built so far.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Returns the type of a value.
    pub fn shape(&self, value: ValueId) -> &Shape {
        self.graph.shape(value)
    }

    /// Sets the source location of the nodes that are added from here on.
    pub fn set_location(&mut self, location: &Location) {
        self.location = location.clone();
    }

    /// Returns the source location of the nodes that are added.
    pub fn location(&self) -> &Location {
        &self.location
    }

    /// Adds a parameter.
    pub fn parameter(&mut self, shape: Shape) -> ValueId {
        let index = self.graph.parameters.len() as u32;
        let value = self.value(shape, Definition::Parameter(index));
        self.graph.parameters.push(value);
        value
    }

    fn value(&mut self, shape: Shape, definition: Definition) -> ValueId {
        let id = u32::try_from(self.graph.values.len()).expect("a graph has fewer than 2^32 values");
        self.graph.values.push((shape, definition));
        ValueId(id)
    }

    /// Adds a node without simplification, or finds an equal one. Returns its results.
    pub fn node(&mut self, op: Op, operands: Vec<ValueId>, shapes: Vec<Shape>) -> Vec<ValueId> {
        let large = matches!(&op, Op::Constant(c) if c.bytes.len() > COMPARED_BYTES);
        let count = shapes.len() as u32;
        let key = (!large && op.is_pure()).then(|| (op.clone(), operands.clone(), shapes.clone()));
        if let Some(first) = key.as_ref().and_then(|k| self.known.get(k)) {
            return (0..count).map(|i| ValueId(first.0 + i)).collect();
        }
        let node = self.graph.nodes.len() as u32;
        let mut results = Vec::with_capacity(shapes.len());
        for (index, shape) in shapes.into_iter().enumerate() {
            results.push(self.value(shape, Definition::Result { node, index: index as u32 }));
        }
        let first_result = results.first().copied().unwrap_or(ValueId(u32::MAX));
        self.graph.nodes.push(Node {
            op,
            operands,
            first_result,
            results: count,
            location: self.location.clone(),
        });
        if let Some(key) = key.filter(|_| count > 0) {
            self.known.insert(key, first_result);
        }
        results
    }

    /// Adds a node with one result in its simplest known form.
    pub fn add(&mut self, op: Op, operands: &[ValueId], shape: Shape) -> ValueId {
        if let Some(value) = self.simplified(&op, operands, &shape) {
            debug_assert_eq!(self.shape(value), &shape, "simplifying {op:?}");
            return value;
        }
        self.node(op, operands.to_vec(), vec![shape])[0]
    }

    /// Adds a constant.
    pub fn constant(&mut self, constant: Constant) -> ValueId {
        let shape = constant.shape.clone();
        self.node(Op::Constant(constant), vec![], vec![shape])[0]
    }

    /// Adds a constant whose elements are all the value of the element type that is nearest to `value`.
    pub fn number(&mut self, shape: Shape, value: f64) -> ValueId {
        let wide = Constant::splat(Shape::scalar(DType::F64), value.to_le_bytes().to_vec());
        let narrow = fold(&Op::Convert, &[&wide], &Shape::scalar(shape.dtype))
            .expect("f64 converts to every element type");
        self.constant(narrow.with_dims(&shape.dims))
    }

    /// Adds the coordinates along a dimension.
    pub fn iota(&mut self, shape: Shape, dim: usize) -> ValueId {
        self.add(Op::Iota(ops::Iota { dim }), &[], shape)
    }

    /// Adds an elementwise operation whose result has the type of its operands.
    pub fn tile(&mut self, op: TileOp, operands: &[ValueId]) -> ValueId {
        let shape = self.shape(operands[0]).clone();
        self.add(Op::Tile(op), operands, shape)
    }

    /// Adds an elementwise comparison.
    pub fn compare(&mut self, direction: Direction, a: ValueId, b: ValueId) -> ValueId {
        let shape = self.shape(a).with_dtype(DType::Pred);
        self.add(Op::Compare(ops::Compare(direction, Order::Partial)), &[a, b], shape)
    }

    /// Adds an elementwise selection.
    pub fn select(&mut self, p: ValueId, a: ValueId, b: ValueId) -> ValueId {
        let shape = self.shape(a).clone();
        self.add(Op::Select, &[p, a, b], shape)
    }

    /// Adds an elementwise conversion.
    pub fn convert(&mut self, value: ValueId, dtype: DType) -> ValueId {
        let shape = self.shape(value).with_dtype(dtype);
        self.add(Op::Convert, &[value], shape)
    }

    /// Adds a reshape to these dimensions.
    pub fn reshape(&mut self, value: ValueId, dims: &[usize]) -> ValueId {
        let shape = self.shape(value).with_dims(dims);
        self.add(Op::Reshape, &[value], shape)
    }

    /// Adds a broadcast to `dims`. Dimension `i` of the operand becomes dimension `map[i]`.
    pub fn broadcast(&mut self, value: ValueId, map: &[usize], dims: &[usize]) -> ValueId {
        let shape = self.shape(value).with_dims(dims);
        self.add(Op::Broadcast(ops::Broadcast { dims: map.to_vec() }), &[value], shape)
    }

    /// Broadcasts a scalar to these dimensions. Other arrays must have them already, and are returned unchanged.
    pub fn spread(&mut self, value: ValueId, dims: &[usize]) -> ValueId {
        if self.shape(value).rank() == 0 { self.broadcast(value, &[], dims) } else { value }
    }

    /// Adds a transpose. Dimension `i` of the result is dimension `permutation[i]` of the operand.
    pub fn transpose(&mut self, value: ValueId, permutation: &[usize]) -> ValueId {
        let from = self.shape(value);
        let dims: Vec<usize> = permutation.iter().map(|p| from.dims[*p]).collect();
        let shape = from.with_dims(&dims);
        self.add(Op::Transpose(ops::Transpose { permutation: permutation.to_vec() }), &[value], shape)
    }

    /// Adds a slice from `start` to the exclusive `limit`.
    pub fn slice(&mut self, value: ValueId, start: &[usize], limit: &[usize]) -> ValueId {
        let dims: Vec<usize> = start.iter().zip(limit).map(|(s, l)| l - s).collect();
        let shape = self.shape(value).with_dims(&dims);
        self.add(
            Op::Slice(ops::Slice { start: start.to_vec(), stride: vec![1; dims.len()] }),
            &[value],
            shape,
        )
    }

    /// Inlines a closed graph with these arguments. Returns its results.
    pub fn inline(&mut self, body: &Graph, arguments: &[ValueId]) -> Vec<ValueId> {
        let mut map = vec![ValueId(u32::MAX); body.num_values()];
        for (p, a) in body.parameters().iter().zip(arguments) {
            map[p.index()] = *a;
        }
        for node in body.nodes() {
            self.copy_node(body, node, &mut map);
        }
        body.results().iter().map(|r| map[r.index()]).collect()
    }

    /// Adds a node of another graph whose operands have been added. `map` maps the values of that graph to those of this one.
    pub fn copy_node(&mut self, from: &Graph, node: &Node, map: &mut [ValueId]) {
        self.location = node.location.clone();
        let operands: Vec<ValueId> = node.operands.iter().map(|v| map[v.index()]).collect();
        if node.results == 1 {
            let shape = from.shape(node.first_result).clone();
            map[node.first_result.index()] = self.add(node.op.clone(), &operands, shape);
            return;
        }
        let shapes = node.results().map(|r| from.shape(r).clone()).collect();
        for (theirs, ours) in node.results().zip(self.node(node.op.clone(), operands, shapes)) {
            map[theirs.index()] = ours;
        }
    }

    /// Returns the finished graph with these results. Nodes that nothing needs are removed.
    pub fn finish(mut self, results: Vec<ValueId>) -> Graph {
        self.graph.results = results;
        without_dead_nodes(self.graph)
    }
}

impl Graph {
    /// Rebuilds the graph with some nodes replaced. `replace` receives the builder, a node, and a map from values of this graph
    /// to those of the new one, which contains the node's operands. It adds new nodes and returns the values that replace the
    /// node's results, or returns `None` to keep the node.
    ///
    /// # Errors
    /// Returns the errors of `replace`.
    pub fn rewritten<E>(
        &self,
        mut replace: impl FnMut(&mut Builder, &Node, &[ValueId]) -> Result<Option<Vec<ValueId>>, E>,
    ) -> Result<Graph, E> {
        let mut b = Builder::new();
        let mut map = vec![ValueId(u32::MAX); self.num_values()];
        for p in self.parameters() {
            map[p.index()] = b.parameter(self.shape(*p).clone());
        }
        for node in self.nodes() {
            b.set_location(&node.location);
            match replace(&mut b, node, &map)? {
                Some(values) => {
                    for (theirs, ours) in node.results().zip(values) {
                        map[theirs.index()] = ours;
                    }
                }
                None => b.copy_node(self, node, &mut map),
            }
        }
        Ok(b.finish(self.results().iter().map(|r| map[r.index()]).collect()))
    }
}

/// Removes the nodes that neither results nor effects need, and renumbers the values. Parameters are kept.
fn without_dead_nodes(graph: Graph) -> Graph {
    let mut needed = vec![false; graph.num_values()];
    for v in &graph.results {
        needed[v.index()] = true;
    }
    let mut keep = vec![false; graph.nodes.len()];
    for (n, node) in graph.nodes.iter().enumerate().rev() {
        if node.results().any(|r| needed[r.index()]) || node.op.has_effect() {
            keep[n] = true;
            for v in &node.operands {
                needed[v.index()] = true;
            }
        }
    }
    if keep.iter().all(|k| *k) {
        return graph;
    }
    let mut out = Graph::default();
    let mut map = vec![ValueId(u32::MAX); graph.num_values()];
    for (i, p) in graph.parameters.iter().enumerate() {
        map[p.index()] = ValueId(out.values.len() as u32);
        out.parameters.push(map[p.index()]);
        out.values.push((graph.shape(*p).clone(), Definition::Parameter(i as u32)));
    }
    for (node, _) in graph.nodes.iter().zip(&keep).filter(|(_, k)| **k) {
        let n = out.nodes.len() as u32;
        let first_result = ValueId(out.values.len() as u32);
        for (i, r) in node.results().enumerate() {
            map[r.index()] = ValueId(out.values.len() as u32);
            out.values.push((graph.shape(r).clone(), Definition::Result { node: n, index: i as u32 }));
        }
        let operands = node.operands.iter().map(|v| map[v.index()]).collect();
        out.nodes.push(Node {
            op: node.op.clone(),
            operands,
            first_result,
            results: node.results,
            location: node.location.clone(),
        });
    }
    out.results = graph.results.iter().map(|v| map[v.index()]).collect();
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn f32s(dims: &[usize]) -> Shape {
        Shape::new(DType::F32, dims)
    }

    #[test]
    fn equal_nodes_are_one() {
        let mut b = Builder::new();
        let x = b.parameter(f32s(&[4]));
        let y = b.tile(TileOp::Sine, &[x]);
        assert_eq!(b.tile(TileOp::Sine, &[x]), y);
        assert_ne!(b.tile(TileOp::Cosine, &[x]), y);
    }

    #[test]
    fn division_by_a_power_of_two_is_a_product() {
        let quotient = |divisor: f32| {
            let mut b = Builder::new();
            let x = b.parameter(f32s(&[4]));
            let c = b.constant(Constant::splat(f32s(&[4]), divisor.to_le_bytes().to_vec()));
            let y = b.tile(TileOp::Divide, &[x, c]);
            let node = b.graph().node_of(y).unwrap();
            let bytes = &b.graph().constant(node.operands[1]).unwrap().bytes;
            (node.op.clone(), f32::from_le_bytes((&**bytes).try_into().unwrap()))
        };
        for (divisor, reciprocal) in [(4.0, 0.25), (-0.5, -2.0), (f32::MIN_POSITIVE, 2f32.powi(126))] {
            assert_eq!(quotient(divisor), (Op::Tile(TileOp::Multiply), reciprocal));
        }
        // The reciprocals of these are rounded, or are not normal numbers.
        for divisor in [3.0, 0.0, 2f32.powi(127), 2f32.powi(-130), f32::INFINITY] {
            assert_eq!(quotient(divisor), (Op::Tile(TileOp::Divide), divisor));
        }
        assert!(matches!(quotient(f32::NAN), (Op::Tile(TileOp::Divide), x) if x.is_nan()));
    }

    #[test]
    fn dead_nodes_go() {
        let mut b = Builder::new();
        let x = b.parameter(f32s(&[4]));
        b.tile(TileOp::Sine, &[x]);
        let y = b.tile(TileOp::Cosine, &[x]);
        let g = b.finish(vec![y]);
        assert_eq!(g.nodes().len(), 1);
        assert_eq!(g.nodes()[0].op, Op::Tile(TileOp::Cosine));
    }
}
