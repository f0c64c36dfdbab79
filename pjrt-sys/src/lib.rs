//! The PJRT C API as Rust declarations: structs, enums, the function table and its extensions.
//!
//! This crate contains no logic. It declares version 0.117 of the interface ([`PJRT_API_MAJOR`], [`PJRT_API_MINOR`]) with
//! the names of the C headers, so that PJRT's documentation applies. For programs that communicate with *other* versions of
//! the interface, it adds:
//!
//! * [`field_end`]: for every field, the smallest `struct_size` of a struct that has the field;
//! * [`SizedStruct`]: the size that this version of a struct declares, and a zeroed struct;
//! * [`STRUCTS`]: the layout of every struct as data;
//! * [`for_each_slot!`] and [`SLOTS`]: the 138 entries of the function table, as a list for macros and as data.
//!
//! ```
//! use pjrt_sys::{PJRT_Client_PlatformName_Args, SLOTS, SizedStruct, field_end};
//!
//! let args = PJRT_Client_PlatformName_Args::zeroed();
//! assert!(args.struct_size >= field_end::PJRT_Client_PlatformName_Args::platform_name_size);
//! assert_eq!(SLOTS[20].name, "PJRT_Client_Compile");
//! ```
//!
//! The declarations are generated from the headers in `include/` and checked in, so building this crate requires neither a C
//! compiler nor libclang. Assertions check at compile time that rustc and clang agree on the layout of every struct.

#[allow(
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    clippy::all,
    reason = "bindgen generates this module, with the names of the C API"
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
