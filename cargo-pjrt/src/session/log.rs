//! The file that the recorder writes, which lists a host's calls to a plugin in order.
//!
//! An entry is a line of JSON, followed by as many bytes as its field `bytes` says, such as a program or an
//! array. If the host crashed, the file may end within an entry; the entries before it are valid.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Mutex;

use serde::{Deserialize, Serialize};

use pjrt_testing::host::NamedValue;

/// The version of the format that this crate writes and reads.
pub const VERSION: u32 = 1;

/// The maximum length of a line. The lines that the recorder writes are short, because they only name
/// buffers.
const MAX_LINE: u64 = 64 << 20;

/// A call of the host, or its result. Objects are identified by numbers, which are not reused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "entry", rename_all = "snake_case")]
pub enum Entry {
    /// The first entry.
    Start {
        /// The version of the format.
        version: u32,
        /// The path of the plugin.
        plugin: String,
    },
    /// The host created a client (`PJRT_Client_Create`).
    CreateClient {
        /// The client.
        client: u64,
        /// Its platform.
        platform: String,
        /// The options that the host gave.
        options: Vec<NamedValue>,
        /// The ids of its devices.
        devices: Vec<i32>,
    },
    /// The host destroyed a client.
    DestroyClient {
        /// The client.
        client: u64,
    },
    /// The host compiled and loaded a program. The bytes are the compile options, followed by the program.
    Compile {
        /// The client.
        client: u64,
        /// The loaded program.
        executable: u64,
        /// The program's format.
        format: String,
        /// The size of the compile options in bytes.
        options_size: usize,
        /// The error, if the compilation failed.
        failure: Option<Failure>,
    },
    /// The host loaded a serialized executable. The bytes are in the format of the recorded plugin.
    Deserialize {
        /// The client.
        client: u64,
        /// The loaded program.
        executable: u64,
    },
    /// The host destroyed a loaded program.
    DestroyExecutable {
        /// The loaded program.
        executable: u64,
    },
    /// The host transferred an array to a device. The bytes are its elements, dense and row-major, as they
    /// are in host memory.
    Upload {
        /// The new buffer.
        buffer: u64,
        /// The type and dimensions of the array.
        shape: Shape,
        /// The device and the memory of the buffer.
        place: Place,
    },
    /// The host used a buffer that it obtained in another way. The entry `contents` holds the buffer's
    /// elements.
    Adopt {
        /// The buffer.
        buffer: u64,
        /// The device and the memory of the buffer.
        place: Place,
    },
    /// The contents of an adopted buffer. The bytes are its elements, dense and row-major.
    Contents {
        /// The buffer.
        buffer: u64,
        /// The type and dimensions of the array.
        shape: Shape,
        /// The error, if the buffer could not be read.
        failure: Option<Failure>,
    },
    /// The host copied a buffer.
    Copy {
        /// The source.
        from: u64,
        /// The copy.
        buffer: u64,
        /// The device and the memory of the copy.
        place: Place,
    },
    /// The host executed a program.
    Execute {
        /// The loaded program.
        executable: u64,
        /// The id of the device, if the host named one.
        device: Option<i32>,
        /// The arguments, per device.
        arguments: Vec<Vec<u64>>,
        /// The results, per device.
        outputs: Vec<Vec<u64>>,
        /// The number of the launch.
        launch_id: i32,
        /// The indices of the arguments that the program must not use as donated.
        non_donatable: Vec<i64>,
        /// `true` if the program calls the host while it runs.
        calls_host: bool,
        /// The error, if the execution failed.
        failure: Option<Failure>,
    },
    /// The host read a buffer. The entry `result` holds the elements.
    Read {
        /// The buffer.
        buffer: u64,
    },
    /// The elements that the host read. The bytes are dense and row-major.
    Result {
        /// The buffer.
        buffer: u64,
        /// The type and dimensions of the array.
        shape: Shape,
        /// The error, if the buffer could not be read.
        failure: Option<Failure>,
    },
    /// The host deleted a buffer's data (`PJRT_Buffer_Delete`).
    DeleteBuffer {
        /// The buffer.
        buffer: u64,
    },
    /// The host destroyed a buffer.
    DestroyBuffer {
        /// The buffer.
        buffer: u64,
    },
}

