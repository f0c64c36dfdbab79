//! A process with little memory.

use std::ffi::c_void;
use std::fs;
use std::ptr;

use pjrt_plugin::ErrorCode;
use pjrt_sys::*;

use crate::host::*;

const MIB: usize = 1 << 20;
/// The size of the existing array, and the limit of additional memory, which is too small for a copy of the array.
const LARGE: usize = 64 * MIB;
const LEFT: usize = 40 * MIB;

/// Limits the memory that the process can allocate from now on to this number of bytes.
fn limit_memory(more: usize) {
    let pages = fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = pages.split(' ').next().unwrap().parse().unwrap();
    let limit = (pages * 4096 + more) as libc::rlim_t;
    let limit = libc::rlimit { rlim_cur: limit, rlim_max: limit };
    // SAFETY: the struct lives until the call returns.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const limit) }, 0);
}

fn is_exhausted<T>(what: &str, outcome: Result<T>, size: usize) {
    let error = outcome.err().unwrap_or_else(|| panic!("{what}: there is memory"));
    assert_eq!(error.code, ErrorCode::ResourceExhausted as u32, "{what}: {error:?}");
    assert!(error.message.contains(&size.to_string()), "{what}: {error:?}");
}

/// The test is empty on systems other than Linux, on which it cannot read the memory of a process.
#[cfg(not(target_os = "linux"))]
pub(crate) fn everything_that_copies_says_so() {}

#[cfg(target_os = "linux")]
pub(crate) fn everything_that_copies_says_so() {
    let client = Client::new(&[]);
    let bytes = vec![7_u8; LARGE];
    let dims = [LARGE as i64];
    let device = client.devices()[0];
    let lent = || Upload { element_type: PJRT_Buffer_Type_U8, dims: &dims, device, ..Upload::new(&bytes) };
    let (buffer, done) = lent().to(&client).unwrap();
    destroy_event(done);
    let program = format!("negate{}", " ".repeat(LARGE));
    limit_memory(LEFT);
    is_exhausted("an upload", lent().to(&client), LARGE);
    let until_transferred = PJRT_HostBufferSemantics_kImmutableUntilTransferCompletes;
    is_exhausted("an upload", Upload { semantics: until_transferred, ..lent() }.to(&client), LARGE);
    is_exhausted(
        "a reversed array",
        Upload { strides: Some(&[-1]), ..last(lent(), &bytes) }.to(&client),
        LARGE,
    );
    let mut few = [0_u8; 4];
    is_exhausted("a raw read", read_raw(&buffer, &mut few), LARGE);
    let memory = client.memories(1)[0];
    let copy = call!(PJRT_Buffer_CopyToMemory(PJRT_Buffer_CopyToMemory_Args {
        buffer: buffer.0,
        dst_memory: memory,
    }));
    is_exhausted("a copy", Buffer(copy.unwrap().dst_buffer).wait(), LARGE);
    is_exhausted("a program", client.compile(&program), program.len());
    drop(program);
    is_exhausted("zeros", uninitialized(&client, &dims), LARGE);
    // The process and the buffer still work, and released memory can be allocated again.
    let sum: Vec<u8> = in_parts(&buffer);
    assert_eq!(sum, [7; 4]);
    drop(buffer);
    drop(lent().to(&client).unwrap().0);
}

/// Returns the upload with its data pointer at the last element.
fn last<'a>(upload: Upload<'a>, bytes: &[u8]) -> Upload<'a> {
    Upload { data: ptr::from_ref(&bytes[bytes.len() - 1]).cast::<c_void>(), ..upload }
}

fn read_raw(buffer: &Buffer, into: &mut [u8]) -> Result<()> {
    let args = call!(PJRT_Buffer_CopyRawToHost(PJRT_Buffer_CopyRawToHost_Args {
        buffer: buffer.0,
        dst: into.as_mut_ptr().cast(),
        transfer_size: into.len() as i64,
    }))?;
    let outcome = await_event(args.event);
    destroy_event(args.event);
    outcome
}

fn uninitialized(client: &Client, dims: &[i64]) -> Result<Buffer> {
    let args = call!(PJRT_Client_CreateUninitializedBuffer(PJRT_Client_CreateUninitializedBuffer_Args {
        client: client.0,
        shape_dims: dims.as_ptr(),
        shape_num_dims: dims.len(),
        shape_element_type: PJRT_Buffer_Type_U8,
        device: client.devices()[0],
    }))?;
    Ok(Buffer(args.buffer))
}

/// The first four bytes, read in place.
fn in_parts(buffer: &Buffer) -> Vec<u8> {
    let args =
        call!(PJRT_Buffer_OnDeviceSizeInBytes(PJRT_Buffer_OnDeviceSizeInBytes_Args { buffer: buffer.0 }));
    assert_eq!(args.unwrap().on_device_size_in_bytes, LARGE);
    let address =
        call!(PJRT_Buffer_UnsafePointer(PJRT_Buffer_UnsafePointer_Args { buffer: buffer.0 })).unwrap();
    let start = ptr::with_exposed_provenance::<u8>(address.buffer_pointer);
    array(start, 4).to_vec()
}
