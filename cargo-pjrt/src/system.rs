//! What only the system's own library can do.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// Ends this process, whatever it does, when the thread that started it ends, however that ends.
pub(crate) fn end_with_parent() {
    #[cfg(target_os = "linux")]
    // SAFETY: the call takes two numbers, and changes nothing but what happens when the parent ends.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
    }
}

/// Puts a file in the place of standard input.
pub(crate) fn replace_stdin(file: &File) -> io::Result<()> {
    // SAFETY: the file is open, and standard input belongs to the whole process: nothing owns its number.
    if unsafe { libc::dup2(file.as_raw_fd(), libc::STDIN_FILENO) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
