//! Statistics of the host's buffers, which errors about exhausted memory report.

use std::cmp::Reverse;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};

use crate::abi::buffer::Spec;
use crate::abi::executable::ExecutableState;
use crate::abi::memory::MemoryHandle;
use crate::client::PjrtClient;
use crate::core::sync::lock;

/// The most programs that a report names, in descending order of their bytes.
const MOST_PROGRAMS: usize = 8;

/// The bytes of a client's buffers, and the programs whose outputs some of them are.
pub(crate) struct MemoryUsage<C: PjrtClient> {
    /// The bytes of the live buffers in each memory of the client, without outputs of programs. The share counts of their
    /// specs count those.
    bytes: Box<[AtomicUsize]>,
    outputs: Mutex<Vec<OutputsOf<C>>>,
}

/// The outputs of a program on one device.
struct OutputsOf<C: PjrtClient> {
    executable: Weak<ExecutableState<C>>,
    /// The shares that the program itself holds while it is loaded.
    loaded: Weak<[Arc<Spec<C>>]>,
    specs: Box<[Weak<Spec<C>>]>,
}

impl<C: PjrtClient> OutputsOf<C> {
    /// Returns the outputs that have live buffers, with the number of those buffers.
    fn buffers(&self) -> impl Iterator<Item = (usize, Arc<Spec<C>>)> {
        let not_buffers = self.loaded.strong_count();
        self.specs.iter().filter_map(move |spec| {
            let buffers = spec.strong_count().saturating_sub(not_buffers);
            Some((buffers, spec.upgrade()?)).filter(|_| buffers > 0)
        })
    }
}

impl<C: PjrtClient> MemoryUsage<C> {
    pub(crate) fn new(num_memories: usize) -> Self {
        let bytes = (0..num_memories).map(|_| AtomicUsize::new(0)).collect();
        Self { bytes, outputs: Mutex::default() }
    }

    pub(crate) fn buffer_made(&self, memory: usize, size: usize) {
        self.bytes[memory].fetch_add(size, Ordering::Relaxed);
    }

    pub(crate) fn buffer_destroyed(&self, memory: usize, size: usize) {
        self.bytes[memory].fetch_sub(size, Ordering::Relaxed);
    }

    /// Includes the buffers of a program's outputs on a device in the statistics.
    pub(crate) fn watch(&self, executable: &Arc<ExecutableState<C>>, outputs: &Arc<[Arc<Spec<C>>]>) {
        let mut all = lock(&self.outputs);
        all.retain(|known| known.specs.iter().any(|spec| spec.strong_count() > 0));
        all.push(OutputsOf {
            executable: Arc::downgrade(executable),
            loaded: Arc::downgrade(outputs),
            specs: outputs.iter().map(Arc::downgrade).collect(),
        });
    }

    /// Returns a sentence with the bytes that the host holds in each memory, the programs that produced them, and the number of
    /// launches in flight, which use memory until they finish.
    pub(crate) fn describe(&self, memories: &[MemoryHandle], launches: usize) -> String {
        let held = self.describe_buffers(memories);
        match launches {
            0 => held,
            1 => format!("{held}; 1 launch is in flight"),
            _ => format!("{held}; {launches} launches are in flight"),
        }
    }

    fn describe_buffers(&self, memories: &[MemoryHandle]) -> String {
        let mut bytes: Vec<usize> = self.bytes.iter().map(|bytes| bytes.load(Ordering::Relaxed)).collect();
        let mut programs: Vec<(Arc<ExecutableState<C>>, usize, usize)> = Vec::new();
        for outputs in &*lock(&self.outputs) {
            let (mut count, mut size) = (0, 0_usize);
            for (buffers, spec) in outputs.buffers() {
                let of_spec = spec.shape.host_size().saturating_mul(buffers);
                bytes[spec.memory] = bytes[spec.memory].saturating_add(of_spec);
                (count, size) = (count + buffers, size.saturating_add(of_spec));
            }
            let Some(executable) = outputs.executable.upgrade() else { continue };
            match programs.iter_mut().find(|(known, ..)| Arc::ptr_eq(known, &executable)) {
                Some((_, counted, sizes)) => {
                    (*counted, *sizes) = (*counted + count, sizes.saturating_add(size));
                }
                None => programs.push((executable, count, size)),
            }
        }
        let memories = memories.iter().zip(bytes).filter_map(|(memory, bytes)| {
            let name =
                || format!("{} in memory {} ('{}')", size(bytes), memory.memory.id(), memory.memory.kind());
            (bytes > 0).then(name)
        });
        let memories: Vec<String> = memories.collect();
        if memories.is_empty() {
            return "the host holds no buffers of this client".to_owned();
        }
        programs.retain(|(_, _, bytes)| *bytes > 0);
        programs.sort_by_key(|(executable, count, bytes)| {
            Reverse((*bytes, *count, executable.name().to_owned()))
        });
        let of_programs = programs.iter().take(MOST_PROGRAMS).map(|(executable, count, bytes)| {
            format!("{count} outputs of '{}' with {}", executable.name(), size(*bytes))
        });
        let mut parts: Vec<String> = of_programs.collect();
        parts.push("the rest was uploaded or copied".to_owned());
        format!("the host holds buffers of {}, without padding: {}", memories.join(", "), parts.join(", "))
    }
}

/// Formats a size in the largest unit that is not greater than it.
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
