//! The `#[pjrt_plugin]` attribute of the `pjrt-plugin` crate, which re-exports it: depend on that crate, not on this one.
//!
//! The attribute parses its arguments and names things that live in `pjrt-plugin`. It contains no logic of its own: a
//! plugin behaves the same when its table is built with `pjrt_plugin::api_table::<MyClient>()`.

#![forbid(unsafe_code)]

mod arguments;
mod expand;

use proc_macro::TokenStream;

/// Exports a plugin: put it on `impl PjrtClient for MyClient`.
///
/// It keeps the impl as it is and adds the one symbol that a PJRT host looks for in a shared library, `GetPjrtApi`.
/// The library must be a `cdylib`, and it can hold one plugin only, since the symbol has one name. The crate may have
/// `#![forbid(unsafe_code)]`.
///
/// ```ignore
/// #[pjrt_plugin]
/// impl PjrtClient for Hello { ... }
///
/// #[pjrt_plugin(api_minor = 112, extensions(Shardings))]
/// impl PjrtClient for Hello { ... }
/// ```
///
/// Arguments, all optional:
///
/// * `api_minor = N`: the minor version of the C API that the plugin reports, where the newest that the SDK knows is
///   not wanted, from 29, the oldest that hosts take. Hosts then take the plugin for one built with that version, and see no
///   function added later.
/// * `extensions(...)`: the optional extension traits that the plugin implements, such as `Shardings` and `Profiler`:
///   the public traits of `pjrt_plugin::ext`.
///
/// The impl must be one of `PjrtClient`, and for a concrete type: a table of function pointers cannot be generic.
#[proc_macro_attribute]
pub fn pjrt_plugin(arguments: TokenStream, item: TokenStream) -> TokenStream {
    expand::expand(arguments.into(), item.into()).into()
}
