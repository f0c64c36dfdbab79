//! Who holds memory, for when it has run out.

use std::cmp::Reverse;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};

use crate::abi::buffer::Spec;
use crate::abi::executable::ExecutableState;
use crate::abi::memory::MemoryHandle;
use crate::client::PjrtClient;
use crate::core::sync::lock;

/// How many programs are named, those that hold the most first.
const MOST_PROGRAMS: usize = 8;

/// What a client's buffers take, and the programs that some of them are outputs of.
pub(crate) struct MemoryUsage<C: PjrtClient> {
    /// In bytes, by the place of the memory among the client's, of the buffers that the host has not destroyed. Those of outputs
    /// are not in it: what each shares with others of its kind counts them.
    bytes: Box<[AtomicUsize]>,
    outputs: Mutex<Vec<OutputsOf<C>>>,
}

/// What a program's outputs are on one device.
struct OutputsOf<C: PjrtClient> {
    executable: Weak<ExecutableState<C>>,
    /// The program's own share in each, while it is loaded.
    loaded: Weak<[Arc<Spec<C>>]>,
    specs: Box<[Weak<Spec<C>>]>,
}

impl<C: PjrtClient> OutputsOf<C> {
    /// How many buffers there are of each, where there are any.
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

    /// Keeps an eye on the buffers of a program's outputs.
    pub(crate) fn watch(&self, executable: &Arc<ExecutableState<C>>, outputs: &Arc<[Arc<Spec<C>>]>) {
        let mut all = lock(&self.outputs);
        all.retain(|known| known.specs.iter().any(|spec| spec.strong_count() > 0));
        all.push(OutputsOf {
            executable: Arc::downgrade(executable),
            loaded: Arc::downgrade(outputs),
            specs: outputs.iter().map(Arc::downgrade).collect(),
        });
    }

    /// One sentence: how much the host holds in each memory, and which programs it came from.
    pub(crate) fn describe(&self, memories: &[MemoryHandle]) -> String {
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
            let name = || format!("{} in '{}' {}", size(bytes), memory.memory.kind(), memory.memory.id());
            (bytes > 0).then(name)
        });
        let memories: Vec<String> = memories.collect();
        if memories.is_empty() {
            return "the host holds no buffers".to_owned();
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
        format!("the host holds buffers of {}: {}", memories.join(", "), parts.join(", "))
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
