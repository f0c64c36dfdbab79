//! Calls of the callbacks of events.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::core::error::Result;

/// A function that is called with the outcome of an event.
pub(crate) type Callback = Box<dyn FnOnce(Result<()>) + Send>;

/// The depth to which completions of events may be nested in callbacks. It bounds the stack for long chains of executions
/// that wait for each other.
const MAX_DEPTH: usize = 16;

thread_local! {
    /// The number of nested completions on this thread.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    /// Callbacks that exceeded the depth, and that the outermost completion runs.
    static DEFERRED: RefCell<Vec<(Vec<Callback>, Result<()>)>> = const { RefCell::new(Vec::new()) };
}

/// Runs the callbacks of an event. If they would be nested too deeply, they run later on the same thread.
pub(crate) fn call_back(waiting: Vec<Callback>, outcome: &Result<()>) {
    let depth = DEPTH.get();
    if depth >= MAX_DEPTH {
        DEFERRED.with_borrow_mut(|deferred| deferred.push((waiting, outcome.clone())));
        return;
    }
    DEPTH.set(depth + 1);
    call_all(waiting, outcome);
    if depth == 0 {
        while let Some((waiting, outcome)) = DEFERRED.with_borrow_mut(Vec::pop) {
            call_all(waiting, &outcome);
        }
    }
    DEPTH.set(depth);
}

fn call_all(waiting: Vec<Callback>, outcome: &Result<()>) {
    for callback in waiting {
        // A panic in one callback must not prevent the others from running. The panic hook has printed it.
        let _ = catch_unwind(AssertUnwindSafe(|| callback(outcome.clone())));
    }
}
