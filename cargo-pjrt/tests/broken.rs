//! Tests with broken plugins, and with files that are not plugins: each subcommand reports the error and its
//! exit status.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use cargo_pjrt::conform::{Report, Row, Status, checks};
use cargo_pjrt::session::log::{Entry, Writer};
use common::{Scratch, cargo_pjrt, data, fail, faulty, hello, refuse, run, text, with_fault};

mod common;

/// Writes the log of a host that created a client.
fn log(scratch: &Scratch) -> PathBuf {
    let path = scratch.path("log");
    let mut writer = Writer::create(&path, Path::new("plugin.so")).unwrap();
    let (platform, options) = ("hello".to_owned(), Vec::new());
    writer.append(Entry::CreateClient { client: 1, platform, options, devices: vec![0] }, &[]).unwrap();
    path
}

/// Returns the report of the kit about hello with a fault.
fn conform(fault: &str, more: &[&str]) -> Report {
    let output =
        with_fault("conform", fault).arg("--json").args(more).arg(faulty()).output().expect("it runs");
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", text(&output)))
}

#[test]
fn a_plugin_that_ends_the_process_is_an_error_of_run_and_replay() {
    let scratch = Scratch::new("ends");
    let log = log(&scratch);
    for (fault, parts) in [
        ("GetPjrtApi exit", ["exit status 0 while loading the plugin"; 2]),
        ("GetPjrtApi crash", ["an abort while loading the plugin"; 2]),
        (
            "PJRT_Client_Create exit",
            [
                "exit status 0 while creating a client",
                "exit status 0 while replaying entry 2 of the log: create client",
            ],
        ),
        (
            "PJRT_Client_Create crash",
            ["an abort while creating a client", "an abort while replaying entry 2"],
        ),
        ("PJRT_Plugin_Initialize crash_at_exit", ["an abort while exiting after the last step"; 2]),
    ] {
        let ran = fail(with_fault("run", fault).arg(data("add.mlir")).arg("--plugin").arg(faulty()));
        let replayed = fail(with_fault("replay", fault).arg(&log).arg(faulty()));
        for (printed, part) in [ran, replayed].iter().zip(parts) {
            let error = printed.lines().last().unwrap_or_default();
            assert!(
                error.starts_with("error: ") && error.contains("the plugin ended the process with"),
                "{printed}"
            );
            assert!(error.contains(part), "{part:?} is not in {printed}");
        }
    }
}

#[test]
fn what_cannot_be_loaded_is_one_error() {
    let scratch = Scratch::new("unloadable");
    let text = scratch.write("text.so", "not a library\n");
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let libc = maps.split_whitespace().find(|word| word.contains("/libc.so") || word.contains("/libc-"));
    for (path, part) in [
        (Path::new("/no/such.so"), "No such file"),
        (scratch.path("").as_path(), "not a file"),
        (&text, "not a shared library"),
        (Path::new(libc.expect("the C library is loaded")), "no function GetPjrtApi"),
    ] {
        let conformed = fail(cargo_pjrt().arg("conform").arg(path));
        assert!(conformed.starts_with(&format!("error: {}: ", path.display())), "{conformed}");
        assert_eq!(conformed.lines().count(), 1, "{conformed}");
        let inspected = fail(cargo_pjrt().arg("inspect").arg(path));
        let ran = fail(cargo_pjrt().arg("run").arg(data("add.mlir")).arg("--plugin").arg(path));
        for printed in [conformed, inspected, ran] {
            assert!(printed.contains(part), "{part:?} is not in {printed}");
        }
    }
    for (fault, part) in [
        ("GetPjrtApi exit", "while loading the library: the process ended with exit status 0"),
        ("GetPjrtApi crash", "while loading the library: the process ended with an abort"),
        ("GetPjrtApi nothing", "GetPjrtApi returned a null pointer"),
    ] {
        let conformed = fail(with_fault("conform", fault).arg(faulty()));
        assert!(conformed.contains(part) && conformed.lines().count() == 1, "{conformed}");
        let inspected = fail(with_fault("inspect", fault).arg(faulty()));
        let what = part.rsplit(": ").next().unwrap();
        assert!(
            inspected.lines().any(|line| line.starts_with("WRONG  ") && line.contains(what)),
            "{inspected}"
        );
    }
}