impl Entry {
    /// Returns a short name of the entry.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Start { .. } => "start",
            Self::CreateClient { .. } => "create client",
            Self::DestroyClient { .. } => "destroy client",
            Self::Compile { .. } => "compile",
            Self::Deserialize { .. } => "deserialize",
            Self::DestroyExecutable { .. } => "destroy executable",
            Self::Upload { .. } => "upload",
            Self::Adopt { .. } => "adopt",
            Self::Contents { .. } => "contents",
            Self::Copy { .. } => "copy",
            Self::Execute { .. } => "execute",
            Self::Read { .. } => "read",
            Self::Result { .. } => "result",
            Self::DeleteBuffer { .. } => "delete buffer",
            Self::DestroyBuffer { .. } => "destroy buffer",
        }
    }
}

/// The type and dimensions of an array.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Shape {
    /// The element type, as StableHLO writes it.
    pub element_type: String,
    /// The dimensions.
    pub dims: Vec<i64>,
}

/// The location of an array.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Place {
    /// The client.
    pub client: u64,
    /// The id of the device.
    pub device: i32,
    /// The kind of memory. `None` selects the device's default memory.
    pub memory: Option<String>,
}

/// An error that the plugin returned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The error code.
    pub code: u32,
    /// The error message.
    pub message: String,
}

impl From<&pjrt_testing::host::Error> for Failure {
    fn from(error: &pjrt_testing::host::Error) -> Self {
        Self { code: error.code.0, message: error.message.clone() }
    }
}

#[derive(Serialize, Deserialize)]
struct Line {
    bytes: u64,
    #[serde(flatten)]
    entry: Entry,
}

/// Writes a log.
#[derive(Debug)]
pub struct Writer {
    file: File,
}

impl Writer {
    /// Creates a file, and replaces an existing one.
    ///
    /// # Errors
    ///
    /// Returns the system's error if the file cannot be written.
    pub fn create(path: &Path, plugin: &Path) -> std::io::Result<Self> {
        let mut writer = Self { file: File::create(path)? };
        writer.append(Entry::Start { version: VERSION, plugin: plugin.display().to_string() }, &[])?;
        Ok(writer)
    }

    /// Writes an entry. The entry reaches the file before this function returns, so it remains there if the
    /// process crashes.
    ///
    /// # Errors
    ///
    /// Returns the system's error if the file cannot be written.
    pub fn append(&mut self, entry: Entry, bytes: &[u8]) -> std::io::Result<()> {
        let mut line = serde_json::to_vec(&Line { bytes: bytes.len() as u64, entry })?;
        line.push(b'\n');
        self.file.write_all(&line)?;
        self.file.write_all(bytes)
    }
}

/// A log that was opened for reading.
#[derive(Debug)]
pub struct Log {
    file: Mutex<File>,
    /// The entries, in order.
    pub entries: Vec<Entry>,
    spans: Vec<(u64, usize)>,
    /// `true` if the file ends in the middle of an entry.
    pub is_cut_off: bool,
}

impl Log {
    /// Opens a file and reads its entries, without their bytes.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read, is not a log, or has another version.
    pub fn open(path: &Path) -> Result<Self, String> {
        let located = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let file = File::open(path).map_err(|error| located(&error))?;
        let size = file.metadata().map_err(|error| located(&error))?.len();
        let mut reader = BufReader::new(file);
        let (mut entries, mut spans, mut at, mut is_cut_off) = (Vec::new(), Vec::new(), 0, false);
        loop {
            let mut text = Vec::new();
            let read = reader.by_ref().take(MAX_LINE).read_until(b'\n', &mut text);
            at += read.map_err(|error| located(&error))? as u64;
            if text.is_empty() {
                break;
            }
            let line = match serde_json::from_slice::<Line>(&text) {
                Ok(line) => line,
                // An incomplete last line has no line feed.
                Err(_) if at == size && text.last() != Some(&b'\n') && !entries.is_empty() => {
                    is_cut_off = true;
                    break;
                }
                Err(error) => {
                    let entry = entries.len() + 1;
                    return Err(located(&format!("not a log of the recorder: entry {entry}: {error}")));
                }
            };
            let end = at.checked_add(line.bytes).filter(|end| *end <= size);
            let (Some(end), Ok(len)) = (end, usize::try_from(line.bytes)) else {
                is_cut_off = true;
                break;
            };
            spans.push((at, len));
            entries.push(line.entry);
            reader.seek_relative(line.bytes as i64).map_err(|error| located(&error))?;
            at = end;
        }
        match entries.first() {
            Some(Entry::Start { version: VERSION, .. }) => {}
            Some(Entry::Start { version, .. }) => {
                return Err(located(&format!(
                    "the log has format version {version}; this program reads version {VERSION}"
                )));
            }
            _ => return Err(located(&"not a log of the recorder: it does not begin with the entry `start`")),
        }
        Ok(Self { file: Mutex::new(reader.into_inner()), entries, spans, is_cut_off })
    }

