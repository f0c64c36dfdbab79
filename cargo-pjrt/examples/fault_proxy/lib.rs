//! A plugin that forwards to another plugin, with one fault, to test the conformance kit.
//!
//! `FAULT_PROXY_INNER` names the good plugin. `FAULT_PROXY` describes the fault in a small language:
//!
//! ```text
//! PJRT_Buffer_IsDeleted set is_deleted=1
//! PJRT_Client_Compile when program>code_size=17 code INTERNAL
//! PJRT_Event_OnReady call 3 callback never
//! ```
//!
//! With `FAULT_PROXY_NOTES`, each occurrence of the fault is printed to standard error.
//!
//! A fault consists of a function; the conditions under which it occurs (`when FIELD=NUMBER...`, `call N`, `inside_callback`,
//! `at_once` for a call while another thread is in the same function, `after FUNCTION` for an earlier call with the same
//! object, `since FUNCTION` for a call since the newest client was created, `without FUNCTION` for no such call, `failed
//! FUNCTION` for a call that failed since then, `least FIELD NUMBER`, `rank_from NUMBER` for an array of many dimensions,
//! `on_another_device` for a call about a device other than the first, `in_another_memory` for an array that is not in the
//! default memory of its device, `another_thread` for a call from another thread than the one that created the newest client);
//! and an action. A field can be a field of a struct that is pointed to (`program>format_size`) or an element of an array of
//! 64-bit numbers (`dims.0`). `fault.rs`, `special.rs`, `executions.rs`, `returned.rs`, `memory.rs`, `lent.rs`, `linked.rs`,
//! `combined.rs`, `bits.rs`, `values.rs`, `recalled.rs`, `threads.rs` and `rewrites.rs` define the actions, and `table.rs` those
//! of `GetPjrtApi`.

#![allow(missing_docs, reason = "no crate depends on this library")]

#[allow(unsafe_code, reason = "calls the foreign library, as `table` does")]
mod bits;
#[allow(unsafe_code, reason = "calls the foreign library, as `table` does")]
mod combined;
#[allow(unsafe_code, reason = "calls the foreign library, as `table` does")]
mod elsewhere;
#[allow(unsafe_code, reason = "calls the foreign library, as `table` does")]
mod executions;
#[allow(unsafe_code, reason = "calls the foreign library, as `table` does")]
mod extension;
mod fault;
/// The functions that the language of faults can name.
mod functions {
    pub(crate) use pjrt_testing::host::EXTENSION_FUNCTIONS;
}
#[allow(unsafe_code, reason = "calls the foreign library, as `table` does")]
mod lent;
#[allow(unsafe_code, reason = "reads the structs of the host, as `table` does")]
mod linked;
#[allow(unsafe_code, reason = "calls the foreign library, as `table` does")]
mod memory;
#[allow(unsafe_code, reason = "changes functions of the foreign library")]
mod metadata;
#[allow(unsafe_code, reason = "changes the table of the foreign library's profiler")]
mod profiler;
#[allow(unsafe_code, reason = "reads the structs of the host, as `table` does")]
mod recalled;
#[allow(unsafe_code, reason = "changes the memory of the foreign library")]
mod returned;
mod rewrites;
#[allow(unsafe_code, reason = "changes the host's program")]
mod rewritten;
#[allow(unsafe_code, reason = "calls the foreign library, as `table` does")]
mod special;
#[allow(unsafe_code, reason = "calls the foreign library")]
mod table;
#[allow(unsafe_code, reason = "calls the foreign library, as `table` does")]
mod threads;
#[allow(unsafe_code, reason = "calls the foreign library, as `table` does")]
mod values;
