//! Every function with the structs of every version of its caller: neither a read nor a write beyond the declared size.
//!
//! Structs only ever grew at their end, so the sizes that versions of the API have had are among the ends of the fields. Each
//! struct is placed directly before a page that can be neither read nor written.

use std::ffi::c_void;
use std::process::Command;
use std::ptr;

use pjrt_sys::*;

use crate::host::*;

/// A function of the table, with any arguments.
type Function = unsafe extern "C" fn(*mut u8) -> *mut PJRT_Error;

/// Memory that ends where a guard page begins.
struct Guarded {
    start: *mut u8,
    page: usize,
}

impl Guarded {
    fn new() -> Self {
        // SAFETY: asks for the size of a page, and for two new pages, of which the second is locked.
        unsafe {
            let page = usize::try_from(libc::sysconf(libc::_SC_PAGESIZE)).unwrap();
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let start =
                libc::mmap(ptr::null_mut(), 2 * page, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0);
            assert_ne!(start, libc::MAP_FAILED);
            assert_eq!(libc::mprotect(start.byte_add(page), page, libc::PROT_NONE), 0);
            Self { start: start.cast(), page }
        }
    }

    /// Writes bytes at the very end.
    fn put(&self, bytes: &[u8]) -> *mut u8 {
        assert!(bytes.len() <= self.page);
        // SAFETY: the first page has room for the bytes.
        unsafe {
            let place = self.start.add(self.page - bytes.len());
            ptr::copy_nonoverlapping(bytes.as_ptr(), place, bytes.len());
            place
        }
    }
}

/// Live objects for the fields of a struct, which its function may destroy. They are never released, because the fields determine
/// which of them a function has destroyed, and the process ends soon.
struct Objects {
    client: *mut PJRT_Client,
    device: *mut PJRT_Device,
    memory: *mut PJRT_Memory,
    buffer: *mut PJRT_Buffer,
    event: *mut PJRT_Event,
    loaded: *mut PJRT_LoadedExecutable,
    executable: *mut PJRT_Executable,
    topology: *mut PJRT_TopologyDescription,
    description: *mut PJRT_DeviceDescription,
    error: *mut PJRT_Error,
    program: *mut PJRT_Program,
    options: *mut PJRT_ExecuteOptions,
    room: *mut c_void,
}

impl Objects {
    fn new() -> Self {
        let client = Client::new(&[]);
        let (device, memory) = (client.devices()[0], client.memories(0)[0]);
        let buffer = client.upload(0, &[1.0; 4]);
        let loaded = client.compile("negate").unwrap();
        let name = "row";
        let topology = call!(PJRT_TopologyDescription_Create(PJRT_TopologyDescription_Create_Args {
            topology_name: name.as_ptr().cast(),
            topology_name_size: name.len(),
        }))
        .unwrap();
        let description =
            call!(PJRT_Device_GetDescription(PJRT_Device_GetDescription_Args { device })).unwrap();
        let mut of_nobody = PJRT_Event_Await_Args::zeroed();
        // SAFETY: a null event is refused.
        let error = unsafe { (api().PJRT_Event_Await.unwrap())(&raw mut of_nobody) };
        // Slot 48 fills the program in, and its code is as long as this.
        let code = b"negate".to_vec().leak();
        let objects = Self {
            client: client.0,
            device,
            memory,
            buffer: buffer.0,
            event: call!(PJRT_Event_Create(PJRT_Event_Create_Args {})).unwrap().event,
            executable: loaded.get(),
            loaded: loaded.0,
            topology: topology.topology,
            description: description.device_description,
            error,
            program: Box::leak(Box::new(PJRT_Program {
                code: code.as_mut_ptr().cast(),
                code_size: code.len(),
                format: "mlir".as_ptr().cast(),
                format_size: 4,
                ..PJRT_Program::zeroed()
            })),
            options: Box::leak(Box::new(PJRT_ExecuteOptions::zeroed())),
            room: Box::leak(Box::new([0_u64; 64])).as_mut_ptr().cast(),
        };
        std::mem::forget((client, buffer, loaded));
        objects
    }

    /// Returns the value of a field of this type, or `None` for zero.
    fn of_type(&self, ty: &str) -> Option<usize> {
        let ty = ty.strip_prefix("*mut ").or_else(|| ty.strip_prefix("*const ")).unwrap_or(ty);
        Some(match ty {
            "PJRT_Client" => self.client.addr(),
            "PJRT_Device" => self.device.addr(),
            "PJRT_Memory" => self.memory.addr(),
            "PJRT_Buffer" => self.buffer.addr(),
            "PJRT_Event" => self.event.addr(),
            "PJRT_LoadedExecutable" => self.loaded.addr(),
            "PJRT_Executable" => self.executable.addr(),
            "PJRT_TopologyDescription" => self.topology.addr(),
            "PJRT_DeviceDescription" => self.description.addr(),
            "PJRT_Error" => self.error.addr(),
            "PJRT_Program" => self.program.addr(),
            "PJRT_ExecuteOptions" => self.options.addr(),
            "::core::ffi::c_void" => self.room.addr(),
            "PJRT_Buffer_Type" => PJRT_Buffer_Type_F32.0 as usize,
            _ => return None,
        })
    }

