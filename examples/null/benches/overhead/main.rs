//! Measures the time that the SDK adds to a call: the same calls of the null plugin, and of functions that are written by hand
//! against the C API. Neither computes anything.
//!
//! `cargo bench -p null-pjrt` prints nanoseconds. With `-- --instructions`, it prints instructions, which do not depend on the
//! load of the machine (needs valgrind).

mod by_hand;

use std::hint::black_box;
use std::process::{Command, ExitCode};
use std::ptr;
use std::time::Instant;

use null_pjrt::Null;
use pjrt_sys::*;

/// One of the two compared implementations: its function table, and a client.
pub(crate) struct Side {
    name: &'static str,
    api: &'static PJRT_Api,
    client: *mut PJRT_Client,
    device: *mut PJRT_Device,
}

/// Calls a function of a table, which must succeed.
macro_rules! call {
    ($api:expr, $function:ident($args:ident { $($field:ident $(: $value:expr)?),* $(,)? })) => {{
        #[allow(clippy::needless_update, reason = "some calls give every field")]
        let mut args = $args { $($field $(: $value)?,)* ..SizedStruct::zeroed() };
        // SAFETY: the struct is filled in as the API says, with pointers that the plugin gave or that live here.
        let error = unsafe { ($api.$function.unwrap())(&raw mut args) };
        assert!(error.is_null(), stringify!($function));
        args
    }};
}

impl Side {
    fn upload(&self, numbers: &[f32; 4]) -> *mut PJRT_Buffer {
        let dims = [4_i64];
        let args = call!(
            self.api,
            PJRT_Client_BufferFromHostBuffer(PJRT_Client_BufferFromHostBuffer_Args {
                client: self.client,
                data: numbers.as_ptr().cast(),
                type_: PJRT_Buffer_Type_F32,
                dims: dims.as_ptr(),
                num_dims: 1,
                host_buffer_semantics: PJRT_HostBufferSemantics_kImmutableZeroCopy,
                device: self.device,
            })
        );
        self.destroy_event(args.done_with_host_buffer);
        args.buffer
    }

    fn destroy_event(&self, event: *mut PJRT_Event) {
        call!(self.api, PJRT_Event_Destroy(PJRT_Event_Destroy_Args { event }));
    }

    fn destroy_buffer(&self, buffer: *mut PJRT_Buffer) {
        call!(self.api, PJRT_Buffer_Destroy(PJRT_Buffer_Destroy_Args { buffer }));
    }
}

/// A case: its name, and a function that creates its loop. The argument of the loop is the number of iterations.
type Case = (&'static str, fn(&Side) -> Box<dyn FnMut(u32) + '_>);

const CASES: &[Case] = &[
    ("getter", |side| {
        let buffer = side.upload(&[1.0; 4]);
        Box::new(move |times| {
            for _ in 0..times {
                black_box(
                    call!(side.api, PJRT_Buffer_ElementType(PJRT_Buffer_ElementType_Args { buffer })).type_,
                );
            }
        })
    }),
    ("event", |side| {
        let buffer = side.upload(&[1.0; 4]);
        Box::new(move |times| {
            for _ in 0..times {
                let args = call!(side.api, PJRT_Buffer_ReadyEvent(PJRT_Buffer_ReadyEvent_Args { buffer }));
                side.destroy_event(args.event);
            }
        })
    }),
    ("buffer", |side| {
        Box::new(move |times| {
            for _ in 0..times {
                side.destroy_buffer(side.upload(black_box(&[1.0; 4])));
            }
        })
    }),
    ("execute_1", |side| execute(side, 1)),
    ("execute_100", |side| execute(side, 100)),
];

