//! The serialized form of an executable: the program and its options, and what the plugin made of them.

use prost::Message;

use crate::compile_options::CompileOptions;
use crate::error::{Error, Result};
use crate::program::{Program, ProgramFormat};
use crate::proto;

/// What the bytes begin with, followed by the version.
const MAGIC: &[u8; 8] = b"PJRTexec";
const VERSION: u32 = 1;

/// What a serialized executable holds.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SerializedExecutable {
    pub(crate) program: Program,
    pub(crate) options: CompileOptions,
    pub(crate) compiled: Option<Vec<u8>>,
}

impl SerializedExecutable {
    pub(crate) fn encode(&self, platform: &str) -> Vec<u8> {
        let message = proto::Executable {
            platform_name: platform.to_owned(),
            program_format: self.program.format().name().to_owned(),
            program: self.program.code().to_vec(),
            options: self.options.encode(),
            compiled: self.compiled.clone(),
        };
        let mut bytes = MAGIC.to_vec();
        bytes.extend(VERSION.to_le_bytes());
        // A vector grows as the message needs it.
        message.encode(&mut bytes).unwrap_or_default();
        bytes
    }

    pub(crate) fn decode(bytes: &[u8], platform: &str) -> Result<Self> {
        let Some((version, message)) =
            bytes.strip_prefix(MAGIC).and_then(|rest| rest.split_first_chunk::<{ size_of::<u32>() }>())
        else {
            return Err(Error::invalid_argument(
                "these bytes are not a serialized executable of this plugin",
            ));
        };
        let version = u32::from_le_bytes(*version);
        if version != VERSION {
            return Err(Error::failed_precondition(format!(
                "the serialized executable has version {version}; this plugin reads version {VERSION}"
            ))
            .with_hint("compile the program again"));
        }
        let message = proto::Executable::decode(message).map_err(|error| {
            Error::invalid_argument(format!("the serialized executable is corrupt: {error}"))
        })?;
        if message.platform_name != platform {
            return Err(Error::failed_precondition(format!(
                "the serialized executable is for platform '{}', not '{platform}'",
                message.platform_name
            )));
        }
        let format = ProgramFormat::from_name(message.program_format.as_bytes()).ok_or_else(|| {
            Error::invalid_argument(format!("Unknown program format '{}'.", message.program_format))
        })?;
        Ok(Self {
            program: Program::new(format, message.program),
            options: CompileOptions::decode(&message.options)?,
            compiled: message.compiled,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorCode;

    fn example() -> SerializedExecutable {
        let options = CompileOptions::decode(&CompileOptions::default().encode()).unwrap();
        let program = Program::new(ProgramFormat::Mlir, *b"module {}");
        SerializedExecutable { program, options, compiled: Some(vec![1, 2, 3]) }
    }

    #[test]
    fn executables_come_back_as_they_were() {
        assert_eq!(SerializedExecutable::decode(&example().encode("hello"), "hello").unwrap(), example());
    }

    #[test]
    fn other_bytes_versions_and_platforms_are_refused() {
        let bytes = example().encode("hello");
        let code = |bytes: &[u8], platform| SerializedExecutable::decode(bytes, platform).unwrap_err().code();
        assert_eq!(code(b"ELF", "hello"), ErrorCode::InvalidArgument);
        assert_eq!(code(&bytes[..20], "hello"), ErrorCode::InvalidArgument);
        assert_eq!(code(&bytes, "other"), ErrorCode::FailedPrecondition);
        let mut newer = bytes.clone();
        newer[8] = 9;
        assert_eq!(code(&newer, "hello"), ErrorCode::FailedPrecondition);
    }
}
