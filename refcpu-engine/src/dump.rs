//! Writes programs, the output of each compiler pass, and the arguments of failed runs to files (`REFCPU_DUMP=folder`).
//!
//! Each program has its own folder, which `cargo pjrt run --replay` accepts after a run has failed:
//!
//! | file | contents |
//! |---|---|
//! | `program`, `format`, `options.pb` | the program, its format and the compile options, as the host sent them |
//! | `0-program.mlir`, `1-lower.graph`, ... | the program after each pass |
//! | `error.txt` | the error of compiling the program or of a run |
//! | `arguments/0.npy`, ... | the arguments of the failed run on the first device; those of the other devices are in `arguments/device-1` and so on |
//! | `running` | present during a run, and after the process has crashed in one |

use crate::storage::{Allocator, Array};
use refcpu_kernels::DType;
use std::fmt::Display;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The dump folder of one program.
#[derive(Debug)]
pub struct Dump {
    folder: PathBuf,
    /// The number of passes written so far.
    passes: AtomicUsize,
}

impl Dump {
    /// Creates a folder in `parent`, or in the folder that `REFCPU_DUMP` names if `parent` is empty. Returns `None` if neither
    /// names a folder, or if the folder cannot be created. Folders are numbered in the order of compilation.
    pub fn new(parent: &str) -> Option<Self> {
        if !parent.is_empty() {
            return Self::in_folder(Path::new(parent));
        }
        let parent = std::env::var_os("REFCPU_DUMP").filter(|parent| !parent.is_empty())?;
        Self::in_folder(Path::new(&parent))
    }

    fn in_folder(parent: &Path) -> Option<Self> {
        if let Err(error) = fs::create_dir_all(parent) {
            report(parent, &error);
            return None;
        }
        let mut number = fs::read_dir(parent).map_or(0, Iterator::count);
        loop {
            let folder = parent.join(format!("{number:04}"));
            match fs::create_dir(&folder) {
                Ok(()) => return Some(Self { folder, passes: AtomicUsize::new(0) }),
                // Another thread or process has created this folder.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => {
                    report(&folder, &error);
                    return None;
                }
            }
        }
    }

    /// Writes the request of the host: the program, its format in PJRT's terms, and the serialized compile options.
    pub fn request(&self, code: &[u8], format: &str, options: &[u8]) {
        self.write("program", code);
        self.write("format", format.as_bytes());
        self.write("options.pb", options);
    }

    /// Writes the program after a pass.
    pub fn pass(&self, name: &str, program: &dyn Display) {
        let number = self.passes.fetch_add(1, Ordering::Relaxed);
        self.write(format!("{number}-{name}"), program.to_string().as_bytes());
    }

    /// Writes the error of compiling the program.
    pub fn error(&self, error: &dyn Display) {
        self.write("error.txt", format!("{error}\n").as_bytes());
    }

    /// Writes the arguments of a run for each device, and marks the program as running. Returns `None` while another run of the
    /// program is recorded, and after a recorded run has failed.
    pub fn run<'a>(
        &self,
        arguments: impl Iterator<Item = Vec<&'a Array>>,
        allocator: &Allocator,
    ) -> Option<Run<'_>> {
        let folder = self.folder.join("arguments");
        match fs::create_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return None,
            Err(error) => {
                report(&folder, &error);
                return None;
            }
            Ok(()) => {}
        }
        for (device, arguments) in arguments.enumerate() {
            let folder = if device == 0 { PathBuf::new() } else { PathBuf::from(format!("device-{device}")) };
            for (index, array) in arguments.into_iter().enumerate() {
                let name = Path::new("arguments").join(&folder).join(format!("{index}.npy"));
                match array.dense(allocator) {
                    Ok(dense) => {
                        let bytes = dense.bytes().unwrap_or_default();
                        self.write(name, &npy(array.dtype(), array.dims(), bytes));
                    }
                    Err(error) => report(&self.folder.join(name), &io::Error::other(error.to_string())),
                }
            }
        }
        let process = std::process::id();
        self.write(
            "running",
            format!(
                "Process {process} is running this program. If the process has ended, it crashed during \
                     the run.\n"
            )
            .as_bytes(),
        );
        Some(Run { dump: self })
    }

    /// Writes a file. Failing to write does not fail the compilation or the run; it is reported on standard error.
    fn write(&self, name: impl AsRef<Path>, contents: &[u8]) {
        let path = self.folder.join(name);
        let folder = path.parent().map_or(Ok(()), fs::create_dir_all);
        if let Err(error) = folder.and_then(|()| fs::write(&path, contents)) {
            report(&path, &error);
        }
    }
}

