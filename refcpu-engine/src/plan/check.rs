//! Checks the memory of programs, independently of the compiler that assigned it.

use super::{Home, Program, Step};
use crate::storage::Part;

impl Program {
    /// Checks that jumps stay inside the program, that views stay inside their slots, that slots are written before they are
    /// read, and that slots that share memory are never live at the same time.
    ///
    /// # Errors
    /// Returns a description of the first violation.
    pub fn check(&self) -> Result<(), String> {
        let mut loops = Vec::new();
        let mut exchanged = Vec::new();
        let mut lives: Vec<Option<(usize, usize)>> = vec![None; self.slots.len()];
        for (at, step) in self.steps.iter().enumerate() {
            self.check_views(step).map_err(|e| format!("step {at}: {e}"))?;
            let mut targets = Vec::new();
            match step {
                Step::Jump(to) => {
                    targets.push(*to);
                    if *to <= at {
                        loops.push((*to, at + 1));
                    }
                }
                Step::JumpIfNot { to, .. } => targets.push(*to),
                Step::Branch { to, .. } => targets.extend(to),
                Step::Swap(a, b) => exchanged.push((*a, *b)),
                Step::Manual(m) => m.program.check().map_err(|e| format!("step {at}: {e}"))?,
                _ => {}
            }
            if targets.iter().any(|t| *t > self.steps.len()) {
                return Err(format!("step {at} jumps outside the program"));
            }
            let (reads, writes) = accesses(step);
            for slot in reads.iter().chain(&writes) {
                let live = &mut lives[*slot as usize];
                // An array without elements need not be written.
                let is_empty = self.slots[*slot as usize].bytes == 0;
                if live.is_none() && !writes.contains(slot) && self.is_memory(*slot) && !is_empty {
                    return Err(format!("step {at} reads slot {slot}, which nothing has written"));
                }
                *live = Some(live.map_or((at, at), |(first, _)| (first, at)));
            }
        }
        loops.sort_by_key(|(top, end)| end - top);
        for (top, end) in &loops {
            for (first, last) in lives.iter_mut().flatten() {
                if *first < *top && *last >= *top && *last < *end {
                    *last = *end;
                }
            }
        }
        // Slots that exchange their memory have a common live range.
        for _ in 0..exchanged.len().min(8) {
            for (a, b) in &exchanged {
                if let (Some(x), Some(y)) = (lives[*a as usize], lives[*b as usize]) {
                    let both = Some((x.0.min(y.0), x.1.max(y.1)));
                    lives[*a as usize] = both;
                    lives[*b as usize] = both;
                }
            }
        }
        self.check_sharing(&lives)
    }

    /// Returns whether steps write the contents of the slot.
    fn is_memory(&self, slot: u32) -> bool {
        matches!(self.slots[slot as usize].home, Home::Arena(_) | Home::Result(_))
    }

    fn check_views(&self, step: &Step) -> Result<(), String> {
        let views = match step {
            Step::Run(call) => call.reads.iter().chain(&call.writes).collect(),
            Step::RowBlocks(step) => step.rows.parts.iter().map(|p| &p.view).collect(),
            Step::JumpIfNot { predicate, .. } => vec![predicate],
            Step::Branch { index, .. } => vec![index],
            Step::Collective(c) => vec![&c.read, &c.write],
            Step::Manual(m) => m.reads.iter().chain(&m.writes).collect(),
            Step::Send { read: view, .. } | Step::Receive { write: view, .. } => vec![view],
            _ => vec![],
        };
        for v in views {
            let Some(slot) = self.slots.get(v.slot as usize) else {
                return Err(format!("slot {} does not exist", v.slot));
            };
            if v.offset.checked_add(v.byte_len()).is_none_or(|end| end > slot.bytes) {
                return Err(format!("{v:?} exceeds its slot of {} bytes", slot.bytes));
            }
        }
        Ok(())
    }

