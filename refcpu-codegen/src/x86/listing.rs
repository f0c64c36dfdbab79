//! Machine code as text, with the function from which it was made.

use super::emitter::Emitted;
use crate::ir::Function;
use iced_x86::{FastFormatter, Instruction, OpKind, SymbolResolver, SymbolResult};
use std::fmt::Write as _;

/// The column at which the instructions of the function begin.
const FUNCTION: usize = 56;

/// Names the targets of jumps and the constants, whose addresses are labels until the code is encoded.
struct Labels;

impl SymbolResolver for Labels {
    fn symbol(
        &mut self,
        instruction: &Instruction,
        _: u32,
        operand: Option<u32>,
        address: u64,
        _: u32,
    ) -> Option<SymbolResult<'_>> {
        let is_label = match instruction.op_kind(operand?) {
            OpKind::NearBranch64 => true,
            OpKind::Memory => instruction.is_ip_rel_memory_operand(),
            // A number.
            _ => false,
        };
        is_label.then(|| SymbolResult::with_string(address, label(address)))
    }
}

fn label(address: u64) -> String {
    format!("L{address}")
}

/// Formats machine instructions in Intel's syntax. Beside the first one of each instruction of the function is that
/// instruction.
pub(super) fn listing(f: &Function, emitted: Emitted) -> String {
    let mut text = f.header();
    let mut formatter = FastFormatter::try_with_options(Some(Box::new(Labels))).ok();
    let mut of_function = emitted.starts.into_iter().zip(f.lines()).peekable();
    for (at, instruction) in emitted.code.iter().enumerate() {
        let mut lines = Vec::new();
        while let Some((_, line)) = of_function.next_if(|(start, _)| *start <= at) {
            lines.push(line);
        }
        // An instruction without machine code of its own is beside the next one.
        let last = lines.pop();
        for line in lines {
            let _ = writeln!(text, "{:FUNCTION$}; {line}", "");
        }
        if instruction.ip() != 0 {
            let _ = writeln!(text, "{}:", label(instruction.ip()));
        }
        let mut machine = "    ".to_owned();
        if let Some(formatter) = &mut formatter {
            formatter.format(instruction, &mut machine);
        }
        let _ = match last {
            Some(line) => writeln!(text, "{machine:FUNCTION$}; {line}"),
            None => writeln!(text, "{machine}"),
        };
    }
    for (name, bytes) in emitted.constants {
        let _ = writeln!(text, "{}:\n    {bytes:02x?}", label(name.address()));
    }
    text
}
