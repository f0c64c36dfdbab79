//! The PJRT C API as Rust declarations: structs, enums, the function table and its extensions.
//!
//! This crate has no logic. It declares version 0.117 of the interface ([`PJRT_API_MAJOR`], [`PJRT_API_MINOR`]) with
//! the names that the C headers use, so that PJRT's own documentation applies, and adds what a program needs that
//! talks to *other* versions of it:
//!
//! * [`field_end`]: for every field, the smallest `struct_size` with which a struct has that field;
//! * [`SizedStruct`]: the size that this version of a struct declares, and an empty struct to fill in;
//! * [`STRUCTS`]: every struct's layout as data;
//! * [`for_each_slot!`] and [`SLOTS`]: the 138 entries of the function table, as a list for macros and as data.
//!
//! The declarations are generated from the headers in `include/` and checked in; building this crate needs no C
//! compiler and no libclang. Layout assertions make sure that rustc lays every struct out as clang does.

#[allow(
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    clippy::all,
    reason = "the C names stand, and the output of bindgen is not ours to style"
)]
mod bindings;
mod layout;
mod slot_table;
mod slots;
mod struct_table;

pub use bindings::*;
pub use layout::{FieldLayout, SizedStruct, StructLayout};
pub use slots::{SLOTS, Slot};
pub use struct_table::{STRUCTS, field_end};
