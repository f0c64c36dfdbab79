//! Compiles another program than the host's, so that results are wrong.

use pjrt_sys::*;

use crate::rewrites;

/// Replaces a StableHLO program with one that has the named error. Leaves other programs unchanged.
///
/// # Safety
///
/// The struct is one that the host passed.
pub(crate) unsafe fn rewrite(name: &str, args: *mut PJRT_Client_Compile_Args) {
    // SAFETY: guaranteed by the caller. The new program is leaked.
    unsafe {
        let old = *(*args).program;
        let bytes = std::slice::from_raw_parts(old.code.cast::<u8>(), old.code_size).to_vec();
        let Ok(module) = pjrt_stablehlo::parse(bytes) else { return };
        let text = rewrites::rewrite(name, &module.to_string()).leak();
        let new = PJRT_Program { code: text.as_mut_ptr().cast(), code_size: text.len(), ..old };
        (*args).program = Box::leak(Box::new(new));
    }
}
