//! This program again, as a child: whatever a plugin does there, the parent lives on.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// What a child sent, or how it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// A line.
    Line(String),
    /// Nothing in time. The child was ended.
    TimedOut,
    /// It ended by itself, in these words.
    Ended(String),
}

/// A child of this program with a hidden verb.
#[derive(Debug)]
pub struct Worker {
    child: Child,
    lines: Receiver<String>,
}

impl Worker {
    /// Starts one. Its standard output is what [`hear`](Self::hear) gives; plugins that print there make lines that nobody
    /// asked for, so what counts begins with a mark of the caller's choice.
    ///
    /// # Errors
    ///
    /// If the system cannot start it.
    pub fn start(program: &Path, arguments: &[&str]) -> std::io::Result<Self> {
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(if std::env::var_os("CARGO_PJRT_VERBOSE").is_some() {
                Stdio::inherit()
            } else {
                Stdio::null()
            })
            .spawn()?;
        let (sender, lines) = channel();
        if let Some(stdout) = child.stdout.take() {
            std::thread::spawn(move || {
                let mut reader = BufReader::new(stdout);
                let mut line = Vec::new();
                while reader.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
                    let text = String::from_utf8_lossy(&line).trim_end().to_owned();
                    if sender.send(text).is_err() {
                        return;
                    }
                    line.clear();
                }
            });
        }
        Ok(Self { child, lines })
    }

    /// The next line, or how it ended.
    pub fn hear(&mut self, timeout: Duration) -> Heard {
        match self.lines.recv_timeout(timeout) {
            Ok(line) => Heard::Line(line),
            Err(RecvTimeoutError::Timeout) => {
                self.end();
                Heard::TimedOut
            }
            Err(RecvTimeoutError::Disconnected) => Heard::Ended(match self.child.wait() {
                Ok(status) => ending(status),
                Err(error) => error.to_string(),
            }),
        }
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

/// How a process ended, in words.
fn ending(status: std::process::ExitStatus) -> String {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        let name = match signal {
            libc::SIGSEGV => "a segmentation fault",
            libc::SIGBUS => "a bus error",
            libc::SIGABRT => "an abort",
            libc::SIGILL => "an illegal instruction",
            libc::SIGFPE => "an arithmetic fault",
            libc::SIGKILL => "a kill, perhaps for want of memory",
            _ => return format!("signal {signal}"),
        };
        return name.to_owned();
    }
    format!("{status}")
}

/// Sends a line to the parent.
pub fn tell(line: &str) {
    let mut out = std::io::stdout().lock();
    // A parent that has gone needs no lines.
    let _ = writeln!(out, "{line}");
    let _ = out.flush();
}
