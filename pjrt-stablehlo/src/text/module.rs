//! Modules and the items at their top level.

use super::lexer::Kind;
use super::parser::{Parser, shortened};
use crate::ir::{Attribute, DictionaryAttribute, MeshDeclaration, Module, Str};
use crate::{Error, ErrorKind};

/// The inherent attributes of modules.
const MODULE_ATTRIBUTES: &[&str] = &["sym_name"];

/// The inherent attributes of meshes.
const MESH_ATTRIBUTES: &[&str] = &["mesh", "sym_name"];

impl Parser<'_> {
    /// Reads the whole text: one module, or the items of one.
    pub(super) fn module(mut self) -> Result<Module, Error> {
        let mut module = Module::new();
        // These record the items that have been read.
        let (mut has_module, mut has_items) = (false, false);
        loop {
            match self.token.kind {
                Kind::End if has_module || has_items => return Ok(module),
                Kind::Hash | Kind::Exclamation => self.alias_definition()?,
                _ if self.at("{-#") => self.skip_resources()?,
                _ if has_module => return Err(self.expected("the end of the text after the module")),
                _ if has_items => self.item(&mut module)?,
                Kind::Bare if self.at("HloModule") => {
                    let message = "HLO in its text form is not supported; send a serialized HloModuleProto";
                    return Err(self.unsupported_at(self.token.start, message));
                }
                Kind::Unknown if self.found() == "\u{feff}" => {
                    return Err(self.error("expected MLIR text, found a byte order mark"));
                }
                Kind::Bare if self.at("module") || self.at("builtin.module") => {
                    self.pretty_module(&mut module)?;
                    has_module = true;
                }
                Kind::String if self.found() == "\"builtin.module\"" => {
                    self.generic_module(&mut module)?;
                    has_module = true;
                }
                _ => {
                    self.item(&mut module)?;
                    has_items = true;
                }
            }
        }
    }

    /// Reads `module @name attributes {a = 1} { ... }`.
    fn pretty_module(&mut self, module: &mut Module) -> Result<(), Error> {
        let start = self.token.start;
        self.advance();
        if self.token.kind == Kind::Symbol {
            module.name = Some(self.symbol()?);
        }
        if self.eat("attributes") {
            module.attributes = self.dictionary()?;
        }
        self.expect("{")?;
        self.items(module)?;
        module.location = self.location_or_place(start)?;
        Ok(())
    }

    /// Reads `"builtin.module"() <{sym_name = "name"}> ({ ... }) {a = 1} : () -> ()`.
    fn generic_module(&mut self, module: &mut Module) -> Result<(), Error> {
        let start = self.token.start;
        self.advance();
        self.expect("(")?;
        self.expect(")")?;
        let properties = self.optional_properties()?;
        self.expect("(")?;
        self.expect("{")?;
        if self.token.kind == Kind::Caret {
            self.advance();
            if self.eat("(") {
                self.expect(")")?;
            }
            self.expect(":")?;
        }
        self.items(module)?;
        self.expect(")")?;
        let dictionary = self.optional_dictionary()?;
        self.empty_signature()?;
        module.location = self.location_or_place(start)?;
        let name = properties.get("sym_name").or_else(|| dictionary.get("sym_name"));
        module.name = match name {
            None => None,
            Some(Attribute::String(name)) => Some(name.clone()),
            Some(other) => {
                let found = other.description();
                let message = format!("attribute 'sym_name' of the module: expected a string, found {found}");
                return Err(self.other_error_at(ErrorKind::Invalid, start, message));
            }
        };
        let all = self.sorted([properties.entries(), dictionary.entries()].concat())?;
        module.attributes = without(&all, MODULE_ATTRIBUTES);
        Ok(())
    }

    /// Reads items up to the closing brace.
    fn items(&mut self, module: &mut Module) -> Result<(), Error> {
        while !self.eat("}") {
            self.item(module)?;
        }
        Ok(())
    }

    /// Reads a function or a mesh.
    fn item(&mut self, module: &mut Module) -> Result<(), Error> {
        let start = self.token.start;
        match (self.token.kind, self.found()) {
            (Kind::Bare, "func.func") => self.pretty_function()?,
            (Kind::String, "\"func.func\"") => self.generic_function()?,
            (Kind::Bare, "sdy.mesh") => {
                self.advance();
                let name = self.symbol()?;
                self.expect("=")?;
                let mesh = self.mesh()?;
                let attributes = self.optional_dictionary()?;
                let location = self.location_or_place(start)?;
                module.add_mesh(MeshDeclaration { name, mesh, attributes, location });
                return Ok(());
            }
            (Kind::String, "\"sdy.mesh\"") => return self.generic_mesh(module),
            (Kind::Bare, "module" | "builtin.module") | (Kind::String, "\"builtin.module\"") => {
                return Err(self.unsupported_at(start, "nested modules are not supported"));
            }
            (Kind::Bare | Kind::String | Kind::Value, found) if found.contains(['.', '%']) => {
                let message = format!(
                    "expected a function or a mesh at the top level of the module, found '{}'",
                    shortened(found)
                );
                return Err(self.unsupported_at(start, message));
            }
            _ => return Err(self.expected("a module, function or mesh")),
        }
        module.add_function(std::mem::take(&mut self.function)).map_err(|function| {
            let message = format!("the function '{}' is defined twice", function.name);
            self.other_error_at(ErrorKind::Invalid, start, message)
        })
    }

    /// Reads `"sdy.mesh"() <{mesh = #sdy.mesh<...>, sym_name = "mesh"}> : () -> ()`.
    fn generic_mesh(&mut self, module: &mut Module) -> Result<(), Error> {
        let start = self.token.start;
        self.advance();
        self.expect("(")?;
        self.expect(")")?;
        let properties = self.optional_properties()?;
        let dictionary = self.optional_dictionary()?;
        self.empty_signature()?;
        let location = self.location_or_place(start)?;
        let get = |name: &str| properties.get(name).or_else(|| dictionary.get(name));
        match (get("sym_name"), get("mesh")) {
            (Some(Attribute::String(name)), Some(Attribute::Mesh(mesh))) => {
                let attributes = without(&dictionary, MESH_ATTRIBUTES);
                let (name, mesh) = (name.clone(), (**mesh).clone());
                module.add_mesh(MeshDeclaration { name, mesh, attributes, location });
                Ok(())
            }
            _ => Err(self.error_at(start, "expected the attributes 'sym_name' and 'mesh'")),
        }
    }

    /// Reads `<{a = 1}>`, which is optional.
    pub(super) fn optional_properties(&mut self) -> Result<DictionaryAttribute, Error> {
        if !self.eat("<") {
            return Ok(DictionaryAttribute::default());
        }
        let properties = self.dictionary()?;
        self.expect(">")?;
        Ok(properties)
    }

    /// Reads `: () -> ()`.
    pub(super) fn empty_signature(&mut self) -> Result<(), Error> {
        self.expect(":")?;
        let start = self.token.start;
        let ty = self.function_type()?;
        if ty.inputs.is_empty() && ty.results.is_empty() {
            return Ok(());
        }
        Err(self.error_at(start, "expected '() -> ()'"))
    }
}

/// Returns a dictionary without the entries with these names.
pub(super) fn without(dictionary: &DictionaryAttribute, names: &[&str]) -> DictionaryAttribute {
    let is_own = |key: &Str| names.iter().any(|&name| *key == name);
    if !dictionary.entries().iter().any(|(key, _)| is_own(key)) {
        return dictionary.clone();
    }
    DictionaryAttribute::new(dictionary.entries().iter().filter(|(key, _)| !is_own(key)).cloned().collect())
}
