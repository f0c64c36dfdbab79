//! The structure of the workspace: imports between files and folders, and the lengths of functions.
//!
//! `cargo test --package pjrt-tests --test structure -- --nocapture` prints the figures.

#![forbid(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// A module path from the crate's name on.
type ModulePath = Vec<String>;

/// A source file, which is a module.
#[derive(Default)]
struct File {
    path: PathBuf,
    lines: usize,
    /// Paths that the file names, absolute.
    names: BTreeSet<ModulePath>,
    /// Names that the module gives on, and what they stand for.
    reexports: BTreeMap<String, ModulePath>,
    /// Functions with their numbers of lines.
    functions: Vec<(String, usize)>,
}

/// Collects what a file names. Tests are left out.
struct Reader<'a> {
    /// The module that is being read.
    module: ModulePath,
    crates: &'a BTreeSet<String>,
    file: File,
}

impl Reader<'_> {
    /// The absolute form of a path in the current module, if it leads into the workspace.
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
            self.file.names.extend(absolute);
        }
    }

    /// Paths in code, those in the bodies of macros too.
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

    fn end_of_path(&mut self, path: &mut Vec<String>) {
        if path.len() > 1
            && let Some(absolute) = self.absolute(path)
        {
            self.file.names.insert(absolute);
        }
        path.clear();
    }

    fn function(&mut self, name: &syn::Ident, item: &impl Spanned) {
        let lines = item.span().end().line - item.span().start().line + 1;
        self.file.functions.push((name.to_string(), lines));
    }
}

fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("test")
            || (attribute.path().is_ident("cfg")
                && attribute.parse_args::<syn::Ident>().is_ok_and(|of| of == "test"))
    })
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !is_test(&item.attrs) {
            self.module.push(item.ident.to_string());
            visit::visit_item_mod(self, item);
            self.module.pop();
        }
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

/// The files of the workspace's crates, by module.
struct Workspace {
    files: BTreeMap<ModulePath, File>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The crates that are looked at: a name for imports, and the folder of its sources.
const CRATES: &[(&str, &str)] = &[
    ("pjrt_sys", "pjrt-sys/src"),
    ("pjrt_plugin", "pjrt-plugin/src"),
    ("pjrt_plugin_macros", "pjrt-plugin-macros/src"),
    ("pjrt_stablehlo", "pjrt-stablehlo/src"),
    ("pjrt_sharding", "pjrt-sharding/src"),
    ("cargo_pjrt", "cargo-pjrt/src"),
    ("refcpu_engine", "refcpu-engine/src"),
    ("refcpu_kernels", "refcpu-kernels/src"),
    ("hello_pjrt", "examples/hello/src"),
    ("accelerator_pjrt", "examples/accelerator/src"),
    ("null_pjrt", "examples/null/src"),
    ("refcpu", "examples/refcpu/src"),
    ("xtask", "xtask/src"),
];

impl Workspace {
    fn read() -> Self {
        let crates: BTreeSet<String> = CRATES.iter().map(|(name, _)| (*name).to_owned()).collect();
        let mut files = BTreeMap::new();
        for (name, folder) in CRATES {
            Self::read_folder(&root().join(folder), &[(*name).to_owned()], &crates, &mut files);
        }
        Self { files }
    }

    fn read_folder(
        folder: &Path,
        module: &[String],
        crates: &BTreeSet<String>,
        files: &mut BTreeMap<ModulePath, File>,
    ) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
            if stem == "tests" {
                continue;
            }
            let mut inner = module.to_vec();
            if path.is_dir() {
                inner.push(stem);
                Self::read_folder(&path, &inner, crates, files);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                // Beside a library, a program is a crate of its own.
                let is_root = stem == "main" && !folder.join("lib.rs").exists();
                if !is_root && !["mod", "lib"].contains(&stem.as_str()) {
                    inner.push(stem);
                }
                let text = fs::read_to_string(&path).unwrap();
                let syntax = syn::parse_file(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
                let path = path.strip_prefix(root()).unwrap().to_owned();
                let file = File { path, lines: text.lines().count(), ..File::default() };
                let mut reader = Reader { module: inner.clone(), crates, file };
                reader.visit_file(&syntax);
                files.insert(inner, reader.file);
            }
        }
    }

