//! Expands the attribute to the exported function.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{Error, Item, ItemImpl, Result};

use crate::arguments::Arguments;

/// Returns the unchanged impl, followed by the exported function or by a compile error at the token that
/// caused it.
pub(crate) fn expand(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let export = export(arguments, item.clone()).unwrap_or_else(|error| error.into_compile_error());
    quote! { #item #export }
}

fn export(arguments: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let arguments: Arguments = syn::parse2(arguments)?;
    let item = plugin_impl(item)?;
    let client = &item.self_ty;
    let api_minor = arguments.api_minor.map(|minor| quote! { , api_minor = #minor });
    Ok(quote! {
        const _: () = {
            #[unsafe(no_mangle)]
            extern "C" fn GetPjrtApi() -> *const ::pjrt_plugin::__private::PJRT_Api {
                ::pjrt_plugin::__private::export(::pjrt_plugin::api_table!(#client #api_minor))
            }
        };
    })
}

/// Returns the item if it is an impl that can be exported.
fn plugin_impl(item: TokenStream) -> Result<ItemImpl> {
    let item = match syn::parse2::<Item>(item)? {
        Item::Impl(item) => item,
        other => {
            return Err(Error::new_spanned(
                first_token(&other),
                "#[pjrt_plugin] goes on `impl PjrtClient for MyClient { ... }`, not on this item",
            ));
        }
    };
    let Some((negation, of, _)) = &item.trait_ else {
        return Err(Error::new_spanned(
            &item.self_ty,
            "#[pjrt_plugin] goes on the impl of the trait: `impl PjrtClient for MyClient { ... }`",
        ));
    };
    let is_client = of.segments.last().is_some_and(|last| last.ident == "PjrtClient");
    if !is_client || negation.is_some() {
        return Err(Error::new_spanned(
            of,
            "#[pjrt_plugin] goes only on the impl of `PjrtClient`; the traits of its associated types and its extensions need no attribute",
        ));
    }
    if let Some(parameter) = item.generics.params.first() {
        return Err(Error::new_spanned(
            parameter,
            "a plugin is exported for one concrete type; implement `PjrtClient` without parameters, or on an instance \
             such as `MyClient<Fast>`",
        ));
    }
    Ok(item)
}

/// Returns the token that an error about a whole item points to.
fn first_token(item: &Item) -> TokenStream {
    item.to_token_stream().into_iter().take(1).collect()
}
