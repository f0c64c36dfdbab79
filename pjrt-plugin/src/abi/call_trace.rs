//! Diagnostics that environment variables enable: a trace of the host's calls, and a report of handles alive at exit.
//!
//! Both observe calls and handles at the same places as the profiler: where a call begins and ends, and where a handle is
//! created and destroyed. If none of them is enabled, each such place costs one atomic load.

use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use pjrt_sys::StructLayout;

use crate::abi::decode;
use crate::core::fork;
use crate::core::sync::lock;
use crate::error::Error;

/// The variable that names the file of the trace.
const TRACE_VARIABLE: &str = "PJRT_PLUGIN_TRACE";
/// The variable that enables the report of live handles at exit.
const LEAK_VARIABLE: &str = "PJRT_PLUGIN_LEAK_REPORT";

struct Observer {
    trace: Option<Trace>,
    handles: Option<Mutex<Handles>>,
}

/// The observer that the environment requests, which is read once. It is `None` in most processes.
static OBSERVER: LazyLock<Option<Observer>> = LazyLock::new(|| {
    let trace = std::env::var_os(TRACE_VARIABLE).filter(|path| !path.is_empty()).and_then(Trace::create);
    let wants_leaks = std::env::var_os(LEAK_VARIABLE).is_some_and(|value| value == "1");
    let handles = wants_leaks.then(|| {
        // SAFETY: the function takes no argument and returns nothing, and its library stays loaded.
        unsafe { libc::atexit(report_at_exit) };
        Mutex::default()
    });
    let observer = (trace.is_some() || handles.is_some()).then_some(Observer { trace, handles });
    if observer.is_none() {
        unwatch();
    }
    observer
});

/// The number of observers of calls and handles. It starts at one, so that the first call reads the environment.
static WATCHERS: AtomicUsize = AtomicUsize::new(1);

/// Returns whether calls and handles may have an observer.
#[inline]
pub(crate) fn is_watched() -> bool {
    WATCHERS.load(Ordering::Relaxed) != 0
}

/// Adds an observer of calls.
pub(crate) fn watch() {
    WATCHERS.fetch_add(1, Ordering::Relaxed);
}

/// Removes an observer that [`watch`] added.
pub(crate) fn unwatch() {
    WATCHERS.fetch_sub(1, Ordering::Relaxed);
}

thread_local! {
    /// The function that the host is calling on this thread.
    static CURRENT: Cell<Option<&'static str>> = const { Cell::new(None) };
}

/// An observed call of the host, which ends when this is dropped.
pub(crate) struct Call {
    observer: &'static Observer,
    function: &'static str,
    outer: Option<&'static str>,
    start: Instant,
}

impl Call {
    /// Begins a call. Returns `None` if there is no observer.
    pub(crate) fn begin(function: &'static str) -> Option<Self> {
        let observer = OBSERVER.as_ref()?;
        Some(Self { observer, function, outer: CURRENT.replace(Some(function)), start: Instant::now() })
    }

    /// Writes the call to the trace.
    ///
    /// # Safety
    ///
    /// `args` is null or a struct of this layout, of the host's version, after its call has returned. If there is no error,
    /// its strings and arrays are as the C API requires.
    pub(crate) unsafe fn returned(&self, args: *const u8, layout: &StructLayout, error: Option<&Error>) {
        let Some(trace) = &self.observer.trace else { return };
        let took = self.start.elapsed();
        // SAFETY: this function's contract.
        let fields = unsafe { decode::fields(args, layout, error.is_none()) };
        trace.write(self.function, self.start, took, fields, error);
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        CURRENT.set(self.outer);
    }
}

/// A file of events in the format that Perfetto and Chrome read: a JSON array with one element per line.
///
/// Each event overwrites the closing bracket and writes a new one, so that the file is valid JSON however the process ends.
/// A pipe, which cannot be overwritten, has no closing bracket; the format allows that.
struct Trace {
    file: Mutex<Written>,
    start: Instant,
}

struct Written {
    file: File,
    has_end: bool,
    is_empty: bool,
}

/// The end of the array.
const END: &str = "\n]\n";

impl Written {
    fn begin(mut file: File) -> std::io::Result<Self> {
        let has_end = file.stream_position().is_ok();
        let mut written = Self { file, has_end, is_empty: true };
        written.put("[")?;
        Ok(written)
    }

    /// Writes text before the end of the array with one call, so that a host that crashes leaves complete events.
    fn put(&mut self, text: &str) -> std::io::Result<()> {
        if !self.has_end {
            return self.file.write_all(text.as_bytes());
        }
        // Seeks from the end of the file, because a forked child may have written to it.
        let end = self.file.seek(SeekFrom::End(0))?;
        self.file.seek(SeekFrom::Start(end.saturating_sub(END.len() as u64)))?;
        self.file.write_all(format!("{text}{END}").as_bytes())
    }

    fn event(&mut self, event: &str) -> std::io::Result<()> {
        let comma = if self.is_empty { "" } else { "," };
        self.is_empty = false;
        self.put(&format!("{comma}\n{event}"))
    }
}

