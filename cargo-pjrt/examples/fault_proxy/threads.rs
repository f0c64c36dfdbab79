//! Faults of plugins that share memory and locks between threads, and that change the state of the process.

use std::ptr;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};

use pjrt_sys::*;

use crate::fault::{Action, Path, args_of, name_of};
use crate::table::{FAULT, INNER, OVERLAP, inner, place, read, write};

/// The lock that a faulty plugin holds while it waits.
static LOCK: Mutex<()> = Mutex::new(());

/// Waits for the lock, if the fault says that this function needs it.
pub(crate) fn before_call(function: &str) {
    let needs = |action: &Action| matches!(action, Action::Special(name, words) if name == "with_lock_of" && words[0] == function);
    if FAULT.as_ref().is_some_and(|fault| fault.actions.iter().any(needs)) {
        drop(LOCK.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// Performs an action instead of the call. Returns `None` if the good plugin is to be called nevertheless.
///
/// # Safety
///
/// The struct is that of the slot.
pub(crate) unsafe fn before(
    name: &str,
    words: &[String],
    slot: usize,
    args: *mut u8,
) -> Option<*mut PJRT_Error> {
    /// The value of a field in the newest call.
    static NEWEST: AtomicI64 = AtomicI64::new(0);
    // SAFETY: guaranteed by the caller.
    unsafe {
        match name {
            // All threads store a field in one place before they use it.
            "mixed" => {
                let path = Path::parse(args_of(slot), &words[0]).expect("a field");
                let place = place(args, &path)?;
                NEWEST.store(read(place, &path), Ordering::SeqCst);
                std::thread::sleep(OVERLAP);
                write(place, &path, NEWEST.load(Ordering::SeqCst));
                None
            }
            // The function holds a lock until it returns.
            "with_lock_of" => {
                debug_assert_eq!(name_of(slot), "PJRT_Event_Await");
                let _held = LOCK.lock().unwrap_or_else(PoisonError::into_inner);
                Some(((*INNER.0).PJRT_Event_Await.expect("a function of the good plugin"))(args.cast()))
            }
            // A function that describes an array waits for its data.
            "wait_for_data" => {
                let buffer = ptr::with_exposed_provenance_mut(args.cast::<usize>().add(2).read());
                let (ready, _) =
                    inner!(PJRT_Buffer_ReadyEvent PJRT_Buffer_ReadyEvent_Args { buffer: buffer });
                inner!(PJRT_Event_Await PJRT_Event_Await_Args { event: ready.event });
                None
            }
            "flush_denormals" => {
                flush_denormals();
                None
            }
            _ => None,
        }
    }
}

/// Makes this thread replace denormal numbers with zero.
fn flush_denormals() {
    // SAFETY: the register of the thread's floating-point arithmetic keeps its other bits.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        let mut state = 0_u32;
        std::arch::asm!("stmxcsr [{}]", in(reg) &raw mut state);
        state |= 0x8040;
        std::arch::asm!("ldmxcsr [{}]", in(reg) &raw const state);
    }
    // SAFETY: as above.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        let mut state: u64;
        std::arch::asm!("mrs {}, fpcr", out(reg) state);
        state |= 1 << 24;
        std::arch::asm!("msr fpcr, {}", in(reg) state);
    }
}