/// A recorded run.
pub struct Run<'a> {
    dump: &'a Dump,
}

impl Run<'_> {
    /// Ends a successful run, and deletes its arguments.
    pub fn finish(self) {
        self.ended();
        let folder = self.dump.folder.join("arguments");
        if let Err(error) = fs::remove_dir_all(&folder) {
            report(&folder, &error);
        }
    }

    /// Ends a failed run. Keeps its arguments, and writes the error.
    pub fn fail(self, error: &dyn Display) {
        self.dump.error(error);
        self.ended();
    }

    fn ended(&self) {
        let path = self.dump.folder.join("running");
        if let Err(error) = fs::remove_file(&path) {
            report(&path, &error);
        }
    }
}

fn report(path: &Path, error: &io::Error) {
    eprintln!("refcpu: cannot write the dump file {}: {error}", path.display());
}

/// Returns NumPy's name of an element type. Types that NumPy lacks are raw bytes, as `ml_dtypes` stores them.
fn numpy_type(dtype: DType) -> String {
    let size = dtype.size();
    let known = match dtype.mlir_name() {
        "i1" => "|b1",
        "i8" => "|i1",
        "i16" => "<i2",
        "i32" => "<i4",
        "i64" => "<i8",
        "ui8" => "|u1",
        "ui16" => "<u2",
        "ui32" => "<u4",
        "ui64" => "<u8",
        "f16" => "<f2",
        "f32" => "<f4",
        "f64" => "<f8",
        "complex<f32>" => "<c8",
        "complex<f64>" => "<c16",
        _ => return format!("|V{size}"),
    };
    known.to_owned()
}

/// Encodes an array in NumPy's file format, version 1.
fn npy(dtype: DType, dims: &[usize], bytes: &[u8]) -> Vec<u8> {
    // The offset of the data is a multiple of this.
    const ALIGNMENT: usize = 64;
    const MAGIC: &[u8] = b"\x93NUMPY\x01\x00";
    let dims: String = dims.iter().map(|dim| format!("{dim}, ")).collect();
    let ty = numpy_type(dtype);
    let mut header = format!("{{'descr': '{ty}', 'fortran_order': False, 'shape': ({dims}), }}");
    let before = MAGIC.len() + 2 + header.len() + 1;
    header.extend(std::iter::repeat_n(' ', before.next_multiple_of(ALIGNMENT) - before));
    header.push('\n');
    let len = u16::try_from(header.len()).expect("a header of at most 64 dimensions is shorter");
    [MAGIC, &len.to_le_bytes(), header.as_bytes(), bytes].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::{Allocator, AllocatorOptions};

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn arguments_stay_where_a_run_failed_or_did_not_end() {
        let parent = std::env::temp_dir().join(format!("refcpu-dump-{}", std::process::id()));
        let allocator = Allocator::new(AllocatorOptions::default());
        let bytes: Vec<u8> = [1.0f32, 2.0].iter().flat_map(|x| x.to_le_bytes()).collect();
        let array = Array::from_bytes(&allocator, DType::F32, &[2], &bytes).unwrap();
        let arguments = || [vec![&array], vec![&array]].into_iter();
        let first = Dump::in_folder(&parent).unwrap();
        let second = Dump::in_folder(&parent).unwrap();
        assert_ne!(first.folder, second.folder);
        first.request(b"code", "mlir", b"");
        first.pass("program.mlir", &"text");
        let compiled = ["0-program.mlir", "format", "options.pb", "program"];
        assert_eq!(names(&first.folder), compiled);
        let run = first.run(arguments(), &allocator).unwrap();
        assert!(names(&first.folder).contains(&"running".to_owned()));
        assert!(first.run(arguments(), &allocator).is_none());
        run.finish();
        assert_eq!(names(&first.folder), compiled);
        first.run(arguments(), &allocator).unwrap().fail(&"why");
        assert_eq!(fs::read_to_string(first.folder.join("error.txt")).unwrap(), "why\n");
        assert_eq!(names(&first.folder.join("arguments")), ["0.npy", "device-1"]);
        assert_eq!(names(&first.folder.join("arguments/device-1")), ["0.npy"]);
        assert!(!names(&first.folder).contains(&"running".to_owned()));
        let file = fs::read(first.folder.join("arguments/0.npy")).unwrap();
        assert_eq!(file, npy(DType::F32, &[2], &bytes));
        assert!(file.ends_with(&bytes) && (file.len() - bytes.len()).is_multiple_of(64));
        fs::remove_dir_all(parent).unwrap();
    }
}