#[test]
fn a_pipe_is_no_plugin() {
    let scratch = Scratch::new("pipe");
    let pipe = scratch.path("plugin.so");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("it runs").success());
    // Opening it would wait for a writer.
    let inspected = fail(cargo_pjrt().arg("inspect").arg(&pipe));
    assert!(inspected.contains("not a file"), "{inspected}");
}

#[test]
fn folders_that_cannot_be_written_are_errors_before_the_work() {
    let scratch = Scratch::new("unwritable");
    let file = scratch.write("file", "");
    let temporary = fail(cargo_pjrt().arg("conform").arg(hello()).env("TMPDIR", &file));
    assert!(temporary.contains("TMPDIR names the folder") && temporary.lines().count() == 1, "{temporary}");
    let missing = scratch.path("missing");
    fail(cargo_pjrt().arg("conform").arg(hello()).env("TMPDIR", &missing));
    assert!(!missing.exists());
    let numerics = fail(cargo_pjrt().arg("numerics").arg(hello()).arg("--dump").arg(&file));
    assert!(numerics.starts_with("error: --dump "), "{numerics}");
    let run = cargo_pjrt()
        .arg("run")
        .arg(data("add.mlir"))
        .arg("--plugin")
        .arg(hello())
        .arg("--dump")
        .arg(&file)
        .output();
    let run = text(&run.expect("it runs"));
    assert!(run.contains("error: --dump "), "{run}");
}

#[test]
fn a_process_that_a_plugin_leaves_behind_holds_nothing_up() {
    let start = Instant::now();
    for verb in ["conform", "inspect"] {
        let printed = fail(with_fault(verb, "GetPjrtApi exit sleep 30").arg(faulty()));
        assert!(printed.contains("exit status 0"), "{printed}");
    }
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}

#[test]
fn a_plugin_that_cannot_be_initialized_is_one_failure_beside_those_of_its_table() {
    let count = |rows: &[Row], status| rows.iter().filter(|row| row.status == status).count();
    for (fault, status, wrong) in [
        ("GetPjrtApi all_null", Status::Wrong, 2),
        ("PJRT_Plugin_Initialize fail INTERNAL", Status::Wrong, 1),
        ("PJRT_Plugin_Initialize crash", Status::Crashed, 1),
        ("PJRT_Plugin_Initialize exit", Status::Crashed, 1),
    ] {
        for more in [&[][..], &["--shared"]] {
            let rows = conform(fault, more).rows;
            assert_eq!(rows.len(), checks().len(), "{fault}");
            let of = rows.iter().find(|row| row.name == "plugin/initializes").unwrap();
            assert_eq!(of.status, status, "{fault}: {of:?}");
            assert_eq!(rows.iter().filter(|row| row.status.is_failure()).count(), wrong, "{fault}");
            let tables = checks().iter().filter(|check| check.is_of_the_table).count();
            assert_eq!(count(&rows, Status::Passed), tables - (wrong - 1), "{fault}");
            let last = rows.last().unwrap();
            assert_eq!(last.status, Status::NotApplicable, "{fault}");
            assert!(last.message.contains("not run, because the plugin cannot be initialized"), "{last:?}");
        }
        // This also holds if the check was not selected.
        let rows = conform(fault, &["--check", "execute/adds"]).rows;
        let statuses: Vec<_> = rows.iter().map(|row| (row.name.as_str(), row.status)).collect();
        assert_eq!(statuses, [("plugin/initializes", status), ("execute/adds", Status::NotApplicable)]);
    }
}

#[test]
fn the_number_of_processes_changes_no_outcome() {
    let of = |more: &[&str]| {
        let arguments = [&["--filter", "buffer/"], more].concat();
        let rows = conform("PJRT_Buffer_Bitcast crash", &arguments).rows;
        rows.into_iter().map(|row| (row.name, row.status)).collect::<Vec<_>>()
    };
    let one_by_one = of(&["--jobs", "1"]);
    assert!(one_by_one.iter().any(|(_, status)| *status == Status::Crashed), "{one_by_one:?}");
    for more in [&["--jobs", "3"][..], &["--jobs", "3", "--shared"], &["--shared"]] {
        assert_eq!(of(more), one_by_one, "{more:?}");
    }
}

