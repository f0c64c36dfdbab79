//! Children with a time limit.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::sleep;
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(30);

/// Runs a test in a child process that this function forks. It must not fail, crash or hang.
pub(crate) fn test(name: &str, body: impl FnOnce()) {
    // SAFETY: this process has one thread, so that the child may do what the parent may.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "{name}: no child");
    if child == 0 {
        let failed = catch_unwind(AssertUnwindSafe(body)).is_err();
        // SAFETY: ends the child, without what the parent's end is to do.
        unsafe { libc::_exit(i32::from(failed)) };
    }
    let start = Instant::now();
    let mut status = 0;
    loop {
        // SAFETY: waits for the child that was made here, and writes its status.
        let ended = unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) };
        if ended == child {
            break;
        }
        if start.elapsed() > LIMIT {
            // SAFETY: ends the child that was made here.
            unsafe { libc::kill(child, libc::SIGKILL) };
            panic!("{name}: the child hangs");
        }
        sleep(Duration::from_millis(5));
    }
    assert_eq!(status, 0, "{name}: the child's status");
    println!("ok: {name}");
}
