//! Buffers over memory that the host continues to write to, on refcpu.

#![allow(unsafe_code, reason = "what a C host does with pointers")]

use std::ffi::c_void;
use std::ptr;

use pjrt_plugin::{CompileOptions, ElementType, ErrorCode};
use pjrt_sys::*;
use refcpu_kernels::DType;

use c_host::{Client, Result, api, call, compile, destroy, download, extension, finish};
// The plugin itself.

mod c_host;

/// Memory of the host that is never freed, with a count of the calls that report that it is no longer needed.
struct Memory {
    start: *mut u8,
    len: usize,
    deleted: *mut usize,
}

impl Memory {
    /// Zeros, at this distance in bytes from a multiple of 64.
    fn new(len: usize, skew: usize) -> Self {
        let block = Vec::leak(vec![0_u8; len + 128]).as_mut_ptr();
        let start = block.wrapping_add(block.align_offset(64) + skew);
        Self { start, len, deleted: Box::into_raw(Box::new(0)) }
    }

    fn of(numbers: &[f32]) -> Self {
        let memory = Self::new(size_of_val(numbers), 0);
        memory.write_numbers(numbers);
        memory
    }

    fn write(&self, bytes: &[u8]) {
        assert_eq!(bytes.len(), self.len);
        // SAFETY: the memory is never freed, and nothing that a test asked of a buffer over it is unfinished.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.start, self.len) };
    }

    fn write_numbers(&self, numbers: &[f32]) {
        self.write(&bytes_of(numbers));
    }

    fn bytes(&self) -> Vec<u8> {
        c_host::bytes(self.start, self.len).to_vec()
    }

    fn deleted(&self) -> usize {
        // SAFETY: the counter is never freed, and is written before the event that tests wait for.
        unsafe { self.deleted.read_volatile() }
    }

    fn view(&self, client: &Client, element_type: ElementType, dims: &[i64]) -> Result<*mut PJRT_Buffer> {
        unsafe extern "C" fn deleted(_: *mut c_void, user_arg: *mut c_void) {
            // SAFETY: the argument is a counter that is never freed.
            unsafe { *user_arg.cast::<usize>() += 1 };
        }
        let args = call!(
            api(),
            PJRT_Client_CreateViewOfDeviceBuffer(PJRT_Client_CreateViewOfDeviceBuffer_Args {
                client: client.0,
                device_buffer_ptr: self.start.cast(),
                dims: dims.as_ptr(),
                num_dims: dims.len(),
                element_type: PJRT_Buffer_Type(element_type as u32),
                device: client.device(),
                on_delete_callback: Some(deleted),
                on_delete_callback_arg: self.deleted.cast(),
            })
        );
        args.map(|args| args.buffer)
    }
}