#[test]
fn a_check_for_which_no_client_is_left_runs_in_another_process() {
    let names = [
        "client/platform_name",
        "client/platform_version",
        "upload/scalar",
        "execute/adds",
        "lifetime/many_clients",
    ];
    let mut arguments: Vec<&str> = names.iter().flat_map(|name| ["--check", name]).collect();
    arguments.extend(["--shared", "--jobs", "1"]);
    let rows = conform("PJRT_Client_Create call 3 fail RESOURCE_EXHAUSTED", &arguments).rows;
    let of = |status| rows.iter().filter(move |row| row.status == status);
    assert!(of(Status::Wrong).all(|row| row.name == "lifetime/many_clients"), "{rows:?}");
    assert_eq!(of(Status::Passed).count(), names.len() - 1, "{rows:?}");
}

#[test]
fn a_run_that_checks_nothing_fails_and_says_why_no_client_can_be_made() {
    let names = ["--check", "upload/scalar", "--check", "execute/adds"];
    for more in [&[][..], &["--shared"]] {
        let rows = conform("PJRT_Client_Create fail INVALID_ARGUMENT", &[&names, more].concat()).rows;
        let statuses: Vec<_> = rows.iter().map(|row| (row.name.as_str(), row.status)).collect();
        assert_eq!(
            statuses,
            [
                ("client/can_be_made", Status::Wrong),
                ("upload/scalar", Status::NotApplicable),
                ("execute/adds", Status::NotApplicable)
            ]
        );
    }
    let alone = fail(cargo_pjrt().args(["conform", "--check", "buffer/copy_to_another_device"]).arg(hello()));
    assert!(alone.contains("nothing was checked"), "{alone}");
    // A feature that every plugin must have is not reported as unsupported.
    let rows = conform("PJRT_Client_Create fail UNIMPLEMENTED", &["--check", "upload/scalar"]).rows;
    assert_eq!(rows[0].status, Status::Wrong, "{rows:?}");
}

#[test]
fn a_process_that_does_not_end_as_it_should_is_noticed() {
    for (fault, status, part) in [
        ("crash_at_exit", Status::Crashed, "after main returned, the process ended with an abort"),
        ("hang_at_exit", Status::TimedOut, "the process was still running 2 s after main returned"),
    ] {
        for more in [&[][..], &["--shared"]] {
            let names = ["--check", "plugin/process_ends", "--check", "execute/adds", "--timeout", "2"];
            let rows = conform(&format!("PJRT_Client_Create {fault}"), &[&names, more].concat()).rows;
            assert_eq!([rows[0].status, rows[1].status], [status, Status::Passed], "{fault}: {rows:?}");
            assert!(rows[0].message.contains(part), "{rows:?}");
        }
    }
}

#[test]
fn a_plugin_that_hangs_does_not_hang_run_and_replay() {
    let scratch = Scratch::new("hangs");
    let log = log(&scratch);
    for (fault, part) in [
        ("PJRT_Plugin_Initialize hang", "took longer than 1 s while initializing the plugin"),
        ("PJRT_Plugin_Initialize hang_at_exit", "took longer than 1 s while exiting after the last step"),
    ] {
        let timeout = ["--timeout", "1"];
        let mut run = with_fault("run", fault);
        let ran = fail(run.args(timeout).arg(data("add.mlir")).arg("--plugin").arg(faulty()));
        let replayed = fail(with_fault("replay", fault).args(timeout).arg(&log).arg(faulty()));
        for printed in [ran, replayed] {
            assert!(printed.contains(part), "{part:?} is not in {printed}");
        }
    }
}

#[test]
fn a_compiler_that_takes_long_does_not_exceed_the_time_limit() {
    let start = Instant::now();
    let mut command = with_fault("conform", "PJRT_Client_Compile slow 60");
    let printed = run(command.args(["--check", "donation/of_each_type", "--timeout", "2"]).arg(faulty()));
    assert!(printed.contains("1 passed"), "{printed}");
    assert!(start.elapsed() > Duration::from_secs(2), "the check takes longer than the limit: {printed}");
}

