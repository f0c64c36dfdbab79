//! Tests of `cargo pjrt record` and `replay` with hello, with this project's own host, and with a faulty
//! plugin.

use std::path::{Path, PathBuf};
use std::process::Command;

use cargo_pjrt::conform::{Report, Status};
use cargo_pjrt::session::log::{Entry, Log, Place, Shape, Writer};
use common::{Scratch, cargo_pjrt, data, example, fail, hello, run};

mod common;

/// Returns the command that runs a host with the recorder in place of hello.
fn recorded(log: &Path) -> Command {
    let mut command = cargo_pjrt();
    command.arg("record").arg(hello()).arg("-o").arg(log).arg("--recorder").arg(example("recorder"));
    command.arg("--").arg(env!("CARGO_BIN_EXE_cargo-pjrt"));
    command
}

/// Records two executions of the program that adds, with different arguments.
fn record_an_addition(log: &Path) -> String {
    let mut command = recorded(log);
    command.arg("run").arg(data("add.mlir")).args(["--args", "random", "--repeat", "2", "--plugin"]);
    run(command.arg(example("recorder")))
}

fn replay(log: &Path, plugin: &Path) -> Command {
    let mut command = cargo_pjrt();
    command.arg("replay").arg(log).arg(plugin);
    command
}

#[test]
fn what_was_recorded_is_the_same_when_it_is_replayed() {
    let scratch = Scratch::new("same");
    let log = scratch.path("log");
    let printed = record_an_addition(&log);
    assert!(printed.contains("1 programs, 4 arrays transferred to devices, 2 executions"), "{printed}");
    let entries = Log::open(&log).unwrap().entries;
    assert!(
        matches!(&entries[1], Entry::CreateClient { platform, devices, .. } if platform == "hello" && devices == &[0])
    );
    let printed = run(replay(&log, &hello()).arg("--all"));
    assert!(printed.contains("result 0 of execution 2 (add), tensor<2x3xf32>: as recorded"), "{printed}");
    assert!(
        printed.ends_with("results: 2 the same, 0 within the tolerance, 0 skipped; 0 differences\n"),
        "{printed}"
    );
}

#[test]
fn a_plugin_that_computes_something_else_is_found_out_with_the_place() {
    let scratch = Scratch::new("different");
    let log = scratch.path("log");
    record_an_addition(&log);
    let with_fault = |fault: &str| {
        let mut command = replay(&log, &example("fault_proxy"));
        command.env("FAULT_PROXY_INNER", hello()).env("FAULT_PROXY", fault);
        fail(&mut command)
    };
    let printed = with_fault("PJRT_LoadedExecutable_Execute give_other_argument");
    assert!(
        printed.contains("DIFFERENT: result 0 of execution 2 (add), tensor<2x3xf32>: 6 of 6"),
        "{printed}"
    );
    assert!(printed.contains("the first at [0, 0]"), "{printed}");
    let printed = with_fault("PJRT_Client_Compile fail UNIMPLEMENTED");
    assert!(
        printed.contains("DIFFERENT: compiling program 1 failed: PJRT_Client_Compile: UNIMPLEMENTED"),
        "{printed}"
    );
    assert!(printed.contains("2 results skipped: compiling program 1 failed"), "{printed}");
    let printed = with_fault("PJRT_LoadedExecutable_Execute call 2 fail INTERNAL");
    assert!(printed.contains("DIFFERENT: execution 2 (add) failed: "), "{printed}");
}

