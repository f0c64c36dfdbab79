//! This program again, as a child: whatever a plugin does there, the parent lives on, and knows of it.
//!
//! What a child says goes over a pipe of its own, which it gets as standard input and then puts elsewhere, so that nothing that a
//! plugin prints can be taken for it. A child ends with its parent.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader, PipeReader, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use clap::builder::{RangedU64ValueParser, TypedValueParser};

use crate::system;

/// What a child said, or how it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// A line.
    Line(String),
    /// Nothing in time. The child was ended.
    TimedOut,
    /// It ended by itself.
    Ended(Ending),
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ending(ExitStatus);

/// The exit status of a child that cannot say anything to its parent any more.
const LOST: u8 = 113;

impl Ending {
    /// Whether it ended by itself, and says that all went well.
    pub(crate) fn is_good(self) -> bool {
        self.0.success()
    }

    /// Whether it ended because it could not say anything any more.
    pub(crate) fn is_lost(self) -> bool {
        self.0.code() == Some(i32::from(LOST))
    }
}

impl std::fmt::Display for Ending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.is_lost() {
            return f.write_str(
                "its connection to this program closed, perhaps because the plugin closed files that it had not opened",
            );
        }
        let Some(signal) = self.0.signal() else {
            return write!(f, "exit status {}", self.0.code().unwrap_or_default());
        };
        f.write_str(match signal {
            libc::SIGSEGV => "a segmentation fault",
            libc::SIGBUS => "a bus error",
            libc::SIGABRT => "an abort",
            libc::SIGILL => "an illegal instruction",
            libc::SIGFPE => "an arithmetic fault",
            libc::SIGKILL => "a kill, perhaps for want of memory",
            _ => return write!(f, "signal {signal}"),
        })
    }
}

/// Where what a plugin prints goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prints {
    /// It is kept: see [`Worker::printed`].
    Kept,
    /// To where this program prints.
    Through,
}

/// A child of this program with a hidden verb.
#[derive(Debug)]
pub struct Worker {
    child: Child,
    lines: Receiver<String>,
    printed: Option<Printed>,
}

/// What a child printed.
#[derive(Debug)]
struct Printed {
    end: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

/// How much is kept of what a plugin prints: the end, where it says why it gives up.
const MOST_PRINTED: usize = 4096;

/// How often to see whether a child lives. Something that it started may have its pipes, so that their end does not come.
const TICK: Duration = Duration::from_millis(50);
/// How long to wait for the end of a pipe whose child has ended. Much longer than the system needs, even if it is busy.
const AFTER_END: Duration = Duration::from_secs(5);
/// How long a child may take to end once it has said everything.
const TO_END: Duration = Duration::from_millis(500);

impl Worker {
    /// Starts one, with a hidden verb that begins with [`connect`]. It ends with the thread that calls this.
    ///
    /// # Errors
    ///
    /// If the system cannot start it.
    pub fn start<S: AsRef<OsStr>>(
        program: &Path,
        arguments: impl IntoIterator<Item = S>,
        prints: Prints,
    ) -> std::io::Result<Self> {
        let (from_child, to_parent) = std::io::pipe()?;
        let mut command = Command::new(program);
        command.args(arguments).stdin(to_parent);
        let mut printed = None;
        if prints == Prints::Kept {
            let (reader, writer) = std::io::pipe()?;
            command.stdout(writer.try_clone()?).stderr(writer);
            printed = Some(Printed::keep(reader));
        }
        let child = command.spawn()?;
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            let lines = BufReader::new(from_child).lines();
            // Until the pipe ends, or nobody listens.
            let _ = lines.map_while(Result::ok).try_for_each(|line| sender.send(line));
        });
        Ok(Self { child, lines, printed })
    }

    /// The next line, or how it ended.
    pub fn hear(&mut self, timeout: Duration) -> Heard {
        let start = Instant::now();
        loop {
            let left = timeout.saturating_sub(start.elapsed());
            match self.lines.recv_timeout(left.min(TICK)) {
                Ok(line) => return Heard::Line(line),
                Err(RecvTimeoutError::Timeout) => {}
                // A moment before it ends, unless the plugin has closed the pipe.
                Err(RecvTimeoutError::Disconnected) => std::thread::sleep(Duration::from_millis(1)),
            }
            if let Ok(Some(status)) = self.child.try_wait() {
                // What it said at last may still be on its way.
                return self.lines.recv_timeout(AFTER_END).map_or(Heard::Ended(Ending(status)), Heard::Line);
            }
            if left.is_zero() {
                self.end();
                return Heard::TimedOut;
            }
        }
    }

    /// The end of what was printed, by a child that is about to end: much is only printed then.
    pub fn printed(&mut self) -> String {
        let end = Instant::now() + TO_END;
        while self.printed.as_ref().is_some_and(|printed| !printed.reader.is_finished())
            && Instant::now() < end
        {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.printed_so_far()
    }

    /// The end of what was printed since this was last asked, by a child that goes on.
    pub fn printed_so_far(&mut self) -> String {
        let Some(printed) = &self.printed else { return String::new() };
        let bytes = std::mem::take(&mut *printed.end.lock().unwrap_or_else(PoisonError::into_inner));
        String::from_utf8_lossy(&bytes).trim_end().to_owned()
    }

    fn end(&mut self) {
        // It may have ended by itself meanwhile.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.end();
    }
}

