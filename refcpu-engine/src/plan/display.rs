//! Prints plans as text.

use super::{Home, Kernel, Program, Step};
use crate::graph::Op;
use crate::storage::View;
use std::fmt::{self, Display, Formatter};

impl Display for Program {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "arena {} bytes", self.arena)?;
        for (i, slot) in self.slots.iter().enumerate() {
            match slot.home {
                Home::Arena(at) => writeln!(f, "slot {i}: {} bytes at {at}", slot.bytes)?,
                Home::Parameter(p) => {
                    writeln!(f, "slot {i}: parameter {p}, {}", self.parameters[p as usize])?
                }
                Home::Constant(c) => writeln!(f, "slot {i}: {:?}", self.constants[c as usize])?,
                Home::Result(k) => writeln!(f, "slot {i}: result {k}, {}", self.result_shapes[k as usize])?,
            }
        }
        for (at, (step, location)) in self.steps.iter().zip(&self.locations).enumerate() {
            write!(f, "{at:5}: {step}")?;
            if location.is_unknown() { writeln!(f)? } else { writeln!(f, "  // {location}")? }
        }
        writeln!(
            f,
            "results {:?}, which may use the memory of the parameters {:?}",
            self.results, self.donors
        )
    }
}

impl Display for Step {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Step::Run(call) => {
                views(f, &call.writes)?;
                write!(f, " = {} (", name(&call.kernel))?;
                views(f, &call.reads)?;
                write!(f, ")")
            }
            Step::RowBlocks(step) => {
                let parts = |written| step.rows.parts.iter().filter(move |p| p.is_written == written);
                views(f, &parts(true).map(|p| p.view.clone()).collect::<Vec<_>>())?;
                write!(f, " = {} (", self.name())?;
                views(f, &parts(false).map(|p| p.view.clone()).collect::<Vec<_>>())?;
                write!(f, ") {{")?;
                for call in &step.full {
                    write!(f, "\n         ")?;
                    views(f, &call.writes)?;
                    write!(f, " = {} (", name(&call.kernel))?;
                    views(f, &call.reads)?;
                    write!(f, ")")?;
                }
                write!(f, "}}")
            }
            Step::Jump(to) => write!(f, "jump {to}"),
            Step::JumpIfNot { predicate, to } => {
                write!(f, "unless ")?;
                views(f, std::slice::from_ref(predicate))?;
                write!(f, " jump {to}")
            }
            Step::Branch { index, to } => {
                write!(f, "by ")?;
                views(f, std::slice::from_ref(index))?;
                write!(f, " jump {to:?}")
            }
            Step::Swap(a, b) => write!(f, "swap {a} {b}"),
            Step::Settle(a) => write!(f, "settle {a}"),
            Step::Collective(c) => {
                views(f, std::slice::from_ref(&c.write))?;
                write!(f, " = {:?} (", c.collective)?;
                views(f, std::slice::from_ref(&c.read))?;
                write!(f, ")")
            }
            Step::Send { channel, read } => {
                write!(f, "send to channel {channel} ")?;
                views(f, std::slice::from_ref(read))
            }
            Step::Receive { channel, write } => {
                views(f, std::slice::from_ref(write))?;
                write!(f, " = receive from channel {channel}")
            }
            Step::Manual(m) => {
                views(f, &m.writes)?;
                write!(f, " = {:?} (", m.spec)?;
                views(f, &m.reads)?;
                writeln!(f, ") {{\n{}}}", m.program)
            }
        }
    }
}

impl Step {
    /// Returns the name of the step, without its arrays.
    pub(crate) fn name(&self) -> String {
        match self {
            Step::Run(call) => name(&call.kernel),
            Step::RowBlocks(step) => {
                format!(
                    "{} kernels on blocks of {} of {} rows",
                    step.full.len(),
                    step.rows.block,
                    step.rows.count
                )
            }
            Step::Collective(step) => format!("{:?}", step.collective),
            Step::Manual(_) => "manual computation".to_owned(),
            Step::Send { channel, .. } => format!("send to channel {channel}"),
            Step::Receive { channel, .. } => format!("receive from channel {channel}"),
            Step::Jump(_) | Step::JumpIfNot { .. } | Step::Branch { .. } => "jump".to_owned(),
            Step::Swap(..) | Step::Settle(_) => "swap".to_owned(),
        }
    }

    /// Returns the types of the arrays that the step writes.
    pub(crate) fn results(&self) -> String {
        let views = match self {
            Step::RowBlocks(step) => {
                let written = step.rows.parts.iter().filter(|p| p.is_written).map(|p| p.view.clone());
                &written.collect::<Vec<_>>()[..]
            }
            Step::Run(call) => &call.writes[..],
            Step::Manual(step) => &step.writes,
            Step::Collective(step) => std::slice::from_ref(&step.write),
            Step::Receive { write, .. } => std::slice::from_ref(write),
            _ => &[],
        };
        let types: Vec<_> = views.iter().map(|v| format!("{}{:?}", v.dtype.mlir_name(), v.dims)).collect();
        types.join(", ")
    }
}

fn views(f: &mut Formatter<'_>, views: &[View]) -> fmt::Result {
    for (i, v) in views.iter().enumerate() {
        write!(f, "{}{}", if i == 0 { "" } else { ", " }, v.slot)?;
        if v.offset != 0 {
            write!(f, "+{}", v.offset)?;
        }
        write!(f, ":{}{:?}", v.dtype.mlir_name(), v.dims)?;
    }
    Ok(())
}

pub(super) fn name(kernel: &Kernel) -> String {
    match kernel {
        Kernel::Region(region) => format!("region of {} operations", region.ops()),
        Kernel::ReduceBy { dims, .. } => format!("ReduceBy {dims:?}"),
        Kernel::ReduceWindowBy { window, .. } => format!("ReduceWindowBy {window:?}"),
        Kernel::Loop(l) => format!("loop of {} instructions", l.code.instructions()),
        Kernel::SortBy { dim, .. } => format!("SortBy {dim}"),
        Kernel::ScatterBy { dims, .. } => format!("ScatterBy {dims:?}"),
        Kernel::Op(Op::Foreign(call)) => match &call.refusal {
            None => format!("handler {}", call.target),
            Some(refusal) => format!("failure: {refusal}"),
        },
        Kernel::Op(op) => format!("{op:?}"),
        other => format!("{other:?}"),
    }
}