#[test]
fn a_step_that_takes_too_long_again_and_again_is_not_tried_for_ever() {
    let names: Vec<String> = checks()
        .into_iter()
        .filter(|check| check.name.starts_with("upload/"))
        .map(|check| format!("--check={}", check.name))
        .collect();
    let mut more: Vec<&str> = names.iter().map(String::as_str).collect();
    more.extend(["--check=execute/adds", "--check=execute/event_comes"]);
    more.extend(["--check=execute/arguments_stay", "--check=compile/name", "--timeout", "1", "--jobs", "1"]);
    for shared in [&[][..], &["--shared"]] {
        // Without a client, one attempt is enough.
        let rows = conform("PJRT_Client_Create hang", &[&more, shared].concat()).rows;
        assert_eq!(rows.len(), names.len() + 5);
        let late: Vec<&Row> = rows.iter().filter(|row| row.status == Status::TimedOut).collect();
        assert!(late.len() == 1 && late[0].name == "client/can_be_made", "{rows:?}");
        let last = rows.last().unwrap();
        assert!(last.message.contains("no client can be created"), "{last:?}");
        let rows = conform("PJRT_Client_Compile hang", &[&more, shared].concat()).rows;
        assert_eq!(rows.len(), names.len() + 4);
        let late = rows.iter().filter(|row| row.status == Status::TimedOut).count();
        assert_eq!(late, 3, "{rows:?}");
        let of = |name: &str| rows.iter().find(|row| row.name == name).unwrap();
        let last = of("execute/arguments_stay");
        assert!(
            last.message.contains("not run, because compiling the program add took longer than 1 s"),
            "{last:?}"
        );
    }
}

#[test]
fn with_a_profile_only_what_its_host_needs_fails_the_run() {
    let check = |fault: &str, name: &str, more: &[&str]| {
        let mut command = with_fault("conform", fault);
        let output = command.args(["--check", name]).args(more).arg(faulty()).output().expect("it runs");
        (output.status.code(), text(&output))
    };
    // Nothing of JAX calls PJRT_Buffer_Bitcast, and PyTorch/XLA tolerates plugins without an optional function.
    let bitcast = ["PJRT_Buffer_Bitcast fail INTERNAL", "buffer/bitcast"];
    let (status, printed) = check(bitcast[0], bitcast[1], &[]);
    assert!(status == Some(1) && printed.contains("1 failed"), "{printed}");
    let (status, printed) = check(bitcast[0], bitcast[1], &["--profile", "jax"]);
    assert!(status == Some(0) && printed.contains("not needed by jax:"), "{printed}");
    assert!(printed.contains("0 failed, 1 failed that jax does not need"), "{printed}");
    let (status, printed) = check("PJRT_Buffer_Delete skip", "buffer/delete", &["--profile", "jax"]);
    assert!(
        status == Some(1) && printed.contains(", 1 failed (1 cause), 0 failed that jax does not need"),
        "{printed}"
    );
    // An advice fails a run only if the host needs it.
    let old = [
        "PJRT_LoadedExecutable_Execute when options>struct_size=80 fail INTERNAL",
        "execute/options_of_0_75",
    ];
    for (profile, expected, shown) in
        [(None, 0, "ADVICE"), (Some("jax"), 0, "ADVICE"), (Some("torch_xla"), 1, "WRONG")]
    {
        let more = profile.map_or(vec![], |profile| vec!["--profile", profile]);
        let (status, printed) = check(old[0], old[1], &more);
        assert!(status == Some(expected) && printed.contains(shown), "{profile:?}: {printed}");
    }
}

/// JAX's programs use PRED, S32, U32 and F32 unless they name another type, such as F64.
#[test]
fn a_type_that_programs_of_jax_need_not_have_may_be_refused() {
    let check = |number: u32, name: &str| {
        let fault = format!("PJRT_Client_BufferFromHostBuffer when type_={number} fail UNIMPLEMENTED");
        let mut command = with_fault("conform", &fault);
        command.args([
            "--profile",
            "jax",
            "--check",
            &format!("upload/type_{name}"),
            "--check",
            "upload/scalar",
        ]);
        let output = command.arg(faulty()).output().expect("it runs");
        (output.status.code(), text(&output))
    };
    for (number, name) in [(12, "F64"), (2, "S8"), (13, "BF16")] {
        let (status, printed) = check(number, name);
        assert!(status == Some(0) && printed.contains("1 unsupported"), "{printed}");
    }
    let (status, printed) = check(8, "U32");
    assert!(status == Some(1) && printed.contains("MISSING"), "{printed}");
}

#[test]
fn an_error_with_an_unusual_code_is_advice() {
    let check = |fault: &str| {
        let mut command = with_fault("conform", fault);
        text(&command.args(["--check", "compile/garbage"]).arg(faulty()).output().expect("it runs"))
    };
    let printed = check("PJRT_Client_Compile code INTERNAL");
    assert!(printed.contains("ADVICE") && printed.contains("0 failed, 1 advice"), "{printed}");
    assert!(check("PJRT_Client_Compile accept").contains("1 failed"));
}

