//! The paths and the functions of a source file.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// A module path from the crate's name on.
pub(crate) type ModulePath = Vec<String>;

/// A source file, which is a module.
#[derive(Default)]
pub(crate) struct File {
    /// The path from the repository's root.
    pub(crate) path: String,
    /// The absolute paths that the file names.
    pub(crate) names: BTreeSet<ModulePath>,
    /// The absolute paths that the file names relative to itself, into the modules that it declares.
    pub(crate) names_of_children: BTreeSet<ModulePath>,
    /// The names that the module re-exports, and the paths that they refer to.
    pub(crate) reexports: BTreeMap<String, ModulePath>,
    /// The modules in files of their own that are compiled only for tests.
    pub(crate) test_modules: Vec<ModulePath>,
    /// The functions, as `name` or `Type::name`, and their numbers of lines.
    pub(crate) functions: Vec<(String, usize)>,
}

/// Collects the paths and the functions of a file. Skips tests.
struct Reader<'a> {
    /// The module that is being read.
    module: ModulePath,
    /// The type or trait whose functions are being read.
    owner: Option<String>,
    crates: &'a BTreeSet<String>,
    /// The modules that the file declares.
    children: BTreeSet<String>,
    file: File,
}

impl Reader<'_> {
    /// Returns the absolute form of a path in the current module, if it leads into the workspace.
    fn absolute(&self, path: &[String]) -> Option<ModulePath> {
        let mut base = match path.first()?.as_str() {
            "crate" => vec![self.module[0].clone()],
            "self" => self.module.clone(),
            "super" => self.module.clone(),
            name if self.crates.contains(name) => vec![name.to_owned()],
            _ => return None,
        };
        let supers = path.iter().take_while(|name| *name == "super").count();
        base.truncate(base.len().checked_sub(supers)?);
        base.extend(path.iter().skip(supers.max(1)).cloned());
        Some(base)
    }

    /// Records a path.
    fn name(&mut self, path: &[String]) {
        if let Some(absolute) = self.absolute(path) {
            self.file.names.insert(absolute);
        } else if path.first().is_some_and(|name| self.children.contains(name)) {
            self.file.names_of_children.insert(self.module.iter().chain(path).cloned().collect());
        }
    }

    /// Records the paths of a `use` declaration.
    fn import(&mut self, tree: &syn::UseTree, prefix: &[String], is_public: bool) {
        let mut path = prefix.to_vec();
        let (end, name) = match tree {
            syn::UseTree::Path(inner) => {
                path.push(inner.ident.to_string());
                return self.import(&inner.tree, &path, is_public);
            }
            syn::UseTree::Group(group) => {
                return group.items.iter().for_each(|item| self.import(item, prefix, is_public));
            }
            syn::UseTree::Name(name) => (name.ident.to_string(), name.ident.to_string()),
            syn::UseTree::Rename(rename) => (rename.ident.to_string(), rename.rename.to_string()),
            syn::UseTree::Glob(_) => ("self".to_owned(), String::new()),
        };
        if end != "self" {
            path.push(end);
        }
        let local = self.module.iter().chain(&path).cloned().collect();
        let absolute = self.absolute(&path);
        if is_public {
            self.file.reexports.insert(name, absolute.unwrap_or(local));
        } else {
            self.name(&path);
        }
    }

    /// Records the paths in the arguments of a macro.
    fn scan(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => {
                    if colons != 2 {
                        self.end_of_path(&mut path);
                    }
                    path.push(ident.to_string());
                    colons = 0;
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' && !path.is_empty() => colons += 1,
                TokenTree::Group(group) => {
                    self.end_of_path(&mut path);
                    colons = 0;
                    self.scan(group.stream());
                }
                _ => {
                    self.end_of_path(&mut path);
                    colons = 0;
                }
            }
        }
        self.end_of_path(&mut path);
    }

    /// Records the path that was scanned, and begins the next one.
    fn end_of_path(&mut self, path: &mut Vec<String>) {
        if path.len() > 1 {
            self.name(path);
        }
        path.clear();
    }

    /// Records the length of a function's body.
    fn function(&mut self, name: &syn::Ident, body: &syn::Block) {
        let lines = body.span().end().line - body.span().start().line + 1;
        let name = match &self.owner {
            Some(owner) => format!("{owner}::{name}"),
            None => name.to_string(),
        };
        self.file.functions.push((name, lines));
    }

    /// Visits the functions of a type or trait.
    fn within(&mut self, owner: String, visit: impl FnOnce(&mut Self)) {
        let outer = self.owner.replace(owner);
        visit(self);
        self.owner = outer;
    }
}

/// Returns `true` if an item is compiled only for tests.
fn is_test(attributes: &[syn::Attribute]) -> bool {
    let needs_test = |attribute: &syn::Attribute| match &attribute.meta {
        syn::Meta::Path(path) => path.is_ident("test"),
        syn::Meta::List(list) if list.path.is_ident("cfg") => requires_test(list.tokens.clone()),
        _ => false,
    };
    attributes.iter().any(needs_test)
}

/// Returns `true` for the conditions `test` and `all(test, ...)`.
fn requires_test(condition: TokenStream) -> bool {
    let tokens: Vec<TokenTree> = condition.into_iter().collect();
    match &tokens[..] {
        [TokenTree::Ident(name)] => name == "test",
        [TokenTree::Ident(name), TokenTree::Group(conditions)] if name == "all" => {
            let conditions: Vec<TokenTree> = conditions.stream().into_iter().collect();
            let is_comma =
                |token: &TokenTree| matches!(token, TokenTree::Punct(punct) if punct.as_char() == ',');
            conditions.split(is_comma).any(|condition| requires_test(condition.iter().cloned().collect()))
        }
        _ => false,
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        self.module.push(item.ident.to_string());
        if !is_test(&item.attrs) {
            visit::visit_item_mod(self, item);
        } else if item.content.is_none() {
            self.file.test_modules.push(self.module.clone());
        }
        self.module.pop();
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if !is_test(&item.attrs) {
            let is_public = !matches!(item.vis, syn::Visibility::Inherited);
            self.import(&item.tree, &[], is_public);
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if !is_test(&item.attrs) {
            self.function(&item.sig.ident, &item.block);
            visit::visit_item_fn(self, item);
        }
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        if !is_test(&item.attrs) {
            let owner = match &*item.self_ty {
                syn::Type::Path(ty) => ty.path.segments.last().map(|segment| segment.ident.to_string()),
                _ => None,
            };
            self.within(owner.unwrap_or_default(), |reader| visit::visit_item_impl(reader, item));
        }
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.within(item.ident.to_string(), |reader| visit::visit_item_trait(reader, item));
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(body) = &item.default {
            self.function(&item.sig.ident, body);
        }
        visit::visit_trait_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.function(&item.sig.ident, &item.block);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let mut names: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.end_of_path(&mut names);
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.visit_path(&call.path);
        self.scan(call.tokens.clone());
    }
}

/// Reads the source of a module. `path` is the path from the repository's root.
pub(crate) fn read(path: String, text: &str, module: ModulePath, crates: &BTreeSet<String>) -> File {
    let syntax = syn::parse_file(text).unwrap_or_else(|error| panic!("{path}: {error}"));
    let file = File { path, ..File::default() };
    let children = syntax.items.iter().filter_map(|item| match item {
        syn::Item::Mod(item) if item.content.is_none() => Some(item.ident.to_string()),
        _ => None,
    });
    let mut reader = Reader { module, owner: None, crates, children: children.collect(), file };
    reader.visit_file(&syntax);
    reader.file
}
