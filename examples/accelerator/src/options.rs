//! The options that users can set. Create options take precedence over environment variables.

use pjrt_plugin::{Error, OptionSpec, Options, Result};

/// The options of the client, which JAX sets with `jax.config.update("jax_pjrt_client_create_options", ...)`.
pub(crate) const CREATE_OPTIONS: &[OptionSpec] = &[OptionSpec::integer(
    NAME,
    0,
    "how many bytes of memory a device has (ACCELERATOR_MEMORY_LIMIT; 64 MiB)",
)];

const NAME: &str = "memory_limit";
const VARIABLE: &str = "ACCELERATOR_MEMORY_LIMIT";
const DEFAULT: i64 = 64 << 20;

/// The largest plausible size of the simulated memory.
const MAX: i64 = 1 << 40;

/// Returns the size of a device's memory in bytes.
///
/// # Errors
///
/// Returns INVALID_ARGUMENT if the value is not a number in the valid range.
pub(crate) fn memory_limit(options: &Options) -> Result<usize> {
    let variable = std::env::var(VARIABLE).ok().filter(|text| !text.is_empty());
    let (limit, from) = match (options.integer(NAME)?, variable) {
        (0, Some(text)) => (text.trim().parse().unwrap_or(-1), format!("{VARIABLE}={text}")),
        (0, None) => (DEFAULT, String::new()),
        (limit, _) => (limit, format!("the option {NAME}={limit}")),
    };
    if (1..=MAX).contains(&limit) {
        return Ok(limit as usize);
    }
    Err(Error::invalid_argument(format!("{from} is invalid; expected a number of bytes from 1 to {MAX}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pjrt_plugin::OptionValue;

    #[test]
    fn a_limit_out_of_range_is_refused_by_name() {
        let limit = |value| {
            let given = vec![(NAME.to_owned(), OptionValue::Integer(value))];
            memory_limit(&Options::new(CREATE_OPTIONS, given).unwrap())
        };
        assert_eq!(limit(4096).unwrap(), 4096);
        for wrong in [-1, i64::MAX] {
            assert!(limit(wrong).unwrap_err().message().contains(NAME));
        }
    }
}
