//! Who holds memory, for when it has run out.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};

use crate::abi::client_state::ClientState;
use crate::abi::executable::ExecutableState;
use crate::client::PjrtClient;
use crate::error::{ErrorCode, Result};
use crate::sync::lock;

/// How many programs are named, those that hold the most first.
const MOST_PROGRAMS: usize = 8;

/// What a client's buffers take, and the programs that some of them are outputs of.
pub(crate) struct Holders<C: PjrtClient> {
    /// In bytes, by the place of the memory among the client's, of the buffers that the host has not destroyed.
    bytes: Box<[AtomicUsize]>,
    executables: Mutex<Vec<Weak<ExecutableState<C>>>>,
}

impl<C: PjrtClient> Holders<C> {
    pub(crate) fn new(num_memories: usize) -> Self {
        let bytes = (0..num_memories).map(|_| AtomicUsize::new(0)).collect();
        Self { bytes, executables: Mutex::default() }
    }

    pub(crate) fn buffer_made(&self, memory: usize, size: usize) {
        self.bytes[memory].fetch_add(size, Ordering::Relaxed);
    }

    pub(crate) fn buffer_destroyed(&self, memory: usize, size: usize) {
        self.bytes[memory].fetch_sub(size, Ordering::Relaxed);
    }

    pub(crate) fn loaded(&self, executable: &Arc<ExecutableState<C>>) {
        let mut all = lock(&self.executables);
        all.retain(|known| {
            known.strong_count() > 0 && !std::ptr::eq(known.as_ptr(), Arc::as_ptr(executable))
        });
        all.push(Arc::downgrade(executable));
    }

    /// One sentence: how much the host holds in each memory, and which programs it came from.
    fn describe(&self, client: &ClientState<C>) -> String {
        let memories = client.memories.iter().zip(&self.bytes).filter_map(|(memory, bytes)| {
            let bytes = bytes.load(Ordering::Relaxed);
            let name = || format!("{} in '{}' {}", size(bytes), memory.memory.kind(), memory.memory.id());
            (bytes > 0).then(name)
        });
        let memories: Vec<String> = memories.collect();
        if memories.is_empty() {
            return "the host holds no buffers".to_owned();
        }
        let executables: Vec<_> = lock(&self.executables).iter().filter_map(Weak::upgrade).collect();
        let mut programs: Vec<(usize, usize, &str)> = executables
            .iter()
            .map(|executable| {
                // Every buffer of an output shares the output's shape.
                let outputs =
                    executable.outputs.shapes.iter().map(|shape| (Arc::strong_count(shape) - 1, shape));
                let (count, bytes) = outputs.fold((0, 0_usize), |(count, bytes), (buffers, shape)| {
                    (count + buffers, bytes.saturating_add(shape.host_size().saturating_mul(buffers)))
                });
                (bytes, count, executable.name())
            })
            .filter(|(bytes, ..)| *bytes > 0)
            .collect();
        programs.sort_unstable_by(|a, b| b.cmp(a));
        let of_programs = programs
            .iter()
            .take(MOST_PROGRAMS)
            .map(|(bytes, count, name)| format!("{count} outputs of '{name}' with {}", size(*bytes)));
        let mut parts: Vec<String> = of_programs.collect();
        parts.push("the rest was uploaded or copied".to_owned());
        format!("the host holds buffers of {}: {}", memories.join(", "), parts.join(", "))
    }
}

impl<C: PjrtClient> ClientState<C> {
    /// Adds to an error that something has run out who holds what, unless the author has said what to do.
    pub(crate) fn explain<T>(&self, result: Result<T>) -> Result<T> {
        result.map_err(|error| {
            if error.code() == ErrorCode::ResourceExhausted && error.hint().is_none() {
                error.with_hint(self.holders.describe(self))
            } else {
                error
            }
        })
    }
}

/// A size as people read it.
fn size(bytes: usize) -> String {
    let units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} bytes") } else { format!("{value:.1} {}", units[unit]) }
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn sizes_are_written_with_the_unit_that_suits() {
        assert_eq!(size(16), "16 bytes");
        assert_eq!(size(1536), "1.5 KiB");
        assert_eq!(size(3 << 30), "3.0 GiB");
    }
}
