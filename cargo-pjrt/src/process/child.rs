//! Runs parts of this program in a child process, so that the parent survives and reports a plugin that
//! crashes or hangs.
//!
//! The child sends lines to the parent through a pipe, which it receives as its standard input. It then moves
//! the pipe to another file descriptor, so that the output of a plugin is never mistaken for a message. The
//! child ends when the parent does.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{PipeReader, Read, Write};
use std::ops::Range;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use clap::builder::{RangedU64ValueParser, TypedValueParser};

use super::{interrupt, system};

/// A line from the child, or the reason why there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Received {
    /// A line.
    Line(String),
    /// The child sent nothing within the timeout, or until this program was asked to end, and was killed.
    TimedOut,
    /// The child ended by itself.
    Ended(Ending),
}

/// The exit status or the signal with which a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ending(ExitStatus);

/// The exit status of a child that can no longer write to its parent.
const LOST: u8 = 113;

impl Ending {
    /// Returns `true` if the process exited with status 0.
    pub(crate) fn is_good(self) -> bool {
        self.0.success()
    }

    /// Returns `true` if the process accessed memory that it must not access. The allocator aborts if it detects that.
    pub(crate) fn is_invalid_access(self) -> bool {
        matches!(self.0.signal(), Some(libc::SIGSEGV | libc::SIGBUS | libc::SIGABRT | libc::SIGILL))
    }

    /// Returns `true` if the process exited because it could no longer write to its parent.
    pub(crate) fn is_lost(self) -> bool {
        self.0.code() == Some(i32::from(LOST))
    }
}

impl std::fmt::Display for Ending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.is_lost() {
            return f.write_str(
                "its connection to this program closed, perhaps because the plugin closed a file that it did not open",
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
            libc::SIGKILL => "SIGKILL, perhaps because memory ran out",
            _ => return write!(f, "signal {signal}"),
        })
    }
}

/// The destination of a plugin's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prints {
    /// The output is kept; see [`Worker::printed`].
    Kept,
    /// The output goes to the standard output and standard error of this program.
    Through,
}

/// A child process that runs this program with a hidden subcommand.
#[derive(Debug)]
pub struct Worker {
    child: Child,
    /// The lines that the child sent, several at a time.
    lines: Receiver<Vec<String>>,
    /// The lines that were received before the next one was asked for.
    waiting: VecDeque<String>,
    printed: Option<Printed>,
}

/// The output of a child.
#[derive(Debug)]
struct Printed {
    end: Arc<Mutex<End>>,
    reader: JoinHandle<()>,
}

/// The end of the output since it was last looked at.
#[derive(Debug, Default)]
struct End {
    bytes: Vec<u8>,
    /// The number of bytes before it that are left out.
    left_out: usize,
}

impl End {
    fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        let more = self.bytes.len().saturating_sub(MOST_PRINTED);
        self.bytes.drain(..more);
        self.left_out += more;
    }

    /// Returns a part of the bytes as text, and forgets it and what is before.
    fn take(&mut self, part: Range<usize>) -> String {
        let text = String::from_utf8_lossy(&self.bytes[part.clone()]).trim_end().to_owned();
        let is_cut = part.start == 0 && self.left_out > 0 && !text.is_empty();
        let text = if is_cut { format!("[{} bytes are left out] {text}", self.left_out) } else { text };
        self.bytes.drain(..part.end);
        self.left_out = 0;
        text
    }
}

/// The number of bytes of a plugin's output that are kept: the last ones, which usually contain the error.
const MOST_PRINTED: usize = 1 << 14;

/// The interval at which the child is polled. A process that the child started may inherit its pipes, so the
/// pipes may stay open after the child has ended.
const TICK: Duration = Duration::from_millis(50);
/// The time to wait for the end of a pipe after the child has ended. Even a busy system needs much less.
const AFTER_END: Duration = Duration::from_secs(5);
/// The time that a child may take to end after its last message.
const TO_END: Duration = Duration::from_millis(500);

