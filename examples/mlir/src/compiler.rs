//! The compiler and the runtime in C++, as safe functions: the only module with `unsafe` code.

#![allow(unsafe_code)]

use std::slice;

use pjrt_plugin::{Error, ErrorCode, Result};

/// The C interface, as `compiler/compiler.h` declares it.
mod c {
    #[repr(C)]
    pub(super) struct Bytes {
        pub(super) data: *const u8,
        pub(super) size: usize,
    }

    #[repr(C)]
    pub(super) struct Buffer {
        pub(super) data: *mut u8,
        pub(super) size: usize,
    }

    #[repr(C)]
    pub(super) struct Output {
        pub(super) error: u32,
        pub(super) data: *mut u8,
        pub(super) size: usize,
    }

    unsafe extern "C" {
        pub(super) fn compiler_compile(
            program: Bytes,
            format: Bytes,
            options: *const super::CompilerOptions,
        ) -> Output;
        pub(super) fn compiler_run(
            code: Bytes,
            arguments: *const Bytes,
            num_arguments: usize,
            results: *const Buffer,
            num_results: usize,
        ) -> Output;
        pub(super) fn compiler_free(output: Output);
    }
}

/// The options of the compiler: `compiler_options` in `compiler/compiler.h`.
#[repr(C)]
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct CompilerOptions {
    /// `true` if `x * y + z` is rounded once instead of twice.
    pub(crate) fuse_multiply_add: bool,
}

/// Compiles a program. `format` names its form.
///
/// # Errors
///
/// Returns the error of the compiler.
pub(crate) fn compile(program: &[u8], format: &str, options: &CompilerOptions) -> Result<Vec<u8>> {
    // SAFETY: The slices and the options are valid for the call, and the function does not keep pointers to them.
    unsafe { c::compiler_compile(borrowed(program), borrowed(format.as_bytes()), options) }.into_result()
}

/// Runs code that [`compile`] has returned, and returns its results, whose sizes in bytes are given.
///
/// # Errors
///
/// Returns the error of the runtime, such as DATA_LOSS if the code is damaged.
pub(crate) fn run(code: &[u8], arguments: &[&[u8]], sizes: &[usize]) -> Result<Vec<Vec<u8>>> {
    let arguments: Vec<c::Bytes> = arguments.iter().map(|argument| borrowed(argument)).collect();
    let mut results: Vec<Vec<u8>> = sizes.iter().map(|size| vec![0; *size]).collect();
    let buffers: Vec<c::Buffer> = results
        .iter_mut()
        .map(|result| c::Buffer { data: result.as_mut_ptr(), size: result.len() })
        .collect();
    // SAFETY: The arrays have the lengths that are passed. The arguments are valid for reads of their sizes and the results
    // for writes of theirs until the call returns, and the results are separate allocations.
    let output = unsafe {
        let (arguments, num_arguments) = (arguments.as_ptr(), arguments.len());
        c::compiler_run(borrowed(code), arguments, num_arguments, buffers.as_ptr(), buffers.len())
    };
    output.into_result()?;
    Ok(results)
}

fn borrowed(bytes: &[u8]) -> c::Bytes {
    c::Bytes { data: bytes.as_ptr(), size: bytes.len() }
}

impl c::Output {
    /// Copies the bytes, and frees the output.
    fn into_result(self) -> Result<Vec<u8>> {
        let bytes = match self.data.is_null() {
            true => Vec::new(),
            // SAFETY: A function of the compiler returned the output, whose `data` is valid for `size` bytes until it is freed.
            false => unsafe { slice::from_raw_parts(self.data, self.size) }.to_vec(),
        };
        let error = self.error;
        // SAFETY: The output is freed once: this method consumes it.
        unsafe { c::compiler_free(self) };
        match error {
            0 => Ok(bytes),
            code => {
                Err(Error::new(ErrorCode::from_number(code), String::from_utf8_lossy(&bytes).into_owned()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compile_text(text: &str) -> Result<Vec<u8>> {
        let module = pjrt_stablehlo::parse(text.as_bytes().to_vec())?;
        compile(format!("{module:#}").as_bytes(), "mlir", &CompilerOptions::default())
    }

    const PROGRAM: &str = "func.func @main(%x: tensor<2x3xi32>) -> (tensor<2x3xi32>, tensor<0xf32>) {
        %c = stablehlo.constant dense<[1, -2, 3]> : tensor<3xi32>
        %e = stablehlo.constant dense<> : tensor<0xf32>
        %0 = stablehlo.broadcast_in_dim %c, dims = [1] : (tensor<3xi32>) -> tensor<2x3xi32>
        %1 = stablehlo.multiply %x, %0 : tensor<2x3xi32>
        return %1, %e : tensor<2x3xi32>, tensor<0xf32>
    }";

    fn bytes(values: &[i32]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    #[test]
    fn code_computes_the_results_of_the_program() {
        let code = compile_text(PROGRAM).unwrap();
        let results = run(&code, &[&bytes(&[1, 2, 3, 4, 5, i32::MAX])], &[24, 0]).unwrap();
        assert_eq!(results, [bytes(&[1, -4, 9, 4, -10, i32::MAX.wrapping_mul(3)]), vec![]]);
    }

    #[test]
    fn an_unsupported_operation_is_refused_with_its_name_line_and_location() {
        let text = "func.func @main(%x: tensor<f32>) -> tensor<f32> {
            %0 = stablehlo.sine %x : tensor<f32> loc(\"jit(f)/sin\"(\"model.py\":3:7))
            return %0 : tensor<f32>
        }";
        let error = compile_text(text).unwrap_err();
        assert_eq!(error.code(), ErrorCode::Unimplemented);
        for part in ["stablehlo.sine", "line 4", "\"model.py\":3:7"] {
            assert!(error.message().contains(part), "{error}");
        }
    }

    #[test]
    fn arrays_of_the_wrong_size_are_refused() {
        let code = compile_text(PROGRAM).unwrap();
        for (argument, sizes) in [(20, [24, 0]), (24, [20, 0]), (24, [24, 4])] {
            let error = run(&code, &[&vec![0; argument]], &sizes).unwrap_err();
            assert_eq!(error.code(), ErrorCode::InvalidArgument, "{error}");
        }
        assert_eq!(run(&code, &[], &[24, 0]).unwrap_err().code(), ErrorCode::InvalidArgument);
    }

    #[test]
    fn damaged_code_is_an_error_or_runs_within_its_arrays() {
        let code = compile_text(PROGRAM).unwrap();
        let argument = bytes(&[1, 2, 3, 4, 5, 6]);
        for end in 0..code.len() {
            assert!(run(&code[..end], &[&argument], &[24, 0]).is_err(), "{end} bytes");
        }
        for byte in 0..code.len() {
            let mut damaged = code.clone();
            damaged[byte] ^= 0x41;
            let _ = run(&damaged, &[&argument], &[24, 0]);
        }
    }

    #[test]
    fn any_text_is_an_error() {
        for text in
            ["", "%0 = ", "\"func.func\"() <{}> ({\n^bb0(%a", "\"func.func\"(\n%0 = \"stablehlo.add\"(%1"]
        {
            assert!(compile(text.as_bytes(), "mlir", &CompilerOptions::default()).is_err(), "{text}");
        }
        let error = compile(b"", "hlo", &CompilerOptions::default()).unwrap_err();
        assert_eq!(error.code(), ErrorCode::Unimplemented);
    }
}
