//! The export of a plugin's table.

use std::ffi::c_int;
use std::marker::PhantomData;
use std::ptr;
use std::sync::OnceLock;

use pjrt_sys::{PJRT_API_MINOR, PJRT_Api};

use super::extension::{Extension, chain};
use crate::abi::call_trace;
use crate::abi::table::TableOf;
use crate::client::PjrtClient;
use crate::core::panic_guard;

/// Returns the function table of a client, a `&'static PJRT_Api`, for tests and for programs that contain several plugins.
/// See the [example](crate#an-example) of the crate.
///
/// [`#[pjrt_plugin]`](macro@crate::pjrt_plugin) exports the same table. The client must be a concrete type. The table has
/// the extensions whose [traits](crate::ext) the client implements. It is created on the first call.
///
/// `api_table!(MyClient, api_minor = 112)` sets the minor version of the C API that the plugin reports; the default is the
/// newest version. The environment variable `PJRT_PLUGIN_API_MINOR` lowers it.
#[macro_export]
macro_rules! api_table {
    ($client:ty) => {
        $crate::api_table!($client, api_minor = $crate::__private::NEWEST_MINOR)
    };
    ($client:ty, api_minor = $minor:expr) => {{
        static TABLE: $crate::__private::ApiTable<$client> = $crate::__private::ApiTable::new();
        TABLE.get($minor, &$crate::__for_each_extension!([$crate::__extensions] $client))
    }};
}

/// The static of [`api_table!`].
pub struct ApiTable<C> {
    table: OnceLock<Table>,
    client: PhantomData<fn(C)>,
}

struct Table(PJRT_Api);

// SAFETY: the pointers in a table are null, functions, or structs that live until the process ends and do not change.
unsafe impl Send for Table {}
// SAFETY: as above.
unsafe impl Sync for Table {}

impl<C: PjrtClient> ApiTable<C> {
    /// Creates a static without a table.
    #[expect(clippy::new_without_default, reason = "only a macro creates one, in a static")]
    pub const fn new() -> Self {
        Self { table: OnceLock::new(), client: PhantomData }
    }

    /// Returns the table, which is created on the first call.
    pub fn get(&'static self, api_minor: c_int, extensions: &[Option<Extension<C>>]) -> &'static PJRT_Api {
        let table = self.table.get_or_init(|| {
            panic_guard::install_hook();
            let mut table = PJRT_Api { extension_start: chain(extensions), ..TableOf::<C>::TABLE };
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
        &table.0
    }
}

/// Returns the table in the form of `GetPjrtApi`, and keeps its library loaded.
pub fn export(table: &'static PJRT_Api) -> *const PJRT_Api {
    pin_library(ptr::from_ref(table).cast());
    table
}

/// The newest minor version of the C API that the SDK supports.
pub const NEWEST_MINOR: c_int = PJRT_API_MINOR as c_int;

/// The environment variable that lowers the reported version.
const API_MINOR_VARIABLE: &str = "PJRT_PLUGIN_API_MINOR";

/// The oldest minor version that hosts accept, and that a plugin can report.
const OLDEST_MINOR: c_int = 29;

/// Returns the minor version to report: the lowest of the versions of this crate, of the author and of the environment. A
/// higher version would promise functions that do not exist. The text is a warning if the value of the environment is
/// invalid.
fn reported_minor(author: c_int, wish: Option<&str>) -> (c_int, Option<String>) {
    let most = author.clamp(OLDEST_MINOR, NEWEST_MINOR);
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
/// table, and unloading a library with threads and thread-local values is undefined behavior.
#[cfg(unix)]
fn pin_library(address: *const std::ffi::c_void) {
    // SAFETY: zero in all bytes is a valid `Dl_info`. If `dladdr` finds the address, it initializes the struct, and the name
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
        assert_eq!(reported_minor(NEWEST_MINOR, None), (NEWEST_MINOR, None));
        assert_eq!(reported_minor(112, None), (112, None));
        assert_eq!(reported_minor(NEWEST_MINOR + 1, None), (NEWEST_MINOR, None));
        assert_eq!(reported_minor(NEWEST_MINOR, Some("54")), (54, None));
        assert_eq!(reported_minor(NEWEST_MINOR, Some("29")), (29, None));
        assert_eq!(reported_minor(112, Some(" 90 ")), (90, None));
    }

    #[test]
    fn a_wish_for_a_version_that_cannot_be_reported_is_refused_aloud() {
        for wish in ["113", "1000", "28", "0", "-1", "new", ""] {
            let (minor, complaint) = reported_minor(112, Some(wish));
            assert_eq!(minor, 112, "{wish}");
            assert!(complaint.unwrap().starts_with(&format!("PJRT_PLUGIN_API_MINOR={wish}: ")), "{wish}");
        }
    }
}
