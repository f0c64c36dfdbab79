//! Functions.

use super::lexer::Kind;
use super::module::without;
use super::parser::{Parser, shortened};
use super::scopes::Scopes;
use crate::ir::{Attribute, Body, DictionaryAttribute, Function, FunctionType, Location, Type, Visibility};
use crate::{Error, ErrorKind};

/// The inherent attributes of functions.
const FUNCTION_ATTRIBUTES: &[&str] =
    &["arg_attrs", "function_type", "res_attrs", "sym_name", "sym_visibility"];

/// An inherent attribute of functions that is ignored.
const NO_INLINE: &str = "no_inline";

/// An argument in a function's signature.
struct Argument<'a> {
    /// The name and its position; `None` in a declaration.
    name: Option<(&'a str, usize)>,
    ty: Type,
    attributes: DictionaryAttribute,
    location: Location,
}

impl<'a> Parser<'a> {
    fn start_function(&mut self) {
        self.function = Function { body: Body::new(), ..Function::default() };
        self.scopes = Scopes::default();
    }

    /// Reads `func.func public @f(%a: tensor<f32> {x.y = 1}) -> tensor<f32> attributes {z = 1} { ... }`.
    pub(super) fn pretty_function(&mut self) -> Result<(), Error> {
        let start = self.token.start;
        self.advance();
        self.start_function();
        if self.token.kind == Kind::Bare {
            let visibility = Visibility::from_name(self.found())
                .ok_or_else(|| self.expected("a visibility or the name of the function"))?;
            self.function.visibility = Some(visibility);
            self.advance();
        }
        self.function.name = self.symbol()?;
        let at = self.token.start;
        let arguments = self.list("(", ")", Self::argument)?;
        self.check_names(&arguments, at)?;
        let (mut results, mut result_attributes) = (Vec::new(), Vec::new());
        if self.eat("->") {
            let parts = if self.at("(") {
                self.list("(", ")", |parser| Ok((parser.ty()?, parser.optional_dictionary()?)))?
            } else {
                vec![(self.ty()?, DictionaryAttribute::default())]
            };
            (results, result_attributes) = parts.into_iter().unzip();
        }
        if self.eat("attributes") {
            let at = self.token.start;
            self.function.attributes = self.dictionary()?;
            let entries = self.function.attributes.entries();
            if let Some((name, _)) = entries.iter().find(|(name, _)| FUNCTION_ATTRIBUTES.contains(&&**name)) {
                return Err(
                    self.error_at(at, format!("attribute '{name}' is not allowed here, because the function's signature specifies it"))
                );
            }
        }
        let inputs = arguments.iter().map(|argument| argument.ty.clone()).collect();
        self.function.ty = FunctionType { inputs, results };
        let argument_attributes: Vec<_> =
            arguments.iter().map(|argument| argument.attributes.clone()).collect();
        self.function.argument_attributes = DictionaryAttribute::unless_empty(argument_attributes);
        self.function.result_attributes = DictionaryAttribute::unless_empty(result_attributes);
        if self.at("{") {
            self.scopes.enter();
            let block = self.function.body.add_block(Body::ROOT);
            for argument in arguments {
                let value = self.function.body.add_argument(block, argument.ty);
                self.function.body.set_argument_location(value, argument.location);
                let Some((name, at)) = argument.name else {
                    return Err(self.expected("arguments with names, because the function has a body"));
                };
                self.define(name, value, 1, at)?;
            }
            self.advance();
            self.function_regions(Some(block))?;
        }
        self.function.location = self.location_or_place(start)?;
        Ok(())
    }

