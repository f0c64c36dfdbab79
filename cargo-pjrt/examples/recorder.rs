//! The plugin that records what a host does with another plugin: see `cargo_pjrt::session`.

#![allow(missing_docs, reason = "nobody depends on this library")]

use cargo_pjrt::session;
use pjrt_sys::PJRT_Api;

/// The one function that hosts look for.
#[allow(unsafe_code, non_snake_case, reason = "a plugin exports this name")]
#[unsafe(no_mangle)]
extern "C" fn GetPjrtApi() -> *const PJRT_Api {
    session::table()
}