    /// Reads the bytes of an entry.
    ///
    /// # Errors
    ///
    /// Returns the system's error if the file cannot be read.
    pub fn bytes(&self, index: usize) -> Result<Vec<u8>, String> {
        let (at, len) = self.spans[index];
        let mut file = self.file.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut bytes = vec![0; len];
        let read = file.seek(SeekFrom::Start(at)).and_then(|_| file.read_exact(&mut bytes));
        read.map(|()| bytes).map_err(|error| format!("cannot read entry {} of the log: {error}", index + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Scratch(std::path::PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            Self(std::env::temp_dir().join(format!("pjrt-log-{}-{name}", std::process::id())))
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            // The file may not exist.
            let _ = std::fs::remove_file(&self.0);
        }
    }

    fn upload(buffer: u64) -> Entry {
        let shape = Shape { element_type: "f32".into(), dims: vec![2] };
        Entry::Upload { buffer, shape, place: Place::default() }
    }

    #[test]
    fn entries_are_read_as_they_were_written() {
        let scratch = Scratch::new("whole");
        let mut writer = Writer::create(&scratch.0, Path::new("plugin.so")).unwrap();
        writer.append(upload(1), b"12\n45678").unwrap();
        writer.append(Entry::Read { buffer: 1 }, &[]).unwrap();
        let log = Log::open(&scratch.0).unwrap();
        assert_eq!(log.entries[1..], [upload(1), Entry::Read { buffer: 1 }]);
        assert_eq!(log.bytes(1).unwrap(), b"12\n45678");
        assert!(!log.is_cut_off);
    }

    #[test]
    fn a_log_that_was_cut_off_is_good_up_to_there() {
        let scratch = Scratch::new("cut");
        let mut writer = Writer::create(&scratch.0, Path::new("plugin.so")).unwrap();
        writer.append(Entry::Read { buffer: 1 }, &[]).unwrap();
        let good = std::fs::metadata(&scratch.0).unwrap().len();
        writer.append(upload(2), b"12345678").unwrap();
        let whole = std::fs::read(&scratch.0).unwrap();
        for len in good + 1..whole.len() as u64 {
            std::fs::write(&scratch.0, &whole[..len as usize]).unwrap();
            let log = Log::open(&scratch.0).unwrap();
            assert_eq!((log.entries.len(), log.is_cut_off), (2, true), "{len}");
        }
    }

    #[test]
    fn files_that_are_no_logs_are_refused_with_the_reason() {
        let scratch = Scratch::new("other");
        std::fs::write(&scratch.0, "module @m {\n}\n").unwrap();
        assert!(Log::open(&scratch.0).unwrap_err().contains("not a log of the recorder"));
        std::fs::write(&scratch.0, "{\"bytes\":0,\"entry\":\"start\",\"version\":9,\"plugin\":\"\"}\n")
            .unwrap();
        assert!(Log::open(&scratch.0).unwrap_err().contains("version 9"));
        std::fs::write(&scratch.0, "").unwrap();
        assert!(Log::open(&scratch.0).unwrap_err().contains("does not begin"));
        std::fs::write(&scratch.0, "{\"bytes\":18446744073709551615,\"entry\":\"read\",\"buffer\":1}\n")
            .unwrap();
        assert!(Log::open(&scratch.0).is_err());
    }
}
