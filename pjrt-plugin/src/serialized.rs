//! The serialized form of an executable: the program, its options, and the plugin's compiled form of them.
//!
//! | bytes | |
//! |---|---|
//! | 8 | [`MAGIC`] |
//! | 4 | the version, little-endian like all numbers |
//! | 8 | the number of bytes after the checksum |
//! | 4 | the CRC-32 of all bytes before and after it |
//! | | a length-delimited [`proto::ExecutableHeader`] |
//! | | the program |
//! | | the compiled form, if [`PjrtExecutable::serialize`](crate::PjrtExecutable::serialize) returned one |
//!
//! Later versions may change only the part after the checksum, so an intact executable of another version can be
//! distinguished from a damaged one.

use std::borrow::Cow;

use prost::Message;

use crate::compile_options::CompileOptions;
use crate::core::allocate;
use crate::error::{Error, Result};
use crate::program::{Program, ProgramFormat};
use crate::proto;

/// The first bytes of a serialized executable.
const MAGIC: &[u8; 8] = b"PJRTexec";
const VERSION: u32 = 2;
/// The version without a length and a checksum.
const WITHOUT_CHECKSUM: u32 = 1;
/// The offset of the checksum, and the size of everything up to it.
const CHECKSUM: usize = 20;
const HEADER: usize = 24;

/// The content of a serialized executable.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SerializedExecutable<'a> {
    pub(crate) program: Program,
    pub(crate) options: CompileOptions,
    pub(crate) compiled: Option<Cow<'a, [u8]>>,
}

impl<'a> SerializedExecutable<'a> {
    /// Encodes the executable of a platform.
    ///
    /// # Errors
    ///
    /// Returns RESOURCE_EXHAUSTED if there is not enough memory.
    pub(crate) fn encode(&self, platform: &str) -> Result<Vec<u8>> {
        let (program, compiled) = (self.program.code(), self.compiled.as_deref());
        let header = proto::ExecutableHeader {
            platform_name: platform.to_owned(),
            program_format: self.program.format().name().to_owned(),
            program_size: program.len() as u64,
            options: self.options.encode(),
            compiled_size: compiled.map(|compiled| compiled.len() as u64),
        }
        .encode_length_delimited_to_vec();
        let compiled = compiled.unwrap_or_default();
        let length = header.len() + program.len() + compiled.len();
        let mut bytes = allocate::with_capacity(HEADER + length)?;
        bytes.extend(MAGIC);
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend((length as u64).to_le_bytes());
        bytes.extend([0; HEADER - CHECKSUM]);
        bytes.extend(&header);
        bytes.extend(program);
        bytes.extend(compiled);
        let checksum = checksum(&bytes);
        bytes[CHECKSUM..HEADER].copy_from_slice(&checksum.to_le_bytes());
        Ok(bytes)
    }

    /// Decodes an executable of a platform.
    ///
    /// # Errors
    ///
    /// Returns INVALID_ARGUMENT if the bytes are not an executable, DATA_LOSS if it is damaged, or FAILED_PRECONDITION if it
    /// is of another version or platform.
    pub(crate) fn decode(bytes: &'a [u8], platform: &str) -> Result<Self> {
        check(bytes)?;
        let mut rest = &bytes[HEADER..];
        // The checksum is correct, so an error from here on is not damage.
        let wrong =
            |what: String| Error::invalid_argument(format!("the serialized executable is invalid: {what}"));
        let header = proto::ExecutableHeader::decode_length_delimited(&mut rest)
            .map_err(|error| wrong(format!("cannot decode its ExecutableHeader: {error}")))?;
        if header.platform_name != platform {
            return Err(Error::failed_precondition(format!(
                "the serialized executable is for platform '{}'; expected '{platform}'",
                header.platform_name
            )));
        }
        let format = ProgramFormat::from_name(header.program_format.as_bytes()).ok_or_else(|| {
            Error::invalid_argument(format!("Unknown program format '{}'.", header.program_format))
        })?;
        let sizes = header.program_size.checked_add(header.compiled_size.unwrap_or(0));
        if sizes != Some(rest.len() as u64) {
            return Err(wrong(format!(
                "the sizes in its header do not add up to the {} bytes that follow",
                rest.len()
            )));
        }
        let (program, compiled) = rest.split_at(header.program_size as usize);
        Ok(Self {
            program: Program::new(format, allocate::copy(program)?),
            options: CompileOptions::decode(&header.options)?,
            compiled: header.compiled_size.map(|_| Cow::Borrowed(compiled)),
        })
    }
}

