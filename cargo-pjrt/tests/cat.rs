//! Tests of `cargo pjrt cat`.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../pjrt-stablehlo/tests/data").join(name)
}

fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cargo-pjrt"));
    command.arg("cat");
    command
}

/// Runs the subcommand with arguments and an input.
fn run(arguments: &[&str], input: &[u8]) -> Output {
    let streams = [Stdio::piped(), Stdio::piped(), Stdio::piped()];
    let [stdin, stdout, stderr] = streams;
    let mut child = command().args(arguments).stdin(stdin).stdout(stdout).stderr(stderr).spawn().unwrap();
    // A program that rejects its arguments does not read its input.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

fn stderr(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).unwrap()
}

#[test]
fn prints_text_that_reads_again() {
    let path = sample("mlp_1.17.0.mlirbc");
    let printed = run(&[path.to_str().unwrap()], b"");
    assert_eq!(printed.status.code(), Some(0));
    assert!(stdout(&printed).contains("stablehlo.dot_general") && !stdout(&printed).contains("loc("));
    let again = run(&["-"], &printed.stdout);
    assert_eq!(stdout(&again), stdout(&printed));
    let located = run(&["--locations", path.to_str().unwrap()], b"");
    assert!(stdout(&located).contains(" loc(\"jit(mlp)/"));
}

#[test]
fn statistics_say_what_a_program_consists_of() {
    let output = run(&["--statistics", sample("constants_1.17.0.mlirbc").to_str().unwrap()], b"");
    for expected in
        ["VHLO         1.17.0", "module       jit_", "stablehlo.constant", "results by element type"]
    {
        assert!(stdout(&output).contains(expected), "{}", stdout(&output));
    }
}

#[test]
fn checking_prints_nothing() {
    let output = run(&["--check", sample("mlp_1.17.0.mlirbc").to_str().unwrap()], b"");
    assert_eq!((output.status.code(), &*output.stdout, &*output.stderr), (Some(0), &b""[..], &b""[..]));
}

#[test]
fn errors_in_text_show_the_line() {
    let output = run(&["-c"], b"func.func @main(%a: tensor<4xf32>) {\n  return %a : tensor<4xf33>\n}\n");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        stderr(&output),
        "error: expected a type, found 'f33'\n --> -:2:24\n  |\n2 |   return %a : tensor<4xf33>\n  |                        ^\n"
    );
}

#[test]
fn errors_of_the_verifier_show_the_line() {
    let output = run(
        &["-c"],
        b"func.func @main(%a: tensor<4xf32>) -> tensor<5xf32> {\n  %0 = stablehlo.reshape %a : (tensor<4xf32>) -> tensor<5xf32>\n  return %0 : tensor<5xf32>\n}\n",
    );
    assert_eq!(output.status.code(), Some(1));
    let shown = "2 |   %0 = stablehlo.reshape %a : (tensor<4xf32>) -> tensor<5xf32>\n  |   ^\n";
    assert!(stderr(&output).contains(shown), "{}", stderr(&output));
}

#[test]
fn errors_in_bytecode_show_the_byte() {
    let mut program = std::fs::read(sample("mlp_1.17.0.mlirbc")).unwrap();
    program.truncate(100);
    let output = run(&[], &program);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains(" --> -, byte "), "{}", stderr(&output));
    let lines: Vec<&str> = stderr(&output).lines().collect();
    let caret = lines.iter().position(|line| line.trim_end().ends_with("^^")).unwrap();
    assert!(lines[caret - 1].starts_with("  | 000000"), "{}", stderr(&output));
}

#[test]
fn one_bad_file_does_not_hide_the_others() {
    let good = sample("mlp_1.17.0.mlirbc");
    let output = run(&["/nonexistent/file", good.to_str().unwrap()], b"");
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("cannot read /nonexistent/file"));
    assert!(stdout(&output).contains("stablehlo.dot_general"));
    let output = run(&["--wrong"], b"");
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("unexpected argument '--wrong'") && stderr(&output).contains("Usage: "));
}

#[test]
#[cfg(unix)]
fn names_of_files_need_not_be_utf_8() {
    use std::os::unix::ffi::OsStrExt;
    let name = std::ffi::OsStr::from_bytes(b"cat-\xff.mlirbc");
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if std::fs::copy(sample("mlp_1.17.0.mlirbc"), &path).is_err() {
        return; // Some file systems do not support such names.
    }
    let output = command().arg("-s").arg(&path).output().unwrap();
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), ""));
    assert!(stdout(&output).contains("cat-\u{fffd}.mlirbc"));
}

#[test]
fn errors_about_located_operations_show_the_line() {
    let output = run(
        &["-c"],
        b"func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {\n  %0 = stablehlo.reshape %a : (tensor<4xf32>) -> tensor<5xf32> loc(\"m.py\":10:3)\n  return %a : tensor<4xf32>\n}\n",
    );
    let shown = " --> -:2:3\n  |\n2 |   %0 = stablehlo.reshape %a : (tensor<4xf32>) -> tensor<5xf32>";
    assert!(stderr(&output).contains(shown), "{}", stderr(&output));
    assert!(stderr(&output).contains("from the source location \"m.py\":10:3"), "{}", stderr(&output));
    assert!(!stderr(&output).contains("line 2"), "{}", stderr(&output));
}

#[test]
fn a_closed_output_is_no_error() {
    let path = sample("mlp_gradient_1.17.0.mlirbc");
    let mut command = command();
    // This is many times the capacity of a pipe.
    command.args(std::iter::repeat_n(path.to_str().unwrap(), 100));
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), ""));
}

#[test]
fn converts_to_bytecode_that_reads_again() {
    let path = sample("mlp_1.17.0.mlirbc");
    let text = run(&["--locations", path.to_str().unwrap()], b"");
    for form in ["bytecode", "portable", "portable=1.9.0"] {
        let converted = run(&["--to", form, path.to_str().unwrap()], b"");
        assert_eq!(converted.status.code(), Some(0), "{}", stderr(&converted));
        assert!(converted.stdout.starts_with(b"ML\xefR"));
        let again = run(&["--locations", "-"], &converted.stdout);
        assert_eq!(stdout(&again), stdout(&text), "{form}");
    }
}

#[test]
fn a_version_that_lacks_an_operation_is_an_error_and_writes_no_file() {
    let folder = std::env::temp_dir().join(format!("cargo-pjrt-cat-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("tan.mlirbc");
    let program = b"func.func @main(%x: tensor<f32>) -> tensor<f32> { %0 = stablehlo.tan %x : tensor<f32> return %0 : tensor<f32> }";
    let arguments = |form| ["--to", form, "--output", file.to_str().unwrap(), "-"];
    let refused = run(&arguments("portable=1.3.0"), program);
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("needs VHLO 1.4.0"), "{}", stderr(&refused));
    assert!(!file.exists());
    assert_eq!(run(&arguments("portable=1.4"), program).status.code(), Some(0));
    assert!(file.exists());
    assert_ne!(run(&["--to", "portable=one", "-"], program).status.code(), Some(0));
    std::fs::remove_dir_all(folder).unwrap();
}
