//! What the compiler did, as files for people: `REFCPU_DUMP=folder`.

use crate::graph::Graph;
use crate::plan::Program;
use pjrt_stablehlo::Module;
use std::fmt::Display;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Where the forms of one program go.
pub(super) struct Dump {
    folder: PathBuf,
    prefix: String,
    next: usize,
}

impl Dump {
    /// A dump for this program, if the environment asks for one. Files are named by the order of compilation.
    pub(super) fn new(module: &Module) -> Option<Self> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let folder = PathBuf::from(std::env::var_os("REFCPU_DUMP")?);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name: String = module
            .name
            .as_deref()
            .unwrap_or("module")
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' })
            .take(60)
            .collect();
        let mut dump = Self { folder, prefix: format!("{count:04}-{name}"), next: 0 };
        dump.write("program.mlir", module);
        Some(dump)
    }

    /// The graph after a pass.
    pub(super) fn graph(&mut self, pass: &str, graph: &Graph) {
        self.write(&format!("{pass}.graph"), graph);
    }

    /// The finished program.
    pub(super) fn plan(&mut self, program: &Program) {
        self.write("plan", program);
    }

    /// A file that cannot be written is no reason not to compile.
    fn write(&mut self, what: &str, text: &dyn Display) {
        let path = self.folder.join(format!("{}-{}-{what}", self.prefix, self.next));
        self.next += 1;
        let written =
            std::fs::create_dir_all(&self.folder).and_then(|()| std::fs::write(&path, text.to_string()));
        if let Err(e) = written {
            eprintln!("refcpu: REFCPU_DUMP: {}: {e}", path.display());
        }
    }
}
