//! The resources of this process: physical memory and open files; the memory of the host.

/// Returns the size of this process in physical memory, in bytes.
///
/// # Errors
///
/// Returns an error if the system does not report it.
pub(crate) fn resident_bytes() -> Result<i64, String> {
    const PAGES: &str = "/proc/self/statm";
    const PAGE_SIZE: i64 = 4096;
    let text = std::fs::read_to_string(PAGES).map_err(|error| format!("{PAGES}: {error}"))?;
    let pages = text.split(' ').nth(1).and_then(|pages| pages.parse::<i64>().ok());
    pages.map(|pages| pages * PAGE_SIZE).ok_or_else(|| format!("{PAGES}: expected numbers, found {text:?}"))
}

/// Returns the number of bytes of the host's memory that processes can still use.
///
/// # Errors
///
/// Returns an error if the system does not report it.
pub(crate) fn available_bytes() -> Result<i64, String> {
    const MEMORY: &str = "/proc/meminfo";
    let text = std::fs::read_to_string(MEMORY).map_err(|error| format!("{MEMORY}: {error}"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<i64>().ok());
    kib.map(|kib| kib << 10)
        .ok_or_else(|| format!("{MEMORY}: expected a line MemAvailable with a number of kB"))
}

/// Returns the number of files that this process has open.
///
/// # Errors
///
/// Returns an error if the system does not report it.
pub(crate) fn open_files() -> Result<i64, String> {
    const FILES: &str = "/proc/self/fd";
    let files = std::fs::read_dir(FILES).map_err(|error| format!("{FILES}: {error}"))?;
    Ok(files.count() as i64)
}
