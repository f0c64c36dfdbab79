//! Tests of `cargo pjrt test` with hello and fake hosts. `tests/python/test_in_hosts.py` runs it with JAX.

use std::path::{Path, PathBuf};
use std::process::Command;

use cargo_pjrt::test::{Outcome, Report};
use common::{Scratch, cargo_pjrt, data, fail, hello, refuse, run};

mod common;

/// A Python with JAX, in which each process runs these commands of the shell. They write messages to standard input.
fn python(scratch: &Scratch, commands: &str) -> PathBuf {
    use std::os::unix::fs::PermissionsExt;
    // The first argument is `-c` in the search for a module.
    let script = format!("#!/bin/sh\n[ \"$1\" = -c ] && exit 0\necho output of a plugin\n{commands}\n");
    let path = scratch.write("python", script);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))
        .expect("a script can be made executable");
    path
}

fn in_jax(python: &Path) -> Command {
    let mut command = cargo_pjrt();
    command
        .args(["test", "--host", "jax", "--program", "add", "--program", "dot", "--python"])
        .arg(python)
        .arg(hello());
    command
}

const READY: &str = r#"echo '{"kind": "ready", "version": "0.1"}' >&0"#;
const ADD: &str = r#"echo '{"kind": "begins", "program": "add"}' >&0"#;
const END: &str = r#"echo '{"kind": "end"}' >&0"#;

#[test]
fn outcomes_are_printed_by_program_and_host() {
    let scratch = Scratch::new("test-outcomes");
    let right = r#"echo '{"kind": "right", "program": "add", "error": 0.0}' >&0"#;
    let refused = r#"echo '{"kind": "refused", "program": "dot", "message": "UNIMPLEMENTED: no dot"}' >&0"#;
    let python = python(&scratch, &[READY, ADD, right, refused, END].join("\n"));
    let printed = run(&mut in_jax(&python));
    assert!(printed.contains("program  JAX 0.1") && printed.contains("dot      refused"), "{printed}");
    assert!(printed.contains("dot: refused: UNIMPLEMENTED: no dot"), "{printed}");
    assert!(printed.contains("1 right, 0 wrong, 0 failed, 1 refused; 1 hosts, 0 not installed"), "{printed}");
}

#[test]
fn a_wrong_result_fails_with_its_error() {
    let scratch = Scratch::new("test-wrong");
    let wrong = r#"echo '{"kind": "wrong", "program": "add", "error": 0.5}' >&0"#;
    let absent = r#"echo '{"kind": "absent", "program": "dot"}' >&0"#;
    let python = python(&scratch, &[READY, ADD, wrong, absent, END].join("\n"));
    let printed = fail(&mut in_jax(&python));
    assert!(printed.contains("WRONG 5.0e-1") && printed.contains("0 right, 1 wrong"), "{printed}");
}

#[test]
fn a_refusal_of_what_the_plugin_compiles_is_a_failure() {
    let scratch = Scratch::new("test-required");
    let refused = r#"echo '{"kind": "refused", "program": "add", "message": "UNIMPLEMENTED: no add"}' >&0"#;
    let absent = r#"echo '{"kind": "absent", "program": "dot"}' >&0"#;
    let python = python(&scratch, &[READY, ADD, refused, absent, END].join("\n"));
    let printed = fail(&mut in_jax(&python));
    let expected = "refused in JAX, but the plugin compiles its recorded form, add of the tier arithmetic";
    assert!(printed.contains(expected) && printed.contains("UNIMPLEMENTED: no add"), "{printed}");
}

#[test]
fn a_program_that_takes_too_long_is_named_and_ends_the_host() {
    let scratch = Scratch::new("test-slow");
    let python = python(&scratch, &[READY, ADD, "exec sleep 600"].join("\n"));
    let printed = fail(in_jax(&python).args(["--timeout", "1"]));
    assert!(printed.contains("it took longer than 1 s while running the program add"), "{printed}");
    assert!(printed.contains("dot      not run"), "{printed}");
}

#[test]
fn a_crash_is_the_outcome_of_its_program_and_the_others_run() {
    let scratch = Scratch::new("test-crash");
    let right = r#"echo '{"kind": "right", "program": "dot", "error": 0.0}' >&0"#;
    // The request for the remaining programs does not name the first one.
    let commands = format!(
        "{READY}\ncase \"$2\" in *add*) {ADD}; echo the last words; kill -SEGV $$;; esac\n{right}\n{END}"
    );
    let mut command = in_jax(&python(&scratch, &commands));
    let output = command.arg("--json").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let report: Report = serde_json::from_slice(&output.stdout).unwrap();
    let outcomes: Vec<&Outcome> = report.hosts[0].programs.iter().map(|program| &program.outcome).collect();
    let [Outcome::Failed(why), Outcome::Right { .. }] = outcomes[..] else { panic!("{outcomes:?}") };
    assert!(why.contains("a segmentation fault while running the program add"), "{why}");
    assert!(why.contains("the last words"), "{why}");
}

#[test]
fn a_host_that_does_not_start_is_a_failure_with_its_output() {
    let scratch = Scratch::new("test-start");
    let printed = fail(&mut in_jax(&python(&scratch, "echo 'ImportError: no numpy' >&2; exit 3")));
    assert!(
        printed.contains("JAX did not start: its process ended with exit status 3 while starting"),
        "{printed}"
    );
    assert!(printed.contains("ImportError: no numpy"), "{printed}");
}

#[test]
fn a_host_that_is_not_installed_has_the_command_that_installs_it() {
    let error = fail(&mut in_jax(Path::new("/no/python")));
    assert!(error.contains("JAX: /no/python cannot import jax"), "{error}");
    assert!(error.contains("to do: pip install jax, or `cargo pjrt test --host jax --install`"), "{error}");
}

#[test]
fn a_plugin_that_cannot_be_used_is_an_error_before_hosts_start() {
    let error = fail(cargo_pjrt().args(["test", "--python", "/no/python"]).arg(data("add.mlir")));
    assert!(error.contains("add.mlir: ") && error.contains("cargo pjrt doctor"), "{error}");
    let error = fail(cargo_pjrt().args(["test", "/no/such.so"]));
    assert!(error.contains("/no/such.so"), "{error}");
    let error = refuse(cargo_pjrt().args(["test", "plugin.so", "--program", "sort"]));
    assert!(error.contains("sort") && error.contains("training"), "{error}");
}
