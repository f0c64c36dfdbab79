//! The `#[pjrt_plugin]` attribute of the `pjrt-plugin` crate, which re-exports it: depend on that crate, not
//! on this one.
//!
//! The attribute parses its arguments and exports the table of `pjrt_plugin::api_table!(MyClient)`. It contains no other
//! logic.

#![forbid(unsafe_code)]

mod arguments;
mod expand;

use proc_macro::TokenStream;

/// Exports a plugin. The attribute belongs on `impl PjrtClient for MyClient`.
///
/// It leaves the impl unchanged, and adds the symbol that a PJRT host looks up in a shared library,
/// `GetPjrtApi`. The library must be a `cdylib`. It can contain only one plugin, because the symbol is
/// unique. The crate may have `#![forbid(unsafe_code)]`.
///
/// ```ignore
/// #[pjrt_plugin]
/// impl PjrtClient for Hello { ... }
///
/// #[pjrt_plugin(api_minor = 112)]
/// impl PjrtClient for Hello { ... }
/// ```
///
/// The optional argument `api_minor = N` is the minor version of the C API that the plugin reports. It must be at least 29, the
/// oldest version that hosts accept. The default is the newest version that the SDK supports. Hosts treat the plugin as one that
/// was built with that version, and do not see functions that were added later.
///
/// The plugin has the extensions whose traits the client implements: the public traits of `pjrt_plugin::ext`.
///
/// The impl must be one of `PjrtClient` for a concrete type, because a table of function pointers cannot be
/// generic.
#[proc_macro_attribute]
pub fn pjrt_plugin(arguments: TokenStream, item: TokenStream) -> TokenStream {
    expand::expand(arguments.into(), item.into()).into()
}
