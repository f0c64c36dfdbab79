//! The PhaseCompile extension, which runs the phases of a compiler separately.

use std::ffi::c_char;
use std::ptr;

use pjrt_sys::{
    PJRT_Extension_Base, PJRT_Extension_Type_PhaseCompile, PJRT_PhaseCompile_C_Buffers_Destroy_Args,
    PJRT_PhaseCompile_Destroy_Compiler_Args, PJRT_PhaseCompile_Extension,
    PJRT_PhaseCompile_Get_Compiler_Args, PJRT_PhaseCompile_Get_PhaseNames_Args,
    PJRT_PhaseCompile_Run_Phase_Args, PJRT_PhaseCompiler, SizedStruct,
};
use prost::Message;

use crate::abi::args::{View, borrowed_slice, bytes, handle, input, output, slice, text};
use crate::abi::c_arrays::{copy_to_c, free_c};
use crate::abi::guard::shim;
use crate::abi::handle::{self, Handle};
use crate::abi::topology::TopologyHandle;
use crate::client::PjrtClient;
use crate::compile_options::CompileOptions;
use crate::error::{Error, Result};
use crate::proto;
use crate::topology::Topology;

/// Runs the phases of a compiler separately, so that tools can inspect the programs between them
/// (`PJRT_PhaseCompile_Extension`). See the [example](crate::ext#example).
///
/// JAX does not use this extension.
pub trait PhaseCompile: PjrtClient {
    /// Returns the names of the phases, in order.
    fn phase_names() -> Vec<String>;

    /// Runs phases on programs. The SDK has checked that the phases are among [`phase_names`](Self::phase_names).
    ///
    /// # Errors
    ///
    /// Returns INVALID_ARGUMENT if the first phase does not accept the programs, or the same errors as
    /// [`compile`](PjrtClient::compile).
    fn run_phases(request: PhaseRequest<'_>) -> Result<Vec<PartialProgram>>;
}

/// The argument of [`PhaseCompile::run_phases`].
#[derive(Debug)]
#[non_exhaustive]
pub struct PhaseRequest<'a> {
    /// The phases to run, in this order.
    pub phases: Vec<String>,
    /// The programs to run the phases on.
    pub programs: Vec<PartialProgram>,
    /// The options of the compilation.
    pub options: &'a CompileOptions,
    /// The devices to compile for.
    pub topology: &'a Topology,
}

/// A program between two phases (`PjRtPartialProgramProto`). See [`PhaseCompile`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PartialProgram {
    /// The program.
    pub program: Vec<u8>,
    /// The name of the program's format, which the compiler defines.
    pub format: String,
    /// The phase that produced the program; empty before the first phase.
    pub producer_phase: String,
    /// The phases that accept the program.
    pub consumer_phases: Vec<String>,
    /// The version of the compiler that produced the program.
    pub version: String,
    /// The name of the program.
    pub name: String,
}

pub(super) fn link<C: PhaseCompile>(next: *mut PJRT_Extension_Base) -> *mut PJRT_Extension_Base {
    super::leak(PJRT_PhaseCompile_Extension {
        base: PJRT_Extension_Base {
            struct_size: PJRT_PhaseCompile_Extension::STRUCT_SIZE,
            type_: PJRT_Extension_Type_PhaseCompile,
            next,
        },
        phase_compile_get_compiler: Some(shim(get_compiler::<C>)),
        phase_compile_destroy_compiler: Some(destroy_compiler),
        phase_compile_run_phases: Some(shim(run_phases::<C>)),
        phase_compile_get_phase_names: Some(shim(get_phase_names::<C>)),
        phase_compile_c_buffers_destroy: Some(destroy_buffers),
    })
}