fn bytes_of(numbers: &[f32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// Runs a program of one output, and waits for the end.
fn run(executable: *mut PJRT_LoadedExecutable, arguments: &[*mut PJRT_Buffer]) -> *mut PJRT_Buffer {
    let mut options = PJRT_ExecuteOptions::zeroed();
    let (mut output, mut event) = (ptr::null_mut(), ptr::null_mut());
    let (lists, outputs) = ([arguments.as_ptr()], [&raw mut output]);
    call!(
        api(),
        PJRT_LoadedExecutable_Execute(PJRT_LoadedExecutable_Execute_Args {
            executable,
            options: &raw mut options,
            argument_lists: lists.as_ptr(),
            num_devices: 1,
            num_args: arguments.len(),
            output_lists: outputs.as_ptr(),
            device_complete_events: &raw mut event,
        })
    )
    .unwrap();
    finish(event).unwrap();
    output
}

fn unload(executable: *mut PJRT_LoadedExecutable) {
    call!(api(), PJRT_LoadedExecutable_Destroy(PJRT_LoadedExecutable_Destroy_Args { executable })).unwrap();
}

/// The engine's type of the same name, if it has one.
fn dtype(element_type: ElementType) -> Option<DType> {
    let name = match element_type {
        ElementType::Pred => "i1".to_owned(),
        ElementType::C64 => "complex<f32>".to_owned(),
        ElementType::C128 => "complex<f64>".to_owned(),
        ElementType::S1 | ElementType::U1 => return None,
        other => match other.name().split_at(1) {
            ("s", bits) => format!("i{bits}"),
            ("u", bits) => format!("ui{bits}"),
            _ => other.name().to_owned(),
        },
    };
    DType::ALL.iter().copied().find(|dtype| dtype.mlir_name().eq_ignore_ascii_case(&name))
}

/// Different bytes, and what they mean as elements: the upper bits of elements of less than a byte do not count.
fn pattern(element_type: ElementType, len: usize, from: usize) -> (Vec<u8>, Vec<u8>) {
    let written: Vec<u8> = match element_type {
        ElementType::Pred => (0..len).map(|i| u8::from((i + from).is_multiple_of(3))).collect(),
        _ => (0..len).map(|i| 0x21 + ((i + from) % 200) as u8).collect(),
    };
    let unused = 8_usize.saturating_sub(element_type.bits()) as u32;
    let is_signed = matches!(element_type, ElementType::S2 | ElementType::S4);
    let meant = |byte: &u8| match is_signed {
        true => ((byte << unused).cast_signed() >> unused).cast_unsigned(),
        false => byte << unused >> unused,
    };
    let meant = written.iter().map(meant).collect();
    (written, meant)
}

#[test]
fn writes_to_views_of_every_type_at_every_alignment_are_seen() {
    let client = Client::new();
    let mut types = 0;
    for (element_type, dtype) in ElementType::ALL.iter().filter_map(|t| Some((*t, dtype(*t)?))) {
        types += 1;
        for dims in [&[][..], &[5], &[30_000], &[3, 0]] {
            let ty: String = dims.iter().map(|dim| format!("{dim}x")).collect();
            let ty = format!("tensor<{ty}{}>", dtype.mlir_name());
            let program = format!("func.func public @main(%x: {ty}) -> {ty} {{ return %x : {ty} }}");
            let identity = compile(&client, &program, &CompileOptions::default()).unwrap();
            let len = dims.iter().product::<i64>() as usize * element_type.byte_size();
            let skews = [0, 1, 2, 4, 8, 16, 64 - element_type.alignment()];
            for skew in skews.into_iter().filter(|skew| skew % element_type.alignment() == 0) {
                let memory = Memory::new(len, skew);
                let view = memory.view(&client, element_type, dims).unwrap();
                let mut before: Option<(*mut PJRT_Buffer, Vec<u8>)> = None;
                for round in 0..3 {
                    let (written, meant) = pattern(element_type, len, round);
                    memory.write(&written);
                    if let Some((output, meant)) = before.take() {
                        assert!(download(output).unwrap() == meant, "{ty}: an output changed");
                        destroy(output);
                    }
                    assert!(download(view).unwrap() == meant, "{ty} at {skew}: a readback");
                    let output = run(identity, &[view]);
                    assert!(download(output).unwrap() == meant, "{ty} at {skew}: an execution");
                    before = Some((output, meant));
                }
                destroy(before.unwrap().0);
                destroy(view);
                assert_eq!(memory.deleted(), 1, "{ty} at {skew}");
            }
            unload(identity);
        }
    }
    assert_eq!(types, DType::ALL.len());
}

#[test]
fn a_donated_view_is_not_written_and_is_let_go() {
    let client = Client::new();
    let program =
        "func.func public @main(%x: tensor<9000xf32> {tf.aliasing_output = 0 : i32}) -> tensor<9000xf32> {
      %0 = stablehlo.add %x, %x : tensor<9000xf32>
      return %0 : tensor<9000xf32>
    }";
    let executable = compile(&client, program, &CompileOptions::default()).unwrap();
    let numbers = vec![1.5_f32; 9000];
    let memory = Memory::of(&numbers);
    let view = memory.view(&client, ElementType::F32, &[9000]).unwrap();
    let output = run(executable, &[view]);
    assert_eq!(memory.deleted(), 1, "the execution consumed the view");
    assert_eq!(memory.bytes(), bytes_of(&numbers));
    memory.write_numbers(&vec![7.0; 9000]);
    assert_eq!(download(output).unwrap(), bytes_of(&[3.0; 9000]));
    destroy(output);
    destroy(view);
    assert_eq!(memory.deleted(), 1);
    unload(executable);
}

#[test]
fn a_program_on_the_devices_queue_reads_what_was_written_before_it_was_launched() {
    const SIDE: usize = 256;
    let client = Client::new();
    let ty = format!("tensor<{SIDE}x{SIDE}xf32>");
    let program = format!(
        "func.func public @main(%x: {ty}) -> {ty} {{
          %0 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0] : ({ty}, {ty}) -> {ty}
          return %0 : {ty}
        }}"
    );
    let executable = compile(&client, &program, &CompileOptions::default()).unwrap();
    let memory = Memory::of(&vec![0.0; SIDE * SIDE]);
    let view = memory.view(&client, ElementType::F32, &[SIDE as i64; 2]).unwrap();
    for number in [1.0_f32, 2.0, 3.0] {
        memory.write_numbers(&vec![number; SIDE * SIDE]);
        let output = run(executable, &[view]);
        assert_eq!(download(output).unwrap(), bytes_of(&vec![number * number * SIDE as f32; SIDE * SIDE]));
        destroy(output);
    }
    destroy(view);
    assert_eq!(memory.deleted(), 1);
    unload(executable);
}

