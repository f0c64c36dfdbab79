//! The export of a plugin's table.

use std::ffi::c_int;
use std::ptr;
use std::sync::OnceLock;

use pjrt_sys::{PJRT_API_MINOR, PJRT_Api};

use super::{Extension, chain};
use crate::abi::call_trace;
use crate::abi::table::TableOf;
use crate::client::PjrtClient;
use crate::core::panic_guard;

/// Returns the function table of a client, for tests and for programs that contain several plugins.
///
/// ```no_run
/// # fn table<MyClient: pjrt_plugin::PjrtClient>() {
/// let api = pjrt_plugin::api_table::<MyClient>();
/// assert!(api.PJRT_Client_Create.is_some());
/// # }
/// ```
///
/// The symbol that hosts look for is exported by [`#[pjrt_plugin]`](crate::pjrt_plugin). The table has the extensions that
/// every plugin has, and none that authors opt into: see [`api_table_with`]. Each call leaks a table.
#[must_use]
pub fn api_table<C: PjrtClient>() -> &'static PJRT_Api {
    api_table_with::<C>(&[])
}

/// Returns the same table as [`api_table`], with extensions that the author opted into.
#[must_use]
pub fn api_table_with<C: PjrtClient>(extensions: &[Extension]) -> &'static PJRT_Api {
    panic_guard::install_hook();
    Box::leak(Box::new(table::<C>(extensions)))
}

/// Returns the table with its linked list of extensions.
fn table<C: PjrtClient>(extensions: &[Extension]) -> PJRT_Api {
    PJRT_Api { extension_start: chain::<C>(extensions), ..TableOf::<C>::TABLE }
}

/// The table that the function `GetPjrtApi` of a plugin returns. [`#[pjrt_plugin]`](crate::pjrt_plugin) declares it.
pub struct Export(OnceLock<Table>);

struct Table(PJRT_Api);

// SAFETY: the pointers in a table are null, functions, or structs that live until the process ends and do not change.
unsafe impl Send for Table {}
// SAFETY: as above.
unsafe impl Sync for Table {}

impl Export {
    /// Creates an export without a table.
    #[must_use]
    pub const fn new() -> Self {
        Self(OnceLock::new())
    }

    /// Returns the table, which is created at the first call. `api_minor` is the version of the C API that the plugin
    /// reports; the environment variable `PJRT_PLUGIN_API_MINOR` lowers it. `extensions` are those that the author opted
    /// into.
    pub fn get<C: PjrtClient>(
        &'static self,
        api_minor: Option<i32>,
        extensions: &[Extension],
    ) -> *const PJRT_Api {
        let table = self.0.get_or_init(|| {
            panic_guard::install_hook();
            pin_library(ptr::from_ref(self).cast());
            let mut table = table::<C>(extensions);
            let wish = std::env::var_os(API_MINOR_VARIABLE);
            let wish = wish.as_ref().map(|wish| wish.to_string_lossy());
            let (minor, complaint) = reported_minor(api_minor, wish.as_deref());
            table.pjrt_api_version.minor_version = minor;
            // This function cannot return an error, so it prints the warning.
            if let Some(complaint) = complaint {
                call_trace::complain(&complaint);
            }
            Table(table)
        });
        &raw const table.0
    }
}

impl Default for Export {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for Export {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Export")
    }
}

/// The environment variable that lowers the reported version.
const API_MINOR_VARIABLE: &str = "PJRT_PLUGIN_API_MINOR";

/// The oldest minor version that hosts accept, and that a plugin can report.
const OLDEST_MINOR: c_int = 29;

/// Returns the minor version to report: the lowest of the versions of this crate, of the author and of the environment. A
/// higher version would promise functions that do not exist. The text is a warning if the value of the environment is
/// invalid.
fn reported_minor(author: Option<i32>, wish: Option<&str>) -> (c_int, Option<String>) {
    let newest = PJRT_API_MINOR as c_int;
    let most = author.unwrap_or(newest).clamp(OLDEST_MINOR, newest);
    let Some(wish) = wish else { return (most, None) };
    let not_granted = |why: String| (most, Some(format!("{API_MINOR_VARIABLE}={wish}: {why}")));
    match wish.trim().parse::<c_int>() {
        Ok(minor) if (OLDEST_MINOR..=most).contains(&minor) => (minor, None),
        Ok(minor) if minor > most => not_granted(format!(
            "the variable can only lower the version of the C API; the plugin reports 0.{most}"
        )),
        _ => not_granted(format!(
            "expected a minor version of the C API from {OLDEST_MINOR} to {most}; the plugin reports 0.{most}"
        )),
    }
}

/// Keeps the library that contains an address loaded until the process ends. Some hosts close it after they have read the
/// table, and unloading a library with threads and thread-local values is undefined behaviour.
#[cfg(unix)]
fn pin_library(address: *const std::ffi::c_void) {
    // SAFETY: zero in all bytes is a valid `Dl_info`. If `dladdr` finds the address, it initialises the struct, and the name
    // is a string that lives as long as the library. `RTLD_NOLOAD` only changes the flags of the loaded library.
    unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        if libc::dladdr(address, &raw mut info) != 0 && !info.dli_fname.is_null() {
            libc::dlopen(info.dli_fname, libc::RTLD_NOW | libc::RTLD_NOLOAD | libc::RTLD_NODELETE);
        }
    }
}

#[cfg(not(unix))]
fn pin_library(_: *const std::ffi::c_void) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reported_version_is_the_lowest_of_crate_author_and_environment() {
        let newest = PJRT_API_MINOR as c_int;
        assert_eq!(reported_minor(None, None), (newest, None));
        assert_eq!(reported_minor(Some(112), None), (112, None));
        assert_eq!(reported_minor(Some(newest + 1), None), (newest, None));
        assert_eq!(reported_minor(None, Some("54")), (54, None));
        assert_eq!(reported_minor(None, Some("29")), (29, None));
        assert_eq!(reported_minor(Some(112), Some(" 90 ")), (90, None));
    }

    #[test]
    fn a_wish_for_a_version_that_cannot_be_reported_is_refused_aloud() {
        for wish in ["113", "1000", "28", "0", "-1", "new", ""] {
            let (minor, complaint) = reported_minor(Some(112), Some(wish));
            assert_eq!(minor, 112, "{wish}");
            assert!(complaint.unwrap().starts_with(&format!("PJRT_PLUGIN_API_MINOR={wish}: ")), "{wish}");
        }
    }
}
