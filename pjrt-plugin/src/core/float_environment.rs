//! The processor's floating-point settings: Rust code relies on the defaults, and hosts change them (XLA compiles on threads
//! that take denormal numbers for zero).

#![allow(unsafe_code, reason = "reads and writes a register of the processor")]

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod register {
    use std::arch::asm;
    use std::mem::MaybeUninit;

    pub(super) type Settings = u32;

    /// All exceptions masked, rounding to nearest, denormal numbers as they are.
    pub(super) const DEFAULT: Settings = 0x1f80;
    /// The bits that are flags of what happened, not settings.
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
    /// `value` is the default, or came from `read` on this thread and no Rust code that computes with floats runs before
    /// control is back with the host.
    pub(super) unsafe fn write(value: Settings) {
        // SAFETY: loads MXCSR from readable memory; no reserved bit is set in the default or in what was read. The caller
        // answers for the settings.
        unsafe {
            asm!("ldmxcsr [{}]", in(reg) &raw const value, options(nostack, preserves_flags, readonly))
        };
    }
}

#[cfg(all(target_arch = "aarch64", not(miri)))]
mod register {
    use std::arch::asm;

    pub(super) type Settings = u64;

    /// No traps, rounding to nearest, denormal numbers as they are.
    pub(super) const DEFAULT: Settings = 0;

    pub(super) fn read() -> Settings {
        let value: Settings;
        // SAFETY: reads FPCR into a register and changes nothing.
        unsafe { asm!("mrs {}, fpcr", out(reg) value, options(nomem, nostack, preserves_flags)) };
        value
    }

    /// # Safety
    ///
    /// As on x86-64.
    pub(super) unsafe fn write(value: Settings) {
        // SAFETY: writes what was read or zero to FPCR; the caller answers for the settings.
        unsafe { asm!("msr fpcr, {}", in(reg) value, options(nomem, nostack, preserves_flags)) };
    }
}

// Miri has no registers, and its floats are always those of the defaults.
#[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
mod register {
    pub(super) type Settings = ();

    pub(super) const DEFAULT: Settings = ();

    pub(super) fn read() -> Settings {}

    /// # Safety
    ///
    /// None to keep: nothing is written on this architecture.
    pub(super) unsafe fn write((): Settings) {}
}

/// The default settings, until this is dropped; then the thread has those back that it had.
pub(crate) struct DefaultFloats {
    before: register::Settings,
}

impl DefaultFloats {
    /// Reading the settings takes about a nanosecond; they are written only where they differ.
    #[inline]
    pub(crate) fn enter() -> Self {
        let before = register::read();
        if before != register::DEFAULT {
            // SAFETY: the default.
            unsafe { register::write(register::DEFAULT) };
        }
        Self { before }
    }
}

impl Drop for DefaultFloats {
    #[inline]
    fn drop(&mut self) {
        if self.before != register::DEFAULT {
            // SAFETY: `enter` read this on the same thread (the type holds it on a stack frame of `guard`), and what runs
            // next is the end of a function that the host called.
            unsafe { register::write(self.before) };
        }
    }
}

/// Runs a function on a thread whose denormal numbers are zero, as operands and results, and requires that it leaves that so.
#[cfg(all(test, target_arch = "x86_64", not(miri)))]
pub(crate) fn with_flushed_denormals<T>(run: impl FnOnce() -> T) -> T {
    const FLUSHED: u32 = register::DEFAULT | 0x8040;
    // SAFETY: computing in between is what is tested; the default is back before the test ends.
    unsafe { register::write(FLUSHED) };
    let result = run();
    let after = register::read();
    // SAFETY: the default.
    unsafe { register::write(register::DEFAULT) };
    assert_eq!(after, FLUSHED);
    result
}
