//! The Profiler extension, used as JAX uses it.

use std::collections::HashMap;
use std::ptr;
use std::sync::Mutex;

use pjrt_sys::*;
use prost::Message;

use crate::host::*;

/// Tracing is a state of the process, so the tests here take turns.
static TURN: Mutex<()> = Mutex::new(());

fn api() -> &'static PLUGIN_Profiler_Api {
    let extension: &PJRT_Profiler_Extension = extension(PJRT_Extension_Type_Profiler);
    // SAFETY: the table lives as long as the process.
    unsafe { &*extension.profiler_api }
}

/// Calls a function of the profiler's table, and returns the struct, or the error's code and text.
macro_rules! profiler {
    ($function:ident($args:ident { $($field:ident $(: $value:expr)?),* $(,)? })) => {{
        #[allow(clippy::needless_update, reason = "some calls give every field")]
        let mut args = $args { $($field $(: $value)?,)* ..SizedStruct::zeroed() };
        // SAFETY: the struct is filled in as the API says.
        let error = unsafe { (api().$function.unwrap())(&raw mut args) };
        take_error(error).map(|()| args)
    }};
}

fn take_error(error: *mut PLUGIN_Profiler_Error) -> std::result::Result<(), (i32, String)> {
    if error.is_null() {
        return Ok(());
    }
    let mut code = PLUGIN_Profiler_Error_GetCode_Args { error, ..SizedStruct::zeroed() };
    let mut message = PLUGIN_Profiler_Error_Message_Args { error, ..SizedStruct::zeroed() };
    let mut destroy = PLUGIN_Profiler_Error_Destroy_Args { error, ..SizedStruct::zeroed() };
    // SAFETY: the error is the plugin's, and destroyed once.
    unsafe {
        assert!((api().error_get_code.unwrap())(&raw mut code).is_null());
        (api().error_message.unwrap())(&raw mut message);
        let read = (code.code, text(message.message, message.message_size));
        (api().error_destroy.unwrap())(&raw mut destroy);
        Err(read)
    }
}

/// The fields of `XSpace` that the tests read.
#[derive(Clone, PartialEq, Message)]
struct Space {
    #[prost(message, repeated, tag = "1")]
    planes: Vec<Plane>,
}

#[derive(Clone, PartialEq, Message)]
struct Plane {
    #[prost(string, tag = "2")]
    name: String,
    #[prost(message, repeated, tag = "3")]
    lines: Vec<Line>,
    #[prost(map = "int64, message", tag = "4")]
    event_metadata: HashMap<i64, Name>,
    #[prost(map = "int64, message", tag = "5")]
    stat_metadata: HashMap<i64, Name>,
}

#[derive(Clone, PartialEq, Message)]
struct Line {
    #[prost(string, tag = "2")]
    name: String,
    #[prost(int64, tag = "3")]
    timestamp_ns: i64,
    #[prost(message, repeated, tag = "4")]
    events: Vec<Event>,
}

#[derive(Clone, PartialEq, Message)]
struct Event {
    #[prost(int64, tag = "1")]
    metadata_id: i64,
    #[prost(int64, tag = "2")]
    offset_ps: i64,
    #[prost(int64, tag = "3")]
    duration_ps: i64,
    #[prost(message, repeated, tag = "4")]
    stats: Vec<Stat>,
}

#[derive(Clone, PartialEq, Message)]
struct Stat {
    #[prost(int64, tag = "1")]
    metadata_id: i64,
    #[prost(int64, tag = "4")]
    int64: i64,
    #[prost(string, tag = "5")]
    string: String,
}

#[derive(Clone, PartialEq, Message)]
struct Name {
    #[prost(string, tag = "2")]
    name: String,
}

/// An event with its names.
#[derive(Debug)]
struct Found {
    line: String,
    offset_ps: i64,
    duration_ps: i64,
    stats: HashMap<String, (i64, String)>,
}

fn events(space: &[u8], name: &str) -> Vec<Found> {
    let space = Space::decode(space).unwrap();
    let [plane] = &space.planes[..] else { panic!("{} planes", space.planes.len()) };
    assert_eq!(plane.name, "/device:CUSTOM:dummy");
    let found = plane.lines.iter().flat_map(|line| line.events.iter().map(move |event| (line, event)));
    let found = found.filter(|(_, event)| plane.event_metadata[&event.metadata_id].name == name);
    found
        .map(|(line, event)| {
            assert!(line.timestamp_ns > 1_700_000_000_000_000_000, "{}", line.timestamp_ns);
            let stat = |stat: &Stat| {
                (plane.stat_metadata[&stat.metadata_id].name.clone(), (stat.int64, stat.string.clone()))
            };
            Found {
                line: line.name.clone(),
                offset_ps: event.offset_ps,
                duration_ps: event.duration_ps,
                stats: event.stats.iter().map(stat).collect(),
            }
        })
        .collect()
}