    /// Returns a struct of a size, with the fields that it contains.
    fn fill(&self, layout: &StructLayout, size: usize) -> Vec<u8> {
        let mut bytes = vec![0; size];
        bytes[..8].copy_from_slice(&size.to_ne_bytes());
        for field in layout.fields.iter().filter(|field| field.end <= size) {
            if let Some(value) = self.of_type(field.ty) {
                bytes[field.offset..field.end]
                    .copy_from_slice(&value.to_ne_bytes()[..field.end - field.offset]);
            }
        }
        bytes
    }
}

/// Returns every size that the struct may have had, some that end within a field, and one of a future version.
fn sizes(layout: &StructLayout) -> Vec<usize> {
    let ends = layout.fields.iter().flat_map(|field| [field.end, field.offset + 1]);
    let mut sizes: Vec<usize> =
        ends.chain([8, 16, layout.size, layout.size + 64]).filter(|size| *size >= 8).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// Set in the process that makes the calls.
const IN_CHILD: &str = "PJRT_STRUCT_SIZES_CHILD";

/// Runs a test of this file in its own process, which an access to a guard page ends. Its last line of output names the call.
fn in_child(test: &str, run: impl FnOnce()) {
    if std::env::var_os(IN_CHILD).is_some() {
        return run();
    }
    let mut child = Command::new(std::env::current_exe().unwrap());
    let child = child.args(["--exact", &format!("struct_sizes::{test}"), "--nocapture", "--test-threads=1"]);
    let output = child.env(IN_CHILD, "1").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let last: Vec<&str> = said.lines().rev().take(8).collect();
    assert!(output.status.success(), "{}; last lines first:\n{}", output.status, last.join("\n"));
}

#[test]
fn no_function_goes_beyond_the_size_that_its_caller_declares() {
    in_child("no_function_goes_beyond_the_size_that_its_caller_declares", || {
        let guarded = Guarded::new();
        for slot in SLOTS {
            for size in sizes(slot.args) {
                eprintln!("{} with a struct of {size} bytes", slot.name);
                call_with_size(&guarded, slot, size);
            }
        }
    });
}

fn call_with_size(guarded: &Guarded, slot: &Slot, size: usize) {
    const BEYOND: u8 = 0xa5;
    let objects = Objects::new();
    if slot.name != "PJRT_Event_Set" {
        call!(PJRT_Event_Set(PJRT_Event_Set_Args { event: objects.event })).unwrap();
    }
    let mut bytes = objects.fill(slot.args, size);
    if size > slot.args.size {
        bytes[slot.args.size..].fill(BEYOND);
    }
    // The one struct that hosts declare shorter than it is: what they pass has its full size.
    let declared_short = slot.name == "PJRT_Plugin_Attributes" && size < slot.args.struct_size;
    if declared_short {
        bytes.resize(slot.args.struct_size, 0);
    }
    let args = guarded.put(&bytes);
    // SAFETY: the table has a function at this offset, which takes a pointer; the struct is one of the size that it
    // declares, filled in with what the plugin gave. A function that returns nothing leaves anything in the result's place.
    let error = unsafe {
        let function = ptr::from_ref(api()).byte_add(slot.offset).cast::<Function>().read();
        function(args)
    };
    if slot.returns_error
        && let Err(error) = take_error(error)
    {
        assert!(!error.message.is_empty(), "{}", slot.name);
        assert_ne!(error.code, 13, "{} with {size} bytes is INTERNAL: {}", slot.name, error.message);
    }
    if size > slot.args.size {
        // SAFETY: the struct lies there.
        let after = unsafe { std::slice::from_raw_parts(args, size) };
        assert!(after[slot.args.size..].iter().all(|byte| *byte == BEYOND), "{} writes too far", slot.name);
        assert_eq!(after[..8], size.to_ne_bytes(), "{} changes the size", slot.name);
    }
}

#[test]
fn an_execution_does_not_go_beyond_the_size_of_its_options() {
    in_child("an_execution_does_not_go_beyond_the_size_of_its_options", || {
        let (guarded, client) = (Guarded::new(), Client::new(&[]));
        let (executable, buffer) = (client.compile("negate").unwrap(), client.upload(0, &[1.0; 4]));
        let (arguments, mut output) = ([buffer.0], ptr::null_mut());
        let (argument_list, output_list) = (arguments.as_ptr(), &raw mut output);
        for size in sizes(PJRT_ExecuteOptions::LAYOUT) {
            eprintln!("options of {size} bytes");
            let mut bytes = vec![0; size];
            bytes[..8].copy_from_slice(&size.to_ne_bytes());
            call!(PJRT_LoadedExecutable_Execute(PJRT_LoadedExecutable_Execute_Args {
                executable: executable.0,
                options: guarded.put(&bytes).cast(),
                argument_lists: &raw const argument_list,
                num_devices: 1,
                num_args: 1,
                output_lists: &raw const output_list,
                execute_device: client.devices()[0],
            }))
            .unwrap();
            assert_eq!(Buffer(output).numbers().unwrap(), [-1.0; 4]);
        }
    });
}
