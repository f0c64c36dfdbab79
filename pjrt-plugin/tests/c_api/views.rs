//! Buffers over memory that the host continues to write to.

use std::ffi::c_void;
use std::ptr;

use pjrt_plugin::ElementType;
use pjrt_sys::*;

use crate::dummy::run_queue;
use crate::host::{Buffer, Client, HostError, Result, call, text_option};

const UNIMPLEMENTED: u32 = 12;
const INVALID_ARGUMENT: u32 = 3;
const INTERNAL: u32 = 13;

/// Memory of the host, aligned for every element, with a count of the calls that report that it is no longer needed.
struct Memory {
    numbers: *mut [f32; 4],
    deleted: *mut usize,
}

impl Memory {
    fn new(numbers: [f32; 4]) -> Self {
        /// A type whose size equals its alignment.
        #[derive(Default)]
        #[repr(align(64))]
        struct Line([f32; 4]);
        let line = Box::leak(Box::<Line>::default());
        line.0 = numbers;
        Self { numbers: ptr::from_mut(line).cast(), deleted: Box::into_raw(Box::new(0)) }
    }

    fn write(&self, numbers: [f32; 4]) {
        // SAFETY: the memory is never freed, and nothing that a test asked of a buffer over it is unfinished.
        unsafe { self.numbers.write(numbers) };
    }

    fn deleted(&self) -> usize {
        // SAFETY: the counter is never freed, and tests use one thread.
        unsafe { self.deleted.read() }
    }

    fn view_of(&self, client: &Client, offset: usize, shape: (PJRT_Buffer_Type, &[i64])) -> Result<Buffer> {
        view(client, self.numbers.cast::<u8>().wrapping_add(offset), shape, self.deleted)
    }

    fn view(&self, client: &Client) -> Result<Buffer> {
        self.view_of(client, 0, (PJRT_Buffer_Type_F32, &[4]))
    }
}

fn view(
    client: &Client,
    data: *mut u8,
    (element_type, dims): (PJRT_Buffer_Type, &[i64]),
    counter: *mut usize,
) -> Result<Buffer> {
    unsafe extern "C" fn deleted(_: *mut c_void, user_arg: *mut c_void) {
        // SAFETY: the argument is a counter that is never freed; tests use one thread.
        unsafe { *user_arg.cast::<usize>() += 1 };
    }
    let args = call!(PJRT_Client_CreateViewOfDeviceBuffer(PJRT_Client_CreateViewOfDeviceBuffer_Args {
        client: client.0,
        device_buffer_ptr: data.cast(),
        dims: dims.as_ptr(),
        num_dims: dims.len(),
        element_type,
        device: client.devices()[0],
        on_delete_callback: Some(deleted),
        on_delete_callback_arg: counter.cast(),
    }));
    args.map(|args| Buffer(args.buffer))
}

fn client() -> Client {
    Client::new(&[text_option("opaque", "false")])
}

fn refusal(outcome: Result<Buffer>) -> HostError {
    outcome.err().expect("a refusal")
}

#[test]
fn what_the_host_writes_to_a_view_is_seen_by_what_starts_afterwards() {
    let client = client();
    let negate = client.compile("negate").unwrap();
    let memory = Memory::new([1.0; 4]);
    let buffer = memory.view(&client).unwrap();
    for round in [2.0, 3.0] {
        let numbers = [round, round, round, 7.0];
        memory.write(numbers);
        assert_eq!(buffer.numbers().unwrap(), numbers);
        let output = &negate.run(&[&buffer]).unwrap().outputs[0][0];
        assert_eq!(output.numbers().unwrap(), numbers.map(|number| -number));
    }
}

#[test]
fn a_copy_of_a_view_stays_as_it_was() {
    let client = client();
    let memory = Memory::new([1.0; 4]);
    let buffer = memory.view(&client).unwrap();
    memory.write([2.0; 4]);
    let dst_memory = client.memories(1)[1];
    let args =
        call!(PJRT_Buffer_CopyToMemory(PJRT_Buffer_CopyToMemory_Args { buffer: buffer.0, dst_memory }));
    let copy = Buffer(args.unwrap().dst_buffer);
    let dims = [16_i64];
    let bitcast = call!(PJRT_Buffer_Bitcast(PJRT_Buffer_Bitcast_Args {
        buffer: buffer.0,
        element_type: PJRT_Buffer_Type_U8,
        dims: dims.as_ptr(),
        num_dims: 1,
    }));
    let bitcast = Buffer(bitcast.unwrap().out_buffer);
    memory.write([3.0; 4]);
    assert_eq!(copy.numbers().unwrap(), [2.0; 4]);
    assert_eq!(bitcast.numbers().unwrap(), [2.0; 4]);
    assert_eq!(buffer.numbers().unwrap(), [3.0; 4]);
}

