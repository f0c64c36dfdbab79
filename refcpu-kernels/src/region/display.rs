//! The printed form of a region, for plan dumps.

use super::Region;
use super::node::Node;
use crate::tile::Opcode;
use std::fmt;

impl fmt::Display for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "region {:?}", self.dims)?;
        if let Some(t) = self.trailing {
            write!(f, " reduced over the last {t}")?;
        }
        let g = &self.program.loops;
        writeln!(
            f,
            " as {} rows of {} in tiles of {}, {} steps, about {:.0} ns {{",
            g.rows,
            g.row_len,
            g.tile,
            self.ops(),
            self.estimated_ns()
        )?;
        for (i, node) in self.nodes.iter().enumerate() {
            write!(f, "  %{i} = ")?;
            match node {
                Node::Input { index, .. } => {
                    let spec = &self.inputs[*index as usize];
                    write!(
                        f,
                        "input {index} {} {:?}+{}",
                        spec.dtype.mlir_name(),
                        spec.access.strides,
                        spec.access.offset
                    )?;
                }
                Node::Iota { dim, ty } => write!(f, "iota {dim} {ty:?}")?,
                Node::Const { bits, ty } => match ty {
                    crate::ComputeType::F32 => write!(f, "const {:?} f32", f32::from_bits(*bits as u32))?,
                    crate::ComputeType::F64 => write!(f, "const {:?} f64", f64::from_bits(*bits as u64))?,
                    _ => write!(f, "const {bits:#x} {ty:?}")?,
                },
                Node::Op { opcode, ty, .. } => {
                    match opcode {
                        Opcode::Tile(op) => write!(f, "{op:?}")?,
                        other => write!(f, "{other:?}")?,
                    }
                    for a in node.args() {
                        write!(f, " %{a}")?;
                    }
                    write!(f, " : {ty:?}")?;
                }
            }
            writeln!(f)?;
        }
        for (k, o) in self.outputs.iter().enumerate() {
            write!(f, "  output {k} {} = %{}", o.dtype.mlir_name(), o.node)?;
            if let Some(op) = o.reduce {
                write!(f, " reduced by {op:?}")?;
            }
            writeln!(f)?;
        }
        f.write_str("}")
    }
}
