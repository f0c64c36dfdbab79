//! Tests of the output that the environment enables: traces and reports of leaks, each in its own process.

use std::process::{Command, Output};

use serde_json::Value;

use crate::host::*;

/// Set in the process that is observed.
const IN_CHILD: &str = "PJRT_OBSERVATION_CHILD";

/// Runs this test again in a process with an environment variable. Returns `None` in that process.
fn observed(test: &str, variable: &str, value: &str) -> Option<Output> {
    if std::env::var_os(IN_CHILD).is_some() {
        return None;
    }
    let mut child = Command::new(std::env::current_exe().unwrap());
    let child = child.args(["--exact", &format!("observation::{test}"), "--nocapture", "--test-threads=1"]);
    let output = child.env(IN_CHILD, "1").env(variable, value).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(output)
}

#[test]
fn a_trace_has_every_call_with_arguments_result_and_time() {
    let folder = std::env::temp_dir().join(format!("pjrt-plugin-trace-{}", std::process::id()));
    let file = folder.join("%p.json");
    std::fs::create_dir_all(&folder).unwrap();
    let test = "a_trace_has_every_call_with_arguments_result_and_time";
    let Some(_) = observed(test, "PJRT_PLUGIN_TRACE", file.to_str().unwrap()) else {
        let client = Client::new(&[]);
        let buffer = client.upload(0, &[1.0; 4]);
        let executable = client.compile("negate").unwrap();
        executable.run(&[&buffer]).unwrap();
        assert!(client.compile("a \"quoted\" word").is_err());
        // The trace is whole before the process ends, however it will.
        let here = std::env::var("PJRT_PLUGIN_TRACE").unwrap().replace("%p", &std::process::id().to_string());
        let so_far: Vec<Value> = serde_json::from_slice(&std::fs::read(here).unwrap()).unwrap();
        assert!(so_far.len() > 5, "{so_far:?}");
        // The process that observes has made the folder, under its own number.
        std::fs::remove_dir(&folder).unwrap();
        return;
    };
    let written: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    let [file] = &written[..] else { panic!("not one file: {written:?}") };
    assert!(file.file_stem().unwrap().to_str().unwrap().parse::<u32>().is_ok(), "{}", file.display());
    let text = std::fs::read_to_string(file).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    let events: Vec<Value> = serde_json::from_str(&text).unwrap();
    let named = |name: &str| {
        let mut events = events.iter().filter(|event| event["name"] == name);
        (events.next().unwrap_or_else(|| panic!("no {name} in {text}")), events.next())
    };
    let (upload, _) = named("PJRT_Client_BufferFromHostBuffer");
    assert_eq!(upload["ph"], "X");
    assert!(upload["dur"].as_f64().unwrap() > 0.0 && upload["ts"].as_f64().unwrap() >= 0.0);
    assert_eq!(upload["args"]["dims"], serde_json::json!([4]));
    assert_eq!(upload["args"]["type_"], "f32");
    assert_eq!(upload["args"]["result"], "OK");
    let (_, failed) = named("PJRT_Client_Compile");
    let result = failed.unwrap()["args"]["result"].as_str().unwrap();
    assert!(result.starts_with("INVALID_ARGUMENT: ") && result.contains("is no program"), "{result}");
    // What one call gave is what the next one got.
    let (execute, _) = named("PJRT_LoadedExecutable_Execute");
    let (destroy, _) = named("PJRT_LoadedExecutable_Destroy");
    assert_eq!(execute["args"]["executable"], destroy["args"]["executable"]);
}

#[test]
fn a_leak_report_lists_what_is_alive_and_where_it_was_made() {
    let test = "a_leak_report_lists_what_is_alive_and_where_it_was_made";
    let Some(output) = observed(test, "PJRT_PLUGIN_LEAK_REPORT", "1") else {
        let client = Client::new(&[]);
        let _ = client.upload(0, &[1.0; 4]);
        let leaked = client.compile("negate").unwrap();
        assert!(client.compile("nonsense").is_err());
        std::mem::forget((client, leaked));
        return;
    };
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("the host did not destroy 2 of 5 handles:\n"), "{said}");
    for line in [
        "  PJRT_Client, handle number 1, created by PJRT_Client_Create on thread",
        "  PJRT_LoadedExecutable, handle",
    ] {
        assert!(said.contains(line), "{said}");
    }
    assert!(said.contains("created by PJRT_Client_Compile"), "{said}");
    assert!(!said.contains("PJRT_Buffer") && !said.contains("PJRT_Error"), "{said}");
}

#[test]
fn a_leak_report_says_that_everything_was_given_back() {
    let test = "a_leak_report_says_that_everything_was_given_back";
    let Some(output) = observed(test, "PJRT_PLUGIN_LEAK_REPORT", "1") else {
        drop(Client::new(&[]));
        return;
    };
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("PJRT_PLUGIN_LEAK_REPORT: the host destroyed all 1 handles\n"), "{said}");
}

/// A file that cannot be overwritten receives the events one after another, without the end of the array.
#[test]
fn a_trace_can_go_to_a_pipe() {
    let test = "a_trace_can_go_to_a_pipe";
    let Some(output) = observed(test, "PJRT_PLUGIN_TRACE", "/dev/stderr") else {
        drop(Client::new(&[]));
        return;
    };
    let said = String::from_utf8_lossy(&output.stderr);
    let start = said.find("[\n{").unwrap_or_else(|| panic!("{said}"));
    let end = said.rfind("}}").unwrap() + 2;
    let events: Vec<Value> = serde_json::from_str(&format!("{}]", &said[start..end])).unwrap();
    assert!(events.iter().any(|event| event["name"] == "PJRT_Client_Destroy"), "{said}");
}

#[test]
fn a_trace_that_cannot_be_written_stops_nothing() {
    let test = "a_trace_that_cannot_be_written_stops_nothing";
    let Some(output) = observed(test, "PJRT_PLUGIN_TRACE", "/nowhere/at/all.json") else {
        drop(Client::new(&[]));
        return;
    };
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("PJRT_PLUGIN_TRACE=/nowhere/at/all.json: "), "{said}");
}

#[test]
fn a_client_that_lives_when_the_process_ends_is_told() {
    let test = "a_client_that_lives_when_the_process_ends_is_told";
    let Some(output) = observed(test, "PJRT_OBSERVATION_EXIT", "1") else {
        let options = [text_option("panic_in", "process_exit")];
        // One that is gone by then, and one that its host forgets. A panic stays inside.
        drop(Client::new(&options));
        std::mem::forget(Client::new(&options));
        return;
    };
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(said.matches("the dummy lets its device go").count(), 1, "{said}");
}
