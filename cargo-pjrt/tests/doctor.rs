//! Tests of `cargo pjrt doctor`: with libraries that cannot be used, and with JAX if `TEST_PYTHON` names a Python that has it.

use std::path::{Path, PathBuf};
use std::process::Command;

use cargo_pjrt::doctor::Report;
use common::{Scratch, cargo_pjrt, example, fail, faulty, hello, text, with_fault};

mod common;

/// A Python without hosts, or with an environment of fake facts.
fn python(scratch: &Scratch, facts: &str, jax: &str) -> PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let script = format!(
        "#!/bin/sh\necho noise of a plugin\ncase \"$3\" in\nfacts) echo 'PJRT-DOCTOR:{facts}';;\njax) echo 'PJRT-DOCTOR:{jax}';;\nesac\n"
    );
    let path = scratch.write("python", script);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))
        .expect("a script can be made executable");
    path
}

fn facts(packages: &str) -> String {
    format!(
        r#"{{"python": "3.12.1", "executable": "/py", "packages": {{{packages}}}, "jax_entry_points": [{{"name": "chip", "value": "chip_jax", "package": "chip"}}], "jax_modules": [], "torch_entry_points": []}}"#
    )
}

const JAX: &str = r#""jax": "0.10.2", "jaxlib": "0.10.2""#;

fn doctor(python: &Path) -> Command {
    let mut command = cargo_pjrt();
    for variable in ["JAX_PLATFORMS", "JAX_PLATFORM_NAME", "PJRT_NAMES_AND_LIBRARY_PATHS", "PJRT_DEVICE"] {
        command.env_remove(variable);
    }
    command.arg("doctor").arg("--python").arg(python);
    command
}

#[test]
fn a_module_that_fails_and_a_choice_are_reported_with_what_to_do() {
    let scratch = Scratch::new("doctor-module");
    let jax = r#"{"modules": [{"module": "chip_jax", "error": "OSError: no driver", "registered": []}], "builtin": ["cpu"], "platform": "cpu", "devices": ["cpu:0"], "error": null, "errors": {}, "priorities": {"cpu": 0}}"#;
    let printed = fail(&mut doctor(&python(&scratch, &facts(JAX), jax)));
    assert!(printed.contains("PROBLEM  the module chip_jax from the entry point"), "{printed}");
    assert!(printed.contains("OSError: no driver") && printed.contains("to do: run python -c"), "{printed}");
    assert!(printed.contains("JAX would choose: cpu, because JAX_PLATFORMS is not set"), "{printed}");
}

#[test]
fn a_library_that_the_environment_does_not_know_is_a_problem() {
    let scratch = Scratch::new("doctor-unknown");
    let jax = r#"{"modules": [], "builtin": ["cpu"], "platform": "cpu", "devices": ["cpu:0"], "error": null, "errors": {}, "priorities": {"cpu": 0}}"#;
    let printed = fail(doctor(&python(&scratch, &facts(JAX), jax)).arg(hello()));
    assert!(printed.contains("a client of the platform \"hello\""), "{printed}");
    assert!(printed.contains("set PJRT_NAMES_AND_LIBRARY_PATHS=hello:/"), "{printed}");
}

#[test]
fn a_library_that_cannot_be_used_is_explained() {
    let scratch = Scratch::new("doctor-library");
    let python = python(&scratch, &facts(""), "");
    let of = |library: &Path| fail(doctor(&python).arg(library));
    let printed = of(&scratch.write("text.so", "text"));
    assert!(printed.contains("not a shared library") && printed.contains("cdylib"), "{printed}");
    // A program is no plugin.
    assert!(of(&std::env::current_exe().unwrap()).contains("does not export GetPjrtApi"));
    // The machine of the ELF header: 0x08 is MIPS.
    let mut foreign = std::fs::read(hello()).unwrap();
    foreign[18] = 0x08;
    assert!(of(&scratch.write("foreign.so", foreign)).contains("but this machine is"));
    assert!(example("fault_proxy").exists());
    let mut failing = with_fault("doctor", "PJRT_Client_Create fail FAILED_PRECONDITION");
    let printed = fail(failing.arg("--python").arg(&python).arg(faulty()));
    assert!(
        printed.contains("no client can be created") && printed.contains("an injected fault"),
        "{printed}"
    );
}

#[test]
fn a_python_that_does_not_run_is_a_problem() {
    let printed = fail(&mut doctor(Path::new("/no/such/python")));
    assert!(printed.contains("cannot run /no/such/python") && printed.contains("--python"), "{printed}");
}

#[test]
fn jax_chooses_a_plugin_that_a_variable_names() {
    let Some(python) = std::env::var_os("TEST_PYTHON") else {
        println!("TEST_PYTHON does not name a Python with JAX");
        return;
    };
    let named = |name: &str| format!("{name}:{}", hello().display());
    let run = |platforms: Option<&str>, name: &str| {
        let mut command = doctor(Path::new(&python));
        command.env("PJRT_NAMES_AND_LIBRARY_PATHS", named(name)).arg("--json").arg(hello());
        if let Some(platforms) = platforms {
            command.env("JAX_PLATFORMS", platforms);
        }
        let output = command.output().unwrap();
        let report: Report =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output)));
        report
    };
    // Other plugins may be installed, with the same priority.
    let report = run(Some("hello"), "hello");
    assert_eq!(
        (report.problems(), report.choice.platform.as_deref()),
        (0, Some("hello")),
        "{}",
        report.text()
    );
    let report = run(Some("cpu"), "hello");
    assert!(report.text().contains("JAX_PLATFORMS=cpu excludes hello"), "{}", report.text());
    assert!(run(None, "helo").text().contains("registered as \"helo\""));
}

#[test]
fn a_symbol_that_is_missing_at_the_first_call_is_named() {
    let scratch = Scratch::new("doctor-symbol");
    let source = scratch.write(
        "p.c",
        "int vendor_open(void); void *GetPjrtApi(void) { return (void *)(long)vendor_open(); }",
    );
    let library = scratch.path("p.so");
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-Wl,-z,lazy", "-o"])
        .arg(&library)
        .arg(&source)
        .status();
    if !built.is_ok_and(|status| status.success()) {
        println!("there is no C compiler");
        return;
    }
    let python = python(&scratch, &facts(""), "");
    let printed = fail(doctor(&python).arg(&library));
    assert!(printed.contains("undefined symbol: vendor_open") && printed.contains("link it"), "{printed}");
}
