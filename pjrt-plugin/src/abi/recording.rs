//! What is recorded while a host traces.

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

/// How many spans a recording keeps. Those after it are only counted, so that a forgotten session cannot fill the memory.
const MAX_SPANS: usize = 1 << 20;

/// How many recordings run. Nearly always none, and then nothing else here is looked at.
static ACTIVE: AtomicUsize = AtomicUsize::new(0);
static RECORDINGS: Mutex<Vec<Arc<Recording>>> = Mutex::new(Vec::new());

/// The attributes of a span.
pub(crate) type Attributes = Vec<(Cow<'static, str>, AttributeValue)>;

/// Something that took time on a thread of the host.
#[derive(Debug, Clone)]
pub(crate) struct Span {
    pub(crate) name: Cow<'static, str>,
    pub(crate) thread: u64,
    pub(crate) start: Instant,
    pub(crate) end: Instant,
    pub(crate) attributes: Attributes,
}

/// The spans of all threads from a start to a stop.
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

/// Whether a host traces.
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
        // Places in the code that were found to be of no interest are asked again.
        tracing::callsite::rebuild_interest_cache();
        recording
    }

    /// Records nothing more. A second call does nothing.
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

/// Records what this thread did from `start` on.
pub(crate) fn record(name: impl Into<Cow<'static, str>>, start: Instant, attributes: Attributes) {
    let span = Span { name: name.into(), thread: thread_number(), start, end: Instant::now(), attributes };
    let current = thread::current();
    let thread_name = current.name().map_or_else(|| format!("thread {}", span.thread), str::to_owned);
    for recording in &*lock(&RECORDINGS) {
        recording.add(span.clone(), &thread_name);
    }
}

/// The calls that do work. Getters, which hosts call without end, would only hide them.
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

/// A call of the host, recorded when this is dropped.
pub(crate) struct Call {
    function: &'static str,
    start: Instant,
    context: Option<i64>,
}

impl Call {
    /// Nothing unless a host traces and the call does work. `context` links the call with the host's own span, if it says so.
    pub(crate) fn begin(function: &'static str, context: impl FnOnce() -> Option<i64>) -> Option<Self> {
        if !is_active() || !CALLS.contains(&function) {
            return None;
        }
        Some(Self { function, start: Instant::now(), context: context() })
    }
}

/// The kind of link that hosts make to calls of a plugin: `ContextType::kPjrtLibraryCall` of XLA's profiler.
const LIBRARY_CALL: i64 = 14;

impl Drop for Call {
    fn drop(&mut self) {
        // The names under which XLA's profiler looks for the consumer's end of a link.
        let attributes = self.context.map_or_else(Vec::new, |context| {
            vec![
                (Cow::Borrowed("_ct"), AttributeValue::Int64(LIBRARY_CALL)),
                (Cow::Borrowed("_c"), AttributeValue::Int64(context)),
            ]
        });
        record(self.function, self.start, attributes);
    }
}