#[test]
fn a_copy_of_a_view_stays_as_it_was() {
    let client = Client::new();
    // Fewer and more bytes than what uploads copy at once.
    for len in [4, 9000] {
        let memory = Memory::of(&vec![1.0; len]);
        let buffer = memory.view(&client, ElementType::F32, &[len as i64]).unwrap();
        memory.write_numbers(&vec![2.0; len]);
        let device = client.device();
        let args = call!(api(), PJRT_Device_DefaultMemory(PJRT_Device_DefaultMemory_Args { device }));
        let dst_memory = args.unwrap().memory;
        let args =
            call!(api(), PJRT_Buffer_CopyToMemory(PJRT_Buffer_CopyToMemory_Args { buffer, dst_memory }));
        let copy = args.unwrap().dst_buffer;
        let dims = [4 * len as i64];
        let args = call!(
            api(),
            PJRT_Buffer_Bitcast(PJRT_Buffer_Bitcast_Args {
                buffer,
                element_type: PJRT_Buffer_Type_U8,
                dims: dims.as_ptr(),
                num_dims: 1,
            })
        );
        let bitcast = args.unwrap().out_buffer;
        memory.write_numbers(&vec![3.0; len]);
        for copy in [copy, bitcast] {
            assert!(download(copy).unwrap() == bytes_of(&vec![2.0; len]));
            destroy(copy);
        }
        destroy(buffer);
    }
}

#[test]
fn only_the_host_writes_to_the_memory_of_a_view() {
    let raw: &PJRT_RawBuffer_Extension = extension(PJRT_Extension_Type_RawBuffer);
    let client = Client::new();
    let memory = Memory::of(&[1.0; 4]);
    let buffer = memory.view(&client, ElementType::F32, &[4]).unwrap();
    let alias = call!(
        raw,
        PJRT_RawBuffer_CreateRawAliasOfBuffer(PJRT_RawBuffer_CreateRawAliasOfBuffer_Args { buffer })
    );
    let alias = alias.unwrap().raw_buffer;
    let args =
        call!(raw, PJRT_RawBuffer_GetHostPointer(PJRT_RawBuffer_GetHostPointer_Args { buffer: alias }));
    assert_eq!(args.unwrap().host_pointer.addr(), memory.start.addr());
    let source = [0_u8; 4];
    let written = call!(
        raw,
        PJRT_RawBuffer_CopyRawHostToDevice(PJRT_RawBuffer_CopyRawHostToDevice_Args {
            buffer: alias,
            src: source.as_ptr().cast(),
            offset: 0,
            transfer_size: 4,
        })
    );
    let (code, message) = written.and_then(|args| finish(args.event)).unwrap_err();
    assert_eq!(code, ErrorCode::FailedPrecondition as u32, "{message}");
    assert!(message.contains("the bytes of a view belong to the host"), "{message}");
    assert_eq!(memory.bytes(), bytes_of(&[1.0; 4]));
    call!(raw, PJRT_RawBuffer_Destroy(PJRT_RawBuffer_Destroy_Args { buffer: alias })).unwrap();
    destroy(buffer);
    assert_eq!(memory.deleted(), 1);
}

#[test]
fn there_are_no_views_in_memory_that_the_host_cannot_reach() {
    let opaque = PJRT_NamedValue {
        name: "opaque".as_ptr().cast(),
        name_size: 6,
        type_: PJRT_NamedValue_kBool,
        u: PJRT_NamedValue_Union { bool_value: true },
        value_size: 1,
        ..PJRT_NamedValue::zeroed()
    };
    let client = Client::with_options(&[opaque]);
    let memory = Memory::of(&[1.0; 4]);
    let (code, message) = memory.view(&client, ElementType::F32, &[4]).unwrap_err();
    assert_eq!(code, ErrorCode::Unimplemented as u32, "{message}");
    assert_eq!(memory.deleted(), 0);
}
