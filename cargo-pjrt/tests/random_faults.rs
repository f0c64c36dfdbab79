//! Tests that the checks with random sequences of calls detect faults of features that are right for small cases: few dimensions,
//! arguments and references, the first device, and one thread.
//!
//! The faults are injected into refcpu with four devices, if `TEST_REFCPU` names its library, and otherwise into hello.

use std::path::PathBuf;

use cargo_pjrt::conform::{Report, Status};
use common::{cargo_pjrt, example, hello};

mod common;

/// The name of a check after `random/`, a fault, and a part of the message about it.
type Fault = (&'static str, &'static str, &'static str);

/// The faults that every plugin can have.
const OF_ALL: &[Fault] = &[
    ("arrays", "PJRT_Buffer_CopyRawToHost rank_from 7 give offset=0", "copy raw bytes of array"),
    (
        "arrays",
        "PJRT_Client_BufferFromHostBuffer least num_byte_strides 6 give byte_strides=null num_byte_strides=0",
        "byte_strides [",
    ),
    ("arrays", "PJRT_Buffer_GetMemoryLayout rank_from 9 shorten_layout", "PJRT_Buffer_GetMemoryLayout"),
    ("arrays", "PJRT_Buffer_ToHostBuffer rank_from 6 give host_layout=null", "host_layout"),
    ("events", "PJRT_Event_Set least error_message_size 128 give error_message_size=128", "and a message of"),
    ("events", "PJRT_Event_OnReady since PJRT_Event_IsReady callback no_error", "reports no error"),
    (
        "transfers",
        "PJRT_AsyncHostToDeviceTransferManager_TransferData least buffer_index 8 give offset=0",
        "of a transfer manager",
    ),
    (
        "transfers",
        "PJRT_AsyncHostToDeviceTransferManager_SetBufferError least buffer_index 3 skip",
        "of a transfer manager",
    ),
    ("threads", "PJRT_LoadedExecutable_Execute locks_of_arguments", "wait for each other's locks"),
    ("threads", "PJRT_Buffer_CopyToMemory at_once mixed buffer", "a copy of array"),
    ("threads", "PJRT_LoadedExecutable_Execute at_once mixed argument_lists", "if no other thread runs"),
];

/// The faults of plugins that have several devices, programs of many parameters, donation, and arrays that the host reads in place.
const OF_REFCPU: &[Fault] = &[
    ("executions", "PJRT_LoadedExecutable_Execute least num_args 33 arguments_in_5_bits", "output "),
    (
        "executions",
        "PJRT_LoadedExecutable_Execute least num_args 33 donation_in_5_bits",
        "is not donated, is deleted",
    ),
    (
        "executions_on_devices",
        "PJRT_LoadedExecutable_Execute hide_errors_after_first_device",
        "completes without an error",
    ),
    (
        "executions_on_devices",
        "PJRT_LoadedExecutable_Execute least num_devices 3 lose_event 2",
        "did not complete in",
    ),
    ("references", "PJRT_Buffer_DecreaseExternalReferenceCount flag_of_references", "the bytes in place"),
    (
        "references",
        "PJRT_Buffer_OpaqueDeviceMemoryDataPointer rank_from 5 set device_memory_ptr+8",
        "the bytes in place",
    ),
];

/// Returns the plugin, the arguments that give it several devices, and whether it is refcpu.
fn plugin() -> (PathBuf, &'static [&'static str], bool) {
    match std::env::var_os("TEST_REFCPU") {
        Some(refcpu) => (refcpu.into(), &["--option=num_devices=4"], true),
        None => {
            println!("TEST_REFCPU does not name refcpu's library: only the faults of hello are tried");
            (hello(), &[], false)
        }
    }
}

fn report(fault: &str, arguments: &[&str]) -> Report {
    let (plugin, options, _) = plugin();
    let output = cargo_pjrt()
        .args(["conform", "--json"])
        .args(options)
        .args(arguments)
        .arg(example("fault_proxy"))
        .env("FAULT_PROXY_INNER", plugin)
        .env("FAULT_PROXY", fault)
        .output()
        .expect("the kit runs");
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)))
}

#[test]
fn faults_of_combinations_are_noticed_and_named() {
    let of_refcpu = if plugin().2 { OF_REFCPU } else { &[] };
    let mut complaints = Vec::new();
    for (theme, fault, text) in OF_ALL.iter().chain(of_refcpu) {
        let report = report(fault, &[&format!("--check=random/{theme}")]);
        let row = &report.rows[0];
        println!("{fault}: {:?} {}", row.status, row.message);
        if row.status != Status::Wrong || !row.message.contains(text) {
            complaints.push(format!("random/{theme}: {fault}: {:?} {}", row.status, row.message));
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn a_good_plugin_passes_with_other_seeds() {
    for seed in ["1000", "2000"] {
        let report = report("", &["--filter=random/", "--rounds=30", &format!("--seed={seed}")]);
        let failed: Vec<_> = report.rows.iter().filter(|row| row.status.is_complaint()).collect();
        assert!(!report.rows.is_empty() && failed.is_empty(), "{failed:?}");
    }
}

/// A sequence is repeated by its seed.
#[test]
fn the_message_names_the_seed_that_fails_again() {
    const FAULT: &str = "PJRT_Buffer_CopyRawToHost rank_from 7 give offset=0";
    let message = report(FAULT, &["--check=random/arrays"]).rows[0].message.clone();
    let seed =
        message.split("--seed ").nth(1).and_then(|rest| rest.split(' ').next()).expect("a seed").to_owned();
    let again = report(FAULT, &["--check=random/arrays", "--rounds=1", &format!("--seed={seed}")]);
    assert_eq!(again.rows[0].message, message);
}
