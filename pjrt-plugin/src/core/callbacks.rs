//! Running the callbacks of events.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::core::error::Result;

/// What is called with the outcome of an event.
pub(crate) type Callback = Box<dyn FnOnce(Result<()>) + Send>;

/// How deep the completion of one event may complete others in its callbacks. A long chain of executions that wait for each
/// other must not become a deep stack.
const MAX_DEPTH: usize = 16;

thread_local! {
    /// How many completions are under way on this thread, one in a callback of the other.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    /// Callbacks that wait for the outermost of them, because they came too deep.
    static DEFERRED: RefCell<Vec<(Vec<Callback>, Result<()>)>> = const { RefCell::new(Vec::new()) };
}

/// Runs the callbacks of an event. Where that would nest too deep they run soon after, on the same thread.
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
        // One callback that panics must not keep the others from running; the panic hook has reported it.
        let _ = catch_unwind(AssertUnwindSafe(|| callback(outcome.clone())));
    }
}