/// The object behind a `PJRT_PhaseCompiler`. It has no content, because the phases belong to the type of the client.
struct PhaseCompiler(#[expect(dead_code, reason = "a handle needs a distinct address")] u8);

impl Handle for PhaseCompiler {
    type Opaque = PJRT_PhaseCompiler;
    const KIND: &'static str = "PJRT_PhaseCompiler";
}

/// Creates a compiler.
fn get_compiler<C: PhaseCompile>(args: View<'_, PJRT_PhaseCompile_Get_Compiler_Args>) -> Result<()> {
    output!(args.phase_compiler = handle::into_raw(PhaseCompiler(0)).cast_const());
    Ok(())
}

/// Returns the names of the phases. Each is followed by a NUL that its size does not include.
fn get_phase_names<C: PhaseCompile>(args: View<'_, PJRT_PhaseCompile_Get_PhaseNames_Args>) -> Result<()> {
    handle!(args.phase_compiler: PhaseCompiler)?;
    let names = C::phase_names().into_iter().map(String::into_bytes).collect();
    let (buffers, sizes, count) = to_buffers(names)?;
    output!(args.phase_names = buffers);
    output!(args.phase_names_sizes = sizes);
    output!(args.num_phase_names = count);
    Ok(())
}

/// Runs phases on partial programs.
fn run_phases<C: PhaseCompile>(args: View<'_, PJRT_PhaseCompile_Run_Phase_Args>) -> Result<()> {
    output!(args.output_programs = ptr::null_mut());
    output!(args.output_programs_sizes = ptr::null());
    output!(args.num_output_programs = 0);
    handle!(args.phase_compiler: PhaseCompiler)?;
    let topology = &handle!(args.topology: TopologyHandle)?.topology;
    let pointers = slice!(args.input_programs as *const c_char, num_input_programs)?;
    let sizes = slice!(args.input_programs_sizes as usize, num_input_programs)?;
    // SAFETY: each pointer and its size describe bytes of the host.
    let programs = unsafe { strings(pointers, sizes) }?;
    let programs = programs.into_iter().map(PartialProgram::decode).collect::<Result<_>>()?;
    let pointers = slice!(args.phases_to_run as *const c_char, num_phases_to_run)?;
    let sizes = slice!(args.phases_to_run_sizes as usize, num_phases_to_run)?;
    // SAFETY: as above.
    let phases: Vec<String> = unsafe { strings(pointers, sizes) }?.into_iter().map(text).collect();
    let known = C::phase_names();
    if let Some(unknown) = phases.iter().find(|phase| !known.contains(phase)) {
        return Err(Error::invalid_argument(format!("the compiler has no phase '{unknown}'"))
            .with_hint(format!("its phases are: {}", known.join(", "))));
    }
    let options = CompileOptions::decode(bytes!(args.compile_options, compile_options_size)?)?;
    let outputs = C::run_phases(PhaseRequest { phases, programs, options: &options, topology })?;
    let (buffers, sizes, count) = to_buffers(outputs.into_iter().map(PartialProgram::encode).collect())?;
    output!(args.output_programs = buffers);
    output!(args.output_programs_sizes = sizes);
    output!(args.num_output_programs = count);
    Ok(())
}

impl PartialProgram {
    fn decode(bytes: &[u8]) -> Result<Self> {
        let message = proto::PartialProgram::decode(bytes).map_err(|error| {
            Error::invalid_argument(format!("failed to deserialize PjRtPartialProgramProto: {error}"))
        })?;
        Ok(Self {
            program: message.program,
            format: message.program_format,
            producer_phase: message.producer_phase,
            consumer_phases: message.consumer_phases,
            version: message.version,
            name: message.program_name,
        })
    }

    fn encode(self) -> Vec<u8> {
        let message = proto::PartialProgram {
            program: self.program,
            program_format: self.format,
            producer_phase: self.producer_phase,
            consumer_phases: self.consumer_phases,
            version: self.version,
            program_name: self.name,
        };
        message.encode_to_vec()
    }
}

/// Borrows strings of the host.
///
/// # Safety
///
/// Each pointer is null or the start of as many bytes as the size with the same index says, which are readable for `'a`.
unsafe fn strings<'a>(pointers: &[*const c_char], sizes: &[usize]) -> Result<Vec<&'a [u8]>> {
    // SAFETY: this function's contract.
    let string = |(pointer, size): (&*const c_char, &usize)| unsafe {
        borrowed_slice::<u8>(pointer.cast(), *size, "a string of a list")
    };
    pointers.iter().zip(sizes).map(string).collect()
}

/// Allocates strings for the host, which [`destroy_buffers`] frees. Returns their pointers, their sizes and their number.
fn to_buffers(strings: Vec<Vec<u8>>) -> Result<(*mut *const c_char, *const usize, usize)> {
    let sizes: Box<[usize]> = strings.iter().map(Vec::len).collect();
    let mut pointers: Vec<*const c_char> = Vec::with_capacity(strings.len());
    for mut string in strings {
        string.push(0);
        match copy_to_c(&string) {
            Ok(pointer) => pointers.push(pointer),
            Err(error) => {
                for pointer in pointers {
                    // SAFETY: the pointer came from `copy_to_c`.
                    unsafe { free_c(pointer) };
                }
                return Err(error);
            }
        }
    }
    let count = pointers.len();
    let pointers = Box::into_raw(pointers.into_boxed_slice()).cast();
    Ok((pointers, Box::into_raw(sizes).cast::<usize>().cast_const(), count))
}

/// Frees a compiler.
///
/// # Safety
///
/// `args` is as the PJRT C API requires for `PJRT_PhaseCompile_Destroy_Compiler_Args`.
unsafe extern "C" fn destroy_compiler(args: *mut PJRT_PhaseCompile_Destroy_Compiler_Args) {
    // SAFETY: this function's contract.
    if let Ok(args) = unsafe { View::new(args) } {
        let compiler = input!(args.phase_compiler).cast_mut();
        // SAFETY: the host passes ownership of the compiler. A handle that is not live is ignored, because this function
        // cannot return an error.
        let _ = unsafe { handle::from_raw::<PhaseCompiler>(compiler, "phase_compiler") };
    }
}

/// Frees strings.
///
/// # Safety
///
/// `args` is as the PJRT C API requires for `PJRT_PhaseCompile_C_Buffers_Destroy_Args`: the strings came from this
/// extension.
unsafe extern "C" fn destroy_buffers(args: *mut PJRT_PhaseCompile_C_Buffers_Destroy_Args) {
    // SAFETY: this function's contract.
    let Ok(args) = (unsafe { View::new(args) }) else { return };
    let (pointers, sizes) = (input!(args.char_buffers), input!(args.char_buffer_sizes));
    let count = input!(args.num_char_buffers);
    if pointers.is_null() || sizes.is_null() {
        return;
    }
    // SAFETY: this function's contract: both arrays came from `to_buffers`, as slices of this length, and the strings in the
    // first one from `copy_to_c`.
    unsafe {
        drop(Box::from_raw(ptr::slice_from_raw_parts_mut(sizes.cast_mut(), count)));
        for pointer in Box::from_raw(ptr::slice_from_raw_parts_mut(pointers, count)) {
            free_c(pointer);
        }
    }
}
