//! A plugin that is another plugin with one fault, to test the conformance kit.
//!
//! `FAULT_PROXY_INNER` names the good plugin, `FAULT_PROXY` the fault, in a small language:
//!
//! ```text
//! PJRT_Buffer_IsDeleted set is_deleted=1
//! PJRT_Client_Compile when program>code_size=17 code INTERNAL
//! PJRT_Event_OnReady call 3 callback never
//! ```
//!
//! A function; when the fault happens (`when FIELD=NUMBER...`, `call N`, `inside_callback`, `after FUNCTION` on the same
//! object, `since FUNCTION` in the life of the newest client); what happens. A field can be one of a struct that is pointed to
//! (`program>format_size`) or an element of an array of 64-bit numbers (`dims.0`). See `fault.rs` and `special.rs` for all that can happen, and
//! `table.rs` for what `GetPjrtApi` can do.

#![allow(missing_docs, reason = "nobody depends on this library")]

#[allow(unsafe_code, reason = "with `table`, what calls the foreign library")]
mod extension;
mod fault;
/// What the language of faults knows.
mod functions {
    pub(crate) use cargo_pjrt::host::EXTENSION_FUNCTIONS;
}
#[allow(unsafe_code, reason = "with `table`, what calls the foreign library")]
mod special;
#[allow(unsafe_code, reason = "what calls the foreign library")]
mod table;
