//! The parts that checks consist of: the context that they run in, fixtures, assertions, and the messages
//! that report their progress.

mod another_process;
mod causes;
mod check;
mod comparison;
mod context;
mod conversion;
mod failed;
mod fixtures;
mod heap;
mod message;
mod place;
mod sequences;
mod sizes;
mod source;
mod types;
mod verdict;

pub(crate) use crate::array::strided::{dense_strides, elements_at, offsets, permutations, reordered};
pub use another_process::{AnotherOptions, another_process};
pub(crate) use another_process::{Identity, SUM, ask_another, run_serialized};
pub(crate) use causes::{
    AFTER_THE_CALL, BYTES_COME_LATER, CHANGED_ARGUMENT, CHANGED_BY_CALLBACK, CHANGES_WITH_RUNS,
    COMPLETE_FROM_THE_START, DURING, EARLIER_ARGUMENT, EARLIER_PROGRAM, ENDS_WITH_ANOTHER, FREED_IN_USE,
    FREED_PROGRAM, FREED_WHILE_HELD, HAZARD, HOST_MEMORY, KEPT_ERROR, KEPT_POINTER, LEAKED_OUTPUT,
    MISSED_CALLBACKS, NEVER_COMPLETE, NO_CALLBACK_OF_FAILED, NO_FAILURE, NO_HAZARD, NOT_IN_READY_EVENT,
    NOT_SPREAD, NOT_WAITED, OF_ANOTHER_DEVICE, ONE_CODE, ONE_MESSAGE, OUT_OF_ORDER, OVERWRITTEN_OUTPUT,
    PAST_THE_END, READBACK_SIZE, RIGHT_ON_ANOTHER, SAME_ARRAY_TWICE, SAME_ID, STALE, WRONG_DEFAULT,
    WRONG_TRANSFER,
};
pub(crate) use check::Users;
pub(crate) use check::{CLIENT, INITIALIZES, PROCESS_ENDS, RESIDENT, matches, runs_again};
pub use check::{Check, TIMEOUT};
pub(crate) use comparison::{
    DIFFER, Expected, LAYOUT_IGNORED, OFFSET_IGNORED, ORDER_IGNORED, PLANAR, STRIDES_IGNORED, TOO_EARLY,
    UNKNOWN, check_array,
};
pub(crate) use context::{Context, Creation, patience};
pub(crate) use conversion::CONVERTED;
pub(crate) use failed::{array_fails_with, event_fails_with, hangs};
pub(crate) use fixtures::{
    Compiled, add_program, any_error, compile_add, compile_and_keep_add, f32_bytes, numbers, register_type,
    upload_four, upload_to,
};
pub(crate) use heap::overwrite_freed;
pub(crate) use message::{Finished, Message, Step, guarded, performing, risky, send};
pub(crate) use place::{
    ACCORDING_TO, DEVICE_CONTRADICTED, MEMORY_OF_ANOTHER_DEVICE, device_name, if_supported, is_in_memory,
    is_on_device, memory_name,
};
pub use sequences::Sequences;
pub(crate) use sizes::{Sample, briefly, for_each_size, is_brief};
pub use source::Source;
pub(crate) use types::{accepts, element_types, narrowest};
pub use verdict::Status;
pub(crate) use verdict::{
    Finding, KEPT_TEXT, LOST_BY_CALLBACK, LOST_BY_EXECUTION, LOST_CALLBACK, NOT_CALLED, NOT_THE_DEFAULT,
    ONE_DEVICE, Verdict, count_of, described, ensure, equal, fails_with, kept_text, lost_error, refused,
    refused_with,
};
