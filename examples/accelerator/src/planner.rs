//! The assignment of scratch memory to the values of a program.

use std::collections::HashMap;

use pjrt_plugin::queue::AddressSpace;
use pjrt_plugin::{Error, Result};

use crate::array::ALIGNMENT;
use crate::commands::{Block, Command, Location, Program, Value};
use crate::kernel::Id;

/// The maximum nesting depth of loops and branches.
const MAX_DEPTH: usize = 64;

/// Assigns locations to all values that commands write. The memory of a value is used again after its last use.
///
/// # Errors
///
/// Returns UNIMPLEMENTED if loops and branches are nested too deeply, or RESOURCE_EXHAUSTED if the values do not fit into any memory.
pub(crate) fn plan(mut values: Vec<Value>, main: Block) -> Result<Program> {
    for (index, argument) in main.arguments.iter().enumerate() {
        values[*argument].location = Location::Argument(index);
    }
    let mut planner = Planner { values, space: AddressSpace::new(isize::MAX as usize, ALIGNMENT) };
    planner.block(&main, 0)?;
    Ok(Program { scratch_size: planner.space.highest(), values: planner.values, main })
}

struct Planner {
    values: Vec<Value>,
    space: AddressSpace,
}

impl Planner {
    fn block(&mut self, block: &Block, depth: usize) -> Result<()> {
        if depth > MAX_DEPTH {
            return Err(Error::unimplemented(format!(
                "the accelerator supports at most {MAX_DEPTH} nested loops and branches"
            )));
        }
        let mut last_uses: HashMap<Id, usize> = HashMap::new();
        for (index, command) in block.commands.iter().enumerate() {
            // A value that is never read is free after it was written.
            last_uses.extend(command.writes.iter().map(|id| (*id, index)));
            for id in all_reads(command) {
                last_uses.entry(id).and_modify(|last| *last = index);
            }
        }
        for id in &block.results {
            last_uses.entry(*id).and_modify(|last| *last = block.commands.len());
        }
        let mut free: Vec<Vec<Id>> = vec![Vec::new(); block.commands.len() + 1];
        last_uses.into_iter().for_each(|(id, last)| free[last].push(id));
        for (command, free) in block.commands.iter().zip(&free) {
            for id in &command.writes {
                self.place(*id)?;
            }
            // The arguments of a loop's blocks are in the memory of its results.
            for block in &command.blocks {
                for (argument, result) in block.arguments.iter().zip(&command.writes) {
                    self.values[*argument].location = self.values[*result].location;
                }
                self.block(block, depth + 1)?;
            }
            self.free(free);
        }
        self.free(&free[block.commands.len()]);
        Ok(())
    }

    fn place(&mut self, id: Id) -> Result<()> {
        let size = self.values[id].size();
        let address = self.space.allocate(size).ok_or_else(|| {
            Error::resource_exhausted("the temporary memory of the program overflows the address space")
        })?;
        self.values[id].location = Location::Scratch(address);
        Ok(())
    }

    fn free(&mut self, ids: &[Id]) {
        for id in ids {
            if let Location::Scratch(address) = self.values[*id].location {
                self.space.free(address);
            }
        }
    }
}

/// Returns the values that a command and its blocks read.
fn all_reads(command: &Command) -> Vec<Id> {
    let mut reads = command.reads.clone();
    for block in &command.blocks {
        reads.extend(block.commands.iter().flat_map(all_reads));
        reads.extend(&block.results);
    }
    reads
}
