//! The spans that are recorded while a host profiles.

#![deny(unsafe_code)]

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Instant, SystemTime};

use crate::abi::call_trace::{self, thread_number};
use crate::attributes::AttributeValue;
use crate::core::sync::lock;

/// The most spans that a recording keeps. Further spans are only counted, so that the memory of an abandoned session is
/// bounded.
const MAX_SPANS: usize = 1 << 20;

/// The number of active recordings. If it is zero, as it is nearly always, nothing else in this module is accessed.
static ACTIVE: AtomicUsize = AtomicUsize::new(0);
static RECORDINGS: Mutex<Vec<Arc<Recording>>> = Mutex::new(Vec::new());

/// The attributes of a span.
pub(crate) type Attributes = Vec<(Cow<'static, str>, AttributeValue)>;

/// An interval of time on a thread of the host, with a name.
#[derive(Debug, Clone)]
pub(crate) struct Span {
    pub(crate) name: Cow<'static, str>,
    pub(crate) thread: u64,
    pub(crate) start: Instant,
    pub(crate) end: Instant,
    pub(crate) attributes: Attributes,
}

/// The spans of all threads between start and stop.
pub(crate) struct Recording {
    pub(crate) start: Instant,
    pub(crate) wall_start: SystemTime,
    pub(crate) content: Mutex<Content>,
}

#[derive(Default)]
pub(crate) struct Content {
    pub(crate) spans: Vec<Span>,
    /// The names of the threads.
    pub(crate) threads: BTreeMap<u64, String>,
    pub(crate) dropped: usize,
}

/// Returns whether a recording is active.
pub(crate) fn is_active() -> bool {
    ACTIVE.load(Ordering::Relaxed) > 0
}

impl Recording {
    pub(crate) fn start() -> Arc<Self> {
        let recording = Arc::new(Self {
            start: Instant::now(),
            wall_start: SystemTime::now(),
            content: Mutex::default(),
        });
        lock(&RECORDINGS).push(Arc::clone(&recording));
        ACTIVE.fetch_add(1, Ordering::Relaxed);
        call_trace::watch();
        // Enables the call sites of `tracing` that were disabled because nothing recorded them.
        tracing::callsite::rebuild_interest_cache();
        recording
    }

    /// Stops the recording. A second call does nothing.
    pub(crate) fn stop(&self) {
        let mut recordings = lock(&RECORDINGS);
        let before = recordings.len();
        recordings.retain(|recording| !std::ptr::eq(&raw const **recording, self));
        let stopped = before - recordings.len();
        drop(recordings);
        if stopped > 0 {
            ACTIVE.fetch_sub(stopped, Ordering::Relaxed);
            call_trace::unwatch();
            tracing::callsite::rebuild_interest_cache();
        }
    }

    fn add(&self, span: Span, thread_name: &str) {
        let mut content = lock(&self.content);
        if content.spans.len() == MAX_SPANS {
            content.dropped += 1;
            return;
        }
        content.threads.entry(span.thread).or_insert_with(|| thread_name.to_owned());
        content.spans.push(span);
    }
}

/// Records a span of this thread from `start` to the current time.
pub(crate) fn record(name: impl Into<Cow<'static, str>>, start: Instant, attributes: Attributes) {
    let span = Span { name: name.into(), thread: thread_number(), start, end: Instant::now(), attributes };
    let current = thread::current();
    let thread_name = current.name().map_or_else(|| format!("thread {}", span.thread), str::to_owned);
    for recording in &*lock(&RECORDINGS) {
        recording.add(span.clone(), &thread_name);
    }
}

/// The functions whose calls are recorded. Getters are excluded, because hosts call them so often that they would hide the
/// rest.
const CALLS: &[&str] = &[
    "PJRT_Buffer_Bitcast",
    "PJRT_Buffer_CopyRawToHost",
    "PJRT_Buffer_CopyRawToHostFuture",
    "PJRT_Buffer_CopyToDevice",
    "PJRT_Buffer_CopyToMemory",
    "PJRT_Buffer_ToHostBuffer",
    "PJRT_AsyncHostToDeviceTransferManager_TransferData",
    "PJRT_AsyncHostToDeviceTransferManager_TransferLiteral",
    "PJRT_Client_BufferFromHostBuffer",
    "PJRT_Client_Compile",
    "PJRT_Client_Create",
    "PJRT_Client_Load",
    "PJRT_Compile",
    "PJRT_Event_Await",
    "PJRT_Executable_DeserializeAndLoad",
    "PJRT_Executable_OptimizedProgram",
    "PJRT_Executable_Serialize",
    "PJRT_LoadedExecutable_Execute",
];

/// A call of the host, which is recorded on drop.
pub(crate) struct Call {
    function: &'static str,
    start: Instant,
    context: Option<i64>,
}

impl Call {
    /// Returns `None` if no recording is active or the function is not recorded. `context` returns the number that links the
    /// call with the host's own span.
    pub(crate) fn begin(function: &'static str, context: impl FnOnce() -> Option<i64>) -> Option<Self> {
        if !is_active() || !CALLS.contains(&function) {
            return None;
        }
        Some(Self { function, start: Instant::now(), context: context() })
    }
}

/// The type of the links from hosts to calls of a plugin: `ContextType::kPjrtLibraryCall` of XLA's profiler.
const LIBRARY_CALL: i64 = 14;

impl Drop for Call {
    fn drop(&mut self) {
        // XLA's profiler looks for the consumer's end of a link under these names.
        let attributes = self.context.map_or_else(Vec::new, |context| {
            vec![
                (Cow::Borrowed("_ct"), AttributeValue::Int64(LIBRARY_CALL)),
                (Cow::Borrowed("_c"), AttributeValue::Int64(context)),
            ]
        });
        record(self.function, self.start, attributes);
    }
}
