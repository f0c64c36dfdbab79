//! The processor of the host.

use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, BufRead, BufReader};

/// Returns a number for the features of the host's processor. Code that the compiler made for the processor `host` uses all of
/// them, so it is valid only where this number is the same.
pub(crate) fn processor_features() -> u64 {
    let mut hasher = DefaultHasher::new();
    File::open("/proc/cpuinfo").ok().and_then(|file| features(BufReader::new(file))).hash(&mut hasher);
    hasher.finish()
}

/// Returns the line with the features of the first processor, from the text of `/proc/cpuinfo`.
fn features(cpuinfo: impl BufRead) -> Option<String> {
    let is_features = |line: &String| line.starts_with("flags") || line.starts_with("Features");
    cpuinfo.lines().map_while(io::Result::ok).find(is_features)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_features_are_those_of_the_first_processor() {
        let text = "processor\t: 0\nflags\t\t: fpu avx2\n\nprocessor\t: 1\nflags\t\t: fpu\n";
        assert_eq!(features(text.as_bytes()).as_deref(), Some("flags\t\t: fpu avx2"));
        assert_eq!(features("processor\t: 0\n".as_bytes()), None);
        assert_eq!(processor_features(), processor_features());
    }
}
