//! The crates of the workspace, and the imports between their files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use crate::graph::{Graph, between_folders};
use crate::source::{self, File, ModulePath};

/// The files of the workspace's crates, by module.
pub(crate) struct Workspace {
    pub(crate) files: BTreeMap<ModulePath, File>,
}

/// Returns the path of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The crates that are examined: the name in imports, and the folder of the sources.
const CRATES: &[(&str, &str)] = &[
    ("pjrt_sys", "pjrt-sys/src"),
    ("pjrt_plugin", "pjrt-plugin/src"),
    ("pjrt_plugin_macros", "pjrt-plugin-macros/src"),
    ("pjrt_stablehlo", "pjrt-stablehlo/src"),
    ("pjrt_sharding", "pjrt-sharding/src"),
    ("pjrt_testing", "pjrt-testing/src"),
    ("cargo_pjrt", "cargo-pjrt/src"),
    ("refcpu_codegen", "refcpu-codegen/src"),
    ("refcpu_engine", "refcpu-engine/src"),
    ("refcpu_kernels", "refcpu-kernels/src"),
    ("hello_pjrt", "examples/hello/src"),
    ("accelerator_pjrt", "examples/accelerator/src"),
    ("tutorial_pjrt", "examples/tutorial/src"),
    ("mlir_pjrt", "examples/mlir/src"),
    ("iree_pjrt", "examples/iree/src"),
    ("iree_runtime", "examples/iree/runtime/src"),
    ("null_pjrt", "examples/null/src"),
    ("refcpu", "examples/refcpu/src"),
    ("xtask", "xtask/src"),
];

impl Workspace {
    /// Returns the workspace, which is read once.
    pub(crate) fn get() -> &'static Self {
        static WORKSPACE: LazyLock<Workspace> = LazyLock::new(Workspace::read);
        &WORKSPACE
    }

    fn read() -> Self {
        let crates: BTreeSet<String> = CRATES.iter().map(|(name, _)| (*name).to_owned()).collect();
        let mut files = BTreeMap::new();
        for (name, folder) in CRATES {
            Self::read_folder(&root().join(folder), &[(*name).to_owned()], &crates, &mut files);
        }
        let tests: Vec<ModulePath> = files.values().flat_map(|file| file.test_modules.clone()).collect();
        files.retain(|module, _| !tests.iter().any(|test| module.starts_with(test)));
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
                let path = path.strip_prefix(root()).unwrap().display().to_string();
                let file = source::read(path, &text, inner.clone(), crates);
                files.insert(inner, file);
            }
        }
    }

    /// Returns the module whose file defines the item that a path names, through re-exports.
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

    /// Returns the files that each file imports from, except for the imports of a module from the modules
    /// that it declares: they are parts of it.
    pub(crate) fn imports(&self) -> Graph {
        self.graph(false)
    }

    /// Returns the folders that the files of each folder import from.
    pub(crate) fn imports_of_folders(&self) -> Graph {
        between_folders(&self.graph(true))
    }

    fn graph(&self, with_children: bool) -> Graph {
        let mut graph = Graph::default();
        for (module, file) in &self.files {
            let children = file.names_of_children.iter().filter(|_| with_children);
            let targets = file.names.iter().chain(children).filter_map(|path| self.definition(path));
            for target in targets.filter(|target| target != module) {
                let target = self.files[&target].path.clone();
                graph.entry(file.path.clone()).or_default().insert(target);
            }
        }
        graph
    }
}
