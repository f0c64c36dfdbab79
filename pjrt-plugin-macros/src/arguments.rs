//! The arguments of `#[pjrt_plugin(...)]`.

use proc_macro2::Span;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Error, Ident, Lit, LitInt, Path, Result, Token, parenthesized};

/// The parsed arguments.
#[derive(Default)]
pub(crate) struct Arguments {
    /// The minor version to report, as written. `None` is the newest version.
    pub(crate) api_minor: Option<LitInt>,
    /// The names of extension traits, as written.
    pub(crate) extensions: Vec<Ident>,
}

impl Parse for Arguments {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut arguments = Self::default();
        let mut extensions_seen = false;
        while !input.is_empty() {
            let name: Ident = input.call(parse_name)?;
            match name.to_string().as_str() {
                "api_minor" => {
                    if arguments.api_minor.is_some() {
                        return Err(twice(&name));
                    }
                    arguments.api_minor = Some(parse_api_minor(input, &name)?);
                }
                "extensions" => {
                    if std::mem::replace(&mut extensions_seen, true) {
                        return Err(twice(&name));
                    }
                    arguments.extensions = parse_extensions(input, &name)?;
                }
                other => {
                    return Err(Error::new(
                        name.span(),
                        format!(
                            "unknown argument `{other}`; #[pjrt_plugin] knows `api_minor = N` and `extensions(...)`"
                        ),
                    ));
                }
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(arguments)
    }
}

fn parse_name(input: ParseStream<'_>) -> Result<Ident> {
    input.parse().map_err(|error| {
        Error::new(error.span(), "expected the name of an argument: `api_minor = N` or `extensions(...)`")
    })
}

fn twice(name: &Ident) -> Error {
    Error::new(name.span(), format!("`{name}` is given twice; keep one"))
}

fn parse_api_minor(input: ParseStream<'_>, name: &Ident) -> Result<LitInt> {
    let wrong = |span: Span| {
        Error::new(
            span,
            "`api_minor` is the minor version of the PJRT C API, from 29, the oldest that hosts take: `api_minor = 112`",
        )
    };
    input.parse::<Token![=]>().map_err(|_| wrong(name.span()))?;
    match input.parse::<Lit>() {
        Ok(Lit::Int(number))
            if number.suffix().is_empty() && number.base10_parse::<u16>().is_ok_and(|minor| minor >= 29) =>
        {
            Ok(number)
        }
        Ok(other) => Err(wrong(other.span())),
        Err(error) => Err(wrong(error.span())),
    }
}

/// The traits that `extensions(...)` can name, each with its constructor in `Extension`.
const EXTENSIONS: &[(&str, &str)] = &[
    ("Callbacks", "callbacks"),
    ("CrossHostTransfers", "cross_host_transfers"),
    ("CustomPartitioners", "custom_partitioners"),
    ("ExecutableMetadata", "executable_metadata"),
    ("Ffi", "ffi"),
    ("HostMemoryAllocator", "host_memory_allocator"),
    ("PhaseCompile", "phase_compile"),
    ("Profiler", "profiler"),
    ("RawBuffers", "raw_buffers"),
    ("Shardings", "shardings"),
    ("VendorExtension", "vendor"),
];

/// Returns the constructor of an extension that [`Arguments::extensions`] names.
pub(crate) fn constructor(name: &Ident) -> Ident {
    let known = EXTENSIONS.iter().find(|(extension, _)| name == extension);
    Ident::new(known.map_or("", |(_, constructor)| constructor), name.span())
}

/// Parses a list of names of extension traits.
fn parse_extensions(input: ParseStream<'_>, name: &Ident) -> Result<Vec<Ident>> {
    if !input.peek(syn::token::Paren) {
        return Err(Error::new(
            name.span(),
            "`extensions` takes a list in parentheses: `extensions(Shardings)`",
        ));
    }
    let list;
    parenthesized!(list in input);
    let mut names: Vec<Ident> = Vec::new();
    for path in Punctuated::<Path, Token![,]>::parse_terminated(&list)? {
        let known = path.get_ident().filter(|name| EXTENSIONS.iter().any(|(known, _)| name == known));
        let Some(known) = known else {
            let list: Vec<&str> = EXTENSIONS.iter().map(|(name, _)| *name).collect();
            let list = list.join("`, `");
            return Err(Error::new_spanned(path, format!("unknown extension; the SDK has: `{list}`")));
        };
        if names.contains(known) {
            return Err(twice(known));
        }
        names.push(known.clone());
    }
    Ok(names)
}