/// The recorder follows the same rules as the recorded plugin for every call of a host, and writes logs that
/// can be replayed.
#[test]
fn the_recorder_keeps_the_rules_as_the_plugin_does() {
    let scratch = Scratch::new("rules");
    let log = scratch.path("log-%p");
    let conform = |plugin: &Path| -> Report {
        let mut command = cargo_pjrt();
        command.env("PJRT_RECORD_PLUGIN", hello()).env("PJRT_RECORD_LOG", &log);
        let output = command.args(["conform", "--json", "--shared"]).arg(plugin).output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let (plain, recorded) = (conform(&hello()), conform(&example("recorder")));
    let complaints: Vec<String> =
        recorded.rows.iter().filter(|row| row.status.is_failure()).map(|row| row.text()).collect();
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    assert_eq!(recorded.count(Status::Passed), plain.count(Status::Passed));
    let mut logs = 0;
    for file in std::fs::read_dir(scratch.path("")).unwrap() {
        Log::open(&file.unwrap().path()).unwrap();
        logs += 1;
    }
    assert!(logs > 5, "{logs} logs of as many processes");
}

#[test]
fn what_is_missing_for_recording_is_said() {
    let scratch = Scratch::new("missing");
    let log = scratch.path("log");
    let error = fail(
        cargo_pjrt()
            .arg("record")
            .arg("/no/such.so")
            .arg("-o")
            .arg(&log)
            .arg("--recorder")
            .arg(example("recorder")),
    );
    assert!(error.contains("/no/such.so"), "{error}");
    let error = fail(
        cargo_pjrt().arg("record").arg(hello()).arg("-o").arg(&log).args(["--recorder", "/no/recorder.so"]),
    );
    assert!(error.contains("/no/recorder.so"), "{error}");
    let error = fail(recorded(&log).arg("--version").arg("--no-such-option"));
    assert!(error.contains("did not load the plugin"), "{error}");
    let error = fail(cargo_pjrt().arg("run").arg(data("add.mlir")).arg("--plugin").arg(example("recorder")));
    assert!(error.contains("PJRT_RECORD_PLUGIN must name the plugin to record"), "{error}");
    let error = fail(&mut replay(&data("add.mlir"), &hello()));
    assert!(error.contains("add.mlir: not a log of the recorder"), "{error}");
}

#[test]
fn a_damaged_log_makes_no_plugin_read_what_is_not_there() {
    let scratch = Scratch::new("damaged");
    let log = scratch.path("log");
    let mut writer = Writer::create(&log, Path::new("plugin.so")).unwrap();
    let mut append = |entry, bytes: &[u8]| writer.append(entry, bytes).unwrap();
    let (platform, options) = ("hello".to_owned(), Vec::new());
    append(Entry::CreateClient { client: 1, platform, options, devices: vec![0] }, &[]);
    let shape = Shape { element_type: "f32".to_owned(), dims: vec![1 << 40] };
    let place = Place { client: 1, device: 0, memory: None };
    append(Entry::Upload { buffer: 2, shape: shape.clone(), place }, &[0; 4]);
    append(Entry::Read { buffer: 2 }, &[]);
    append(Entry::Result { buffer: 2, shape, failure: None }, &[0; 4]);
    append(Entry::Read { buffer: 3 }, &[]);
    let printed = fail(&mut replay(&log, &hello()));
    assert!(
        printed.contains("1 results skipped: the log is damaged: tensor<1099511627776xf32> has 4 bytes"),
        "{printed}"
    );
    assert!(printed.contains("no result could be compared"), "{printed}");
    append(Entry::DestroyClient { client: 1 }, &[]);
    append(
        Entry::Compile { client: 1, executable: 4, format: "mlir".into(), options_size: 9, failure: None },
        &[],
    );
    let printed = fail(&mut replay(&log, &hello()));
    assert!(printed.contains("the log uses client 1, which does not exist"), "{printed}");
}

#[test]
fn a_log_with_nothing_to_compare_and_one_that_was_cut_off_are_errors() {
    let scratch = Scratch::new("nothing");
    let log = scratch.path("log");
    record_an_addition(&log);
    let whole = std::fs::read(&log).unwrap();
    let error = fail(&mut replay(&scratch.write("empty", ""), &hello()));
    assert!(error.contains("empty: not a log of the recorder"), "{error}");
    let first = whole.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    let error = fail(&mut replay(&scratch.write("start", &whole[..first]), &hello()));
    assert!(error.contains("there is nothing to compare"), "{error}");
    let error = fail(&mut replay(&scratch.write("cut", &whole[..whole.len() - 2]), &hello()));
    assert!(error.contains("ends in the middle of entry") && error.contains("0 differences"), "{error}");
}

#[test]
fn without_a_host_its_environment_is_printed() {
    let log = Path::new("log file");
    let mut command = cargo_pjrt();
    command.arg("record").arg(hello()).arg("-o").arg(log).arg("--recorder").arg(example("recorder"));
    let printed = run(command.env_remove("JAX_PLATFORMS"));
    assert!(printed.contains("export PJRT_NAMES_AND_LIBRARY_PATHS='hello:"), "{printed}");
    assert!(printed.contains("export JAX_PLATFORMS='hello,cpu'"), "{printed}");
    assert!(printed.contains("/log file'"), "{printed}");
}

/// Makes an executable script.
fn script(scratch: &Scratch, name: &str, text: &str) -> PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let path = scratch.write(name, text);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))
        .expect("a script can be made executable");
    path
}

/// As after `cargo install`, which installs the program alone, the recorder is built in the cache folder. This cargo takes the
/// library that is already built, if the real one accepts the package.
#[test]
fn the_recorder_of_an_installed_program_is_built_on_first_use() {
    let scratch = Scratch::new("installed");
    let program = scratch.path("bin/cargo-pjrt");
    std::fs::create_dir_all(scratch.path("bin")).unwrap();
    std::fs::copy(env!("CARGO_BIN_EXE_cargo-pjrt"), &program).unwrap();
    let text = format!(
        "#!/bin/sh\nset -e\n'{}' metadata --no-deps --offline --format-version 1\ngrep -q GetPjrtApi lib.rs\n\
         mkdir -p target/debug\ncp '{}' target/debug/\n",
        env!("CARGO"),
        example("recorder").display()
    );
    let cargo = script(&scratch, "cargo", &text);
    let log = scratch.path("log");
    let record = |cargo: &Path| {
        let mut command = Command::new(&program);
        command.env("XDG_CACHE_HOME", scratch.path("cache")).env("CARGO", cargo).env_remove("PJRT_RECORDER");
        command.arg("record").arg(hello()).arg("-o").arg(&log).env_remove("JAX_PLATFORMS");
        command
    };
    let error = fail(&mut record(Path::new("/no/cargo")));
    assert!(error.contains("/no/cargo cannot be started") && error.contains("https://rustup.rs"), "{error}");
    let error = fail(&mut record(&script(&scratch, "failing", "#!/bin/sh\nexit 101\n")));
    assert!(error.contains("the recorder cannot be built") && error.contains("--recorder"), "{error}");
    let printed = run(&mut record(&cargo));
    assert!(printed.contains("building the recorder in"), "{printed}");
    assert!(printed.contains("/cache/cargo-pjrt/recorder/"), "{printed}");
}