#[test]
fn the_address_of_a_view_is_the_hosts_own() {
    let client = client();
    let memory = Memory::new([1.0; 4]);
    let buffer = memory.view(&client).unwrap();
    let address = memory.numbers.addr();
    let pin = || {
        let buffer = buffer.0;
        call!(PJRT_Buffer_IncreaseExternalReferenceCount(PJRT_Buffer_IncreaseExternalReferenceCount_Args {
            buffer
        }))
    };
    pin().unwrap();
    let args = call!(PJRT_Buffer_UnsafePointer(PJRT_Buffer_UnsafePointer_Args { buffer: buffer.0 })).unwrap();
    assert_eq!(args.buffer_pointer, address);
    buffer.delete();
    let args =
        call!(PJRT_Buffer_OpaqueDeviceMemoryDataPointer(PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args {
            buffer: buffer.0
        }));
    assert_eq!(args.unwrap().device_memory_ptr.addr(), address);
    assert_eq!(memory.deleted(), 0, "a view that is pinned needs its memory");
    drop(buffer);
    assert_eq!(memory.deleted(), 1);
}

#[test]
fn the_memory_of_a_view_is_needed_until_the_last_execution_has_read_it() {
    const QUEUE: i64 = 9301;
    let client = client();
    let later = client.compile(&format!("later {QUEUE}")).unwrap();
    let memory = Memory::new([1.0; 4]);
    let buffer = memory.view(&client).unwrap();
    let launch = later.run(&[&buffer]).unwrap();
    drop(buffer);
    assert_eq!(memory.deleted(), 0);
    assert_eq!(run_queue(QUEUE), 1);
    assert_eq!(launch.outputs[0][0].numbers().unwrap(), [-1.0; 4]);
    assert_eq!(memory.deleted(), 1);
}

#[test]
fn memory_that_is_not_aligned_for_its_elements_is_refused() {
    let client = client();
    let memory = Memory::new([1.0; 4]);
    for element_type in ElementType::ALL.iter().filter(|element_type| element_type.byte_size() > 0) {
        let raw = PJRT_Buffer_Type(*element_type as u32);
        let alignment = element_type.alignment();
        assert!(memory.view_of(&client, alignment % 16, (raw, &[])).is_ok(), "{element_type}");
        if alignment > 1 {
            let error = refusal(memory.view_of(&client, alignment / 2, (raw, &[])));
            assert_eq!(error.code, INVALID_ARGUMENT, "{element_type}: {error:?}");
            assert!(error.message.contains(&format!("alignment of {alignment} bytes")), "{error:?}");
        }
    }
    let before = memory.deleted();
    refusal(memory.view_of(&client, 1, (PJRT_Buffer_Type_F32, &[2])));
    assert_eq!(memory.deleted(), before, "no view was made");
}

#[test]
fn a_view_of_no_elements_needs_no_memory() {
    let client = client();
    let memory = Memory::new([1.0; 4]);
    for data in [ptr::null_mut(), ptr::without_provenance_mut(1)] {
        let empty = view(&client, data, (PJRT_Buffer_Type_F64, &[3, 0]), memory.deleted).unwrap();
        assert!(empty.numbers().unwrap().is_empty());
        let args = call!(PJRT_Buffer_UnsafePointer(PJRT_Buffer_UnsafePointer_Args { buffer: empty.0 }));
        assert_eq!(args.unwrap().buffer_pointer, data.addr());
    }
    assert_eq!(memory.deleted(), 2);
    let error = refusal(view(&client, ptr::null_mut(), (PJRT_Buffer_Type_F64, &[1]), memory.deleted));
    assert_eq!(error.code, INVALID_ARGUMENT);
}

#[test]
fn a_plugin_that_cannot_view_the_memory_says_so_and_the_host_keeps_it() {
    let opaque = Client::new(&[]);
    let refusing = Client::new(&[text_option("opaque", "false"), text_option("views", "refused")]);
    for (client, contained) in
        [(opaque, "the plugin 'dummy' cannot create views"), (refusing, "no views today")]
    {
        let memory = Memory::new([1.0; 4]);
        let error = refusal(memory.view(&client));
        assert_eq!(error.code, UNIMPLEMENTED);
        assert!(error.message.contains(contained), "{error:?}");
        drop(client);
        assert_eq!(memory.deleted(), 0);
    }
}

#[test]
fn a_plugin_that_copies_instead_of_viewing_is_refused() {
    let client = Client::new(&[text_option("opaque", "false"), text_option("views", "copied")]);
    let memory = Memory::new([1.0; 4]);
    let error = refusal(memory.view(&client));
    assert_eq!(error.code, INTERNAL);
    assert!(error.message.contains("PjrtBuffer::host_view is not at the view's address"), "{error:?}");
    assert_eq!(memory.deleted(), 0);
}
