//! The floating-point environment of the processor. Rust code requires the default, but hosts change it: XLA compiles on
//! threads that flush denormal numbers to zero.

#![allow(unsafe_code, reason = "reads and writes a register of the processor")]

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod register {
    use std::arch::asm;
    use std::mem::MaybeUninit;

    pub(super) type Settings = u32;

    /// All exceptions are masked, results are rounded to nearest, and denormal numbers are not flushed.
    pub(super) const DEFAULT: Settings = 0x1f80;
    /// The bits that record exceptions and are not settings.
    const FLAGS: Settings = 0x3f;

    pub(super) fn read() -> Settings {
        let mut value = MaybeUninit::<Settings>::uninit();
        // SAFETY: stores MXCSR to `value`, which is writable for its four bytes, and changes nothing else.
        let value = unsafe {
            asm!("stmxcsr [{}]", in(reg) value.as_mut_ptr(), options(nostack, preserves_flags));
            value.assume_init()
        };
        value & !FLAGS
    }

    /// # Safety
    ///
    /// `value` is the default, or it came from `read` on this thread and no Rust code that computes with floats runs before
    /// control returns to the host.
    pub(super) unsafe fn write(value: Settings) {
        // SAFETY: loads MXCSR from readable memory. No reserved bit is set in the default or in a value that was read. The
        // rest is this function's contract.
        unsafe {
            asm!("ldmxcsr [{}]", in(reg) &raw const value, options(nostack, preserves_flags, readonly))
        };
    }
}

#[cfg(all(target_arch = "aarch64", not(miri)))]
mod register {
    use std::arch::asm;

    pub(super) type Settings = u64;

    /// Traps are disabled, results are rounded to nearest, and denormal numbers are not flushed.
    pub(super) const DEFAULT: Settings = 0;

    pub(super) fn read() -> Settings {
        let value: Settings;
        // SAFETY: reads FPCR into a register and changes nothing.
        unsafe { asm!("mrs {}, fpcr", out(reg) value, options(nomem, nostack, preserves_flags)) };
        value
    }

    /// # Safety
    ///
    /// The same as on x86-64.
    pub(super) unsafe fn write(value: Settings) {
        // SAFETY: writes zero or a value that was read to FPCR. The rest is this function's contract.
        unsafe { asm!("msr fpcr, {}", in(reg) value, options(nomem, nostack, preserves_flags)) };
    }
}

// Miri has no such register, and always uses the default.
#[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
mod register {
    pub(super) type Settings = ();

    pub(super) const DEFAULT: Settings = ();

    pub(super) fn read() -> Settings {}

    /// # Safety
    ///
    /// The function has no preconditions: it writes nothing on this architecture.
    pub(super) unsafe fn write((): Settings) {}
}

/// A guard that sets the default environment. Dropping it restores the previous one.
pub(crate) struct DefaultFloats {
    before: register::Settings,
}

impl DefaultFloats {
    /// Sets the default environment. Reading the register takes about a nanosecond; it is written only if it differs.
    #[inline]
    pub(crate) fn enter() -> Self {
        let before = register::read();
        if before != register::DEFAULT {
            // SAFETY: the value is the default.
            unsafe { register::write(register::DEFAULT) };
        }
        Self { before }
    }
}

impl Drop for DefaultFloats {
    #[inline]
    fn drop(&mut self) {
        if self.before != register::DEFAULT {
            // SAFETY: `enter` read this on the same thread, because the value stays on the stack of the function that called
            // it. After this, control returns to the host.
            unsafe { register::write(self.before) };
        }
    }
}

/// Runs a function on a thread whose denormal numbers are zero, as operands and results, and requires that it leaves that so.
#[cfg(all(test, target_arch = "x86_64", not(miri)))]
pub(crate) fn with_flushed_denormals<T>(run: impl FnOnce() -> T) -> T {
    const FLUSHED: u32 = register::DEFAULT | 0x8040;
    // SAFETY: this test is about computing in this environment; it restores the default before it ends.
    unsafe { register::write(FLUSHED) };
    let result = run();
    let after = register::read();
    // SAFETY: the default.
    unsafe { register::write(register::DEFAULT) };
    assert_eq!(after, FLUSHED);
    result
}
