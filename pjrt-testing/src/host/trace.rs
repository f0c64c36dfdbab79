//! The calls that each thread performs, in a file that another process can read after this one ended.

use std::cell::Cell;
use std::fmt;
use std::fs::OpenOptions;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::handles;

/// The number of bytes of a thread's entry: a call and a step.
const ENTRY: usize = CALL + STEP;

/// The number of bytes for a call: its state, and its names, separated by zero bytes.
const CALL: usize = 256;

/// The number of bytes for the text of a step, followed by zeros.
const STEP: usize = 256;

/// The number of threads whose calls are traced: those that make the first calls.
const THREADS: usize = 64;

/// The states of an entry. A new file consists of zeros, which are no calls.
const RUNNING: u8 = 1;
const RETURNED: u8 = 2;

/// The memory of the file, once [`trace_calls`] has mapped it.
static MEMORY: OnceLock<Memory> = OnceLock::new();

/// The number of threads that have an entry.
static THREADS_KNOWN: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The number of this thread's entry, once it has made a call.
    static NUMBER: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Mapped memory that stays mapped until the process ends.
struct Memory(*mut u8);

// SAFETY: each thread accesses only the entry whose number it took.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

/// Writes the calls that each thread performs to a file from now on. Only the first call of this function counts.
///
/// # Errors
///
/// Returns the system's error if the file cannot be created or mapped.
pub fn trace_calls(path: &Path) -> io::Result<()> {
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(path)?;
    let len = ENTRY * THREADS;
    // Without blocks on the disk, a write to the mapping of a full disk would end the process.
    // SAFETY: the descriptor is open, and the function accesses no memory of this process.
    let error = unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, len as libc::off_t) };
    if error != 0 {
        return Err(io::Error::from_raw_os_error(error));
    }
    let rights = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: the system chooses new addresses for the mapping, which this process never unmaps.
    let memory = unsafe { libc::mmap(ptr::null_mut(), len, rights, libc::MAP_SHARED, file.as_raw_fd(), 0) };
    if memory == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    MEMORY.get_or_init(|| Memory(memory.cast()));
    Ok(())
}

/// A call in progress. If an exception of the plugin leaves the function, the call does not end.
pub(super) struct Running {
    entry: Option<*mut [u8; CALL]>,
    /// The call that this one is made in, by a callback.
    outer: Option<[u8; CALL]>,
}

/// Notes that this thread calls a function. `object` is the kind and the address of the object that the function is called for.
pub(super) fn begin(function: &str, object: Option<(&'static str, usize)>) -> Running {
    let Some(entry) = own_entry() else { return Running { entry: None, outer: None } };
    let entry = entry.cast::<[u8; CALL]>();
    let names = object.and_then(|(kind, address)| Some((kind, handles::origin(kind, address)?)));
    let (kind, origin) = names.unwrap_or_default();
    let mut bytes = [0; CALL];
    bytes[0] = RUNNING;
    let text = [function, kind, origin].join("\0");
    let len = text.len().min(CALL - 2);
    bytes[1..=len].copy_from_slice(&text.as_bytes()[..len]);
    // SAFETY: the entry is in the mapped memory, and only this thread accesses it.
    let outer = unsafe { entry.replace(bytes) };
    Running { entry: Some(entry), outer: (outer[0] == RUNNING).then_some(outer) }
}

impl Running {
    /// Notes the end of the call.
    pub(super) fn end(self) {
        let Some(entry) = self.entry else { return };
        // SAFETY: as in `begin`; a call ends on the thread that began it, because the value is not `Send`.
        unsafe {
            match self.outer {
                Some(outer) => entry.write(outer),
                None => entry.cast::<u8>().write(RETURNED),
            }
        }
    }
}

/// Performs a step of a check on this thread, such as the work with one array. The file names it as long as it is performed.
pub fn in_traced_step<T>(text: &str, work: impl FnOnce() -> T) -> T {
    struct Reset;
    impl Drop for Reset {
        fn drop(&mut self) {
            write_step("");
        }
    }
    write_step(text);
    let _reset = Reset;
    work()
}

fn write_step(text: &str) {
    let Some(entry) = own_entry() else { return };
    let mut bytes = [0; STEP];
    let len = text.len().min(STEP - 1);
    bytes[..len].copy_from_slice(&text.as_bytes()[..len]);
    // SAFETY: the step is in the entry, which only this thread accesses.
    unsafe { entry.cast::<u8>().add(CALL).cast::<[u8; STEP]>().write(bytes) }
}

/// Returns the entry of this thread, if calls are traced and there is an entry for it.
fn own_entry() -> Option<*mut [u8; ENTRY]> {
    let memory = MEMORY.get()?;
    let number = NUMBER.get().unwrap_or_else(|| THREADS_KNOWN.fetch_add(1, Ordering::Relaxed));
    NUMBER.set(Some(number));
    // SAFETY: the memory has this many entries.
    (number < THREADS).then(|| unsafe { memory.0.add(number * ENTRY).cast() })
}

/// The last call of a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracedCall {
    /// The function.
    pub function: String,
    /// The kind of the object that the function was called for, such as `PJRT_Event`, and the function that returned it, if
    /// they are known.
    pub object: Option<(String, String)>,
    /// `true` if the call did not return.
    pub is_running: bool,
    /// The step that the thread performs, or an empty string.
    pub step: String,
}

