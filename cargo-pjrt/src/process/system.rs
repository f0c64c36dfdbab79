//! Calls to libc.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// Makes the system kill this process when the thread that started it ends.
pub(crate) fn end_with_parent() {
    #[cfg(target_os = "linux")]
    // SAFETY: the call takes two integers, and changes nothing but the effect of the parent's end.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
    }
}

/// Replaces standard input with a file.
pub(crate) fn replace_stdin(file: &File) -> io::Result<()> {
    // SAFETY: the file is open, and standard input belongs to the whole process: nothing owns its descriptor.
    if unsafe { libc::dup2(file.as_raw_fd(), libc::STDIN_FILENO) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
