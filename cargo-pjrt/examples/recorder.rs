//! The plugin that records a host's calls to another plugin; see `cargo_pjrt::session`.

#![allow(missing_docs, reason = "no crate depends on this library")]

use std::ffi::c_void;

use cargo_pjrt::session;

/// The entry point that hosts look up.
#[allow(unsafe_code, non_snake_case, reason = "a plugin exports this name")]
#[unsafe(no_mangle)]
extern "C" fn GetPjrtApi() -> *const c_void {
    session::table().cast()
}