/// Creates a loop of executions with this number of arguments and one output. The loop destroys the output and the event.
fn execute(side: &Side, arguments: usize) -> Box<dyn FnMut(u32) + '_> {
    static NUMBERS: [f32; 4] = [1.0; 4];
    let parameters: Vec<String> = (0..arguments).map(|i| format!("%{i}: tensor<4xf32>")).collect();
    let code = format!(
        "func.func @main({}) -> tensor<4xf32> {{ return %0 : tensor<4xf32> }}",
        parameters.join(", ")
    );
    let program = PJRT_Program {
        code: code.as_ptr().cast_mut().cast(),
        code_size: code.len(),
        format: "mlir".as_ptr().cast(),
        format_size: 4,
        ..PJRT_Program::zeroed()
    };
    let executable = call!(
        side.api,
        PJRT_Client_Compile(PJRT_Client_Compile_Args { client: side.client, program: &raw const program })
    )
    .executable;
    let inputs: Vec<*mut PJRT_Buffer> = (0..arguments).map(|_| side.upload(&NUMBERS)).collect();
    Box::new(move |times| {
        let mut options = PJRT_ExecuteOptions::zeroed();
        for _ in 0..times {
            let (list, mut output, mut event) = (inputs.as_ptr(), ptr::null_mut(), ptr::null_mut());
            let output_list = &raw mut output;
            call!(
                side.api,
                PJRT_LoadedExecutable_Execute(PJRT_LoadedExecutable_Execute_Args {
                    executable,
                    options: &raw mut options,
                    argument_lists: &raw const list,
                    num_devices: 1,
                    num_args: inputs.len(),
                    output_lists: &raw const output_list,
                    device_complete_events: &raw mut event,
                })
            );
            side.destroy_event(event);
            side.destroy_buffer(output);
        }
    })
}

fn sides() -> [Side; 2] {
    [("by hand", by_hand::table()), ("SDK", pjrt_plugin::api_table!(Null))].map(|(name, api)| {
        let client = call!(api, PJRT_Client_Create(PJRT_Client_Create_Args {})).client;
        let devices = call!(api, PJRT_Client_Devices(PJRT_Client_Devices_Args { client }));
        // SAFETY: there is a device.
        Side { name, api, client, device: unsafe { *devices.devices } }
    })
}

/// Returns the best of several averages for each side. The sides are measured alternately.
fn nanoseconds(case: Case, sides: &[Side; 2]) -> [f64; 2] {
    const TIMES: u32 = 2_000;
    let mut loops = [(case.1)(&sides[0]), (case.1)(&sides[1])];
    let mut best = [f64::INFINITY; 2];
    for _ in 0..200 {
        for (run, best) in loops.iter_mut().zip(&mut best) {
            let start = Instant::now();
            run(TIMES);
            *best = best.min(start.elapsed().as_nanos() as f64 / f64::from(TIMES));
        }
    }
    best
}

/// Returns the number of instructions that valgrind counts for `times` iterations of a case on one side.
fn count(case: &str, side: &str, times: u32) -> Option<u64> {
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    command.arg(std::env::current_exe().ok()?).args(["--run", case, side, &times.to_string()]);
    let output = command.output().ok()?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let collected = said.lines().find_map(|line| line.split_once("Collected : "))?.1;
    collected.trim().parse().ok()
}

fn instructions(case: Case, sides: &[Side; 2]) -> Option<[f64; 2]> {
    let mut counts = [0.0; 2];
    for (side, result) in sides.iter().zip(&mut counts) {
        // The difference does not include instructions that run only once.
        let (few, many) = (count(case.0, side.name, 1_000)?, count(case.0, side.name, 2_000)?);
        *result = (many as f64 - few as f64) / 1_000.0;
    }
    Some(counts)
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let sides = sides();
    if let Some(place) = arguments.iter().position(|argument| argument == "--run") {
        let [case, side, times] = &arguments[place + 1..place + 4] else { return ExitCode::FAILURE };
        let case = CASES.iter().find(|known| known.0 == case);
        let side = sides.iter().find(|known| known.name == side);
        let (Some(case), Some(side), Ok(times)) = (case, side, times.parse()) else {
            return ExitCode::FAILURE;
        };
        (case.1)(side)(times);
        return ExitCode::SUCCESS;
    }
    let by_count = arguments.iter().any(|argument| argument == "--instructions");
    let unit = if by_count { "instructions" } else { "ns" };
    println!("| call | by hand, {unit} | SDK, {unit} | more |\n|---|---|---|---|");
    for case in CASES {
        let measured = if by_count { instructions(*case, &sides) } else { Some(nanoseconds(*case, &sides)) };
        let Some([by_hand, sdk]) = measured else {
            eprintln!("valgrind cannot be run, or gives no count");
            return ExitCode::FAILURE;
        };
        println!("| {} | {by_hand:.0} | {sdk:.0} | {:.0} |", case.0, sdk - by_hand);
    }
    ExitCode::SUCCESS
}