#[test]
fn a_plugin_that_closes_the_files_of_its_host_is_named_as_such() {
    let lost = "its connection to this program closed";
    for fault in ["PJRT_Client_Create close_files", "PJRT_Client_Create close_files and_open_others"] {
        let rows = conform(fault, &["--filter", "client/"]).rows;
        let crashed =
            rows.iter().filter(|row| row.status.is_complaint() && row.message.contains(lost)).count();
        assert_eq!(crashed, 3, "{rows:?}");
        assert!(rows.last().unwrap().message.contains("3 checks in a row lost their connection"), "{rows:?}");
    }
    let fault = "PJRT_Plugin_Initialize close_files";
    let ran = fail(with_fault("run", fault).arg(data("add.mlir")).arg("--plugin").arg(faulty()));
    assert!(ran.contains(lost), "{ran}");
}

#[test]
fn what_only_newer_plugins_can_show_is_not_missing_in_older_ones() {
    let names =
        ["event/destroyed_before_its_callback", "compile/device_assignment", "lifetime/deleted_while_in_use"];
    for profile in ["jax", "gomlx"] {
        let mut command = cargo_pjrt();
        command.args(["conform", "--json", "--check", "execute/adds", "--profile", profile]);
        command.args(names.map(|name| format!("--check={name}"))).env("PJRT_PLUGIN_API_MINOR", "54");
        let report: Report = serde_json::from_str(&run(command.arg(hello()))).unwrap();
        assert_eq!(report.count(Status::Unsupported), names.len(), "{report:?}");
    }
    let mut command = cargo_pjrt();
    command.args(["conform", "--profile", "zml", "--check", "special/uninitialized"]);
    let printed = fail(command.arg(hello()).env("PJRT_PLUGIN_API_MINOR", "54"));
    assert!(printed.contains("MISSING        special/uninitialized"), "{printed}");
}

#[test]
fn nothing_that_a_plugin_prints_is_taken_for_what_a_check_says() {
    let forged = r#"{"Finished":["passed","",[]]}"#;
    let report = conform(&format!("PJRT_Client_Create crash {forged}"), &["--check", "client/can_be_made"]);
    let [row] = &report.rows[..] else { panic!("{report:?}") };
    assert_eq!((row.status, row.printed.as_str()), (Status::Crashed, forged));
    let inspected = fail(with_fault("inspect", "PJRT_Client_Create crash words\u{1b}[1A").arg(faulty()));
    assert!(inspected.contains("printed      words\\u{1b}[1A\n"), "{inspected}");
    assert!(
        inspected.contains("WRONG        creating a client: the process ended with an abort"),
        "{inspected}"
    );
}

#[test]
fn control_characters_of_a_plugin_do_not_reach_the_terminal() {
    let fault = "PJRT_Client_PlatformName set platform_name=text:\u{1b}[31m\nfile platform_name_size=10";
    let inspected = run(with_fault("inspect", fault).arg(faulty()));
    assert!(inspected.contains("platform     \\u{1b}[31m"), "{inspected}");
    assert!(!inspected.contains('\u{1b}'), "{inspected}");
}

#[test]
fn messages_that_are_none_are_not_read() {
    for fault in ["message_size=18446744073709551615", "message_size=1099511627776", "message=null"] {
        // The numbers of the language of faults are signed.
        let fault = fault.replace("18446744073709551615", "-1");
        let only = ["--check", "error/messages_are_as_long_as_they_say"];
        let report = conform(&format!("PJRT_Error_Message set {fault}"), &only);
        assert_eq!(report.rows[0].status, Status::Wrong, "{fault}: {report:?}");
        assert!(report.rows[0].message.contains("PJRT_Error_Message returned a message of"), "{report:?}");
    }
}

