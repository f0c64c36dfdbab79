//! The arguments of `#[pjrt_plugin(...)]`.

use proc_macro2::Span;
use syn::parse::{Parse, ParseStream};
use syn::{Error, Ident, Lit, LitInt, Result, Token};

/// The parsed arguments.
#[derive(Default)]
pub(crate) struct Arguments {
    /// The minor version to report, as written. `None` is the newest version.
    pub(crate) api_minor: Option<LitInt>,
}

impl Parse for Arguments {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut arguments = Self::default();
        while !input.is_empty() {
            let name: Ident = input
                .parse()
                .map_err(|error| Error::new(error.span(), "expected an argument: `api_minor = N`"))?;
            let refused =
                |why: &str| Err(Error::new(name.span(), format!("{why} `{name}`; expected `api_minor = N`")));
            if name != "api_minor" {
                return refused("unknown argument");
            }
            if arguments.api_minor.is_some() {
                return refused("more than one argument");
            }
            arguments.api_minor = Some(parse_api_minor(input, &name)?);
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(arguments)
    }
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