impl fmt::Display for TracedCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.object {
            Some((kind, origin)) => write!(f, "{} of the {kind} that {origin} returned", self.function),
            None => f.write_str(&self.function),
        }
    }
}

/// Returns the last call of each thread, in the order of their first calls, from the content of the file of [`trace_calls`].
#[must_use]
pub fn traced_calls(content: &[u8]) -> Vec<TracedCall> {
    let call = |entry: &[u8]| {
        let (call, step) = entry.split_at_checked(CALL)?;
        let (state, text) = call.split_first().filter(|(state, _)| **state != 0)?;
        let step = String::from_utf8_lossy(step).trim_end_matches('\0').to_owned();
        let text = String::from_utf8_lossy(text);
        let mut names = text.split('\0').map(str::to_owned);
        let (function, kind, origin) = (names.next()?, names.next()?, names.next()?);
        let object = (!kind.is_empty()).then_some((kind, origin));
        Some(TracedCall { function, object, is_running: *state == RUNNING, step })
    };
    content.chunks(ENTRY).filter_map(call).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_all_threads_are_in_the_file() {
        let path = std::env::temp_dir().join(format!("pjrt-testing-trace-{}", std::process::id()));
        trace_calls(&path).unwrap();
        let event = ptr::without_provenance_mut::<pjrt_sys::PJRT_Event>(4096);
        handles::note(event, "PJRT_Buffer_ToHostBuffer");
        let waits = std::thread::spawn(|| {
            let _running = begin("PJRT_Event_Await", Some(("PJRT_Event", 4096)));
        });
        waits.join().unwrap();
        in_traced_step("the type S4", || {
            begin("PJRT_Buffer_Delete", None).end();
            let calls = traced_calls(&std::fs::read(&path).unwrap());
            assert!(calls.iter().any(|call| call.step == "the type S4"), "{calls:?}");
        });
        let outer = begin("PJRT_Event_OnReady", Some(("PJRT_Event", 4096)));
        begin("PJRT_Buffer_Destroy", None).end();
        let calls = || {
            let calls = traced_calls(&std::fs::read(&path).unwrap());
            calls.iter().map(|call| (call.to_string(), call.is_running)).collect::<Vec<_>>()
        };
        let of_event =
            |function| format!("{function} of the PJRT_Event that PJRT_Buffer_ToHostBuffer returned");
        let (waits, registers) = (of_event("PJRT_Event_Await"), of_event("PJRT_Event_OnReady"));
        // Other tests of this process may have called functions, too.
        assert!(calls().contains(&(waits, true)), "{:?}", calls());
        assert!(calls().contains(&(registers.clone(), true)), "{:?}", calls());
        outer.end();
        assert!(calls().contains(&(registers, false)), "{:?}", calls());
        handles::give_back(event);
        std::fs::remove_file(&path).unwrap();
    }
}