#[test]
fn sizes_that_nobody_has_written_are_named_with_their_function() {
    for (fault, check, part) in [
        (
            "PJRT_Client_PlatformName set platform_name_size=1099511627776",
            "client/platform_name",
            "PJRT_Client_PlatformName: it succeeded, but it returned 1099511627776 bytes",
        ),
        (
            "PJRT_Client_AddressableDevices set num_addressable_devices=1099511627776",
            "client/devices_exist",
            "PJRT_Client_AddressableDevices: it succeeded, but it returned a list of 1099511627776 elements",
        ),
        (
            "PJRT_Executable_NumOutputs set num_outputs=1099511627776",
            "execute/adds",
            "PJRT_Executable_NumOutputs: it succeeded, but it returned a list of 1099511627776 elements",
        ),
        (
            "PJRT_Plugin_Attributes set attributes>name_size=1099511627776",
            "plugin/attributes_have_unique_names",
            "PJRT_Plugin_Attributes: it succeeded, but it returned 1099511627776 bytes",
        ),
    ] {
        let rows = conform(fault, &["--check", check]).rows;
        assert!(rows[0].status == Status::Wrong && rows[0].message.contains(part), "{rows:?}");
    }
}

#[test]
fn inspect_fails_for_tables_that_no_host_can_use() {
    for (fault, part) in [
        ("GetPjrtApi set major=1", "hosts accept only major version 0"),
        ("GetPjrtApi set minor=28", "the oldest version that hosts accept is 0.29"),
        ("GetPjrtApi set struct_size=1000", "the table has 1000 bytes"),
        ("GetPjrtApi set struct_size=9999999", "the table has 9999999 bytes"),
        ("GetPjrtApi extension small", "its base alone has 24"),
        ("PJRT_Plugin_Initialize fail INTERNAL", "PJRT_Plugin_Initialize: INTERNAL: an injected fault"),
        ("PJRT_Client_Create exit", "creating a client: the process ended with exit status 0"),
    ] {
        let printed = fail(with_fault("inspect", fault).arg(faulty()));
        let wrong: Vec<&str> = printed.lines().filter(|line| line.starts_with("WRONG ")).collect();
        assert!(wrong.len() == 1 && wrong[0].contains(part), "{part:?} is not in {printed}");
    }
    let printed = fail(with_fault("inspect", "GetPjrtApi set major=1").arg(faulty()));
    assert!(
        printed.contains("lacks a C API version of at least 0.29 and below 1 (it reports 1."),
        "{printed}"
    );
    // The machine may lack the device.
    run(with_fault("inspect", "PJRT_Client_Create fail FAILED_PRECONDITION").arg(faulty()));
}

#[test]
fn reports_say_which_version_and_host_they_are_about() {
    let printed =
        run(cargo_pjrt().args(["conform", "--check", "execute/adds", "--profile", "jax"]).arg(hello()));
    assert!(
        printed.contains("libhello_pjrt.so, version 0.") && printed.contains("for JAX 0.10.2"),
        "{printed}"
    );
    let printed = run(cargo_pjrt().arg("inspect").arg(hello()));
    assert!(printed.contains("\njax          JAX 0.10.2 (C API 0.112): "), "{printed}");
}

#[test]
fn inspect_shows_what_the_plugin_says_about_the_environment() {
    let printed = run(cargo_pjrt().arg("inspect").arg(hello()).env("PJRT_PLUGIN_API_MINOR", "garbage"));
    assert!(
        printed.contains("printed      PJRT_PLUGIN_API_MINOR=garbage: expected a minor version"),
        "{printed}"
    );
}

#[test]
fn lists_are_of_the_checks_that_are_asked_for() {
    let list = |arguments: &[&str]| run(cargo_pjrt().args(["conform", "--list"]).args(arguments));
    let filtered = list(&["--filter", "upload/"]);
    assert!(
        filtered.lines().count() > 1
            && filtered.lines().all(|line| line.starts_with("upload/") || line.starts_with(' '))
    );
    let json: serde_json::Value =
        serde_json::from_str(&list(&["--check", "execute/adds", "--json"])).unwrap();
    assert_eq!((json.as_array().unwrap().len(), json[0]["name"].as_str()), (1, Some("execute/adds")));
    for arguments in [["--filter", "no such"], ["--check", "no such"], ["--format", "html"]] {
        let error = refuse(cargo_pjrt().args(["conform", "--list"]).args(arguments));
        assert!(error.contains("no such") || error.contains("--format text and --format json"), "{error}");
    }
    let error = refuse(cargo_pjrt().args(["conform", "--check", "no such"]).arg(hello()));
    assert!(error.contains("no such"), "{error}");
}