impl Worker {
    /// Starts a child with a hidden subcommand, which must call [`connect`] first. The child ends when the
    /// calling thread does.
    ///
    /// # Errors
    ///
    /// Returns an error if the system cannot start the process.
    pub fn start<S: AsRef<OsStr>>(
        program: &Path,
        arguments: impl IntoIterator<Item = S>,
        prints: Prints,
    ) -> std::io::Result<Self> {
        let mut command = Command::new(program);
        command.args(arguments);
        Self::start_command(command, prints)
    }

    /// Starts another program, whose standard input is the pipe to which it writes its lines.
    ///
    /// # Errors
    ///
    /// Returns an error if the system cannot start the process.
    pub fn start_command(mut command: Command, prints: Prints) -> std::io::Result<Self> {
        let (from_child, to_parent) = std::io::pipe()?;
        command.stdin(to_parent);
        let mut printed = None;
        if prints == Prints::Kept {
            let (reader, writer) = std::io::pipe()?;
            command.stdout(writer.try_clone()?).stderr(writer);
            printed = Some(Printed::keep(reader)?);
        }
        if interrupt::is_handled() {
            // The terminal sends its signals to the group of this program.
            command.process_group(0);
        }
        // The threads end if the process does not start, because the command has the other ends of the pipes.
        let (sender, lines) = channel();
        Builder::new().spawn(move || forward_lines(from_child, &sender))?;
        let child = command.spawn()?;
        Ok(Self { child, lines, waiting: VecDeque::new(), printed })
    }

    /// Waits for the next line, or for the end of the child.
    pub fn receive(&mut self, timeout: Duration) -> Received {
        let start = Instant::now();
        loop {
            if let Some(line) = self.waiting.pop_front() {
                return Received::Line(line);
            }
            let left = timeout.saturating_sub(start.elapsed());
            match self.lines.recv_timeout(left.min(TICK)) {
                Ok(lines) => {
                    self.waiting.extend(lines);
                    continue;
                }
                Err(RecvTimeoutError::Timeout) => {}
                // The child is about to end, unless the plugin closed the pipe.
                Err(RecvTimeoutError::Disconnected) => std::thread::sleep(Duration::from_millis(1)),
            }
            if let Ok(Some(status)) = self.child.try_wait() {
                // The last lines may still be in the pipe.
                match self.lines.recv_timeout(AFTER_END) {
                    Ok(lines) => {
                        self.waiting.extend(lines);
                        continue;
                    }
                    Err(_) => return Received::Ended(Ending(status)),
                }
            }
            if left.is_zero() || interrupt::is_requested() {
                self.end();
                return Received::TimedOut;
            }
        }
    }

    /// Returns the end of the output of a child that is about to end, which is when most output is printed.
    pub fn printed(&mut self) -> String {
        self.wait_for_output();
        self.printed_so_far()
    }