    fn check_sharing(&self, lives: &[Option<(usize, usize)>]) -> Result<(), String> {
        let mut placed: Vec<(usize, usize, usize)> = self
            .slots
            .iter()
            .enumerate()
            .filter_map(|(i, slot)| match slot.home {
                Home::Arena(start) if slot.bytes > 0 && lives[i].is_some() => {
                    Some((start, start + slot.bytes, i))
                }
                _ => None,
            })
            .collect();
        placed.sort_unstable();
        for (n, (_, end, a)) in placed.iter().enumerate() {
            if *end > self.arena {
                return Err(format!("slot {a} exceeds the arena of {} bytes", self.arena));
            }
            for (_, _, b) in placed[n + 1..].iter().take_while(|(start, ..)| start < end) {
                if let (Some(x), Some(y)) = (lives[*a], lives[*b])
                    && x.0 <= y.1
                    && y.0 <= x.1
                {
                    return Err(format!(
                        "slots {a} and {b} share memory, but their live ranges {x:?} and {y:?} overlap"
                    ));
                }
            }
        }
        Ok(())
    }
}

/// Returns the slots that a step reads and writes.
fn accesses(step: &Step) -> (Vec<u32>, Vec<u32>) {
    match step {
        Step::Run(call) => {
            (call.reads.iter().map(|v| v.slot).collect(), call.writes.iter().map(|v| v.slot).collect())
        }
        Step::RowBlocks(step) => {
            let slots = |wanted: fn(&Part) -> bool| {
                step.rows.parts.iter().filter(|p| wanted(p)).map(|p| p.view.slot).collect()
            };
            (slots(|p| p.is_read), slots(|p| p.is_written))
        }
        Step::JumpIfNot { predicate, .. } => (vec![predicate.slot], vec![]),
        Step::Branch { index, .. } => (vec![index.slot], vec![]),
        Step::Swap(a, b) => (vec![*a, *b], vec![]),
        Step::Settle(a) => (vec![*a], vec![]),
        Step::Collective(c) => (vec![c.read.slot], vec![c.write.slot]),
        Step::Manual(m) => {
            (m.reads.iter().map(|v| v.slot).collect(), m.writes.iter().map(|v| v.slot).collect())
        }
        // An array without bytes need not be written.
        Step::Send { read, .. } if read.byte_len() == 0 => (vec![], vec![]),
        Step::Send { read, .. } => (vec![read.slot], vec![]),
        Step::Receive { write, .. } => (vec![], vec![write.slot]),
        Step::Jump(_) => (vec![], vec![]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Call, Kernel, Slot};
    use crate::storage::View;
    use refcpu_kernels::DType;

    fn program(slots: &[usize], steps: &[(&[u32], u32)]) -> Program {
        let view = |slot: u32| View::new(slot, 0, DType::U8, &[64]);
        let step = |(reads, write): &(&[u32], u32)| {
            let reads = reads.iter().map(|s| view(*s)).collect();
            Step::Run(Box::new(Call { kernel: Kernel::Copy, reads, writes: vec![view(*write)] }))
        };
        Program {
            slots: slots.iter().map(|at| Slot { bytes: 64, home: Home::Arena(*at) }).collect(),
            steps: steps.iter().map(step).collect(),
            arena: 256,
            ..Program::default()
        }
    }

    #[test]
    fn slots_that_are_live_together_may_not_share_memory() {
        let steps: &[(&[u32], u32)] = &[(&[], 0), (&[0], 1), (&[1], 2)];
        assert_eq!(program(&[0, 64, 0], steps).check(), Ok(()));
        assert!(program(&[0, 0, 64], steps).check().is_err());
    }

    #[test]
    fn what_is_read_must_have_been_written() {
        assert!(program(&[0, 64], &[(&[0], 1)]).check().unwrap_err().contains("nothing has written"));
    }

    #[test]
    fn a_loop_keeps_what_it_reads() {
        let steps: &[(&[u32], u32)] = &[(&[], 0), (&[0], 1), (&[], 2)];
        let mut p = program(&[0, 64, 0], steps);
        assert_eq!(p.check(), Ok(()));
        p.steps.push(Step::Jump(1));
        assert!(p.check().is_err());
    }
}
