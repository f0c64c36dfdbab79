//! What a call through the table costs, in nanoseconds: `cargo bench -p pjrt-plugin`.
//!
//! The client behind it does next to nothing, so what is measured is this crate, its allocations included.

#[path = "../tests/c_api/dummy.rs"]
#[allow(dead_code, reason = "the tests use all of it")]
mod dummy;
#[path = "../tests/c_api/host.rs"]
#[allow(dead_code, reason = "the tests use all of it")]
mod host;

use std::hint::black_box;
use std::ptr;
use std::time::Instant;

use pjrt_sys::*;

use crate::host::{Client, call};

/// The best of several averages.
fn measure(name: &str, mut run: impl FnMut()) {
    const CALLS: u32 = 20_000;
    let best = (0..20)
        .map(|_| {
            let start = Instant::now();
            (0..CALLS).for_each(|_| run());
            start.elapsed() / CALLS
        })
        .min();
    println!("{name:32} {:>6} ns", best.unwrap_or_default().as_nanos());
}

fn main() {
    let client = Client::new(&[]);
    let buffer = client.upload(0, &[1.0; 4]);
    measure("Buffer_ElementType", || {
        let args = call!(PJRT_Buffer_ElementType(PJRT_Buffer_ElementType_Args { buffer: buffer.0 }));
        black_box(args.unwrap().type_);
    });
    measure("Buffer_ReadyEvent, Event_Destroy", || {
        let args = call!(PJRT_Buffer_ReadyEvent(PJRT_Buffer_ReadyEvent_Args { buffer: buffer.0 }));
        let event = args.unwrap().event;
        call!(PJRT_Event_Destroy(PJRT_Event_Destroy_Args { event })).unwrap();
    });
    measure("Buffer_CopyRawToHost, 16 bytes", || {
        let mut dst = [0_u8; 16];
        let args = call!(PJRT_Buffer_CopyRawToHost(PJRT_Buffer_CopyRawToHost_Args {
            buffer: buffer.0,
            dst: dst.as_mut_ptr().cast(),
            transfer_size: 16,
        }));
        call!(PJRT_Event_Destroy(PJRT_Event_Destroy_Args { event: args.unwrap().event })).unwrap();
    });
    for (program, arguments) in [("none", 0), ("negate", 1)] {
        let executable = client.compile(program).unwrap();
        let inputs = vec![buffer.0; arguments];
        let list = inputs.as_ptr();
        let mut outputs = vec![ptr::null_mut(); arguments];
        let output_list = outputs.as_mut_ptr();
        let mut options = PJRT_ExecuteOptions::zeroed();
        measure(&format!("Execute, {arguments} arguments and outputs"), || {
            let mut event = ptr::null_mut();
            call!(PJRT_LoadedExecutable_Execute(PJRT_LoadedExecutable_Execute_Args {
                executable: executable.0,
                options: &raw mut options,
                argument_lists: &raw const list,
                num_devices: 1,
                num_args: arguments,
                output_lists: &raw const output_list,
                device_complete_events: &raw mut event,
            }))
            .unwrap();
            call!(PJRT_Event_Destroy(PJRT_Event_Destroy_Args { event })).unwrap();
            for buffer in &outputs {
                call!(PJRT_Buffer_Destroy(PJRT_Buffer_Destroy_Args { buffer: *buffer })).unwrap();
            }
        });
    }
}
