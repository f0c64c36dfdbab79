//! Prints graphs as text.

use super::Graph;
use std::fmt::{self, Display, Formatter};

impl Display for Graph {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write_graph(self, f, 0)
    }
}

fn write_graph(g: &Graph, f: &mut Formatter<'_>, depth: usize) -> fmt::Result {
    let pad = "  ".repeat(depth);
    write!(f, "(")?;
    for (i, p) in g.parameters().iter().enumerate() {
        write!(f, "{}{p:?}: {}", if i == 0 { "" } else { ", " }, g.shape(*p))?;
    }
    writeln!(f, ") {{")?;
    for node in g.nodes() {
        write!(f, "{pad}  ")?;
        for (i, r) in node.results().enumerate() {
            write!(f, "{}{r:?}: {}", if i == 0 { "" } else { ", " }, g.shape(r))?;
        }
        write!(f, " = {:?}(", node.op)?;
        for (i, v) in node.operands.iter().enumerate() {
            write!(f, "{}{v:?}", if i == 0 { "" } else { ", " })?;
        }
        write!(f, ")")?;
        for body in node.op.bodies() {
            write!(f, " ")?;
            write_graph(body, f, depth + 1)?;
        }
        writeln!(f)?;
    }
    writeln!(f, "{pad}  return {:?}", g.results())?;
    write!(f, "{pad}}}")
}
