//! Functions that run commands.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context, Result, bail};

/// Runs a command that must succeed. Its output is not captured.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot start {}", shown(command)))?;
    if !status.success() {
        bail!("{status} from {}", shown(command));
    }
    Ok(())
}

/// Runs a command that must succeed, and returns its output.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot start {}", shown(command)))?;
    if !output.status.success() {
        bail!("{} from {}", output.status, shown(command));
    }
    String::from_utf8(output.stdout).with_context(|| format!("{} does not print UTF-8", shown(command)))
}

/// Runs a command, prints its output while it runs, and returns its exit status and output.
pub(crate) fn watch(command: &mut Command) -> Result<(ExitStatus, String)> {
    let mut child =
        command.stdout(Stdio::piped()).spawn().with_context(|| format!("cannot start {}", shown(command)))?;
    let mut text = String::new();
    let mut reader = BufReader::new(child.stdout.take().context("the output of a child is piped")?);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line)? > 0 {
        let shown = String::from_utf8_lossy(&line);
        print!("{shown}");
        std::io::stdout().flush()?;
        text.push_str(&shown);
        line.clear();
    }
    Ok((child.wait()?, text))
}

/// Runs a command, prints its output when it has ended, and returns its exit status and output.
///
/// The output of commands that run at the same time is not mixed, except for standard error.
pub(crate) fn finish(command: &mut Command) -> Result<(ExitStatus, String)> {
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot start {}", shown(command)))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    print!("{text}");
    Ok((output.status, text))
}

/// Formats a command as it would be typed.
fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