/// Traces a closure.
fn traced(run: impl FnOnce()) -> Vec<u8> {
    let profiler = profiler!(create(PLUGIN_Profiler_Create_Args {})).unwrap().profiler;
    profiler!(start(PLUGIN_Profiler_Start_Args { profiler })).unwrap();
    run();
    profiler!(stop(PLUGIN_Profiler_Stop_Args { profiler })).unwrap();
    let first = profiler!(collect_data(PLUGIN_Profiler_CollectData_Args { profiler })).unwrap();
    let size = first.buffer_size_in_bytes;
    // JAX takes the bytes from here, others ask again.
    let lent = array(first.buffer.cast_const(), size).to_vec();
    let mut space = vec![0; size];
    profiler!(collect_data(PLUGIN_Profiler_CollectData_Args {
        profiler,
        buffer: space.as_mut_ptr(),
        buffer_size_in_bytes: size,
    }))
    .unwrap();
    profiler!(destroy(PLUGIN_Profiler_Destroy_Args { profiler })).unwrap();
    assert_eq!(lent, space);
    space
}

/// XLA's own hosts do not set it in these structs.
#[test]
fn a_session_does_not_depend_on_the_sizes_that_the_host_writes() {
    let _turn = TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    for struct_size in [0, 8, usize::MAX] {
        let created = profiler!(create(PLUGIN_Profiler_Create_Args { struct_size })).unwrap();
        let profiler = created.profiler;
        assert!(!profiler.is_null());
        profiler!(start(PLUGIN_Profiler_Start_Args { struct_size, profiler })).unwrap();
        profiler!(stop(PLUGIN_Profiler_Stop_Args { struct_size, profiler })).unwrap();
        let trace =
            profiler!(collect_data(PLUGIN_Profiler_CollectData_Args { struct_size, profiler })).unwrap();
        let space = array(trace.buffer.cast_const(), trace.buffer_size_in_bytes);
        assert_eq!(events(space, "negate on the device").len(), 1);
        profiler!(destroy(PLUGIN_Profiler_Destroy_Args { struct_size, profiler })).unwrap();
    }
}

/// Hosts require a table of exactly the size of their version: 80 bytes in JAX 0.10.2.
#[test]
fn the_table_is_as_large_as_the_host_knows_it() {
    let test = "the_table_is_as_large_as_the_host_knows_it";
    if std::env::var_os("PJRT_PROFILER_CHILD").is_none() {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        let child = child.args(["--exact", &format!("profiler::{test}"), "--nocapture"]);
        let output = child.env("PJRT_PROFILER_CHILD", "1").output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        return;
    }
    let client = Client::new(&[]);
    let stats = |struct_size| {
        call!(PJRT_Device_MemoryStats(PJRT_Device_MemoryStats_Args {
            struct_size,
            device: client.devices()[0]
        }))
        .unwrap();
    };
    assert_eq!(api().struct_size, 80);
    stats(185);
    assert_eq!(api().struct_size, 80);
    stats(PJRT_Device_MemoryStats_Args::STRUCT_SIZE);
    assert_eq!(api().struct_size, PLUGIN_Profiler_Api::STRUCT_SIZE);
}