    /// Waits until the output of a child that is about to end has been received.
    pub fn wait_for_output(&self) {
        let end = Instant::now() + TO_END;
        while self.printed.as_ref().is_some_and(|printed| !printed.reader.is_finished())
            && Instant::now() < end
        {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Returns the end of the output since the last call, for a child that keeps running.
    pub fn printed_so_far(&mut self) -> String {
        let Some(printed) = &self.printed else { return String::new() };
        let mut kept = printed.end.lock().unwrap_or_else(PoisonError::into_inner);
        let all = 0..kept.bytes.len();
        kept.take(all)
    }

    /// Returns the end of the output since the child called [`mark`] with this name, up to the next mark, and forgets
    /// what is before. What a child prints may arrive later than the messages that it sends.
    pub fn printed_since_mark(&mut self, name: &str) -> String {
        let Some(printed) = &self.printed else { return String::new() };
        let mut kept = printed.end.lock().unwrap_or_else(PoisonError::into_inner);
        let part = marked_part(&kept.bytes, name);
        kept.take(part)
    }

    fn end(&mut self) {
        // The child may have ended in the meantime.
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
    fn keep(mut from: PipeReader) -> std::io::Result<Self> {
        let end = Arc::new(Mutex::new(End::default()));
        let is_shown = std::env::var_os("CARGO_PJRT_VERBOSE").is_some();
        let reader = Builder::new().spawn({
            let end = Arc::clone(&end);
            move || {
                let mut part = [0; MOST_PRINTED];
                while let Ok(len @ 1..) = from.read(&mut part) {
                    if is_shown {
                        // A failure to forward the output does not matter, because the output is also kept.
                        let _ = std::io::stderr().write_all(&part[..len]);
                    }
                    end.lock().unwrap_or_else(PoisonError::into_inner).push(&part[..len]);
                }
            }
        })?;
        Ok(Self { end, reader })
    }
}

/// Sends the lines of a pipe to a channel, until the pipe ends or the receiver is dropped. A child sends many lines in a
/// short time: those of an interval are received at once, because each wakeup of the receiver costs more than the line.
fn forward_lines(mut pipe: PipeReader, sender: &Sender<Vec<String>>) {
    let (mut part, mut text) = (vec![0; 1 << 16], Vec::new());
    while let Ok(len @ 1..) = pipe.read(&mut part) {
        text.extend_from_slice(&part[..len]);
        let Some(end) = text.iter().rposition(|byte| *byte == b'\n') else { continue };
        let lines: Vec<u8> = text.drain(..=end).collect();
        let lines = String::from_utf8_lossy(&lines).lines().map(str::to_owned).collect();
        if sender.send(lines).is_err() {
            break;
        }
        std::thread::sleep(INTERVAL);
    }
}

/// The interval in which the lines of a child are received at once.
const INTERVAL: Duration = Duration::from_millis(1);

/// The byte that begins and ends a mark in the output.
const MARK: u8 = 0x1E;

fn mark_of(name: &str) -> Vec<u8> {
    [&[MARK], name.as_bytes(), &[MARK, b'\n']].concat()
}

/// Returns the range of the output after the mark with this name, or from the beginning, up to the next mark.
fn marked_part(output: &[u8], name: &str) -> Range<usize> {
    let mark = mark_of(name);
    let found = output.windows(mark.len()).position(|part| part == mark);
    let start = found.map_or(0, |at| at + mark.len());
    let end = output[start..].iter().position(|byte| *byte == MARK).map_or(output.len(), |at| start + at);
    start..end
}

/// Marks the output of this process, so that the parent knows what is printed before and after.
pub fn mark(name: &str) {
    let mut output = std::io::stdout();
    // Without a mark, output may be attributed to an earlier check.
    let _ = output.write_all(&mark_of(name)).and_then(|()| output.flush());
}

/// In a child, the pipe to the parent and its device and inode numbers.
static PARENT: OnceLock<(File, (u64, u64))> = OnceLock::new();

/// Returns the device and inode numbers of an open file, which do not depend on its descriptor.
fn identity(file: &File) -> std::io::Result<(u64, u64)> {
    let data = file.metadata()?;
    Ok((data.dev(), data.ino()))
}

/// Takes the pipe to the parent from standard input, which is empty afterwards. A child calls this first.
///
/// # Errors
///
/// Returns the system's error if the descriptor cannot be duplicated or replaced.
pub fn connect() -> std::io::Result<()> {
    system::end_with_parent();
    let pipe = File::from(std::io::stdin().as_fd().try_clone_to_owned()?);
    system::replace_stdin(&File::open("/dev/null")?)?;
    // The write fails if the parent ended before `end_with_parent` took effect.
    writeln!(&pipe)?;
    let identity = identity(&pipe)?;
    PARENT.get_or_init(|| (pipe, identity));
    Ok(())
}

/// Sends a line to the parent, if there is one. If the write fails, this process exits.
pub fn send(line: &str) {
    let Some((pipe, known)) = PARENT.get() else { return };
    // A plugin that closed the pipe may have opened a file with the same descriptor.
    let is_it = identity(pipe).is_ok_and(|identity| identity == *known);
    let mut pipe = pipe;
    if !is_it || pipe.write_all(format!("{line}\n").as_bytes()).is_err() {
        std::process::exit(i32::from(LOST));
    }
}

/// The prefix of a line that names the child's next step.
const NEXT: &str = "next ";
/// The prefix of a line with the child's exit status, which it sends after its last step.
const DONE: &str = "done ";

/// Reports the next step of this process to the parent, such as "loading the plugin". If the plugin ends the
/// process, the parent's error names this step.
pub fn next(what: &str) {
    send(&format!("{NEXT}{what}"));
}

/// Reports to the parent that all steps have finished, and the status with which this process will exit.
pub fn done(status: u8) {
    send(&format!("{DONE}{status}"));
}

/// Parses a number of seconds on the command line, from 1 to the number of seconds in a day.
pub fn seconds() -> impl TypedValueParser<Value = Duration> {
    RangedU64ValueParser::<u64>::new().range(1..=24 * 60 * 60).map(Duration::from_secs)
}

/// Runs a subcommand in a child process, and returns its exit status.
///
/// # Errors
///
/// Returns an error if the plugin ended the process, or if a step took longer than `timeout`.
pub fn supervise<S: AsRef<OsStr>>(
    program: &Path,
    arguments: impl IntoIterator<Item = S>,
    timeout: Duration,
) -> Result<u8, String> {
    let cannot = |error: std::io::Error| format!("{} cannot be started: {error}", program.display());
    let mut worker = Worker::start(program, arguments, Prints::Through).map_err(cannot)?;
    let (mut at, mut status) = ("starting".to_owned(), None);
    loop {
        match worker.receive(timeout) {
            Received::Line(line) => {
                if let Some(what) = line.strip_prefix(NEXT) {
                    at = what.to_owned();
                } else if let Some(number) = line.strip_prefix(DONE) {
                    "exiting after the last step".clone_into(&mut at);
                    status = number.parse::<u8>().ok();
                }
            }
            Received::Ended(ending) => {
                let ended_itself = status.filter(|status| ending.0.code() == Some(i32::from(*status)));
                return ended_itself
                    .ok_or_else(|| format!("the plugin ended the process with {ending} while {at}"));
            }
            Received::TimedOut => {
                let seconds = timeout.as_secs_f64();
                return Err(format!(
                    "the plugin took longer than {seconds:.0} s while {at}; --timeout changes the time limit of each step"
                ));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_that_is_left_out_is_counted() {
        let mut end = End::default();
        end.push(&[b'a'; MOST_PRINTED]);
        end.push(b"bc");
        let text = end.take(0..end.bytes.len());
        assert!(text.starts_with("[2 bytes are left out] aaa") && text.ends_with("abc"), "{text}");
        end.push(b"next\n");
        assert_eq!(end.take(0..5), "next");
    }

    #[test]
    fn output_belongs_to_the_check_whose_mark_precedes_it() {
        let output = [b"before\n", &mark_of("a")[..], b"of a\n", &mark_of("b"), b"of b\n"].concat();
        let part = |output: &[u8], name: &str| output[marked_part(output, name)].to_vec();
        assert_eq!(part(&output, "a"), b"of a\n");
        assert_eq!(part(&output, "b"), b"of b\n");
        // The mark was removed together with the output before it, or is too long ago.
        assert_eq!(part(b"of c\n", "c"), b"of c\n");
        assert_eq!(part(&[b"of c\n", &mark_of("d")[..]].concat(), "c"), b"of c\n");
    }
}