#[test]
fn a_reader_that_leaves_is_no_error_and_a_full_disk_is_one() {
    for arguments in
        [&["conform", "--list"][..], &["conform", "--json", "--check", "execute/adds"], &["inspect"]]
    {
        let command = |stdout: Stdio| {
            let mut command = cargo_pjrt();
            command.args(arguments).arg(hello()).stdout(stdout).stderr(Stdio::piped());
            command.spawn().unwrap().wait_with_output().unwrap()
        };
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = command(writer.into());
        assert!(output.status.success() && output.stderr.is_empty(), "{arguments:?}: {}", text(&output));
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = command(full.into());
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert!(text(&output).starts_with("error: standard output: No space left"), "{}", text(&output));
    }
}

/// Returns the running child processes of a process.
fn children(process: u32) -> Vec<u32> {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let of_thread = |thread: std::fs::DirEntry| std::fs::read_to_string(thread.path().join("children"));
    let listed: Vec<String> = threads.filter_map(|thread| of_thread(thread).ok()).collect();
    listed
        .iter()
        .flat_map(|children| children.split_whitespace())
        .filter_map(|number| number.parse().ok())
        .collect()
}

fn runs(process: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    status.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with(['Z', 'X']))
}

fn eventually(mut is_so: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + Duration::from_secs(20);
    while Instant::now() < end {
        if is_so() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    false
}

#[test]
fn nothing_runs_on_when_the_program_is_killed() {
    let scratch = Scratch::new("killed");
    let log = log(&scratch);
    let (log, program) = (log.into_os_string(), data("add.mlir").into_os_string());
    for (verb, arguments) in [
        ("conform", &["--check".into(), "execute/adds".into()][..]),
        ("inspect", &[]),
        ("run", &[program, "--plugin".into()]),
        ("replay", &[log]),
    ] {
        let mut parent = with_fault(verb, "PJRT_Client_Create hang");
        parent.args(arguments).arg(faulty()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut parent = parent.spawn().unwrap();
        let mut child = Vec::new();
        let has_child = eventually(|| {
            child = children(parent.id());
            !child.is_empty()
        });
        assert!(has_child, "{verb} has no child");
        // The child may not have reached the point where it hangs, but it ends with its parent at any point.
        parent.kill().unwrap();
        parent.wait().unwrap();
        assert!(eventually(|| !child.iter().any(|child| runs(*child))), "{verb} leaves {child:?} behind");
    }
}

#[test]
fn an_interrupted_run_reports_the_checks_that_have_run() {
    let hang = "PJRT_Client_Compile hang";
    let names = ["--check", "upload/scalar", "--check", "execute/adds", "--check", "readback/size"];
    for (signal, more) in [("-TERM", &[][..]), ("-INT", &["--shared"])] {
        let mut command = with_fault("conform", hang);
        command.args(["--json", "--jobs", "1"]).args(names).args(more).arg(faulty());
        let mut run = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        // The first check ends soon, and the second one hangs.
        std::thread::sleep(Duration::from_secs(3));
        let sent = Command::new("kill").args([signal, &run.id().to_string()]).status().unwrap();
        assert!(sent.success());
        assert!(eventually(|| run.try_wait().unwrap().is_some()), "the run goes on after {signal}");
        let output = run.wait_with_output().unwrap();
        let report: Report = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((output.status.code(), report.interrupted), (Some(130), true), "{report:?}");
        let statuses: Vec<Status> = report.rows.iter().map(|row| row.status).collect();
        assert!(statuses.contains(&Status::NotApplicable) && report.failures() == 0, "{report:?}");
        assert!(statuses.contains(&Status::Passed) && statuses.len() == 3, "{report:?}");
    }
}

#[test]
fn an_interrupted_comparison_or_stress_test_reports_what_has_run() {
    for (verb, fault, arguments) in [
        ("numerics", "PJRT_Client_Compile call 3 hang", &["--op=add"][..]),
        ("stress", "PJRT_Client_Compile hang", &["--only=threads"]),
    ] {
        let mut command = with_fault(verb, fault);
        let mut run = command
            .args(arguments)
            .arg(faulty())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_secs(3));
        assert!(Command::new("kill").args(["-TERM", &run.id().to_string()]).status().unwrap().success());
        assert!(eventually(|| run.try_wait().unwrap().is_some()), "{verb} goes on after SIGTERM");
        let output = run.wait_with_output().unwrap();
        let printed = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(130), "{printed}");
        assert!(printed.contains("because a signal ended the run"), "{verb}: {printed}");
        assert!(verb != "numerics" || printed.contains(": 2 programs in "), "{printed}");
    }
}