/// Returns an error unless the bytes are an intact executable of this version.
fn check(bytes: &[u8]) -> Result<()> {
    let found = bytes.len();
    let begins_well = bytes.starts_with(MAGIC) || MAGIC.starts_with(bytes);
    let number = |at: usize, size: usize| {
        let mut number = [0; 8];
        number[..size].copy_from_slice(&bytes[at..at + size]);
        u64::from_le_bytes(number)
    };
    let is_headed = found >= HEADER;
    let length_is_right = is_headed && number(12, 8) == (found - HEADER) as u64;
    if !begins_well && !length_is_right {
        return Err(Error::invalid_argument(
            "the bytes are not a serialized executable of a plugin of this SDK: they do not begin with 'PJRTexec'",
        ));
    }
    if found >= 12 && begins_well && number(8, 4) == u64::from(WITHOUT_CHECKSUM) {
        return Err(other_version(WITHOUT_CHECKSUM));
    }
    if !is_headed {
        return Err(damaged(format!("it ends after {found} bytes, within its header of {HEADER} bytes")));
    }
    if !length_is_right {
        let expected = number(12, 8).saturating_add(HEADER as u64);
        return Err(damaged(format!(
            "according to its header it has {expected} bytes, but there are {found}"
        )));
    }
    let (expected, computed) = (number(CHECKSUM, 4), checksum(bytes));
    if expected != u64::from(computed) {
        return Err(damaged(format!("its checksum is {computed:#010x}; expected {expected:#010x}")));
    }
    match number(8, 4) as u32 {
        VERSION => Ok(()),
        other => Err(other_version(other)),
    }
}

/// Computes the checksum of all bytes except the checksum.
fn checksum(bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&bytes[..CHECKSUM]);
    hasher.update(&bytes[HEADER..]);
    hasher.finalize()
}

fn damaged(how: String) -> Error {
    Error::data_loss(format!("the serialized executable is damaged: {how}"))
        .with_hint("delete it and compile the program again")
}

fn other_version(version: u32) -> Error {
    Error::failed_precondition(format!("the serialized executable has version {version}; expected {VERSION}"))
        .with_hint("compile the program again")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorCode;

    fn example() -> SerializedExecutable<'static> {
        let options = CompileOptions::decode(&CompileOptions::default().encode()).unwrap();
        let program = Program::new(ProgramFormat::Mlir, *b"module {}");
        SerializedExecutable { program, options, compiled: Some(Cow::Borrowed(&[1, 2, 3])) }
    }

    fn code(bytes: &[u8], platform: &str) -> ErrorCode {
        SerializedExecutable::decode(bytes, platform).unwrap_err().code()
    }

    /// Updates the checksum.
    fn resealed(mut bytes: Vec<u8>) -> Vec<u8> {
        let checksum = checksum(&bytes);
        bytes[CHECKSUM..HEADER].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    #[test]
    fn executables_come_back_as_they_were() {
        for compiled in [None, Some(vec![]), Some(vec![1, 2, 3])] {
            let executable = SerializedExecutable { compiled: compiled.map(Cow::Owned), ..example() };
            let bytes = executable.encode("hello").unwrap();
            assert_eq!(SerializedExecutable::decode(&bytes, "hello").unwrap(), executable);
        }
    }

    #[test]
    fn other_bytes_versions_and_platforms_are_refused() {
        let bytes = example().encode("hello").unwrap();
        assert_eq!(code(b"ELF", "hello"), ErrorCode::InvalidArgument);
        assert_eq!(code(&[7; 100], "hello"), ErrorCode::InvalidArgument);
        assert_eq!(code(&bytes, "other"), ErrorCode::FailedPrecondition);
        let mut newer = bytes.clone();
        newer[8] = 9;
        assert_eq!(code(&resealed(newer), "hello"), ErrorCode::FailedPrecondition);
        let first = [&MAGIC[..], &WITHOUT_CHECKSUM.to_le_bytes(), b"a message of the first version"].concat();
        assert_eq!(code(&first, "hello"), ErrorCode::FailedPrecondition);
        let mut longer_program = bytes.clone();
        longer_program.push(0);
        longer_program[12..20].copy_from_slice(&((bytes.len() + 1 - HEADER) as u64).to_le_bytes());
        assert_eq!(code(&resealed(longer_program), "hello"), ErrorCode::InvalidArgument);
    }

    #[test]
    fn every_changed_bit_every_cut_and_every_longer_executable_is_damage() {
        let bytes = example().encode("hello").unwrap();
        for bit in 0..8 * bytes.len() {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(code(&flipped, "hello"), ErrorCode::DataLoss, "bit {bit}");
        }
        for length in 0..bytes.len() {
            assert_eq!(code(&bytes[..length], "hello"), ErrorCode::DataLoss, "cut to {length}");
        }
        for more in 1..40 {
            let longer = [&bytes[..], &vec![0; more]].concat();
            assert_eq!(code(&longer, "hello"), ErrorCode::DataLoss, "{more} more");
        }
    }

    #[test]
    fn damage_is_described() {
        let bytes = example().encode("hello").unwrap();
        let message = |bytes: &[u8]| SerializedExecutable::decode(bytes, "hello").unwrap_err().to_string();
        let (len, cut) = (bytes.len(), bytes.len() - 2);
        let text = message(&bytes[..cut]);
        assert!(text.contains(&format!("has {len} bytes, but there are {cut}")), "{text}");
        let mut flipped = bytes;
        flipped[len - 1] ^= 4;
        assert!(message(&flipped).contains("checksum is 0x"), "{}", message(&flipped));
    }
}