impl Printed {
    fn keep(mut from: PipeReader) -> Self {
        let end = Arc::new(Mutex::new(Vec::new()));
        let is_shown = std::env::var_os("CARGO_PJRT_VERBOSE").is_some();
        let reader = std::thread::spawn({
            let end = Arc::clone(&end);
            move || {
                let mut part = [0; MOST_PRINTED];
                while let Ok(len @ 1..) = from.read(&mut part) {
                    if is_shown {
                        // It is kept all the same.
                        let _ = std::io::stderr().write_all(&part[..len]);
                    }
                    let mut kept = end.lock().unwrap_or_else(PoisonError::into_inner);
                    kept.extend_from_slice(&part[..len]);
                    let more = kept.len().saturating_sub(MOST_PRINTED);
                    kept.drain(..more);
                }
            }
        });
        Self { end, reader }
    }
}

/// The pipe to the parent, in a child, and what the system knows it by.
static PARENT: OnceLock<(File, (u64, u64))> = OnceLock::new();

/// What the system knows an open file by, whatever its number.
fn identity(file: &File) -> std::io::Result<(u64, u64)> {
    let data = file.metadata()?;
    Ok((data.dev(), data.ino()))
}

/// What a child does first: takes the pipe to its parent from standard input, which is empty from then on.
///
/// # Errors
///
/// If the system does not let it.
pub fn connect() -> std::io::Result<()> {
    system::end_with_parent();
    let pipe = File::from(std::io::stdin().as_fd().try_clone_to_owned()?);
    system::replace_stdin(&File::open("/dev/null")?)?;
    // Of a parent that ended before this process was bound to it, only this tells.
    writeln!(&pipe)?;
    let identity = identity(&pipe)?;
    PARENT.get_or_init(|| (pipe, identity));
    Ok(())
}

/// Sends a line to the parent, if there is one. A child that cannot do that any more is of no use, and ends.
pub fn tell(line: &str) {
    let Some((pipe, known)) = PARENT.get() else { return };
    // A plugin that closed it may have opened a file of its own with the same number.
    let is_it = identity(pipe).is_ok_and(|identity| identity == *known);
    let mut pipe = pipe;
    if !is_it || pipe.write_all(format!("{line}\n").as_bytes()).is_err() {
        std::process::exit(i32::from(LOST));
    }
}

/// What begins the line with which a child says what it does next.
const NEXT: &str = "next ";
/// What begins the line with which a child says that it has done everything, and its exit status.
const DONE: &str = "done ";

/// Says what this process does next, so that the parent can say where a plugin ended it.
pub fn next(what: &str) {
    tell(&format!("{NEXT}{what}"));
}

/// Says that this process has done everything, and ends with this status.
pub fn done(status: u8) {
    tell(&format!("{DONE}{status}"));
}

/// How many seconds something may take, on the command line: a day at most.
pub fn seconds() -> impl TypedValueParser<Value = Duration> {
    RangedU64ValueParser::<u64>::new().range(1..=24 * 60 * 60).map(Duration::from_secs)
}

/// Has a child do something with a plugin, in the place of this process, and gives its exit status.
///
/// # Errors
///
/// If the plugin ended the process, or a step of it took too long.
pub fn supervise<S: AsRef<OsStr>>(
    program: &Path,
    arguments: impl IntoIterator<Item = S>,
    timeout: Duration,
) -> Result<u8, String> {
    let cannot = |error: std::io::Error| format!("{} cannot be started: {error}", program.display());
    let mut worker = Worker::start(program, arguments, Prints::Through).map_err(cannot)?;
    let (mut at, mut status) = ("it started".to_owned(), None);
    loop {
        match worker.hear(timeout) {
            Heard::Line(line) => {
                if let Some(what) = line.strip_prefix(NEXT) {
                    at = what.to_owned();
                } else if let Some(number) = line.strip_prefix(DONE) {
                    "it was about to end, with everything done".clone_into(&mut at);
                    status = number.parse::<u8>().ok();
                }
            }
            Heard::Ended(ending) => {
                let ended_itself = status.filter(|status| ending.0.code() == Some(i32::from(*status)));
                return ended_itself
                    .ok_or_else(|| format!("the plugin ended the process with {ending}, while {at}"));
            }
            Heard::TimedOut => {
                let seconds = timeout.as_secs_f64();
                return Err(format!(
                    "the plugin took longer than {seconds:.0} s, while {at}; --timeout gives each step more or less time"
                ));
            }
        }
    }
}