impl Trace {
    /// Creates the file. `%p` in the path is replaced by the process id, because a host's children inherit its environment.
    fn create(path: OsString) -> Option<Self> {
        let path = match path.to_str() {
            Some(text) => OsString::from(text.replace("%p", &std::process::id().to_string())),
            None => path,
        };
        match File::create(&path).and_then(Written::begin) {
            Ok(file) => Some(Self { file: Mutex::new(file), start: Instant::now() }),
            Err(error) => {
                complain(&format!(
                    "{TRACE_VARIABLE}={}: cannot create the file of the trace: {error}; calls are not traced",
                    path.display()
                ));
                None
            }
        }
    }

    fn write(
        &self,
        function: &str,
        start: Instant,
        took: Duration,
        fields: Vec<(&'static str, String)>,
        error: Option<&Error>,
    ) {
        let result = error.map_or_else(
            || "\"OK\"".to_owned(),
            |error| decode::quoted(&format!("{}: {error}", error.code())),
        );
        let mut arguments: Vec<String> =
            fields.iter().map(|(name, value)| format!("{}:{value}", decode::quoted(name))).collect();
        arguments.push(format!("\"result\":{result}"));
        let event = format!(
            "{{\"name\":\"{function}\",\"cat\":\"pjrt\",\"ph\":\"X\",\"ts\":{:.3},\"dur\":{:.3},\"pid\":{},\"tid\":{},\"args\":{{{}}}}}",
            start.saturating_duration_since(self.start).as_nanos() as f64 / 1e3,
            took.as_nanos() as f64 / 1e3,
            std::process::id(),
            thread_number(),
            arguments.join(",")
        );
        // A full disk must not stop the host.
        let _ = lock(&self.file).event(&event);
    }
}

/// Returns a small number for the current thread. Threads are numbered in the order of their first calls.
pub(crate) fn thread_number() -> u64 {
    use std::sync::atomic::AtomicU64;
    static NEXT: AtomicU64 = AtomicU64::new(1);
    thread_local! {
        static NUMBER: u64 = NEXT.fetch_add(1, Ordering::Relaxed);
    }
    NUMBER.try_with(|number| *number).unwrap_or(0)
}

/// The handles that the host has not destroyed.
#[derive(Default)]
struct Handles {
    made: u64,
    alive: HashMap<(usize, &'static str), Vec<Site>>,
}

/// The place where a handle, or a share of it, was created.
struct Site {
    number: u64,
    function: &'static str,
    thread: String,
}

/// Records that the host received a handle.
#[inline]
pub(crate) fn handle_made(address: usize, kind: &'static str) {
    if is_watched() {
        note_made(address, kind);
    }
}

#[cold]
fn note_made(address: usize, kind: &'static str) {
    if fork::is_child() {
        return;
    }
    let Some(handles) = OBSERVER.as_ref().and_then(|observer| observer.handles.as_ref()) else { return };
    let thread = thread::current();
    let thread = thread.name().map_or_else(|| format!("{:?}", thread.id()), str::to_owned);
    let function = CURRENT.get().unwrap_or("a callback or a thread of the plugin");
    let mut handles = lock(handles);
    handles.made += 1;
    let site = Site { number: handles.made, function, thread };
    handles.alive.entry((address, kind)).or_default().push(site);
}

/// Records that the host destroyed a handle.
#[inline]
pub(crate) fn handle_taken(address: usize, kind: &'static str) {
    if is_watched() {
        note_taken(address, kind);
    }
}

#[cold]
fn note_taken(address: usize, kind: &'static str) {
    if fork::is_child() {
        return;
    }
    let Some(handles) = OBSERVER.as_ref().and_then(|observer| observer.handles.as_ref()) else { return };
    let mut handles = lock(handles);
    if let Some(sites) = handles.alive.get_mut(&(address, kind)) {
        sites.pop();
        if sites.is_empty() {
            handles.alive.remove(&(address, kind));
        }
    }
}

extern "C" fn report_at_exit() {
    // The handles of a forked child belong to its parent.
    if fork::is_child() {
        return;
    }
    let Some(handles) = OBSERVER.as_ref().and_then(|observer| observer.handles.as_ref()) else { return };
    // A thread that was stopped by the exit of the process may hold the lock. Waiting for it would hang the exit.
    let Ok(handles) = handles.try_lock() else { return };
    complain(&report(&handles));
}

/// Prints a line to stderr. Unlike `eprintln`, it does not panic if stderr is closed.
pub(crate) fn complain(text: &str) {
    let _ = std::io::stderr().write_all(format!("{text}\n").as_bytes());
}

fn report(handles: &Handles) -> String {
    let mut sites: Vec<(&'static str, &Site)> = handles
        .alive
        .iter()
        .flat_map(|((_, kind), sites)| sites.iter().map(move |site| (*kind, site)))
        .collect();
    sites.sort_by_key(|(_, site)| site.number);
    let made = handles.made;
    let mut lines = vec![match sites.len() {
        0 => format!("{LEAK_VARIABLE}: the host destroyed all {made} handles"),
        leaked => format!("{LEAK_VARIABLE}: the host did not destroy {leaked} of {made} handles:"),
    }];
    lines.extend(sites.iter().map(|(kind, site)| {
        format!(
            "  {kind}, handle number {}, created by {} on thread {}",
            site.number, site.function, site.thread
        )
    }));
    lines.join("\n")
}
