//! A model of bindgen's output: structs with field types and offsets, enums, sizes.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use proc_macro2::TokenStream;
use quote::ToTokens;
use serde::Serialize;
use syn::{Expr, Item, Lit};

/// The prefix of bindgen's names for unnamed enums, which are the `X_STRUCT_SIZE` constants in these headers.
const ANONYMOUS_ENUM: &str = "_bindgen_ty_";

/// The declarations of one header.
#[derive(Default, Serialize)]
pub(super) struct Header {
    /// The structs and unions, in the order of the header.
    pub(super) structs: Vec<Struct>,
    /// The enum constants: name and value.
    pub(super) constants: BTreeMap<String, i64>,
    /// The aliases of function types: name and Rust type.
    pub(super) aliases: BTreeMap<String, String>,
}

/// A struct or union that has fields.
#[derive(Serialize)]
pub(super) struct Struct {
    pub(super) name: String,
    pub(super) is_union: bool,
    /// The size that clang computed.
    pub(super) size: usize,
    pub(super) align: usize,
    /// The value of the header's `X_STRUCT_SIZE`, if there is one.
    pub(super) struct_size: Option<usize>,
    pub(super) fields: Vec<Field>,
}

/// A field of a struct.
#[derive(Serialize)]
pub(super) struct Field {
    pub(super) name: String,
    /// The Rust type, as text without line breaks.
    pub(super) ty: String,
    /// The offset that clang computed.
    pub(super) offset: usize,
}

impl Struct {
    /// Returns `true` if the struct starts with its own size, directly or through an extension's base.
    pub(super) fn is_sized(&self) -> bool {
        !self.is_union
            && self
                .fields
                .first()
                .is_some_and(|field| field.name == "struct_size" || field.ty == "PJRT_Extension_Base")
    }
}

/// Splits bindgen's output into the content of `bindings.rs` and the data about it.
pub(super) fn read(file: &mut syn::File) -> Result<Header> {
    let mut sizes = BTreeMap::new();
    let mut header = Header::default();
    for item in &file.items {
        match item {
            Item::Const(item) if item.ident == "_" => read_layout_test(item, &mut sizes)?,
            Item::Const(item) => {
                if let Some(value) = integer(&item.expr) {
                    header.constants.insert(item.ident.to_string(), value);
                }
            }
            Item::Type(item) => {
                header.aliases.insert(item.ident.to_string(), text(item.ty.to_token_stream()));
            }
            _ => {}
        }
    }
    for item in &file.items {
        let read = read_struct(item, &sizes, &header.constants)?;
        header.structs.extend(read);
    }
    file.items.retain(|item| match item {
        Item::Const(item) => item.ident != "_" && !item.ident.to_string().ends_with("_STRUCT_SIZE"),
        Item::Type(item) => !item.ident.to_string().starts_with(ANONYMOUS_ENUM),
        Item::Struct(item) => !item.ident.to_string().starts_with(ANONYMOUS_ENUM),
        _ => true,
    });
    header.constants.retain(|name, _| !name.ends_with("_STRUCT_SIZE"));
    header.aliases.retain(|name, _| !name.starts_with(ANONYMOUS_ENUM));
    Ok(header)
}

/// Reads a struct or a union. Returns `None` for another item, and for a struct that has no fields.
fn read_struct(
    item: &Item,
    sizes: &BTreeMap<String, usize>,
    constants: &BTreeMap<String, i64>,
) -> Result<Option<Struct>> {
    let (name, fields, is_union) = match item {
        Item::Struct(item) => match &item.fields {
            syn::Fields::Named(fields) => (item.ident.to_string(), fields, false),
            _ => return Ok(None),
        },
        Item::Union(item) => (item.ident.to_string(), &item.fields, true),
        _ => return Ok(None),
    };
    // bindgen gives an incomplete type this field.
    if fields.named.iter().any(|field| field.ident.as_ref().is_some_and(|name| name == "_unused")) {
        return Ok(None);
    }
    let size_of = |what: &str| {
        let key = format!("{what} of {name}");
        sizes.get(&key).copied().with_context(|| format!("bindgen's output has no {key}"))
    };
    let (size, align) = (size_of("Size")?, size_of("Alignment")?);
    let struct_size = constants.get(&format!("{name}_STRUCT_SIZE")).map(|&value| value as usize);
    let fields = read_fields(&name, fields, sizes)?;
    Ok(Some(Struct { name, is_union, size, align, struct_size, fields }))
}

/// Reads the fields of the struct or union with this name.
fn read_fields(
    struct_name: &str,
    fields: &syn::FieldsNamed,
    sizes: &BTreeMap<String, usize>,
) -> Result<Vec<Field>> {
    let fields: Vec<_> = fields.named.iter().collect();
    let offset_of = |field: &syn::Field| {
        let name = field.ident.as_ref()?;
        sizes.get(&format!("Offset of field: {struct_name}::{name}")).copied()
    };
    let read = |(index, field): (usize, &&syn::Field)| {
        let name = field.ident.as_ref().context("a field without a name")?.to_string();
        let ty = text(field.ty.to_token_stream());
        // bindgen states no offset for an anonymous union, which ends where the next field starts.
        let offset = offset_of(field).or_else(|| {
            let next = offset_of(fields.get(index + 1)?)?;
            next.checked_sub(*sizes.get(&format!("Size of {ty}"))?)
        });
        let offset =
            offset.with_context(|| format!("bindgen's output has no offset of {struct_name}::{name}"))?;
        Ok(Field { name, ty, offset })
    };
    fields.iter().enumerate().map(read).collect()
}

/// Reads a block of bindgen's layout tests, whose statements look like `["Size of X"][size_of::<X>() -
/// 24usize];`.
fn read_layout_test(item: &syn::ItemConst, sizes: &mut BTreeMap<String, usize>) -> Result<()> {
    let Expr::Block(block) = &*item.expr else {
        bail!("an unnamed constant that is not a layout test: {}", item.to_token_stream());
    };
    for statement in &block.block.stmts {
        let parsed = (|| {
            let syn::Stmt::Expr(Expr::Index(index), _) = statement else { return None };
            let Expr::Array(names) = &*index.expr else { return None };
            let Some(Expr::Lit(syn::ExprLit { lit: Lit::Str(name), .. })) = names.elems.first() else {
                return None;
            };
            let Expr::Binary(difference) = &*index.index else { return None };
            Some((name.value(), integer(&difference.right)?))
        })();
        let (name, value) =
            parsed.with_context(|| format!("unknown layout test {}", statement.to_token_stream()))?;
        sizes.insert(name, usize::try_from(value)?);
    }
    Ok(())
}

/// Returns the integer in `7`, `-7` or `Name(7)`.
fn integer(expression: &Expr) -> Option<i64> {
    match expression {
        Expr::Lit(syn::ExprLit { lit: Lit::Int(value), .. }) => value.base10_parse().ok(),
        Expr::Unary(unary) if matches!(unary.op, syn::UnOp::Neg(_)) => Some(-integer(&unary.expr)?),
        Expr::Call(call) => integer(call.args.first()?),
        _ => None,
    }
}

/// Formats tokens as text with the usual spaces.
pub(super) fn text(tokens: TokenStream) -> String {
    let file = syn::parse2::<syn::File>(quote::quote!(type T = #tokens;));
    match file {
        Ok(file) => {
            let line = prettyplease::unparse(&file).split_whitespace().collect::<Vec<_>>().join(" ");
            line.trim_start_matches("type T = ").trim_end_matches(';').to_owned()
        }
        Err(_) => tokens.to_string(),
    }
}