#[test]
fn a_trace_has_calls_spans_of_the_author_and_timelines_of_the_device() {
    let _turn = TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let space = std::thread::Builder::new()
        .name("the host".to_owned())
        .spawn(move || {
            let client = Client::new(&[]);
            let space = traced(|| {
                let buffer = client.upload(0, &[1.0; 4]);
                let executable = client.compile("negate").unwrap();
                executable.run(&[&buffer]).unwrap();
                let span = tracing::info_span!(
                    "step",
                    operation = "negate",
                    elements = 4,
                    late = tracing::field::Empty
                );
                span.record("late", 5);
                span.in_scope(|| tracing::info!(number = 3, "inside"));
                let name = format!("operation {}", 7);
                drop(tracing::info_span!("operation", otel.name = name, elements = 4).entered());
            });
            // What is not traced leaves nothing behind.
            drop(tracing::info_span!("never").entered());
            space
        })
        .unwrap()
        .join()
        .unwrap();
    // Other tests run on other threads meanwhile.
    let of_the_host = |name| {
        let mut found = events(&space, name);
        found.retain(|event| event.line == "the host");
        found
    };
    let [compile] = &of_the_host("PJRT_Client_Compile")[..] else { panic!("not one compilation") };
    let [execute] = &of_the_host("PJRT_LoadedExecutable_Execute")[..] else { panic!("not one execution") };
    assert!(compile.duration_ps > 0 && compile.offset_ps >= 0);
    assert!(execute.offset_ps >= compile.offset_ps + compile.duration_ps, "{compile:?} {execute:?}");
    let [step] = &events(&space, "step")[..] else { panic!("not one step") };
    assert_eq!(step.stats["operation"].1, "negate");
    assert_eq!((step.stats["elements"].0, step.stats["late"].0), (4, 5));
    let [inside] = &events(&space, "inside")[..] else { panic!("not one event") };
    assert_eq!(inside.stats["number"].0, 3);
    assert!((step.offset_ps..=step.offset_ps + step.duration_ps).contains(&inside.offset_ps));
    let [device] = &events(&space, "negate on the device")[..] else { panic!("not one timeline") };
    assert_eq!((&*device.line, device.duration_ps, device.stats["cycles"].0), ("core 0", 1_500_000, 7));
    let [named] = &events(&space, "operation 7")[..] else { panic!("not one span with a name of its own") };
    assert_eq!((named.stats.len(), named.stats["elements"].0), (1, 4));
    assert!(events(&space, "never").is_empty());
    assert!(events(&space, "PJRT_Client_Devices").is_empty());
}

#[test]
fn a_call_is_linked_with_the_span_of_the_host_that_made_it() {
    let _turn = TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let client = Client::new(&[]);
    let space = traced(|| {
        let mut link = PJRT_Profiler_Extension {
            base: PJRT_Extension_Base {
                struct_size: PJRT_Profiler_Extension::STRUCT_SIZE,
                type_: PJRT_Extension_Type_Profiler,
                next: ptr::null_mut(),
            },
            profiler_api: ptr::null_mut(),
            traceme_context_id: 4711,
        };
        // Refused, but a call nevertheless.
        call!(PJRT_Client_Compile(PJRT_Client_Compile_Args {
            extension_start: (&raw mut link).cast(),
            client: client.0,
        }))
        .unwrap_err();
    });
    let linked = events(&space, "PJRT_Client_Compile");
    assert!(
        linked.iter().any(|event| event.stats.get("_c").is_some_and(|stat| stat.0 == 4711)),
        "{linked:?}"
    );
    assert_eq!(linked[0].stats["_ct"].0, 14);
}

#[test]
fn a_trace_can_be_consumed_once() {
    let _turn = TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let profiler = profiler!(create(PLUGIN_Profiler_Create_Args {})).unwrap().profiler;
    // FAILED_PRECONDITION: nothing has been traced, then tracing is active, then it has ended.
    assert_eq!(profiler!(consume(PLUGIN_Profiler_Consume_Args { profiler })).unwrap_err().0, 9);
    profiler!(start(PLUGIN_Profiler_Start_Args { profiler })).unwrap();
    assert_eq!(profiler!(start(PLUGIN_Profiler_Start_Args { profiler })).unwrap_err().0, 9);
    assert_eq!(profiler!(collect_data(PLUGIN_Profiler_CollectData_Args { profiler })).unwrap_err().0, 9);
    profiler!(stop(PLUGIN_Profiler_Stop_Args { profiler })).unwrap();
    let (code, message) = profiler!(stop(PLUGIN_Profiler_Stop_Args { profiler })).unwrap_err();
    assert_eq!(code, 9);
    assert!(message.contains("the session is not tracing [PLUGIN_Profiler_Stop]"), "{message}");
    let consume_result = profiler!(consume(PLUGIN_Profiler_Consume_Args { profiler })).unwrap().result;
    profiler!(consume(PLUGIN_Profiler_Consume_Args { profiler })).unwrap_err();
    let args = profiler!(serialize(PLUGIN_Profiler_Serialize_Args { profiler, consume_result })).unwrap();
    assert_eq!(events(array(args.serialized_bytes, args.serialized_size), "negate on the device").len(), 1);
    let mut destroy = PLUGIN_Profiler_ConsumeResult_Destroy_Args { consume_result, ..SizedStruct::zeroed() };
    // SAFETY: what the function is for, once.
    unsafe { (api().consume_result_destroy.unwrap())(&raw mut destroy) };
    profiler!(destroy(PLUGIN_Profiler_Destroy_Args { profiler })).unwrap();
}
