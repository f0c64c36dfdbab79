//! Compilations in phases (the PhaseCompile extension).

use std::ffi::c_char;

use pjrt_sys::*;

use super::called;
use super::client::Client;
use super::error::Result;
use super::plugin::Plugin;
use super::slices::{given, given_text};

/// A compiler. Dropping it destroys it.
struct Compiler {
    plugin: Plugin,
    raw: *const PJRT_PhaseCompiler,
}

/// Lists of pointers and sizes that the extension allocated. Dropping them frees them.
struct Buffers {
    plugin: Plugin,
    starts: *mut *const c_char,
    sizes: *const usize,
    len: usize,
}

impl Plugin {
    /// Returns the functions of the extension, of which one was called before.
    fn phase_compile(self) -> Option<&'static PJRT_PhaseCompile_Extension> {
        let extension = self.extension(PJRT_Extension_Type_PhaseCompile.0)?;
        // SAFETY: the type says which struct this is; it lives as long as the table. Only its size is read if it is smaller.
        unsafe {
            let is_whole = (*extension).struct_size >= PJRT_PhaseCompile_Extension::STRUCT_SIZE;
            is_whole.then(|| &*extension.cast::<PJRT_PhaseCompile_Extension>())
        }
    }

    fn phase_compiler(self) -> Result<Compiler> {
        let args = PJRT_PhaseCompile_Get_Compiler_Args::zeroed();
        let raw = self.call_extension(args)?.phase_compiler;
        Ok(Compiler { plugin: self, raw })
    }

    /// Returns the names of the compilation phases (`PJRT_PhaseCompile_Get_PhaseNames`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn compile_phases(self) -> Result<Vec<String>> {
        const FUNCTION: &str = "PJRT_PhaseCompile_Get_PhaseNames";
        let compiler = self.phase_compiler()?;
        let args =
            PJRT_PhaseCompile_Get_PhaseNames_Args { phase_compiler: compiler.raw, ..SizedStruct::zeroed() };
        let args = self.call_extension(args)?;
        let names = Buffers {
            plugin: self,
            starts: args.phase_names,
            sizes: args.phase_names_sizes,
            len: args.num_phase_names,
        };
        // SAFETY: the plugin returned as many pointers and sizes as it says.
        unsafe {
            let starts = given(FUNCTION, names.starts.cast_const(), names.len)?;
            let sizes = given(FUNCTION, names.sizes, names.len)?;
            let names = starts.iter().zip(sizes);
            names.map(|(start, size)| given_text(FUNCTION, *start, *size)).collect()
        }
    }
}

impl Client {
    /// Runs phases on programs, which are serialized `PjRtPartialProgramProto`s, and returns the resulting ones
    /// (`PJRT_PhaseCompile_Run_Phase`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn run_phases(&self, phases: &[&str], programs: &[Vec<u8>], options: &[u8]) -> Result<Vec<Vec<u8>>> {
        const FUNCTION: &str = "PJRT_PhaseCompile_Run_Phase";
        let (plugin, topology) = (self.plugin(), self.topology()?);
        let compiler = plugin.phase_compiler()?;
        let names: Vec<String> = phases.iter().map(|name| format!("{name}\0")).collect();
        let mut phase_starts: Vec<*const c_char> = names.iter().map(|name| name.as_ptr().cast()).collect();
        let phase_sizes: Vec<usize> = phases.iter().map(|name| name.len()).collect();
        let mut starts: Vec<*const c_char> = programs.iter().map(|bytes| bytes.as_ptr().cast()).collect();
        let sizes: Vec<usize> = programs.iter().map(Vec::len).collect();
        let args = plugin.call_extension(PJRT_PhaseCompile_Run_Phase_Args {
            phase_compiler: compiler.raw,
            input_programs: starts.as_mut_ptr(),
            input_programs_sizes: sizes.as_ptr(),
            num_input_programs: programs.len(),
            phases_to_run: phase_starts.as_mut_ptr(),
            phases_to_run_sizes: phase_sizes.as_ptr(),
            num_phases_to_run: phases.len(),
            compile_options: options.as_ptr().cast(),
            compile_options_size: options.len(),
            topology: topology.raw,
            ..SizedStruct::zeroed()
        })?;
        let outputs = Buffers {
            plugin,
            starts: args.output_programs,
            sizes: args.output_programs_sizes,
            len: args.num_output_programs,
        };
        // SAFETY: the plugin returned as many pointers and sizes as it says.
        unsafe {
            let starts = given(FUNCTION, outputs.starts.cast_const(), outputs.len)?;
            let sizes = given(FUNCTION, outputs.sizes, outputs.len)?;
            let read = |(start, size): (&*const c_char, &usize)| {
                given::<u8>(FUNCTION, start.cast(), *size).map(<[u8]>::to_vec)
            };
            starts.iter().zip(sizes).map(read).collect()
        }
    }
}

impl Drop for Compiler {
    fn drop(&mut self) {
        if let Some(destroy) = self.plugin.phase_compile().and_then(|it| it.phase_compile_destroy_compiler) {
            called::note_extension_function("PJRT_PhaseCompile_Destroy_Compiler");
            let mut args =
                PJRT_PhaseCompile_Destroy_Compiler_Args { phase_compiler: self.raw, ..SizedStruct::zeroed() };
            // SAFETY: the plugin created the compiler, which is destroyed once.
            unsafe { destroy(&raw mut args) };
        }
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        if let Some(free) = self.plugin.phase_compile().and_then(|it| it.phase_compile_c_buffers_destroy) {
            called::note_extension_function("PJRT_PhaseCompile_C_Buffers_Destroy");
            let mut args = PJRT_PhaseCompile_C_Buffers_Destroy_Args {
                char_buffers: self.starts,
                char_buffer_sizes: self.sizes,
                num_char_buffers: self.len,
                ..SizedStruct::zeroed()
            };
            // SAFETY: the plugin allocated the lists, which are freed once.
            unsafe { free(&raw mut args) };
        }
    }
}