    /// Checks that all arguments have names, or none.
    fn check_names(&self, arguments: &[Argument<'a>], at: usize) -> Result<(), Error> {
        let count = arguments.len();
        let named = arguments.iter().filter(|argument| argument.name.is_some()).count();
        if named == 0 || named == count {
            return Ok(());
        }
        let message = format!("expected names for all arguments or for none, found {named} of {count}");
        Err(self.error_at(at, message))
    }

    fn argument(&mut self) -> Result<Argument<'a>, Error> {
        let mut name = None;
        if self.token.kind == Kind::Value {
            let at = self.token.start;
            name = Some((self.advance(), at));
            self.expect(":")?;
        }
        let ty = self.ty()?;
        let attributes = self.optional_dictionary()?;
        let location = self.optional_location()?.unwrap_or_default();
        Ok(Argument { name, ty, attributes, location })
    }

    /// Reads `"func.func"() <{function_type = ..., sym_name = "f"}> ({ ... }) {z = 1} : () -> ()`.
    pub(super) fn generic_function(&mut self) -> Result<(), Error> {
        let start = self.token.start;
        self.advance();
        self.start_function();
        self.expect("(")?;
        self.expect(")")?;
        let properties = self.optional_properties()?;
        self.expect("(")?;
        self.expect("{")?;
        self.scopes.enter();
        self.function_regions(None)?;
        self.expect(")")?;
        let dictionary = self.optional_dictionary()?;
        self.empty_signature()?;
        self.function.location = self.location_or_place(start)?;
        self.set_signature(start, &properties, &dictionary)
    }

    /// Converts the attributes of a function in generic form.
    fn set_signature(
        &mut self,
        start: usize,
        properties: &DictionaryAttribute,
        dictionary: &DictionaryAttribute,
    ) -> Result<(), Error> {
        let is_own = |name: &str| FUNCTION_ATTRIBUTES.contains(&name) || name == NO_INLINE;
        if let Some((unknown, _)) = properties.entries().iter().find(|(name, _)| !is_own(name)) {
            let message = format!("functions have no attribute '{}'", shortened(unknown));
            return Err(self.other_error_at(ErrorKind::Invalid, start, message));
        }
        let get = |name: &str| properties.get(name).or_else(|| dictionary.get(name));
        let invalid = |message: String| -> Error { self.other_error_at(ErrorKind::Invalid, start, message) };
        let name = match get("sym_name") {
            Some(Attribute::String(name)) => name.clone(),
            _ => return Err(invalid("expected the attribute 'sym_name' of the function".to_owned())),
        };
        let ty = match get("function_type") {
            Some(Attribute::Type(Type::Function(ty))) => (**ty).clone(),
            _ => return Err(invalid("expected the attribute 'function_type' of the function".to_owned())),
        };
        let visibility = match get("sym_visibility") {
            None => None,
            Some(attribute) => {
                let known = attribute.as_str().and_then(Visibility::from_name);
                let message = || "sym_visibility: expected \"public\", \"private\" or \"nested\"".to_owned();
                Some(known.ok_or_else(|| invalid(message()))?)
            }
        };
        let dictionaries = |name: &str, count: usize| match get(name).map(Attribute::as_array) {
            None => Ok(Vec::new()),
            // MLIR's verifier accepts an empty list for any number of results, but not of arguments.
            Some(Some([])) if name == "res_attrs" => Ok(Vec::new()),
            Some(Some(entries)) if entries.len() == count => {
                let entries = entries.iter().map(|entry| entry.as_dictionary().cloned());
                entries
                    .collect::<Option<Vec<_>>>()
                    .map(DictionaryAttribute::unless_empty)
                    .ok_or_else(|| invalid(format!("{name}: expected dictionaries")))
            }
            Some(_) => Err(invalid(format!("{name}: expected {count} dictionaries"))),
        };
        let argument_attributes = dictionaries("arg_attrs", ty.inputs.len())?;
        let result_attributes = dictionaries("res_attrs", ty.results.len())?;
        let all = self.sorted([properties.entries(), dictionary.entries()].concat())?;
        self.function.attributes = without(&all, FUNCTION_ATTRIBUTES);
        self.function.name = name;
        self.function.ty = ty;
        self.function.visibility = visibility;
        self.function.argument_attributes = argument_attributes;
        self.function.result_attributes = result_attributes;
        Ok(())
    }
}