    /// The module whose file has what a path names. Names that modules give on are followed.
    fn definition(&self, path: &[String]) -> Option<ModulePath> {
        let mut path = path.to_vec();
        for _ in 0..8 {
            let length = (1..=path.len()).rev().find(|length| self.files.contains_key(&path[..*length]))?;
            let next = path.get(length).and_then(|name| self.files[&path[..length]].reexports.get(name));
            match next {
                Some(target) if target.first() == path.first() => {
                    path = target.iter().chain(&path[length + 1..]).cloned().collect();
                }
                _ => {
                    path.truncate(length);
                    break;
                }
            }
        }
        self.files.contains_key(&path).then_some(path)
    }

    /// Which file imports from which other.
    fn imports(&self) -> Graph {
        let mut graph = Graph::default();
        for (module, file) in &self.files {
            let targets = file.names.iter().filter_map(|path| self.definition(path));
            for target in targets.filter(|target| target != module) {
                let target = self.files[&target].path.display().to_string();
                graph.entry(file.path.display().to_string()).or_default().insert(target);
            }
        }
        graph
    }
}

/// Which node leads to which others.
type Graph = BTreeMap<String, BTreeSet<String>>;

/// The same between the folders of the files.
fn between_folders(files: &Graph) -> Graph {
    let folder =
        |file: &String| file.rsplit_once('/').map_or_else(String::new, |(folder, _)| folder.to_owned());
    let mut graph = Graph::default();
    for (from, targets) in files {
        for to in targets {
            if folder(from) != folder(to) {
                graph.entry(folder(from)).or_default().insert(folder(to));
            }
        }
    }
    graph
}

/// The sets of nodes that lead to each other.
fn circles(graph: &Graph) -> Vec<BTreeSet<String>> {
    let reached = |from: &String| {
        let mut seen = BTreeSet::new();
        let mut open = vec![from];
        while let Some(node) = open.pop() {
            for next in graph.get(node).into_iter().flatten() {
                if seen.insert(next.clone()) {
                    open.push(next);
                }
            }
        }
        seen
    };
    let reached: BTreeMap<&String, BTreeSet<String>> =
        graph.keys().map(|node| (node, reached(node))).collect();
    let mut circles = BTreeSet::new();
    for (node, targets) in &reached {
        if targets.contains(*node) {
            let circle: BTreeSet<String> = targets
                .iter()
                .filter(|to| reached.get(to).is_some_and(|back| back.contains(*node)))
                .cloned()
                .collect();
            circles.insert(circle);
        }
    }
    circles.into_iter().collect()
}

/// Functions longer than this do not fit a screen.
const SCREEN: usize = 60;

#[test]
fn the_figures_of_the_structure() {
    let workspace = Workspace::read();
    let files = workspace.imports();
    for (title, graph) in [("files", &files), ("folders", &between_folders(&files))] {
        for circle in circles(graph) {
            println!("circle of {} {title}:", circle.len());
            for node in &circle {
                let targets: Vec<&String> = graph[node].iter().filter(|to| circle.contains(*to)).collect();
                println!("  {node} -> {targets:?}");
            }
        }
    }
    let mut long: Vec<(usize, String)> = Vec::new();
    for file in workspace.files.values() {
        let of_file = file.functions.iter().filter(|(_, lines)| *lines > SCREEN);
        long.extend(of_file.map(|(name, lines)| (*lines, format!("{} {name}", file.path.display()))));
    }
    long.sort();
    long.iter().rev().for_each(|(lines, name)| println!("{lines:4} lines: {name}"));
    let lines: usize = workspace.files.values().map(|file| file.lines).sum();
    println!(
        "{} files, {lines} lines, {} functions of over {SCREEN} lines",
        workspace.files.len(),
        long.len()
    );
    assert!(files.len() > 300, "the sources are not where this test looks");
}
