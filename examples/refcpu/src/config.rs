//! Settings: create options first, then environment variables, then defaults.

use pjrt_plugin::{Error, OptionSpec, Options, Result};
use refcpu_engine::storage::AllocatorOptions;

/// The options of `PJRT_Client_Create`. Where one keeps its default here, the environment variable in its text counts.
pub(crate) const CREATE_OPTIONS: &[OptionSpec] = &[
    OptionSpec::integer("num_devices", 0, "how many virtual devices there are (REFCPU_NUM_DEVICES; 1)"),
    OptionSpec::integer("num_threads", 0, "how many threads a program uses (REFCPU_NUM_THREADS; one a core)"),
    OptionSpec::integer(
        "memory_limit",
        0,
        "bytes that arrays may take (REFCPU_MEMORY_LIMIT; most of the machine's)",
    ),
    OptionSpec::boolean(
        "opaque",
        false,
        "hide device memory from the host, as a real device would (REFCPU_OPAQUE)",
    ),
];

/// The options of the compiler, which JAX gives with `jax.jit(..., compiler_options={...})`.
pub(crate) const COMPILE_OPTIONS: &[OptionSpec] = &[
    OptionSpec::boolean(
        "refcpu_fusion",
        true,
        "whether operations may share a pass over memory (REFCPU_FUSION=0: in no program)",
    ),
    OptionSpec::string(
        "refcpu_dump",
        "",
        "the folder in which to put what happens to the program (REFCPU_DUMP: to every program)",
    ),
];

/// More devices than this are a mistake.
const MAX_DEVICES: i64 = 4096;

/// More threads than this are a mistake.
const MAX_THREADS: i64 = 1024;

/// What a client is made with.
pub(crate) struct Config {
    pub(crate) num_devices: i32,
    pub(crate) num_threads: usize,
    pub(crate) allocator: AllocatorOptions,
    pub(crate) opaque: bool,
}

impl Config {
    /// # Errors
    /// If an option or a variable is out of range or not a number, or there is a variable that refcpu does not have.
    pub(crate) fn new(options: &Options) -> Result<Self> {
        check_variables(std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()))?;
        runs_partitioned()?;
        let integer = |option, variable, max| integer(options.integer(option)?, option, variable, max);
        let threads = integer("num_threads", "REFCPU_NUM_THREADS", MAX_THREADS)?;
        let mut allocator = AllocatorOptions::default();
        if let Some(limit) = integer("memory_limit", "REFCPU_MEMORY_LIMIT", i64::MAX)? {
            allocator.limit = usize::try_from(limit).unwrap_or(usize::MAX);
            allocator.cache_limit = allocator.cache_limit.min(allocator.limit);
        }
        Ok(Self {
            num_devices: integer("num_devices", "REFCPU_NUM_DEVICES", MAX_DEVICES)?.unwrap_or(1) as i32,
            num_threads: threads.map_or_else(available_threads, |n| n as usize),
            allocator,
            opaque: options.boolean("opaque")? || flag("REFCPU_OPAQUE")?,
        })
    }
}

/// The environment variables that refcpu reads, here and where it compiles.
const VARIABLES: &[&str] = &[
    "REFCPU_NUM_DEVICES",
    "REFCPU_NUM_THREADS",
    "REFCPU_MEMORY_LIMIT",
    "REFCPU_OPAQUE",
    "REFCPU_DUMP",
    "REFCPU_FUSION",
    "REFCPU_PARTITIONED",
    "REFCPU_ISA",
];

/// A setting with a misspelt name would silently do nothing.
fn check_variables(names: impl Iterator<Item = String>) -> Result<()> {
    for name in names.filter(|name| name.starts_with("REFCPU_")) {
        if !VARIABLES.contains(&name.as_str()) {
            return Err(Error::invalid_argument(format!("there is no environment variable {name}"))
                .with_hint(format!("refcpu has {}", VARIABLES.join(", "))));
        }
    }
    Ok(())
}

/// As many threads as the process may use cores, by affinity and control group.
fn available_threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The option if it is set, else the variable; from 1 to `max`.
fn integer(option: i64, name: &str, variable: &str, max: i64) -> Result<Option<i64>> {
    let (value, from) = if option != 0 {
        (option, format!("the option {name}"))
    } else {
        let Some(text) = std::env::var_os(variable).filter(|text| !text.is_empty()) else { return Ok(None) };
        let number = text.to_str().and_then(|text| text.trim().parse().ok());
        let number = number.ok_or_else(|| {
            Error::invalid_argument(format!("{variable} is {text:?}, which is not a whole number"))
        })?;
        (number, variable.to_owned())
    };
    if (1..=max).contains(&value) {
        return Ok(Some(value));
    }
    Err(Error::invalid_argument(format!("{from} is {value}; it must be from 1 to {max}")))
}

/// Whether programs in the global view run in the form that they have for each device, instead of on whole arrays.
///
/// # Errors
/// If the variable is neither yes nor no.
pub(crate) fn runs_partitioned() -> Result<bool> {
    flag("REFCPU_PARTITIONED")
}

fn flag(variable: &str) -> Result<bool> {
    match std::env::var(variable).as_deref() {
        Err(_) | Ok("" | "0" | "false") => Ok(false),
        Ok("1" | "true") => Ok(true),
        Ok(other) => Err(Error::invalid_argument(format!("{variable} is {other:?}; it must be 0 or 1"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pjrt_plugin::OptionValue;

    #[test]
    fn a_misspelt_variable_is_refused() {
        let check = |names: &[&str]| check_variables(names.iter().map(|name| (*name).to_owned()));
        assert!(check(&["HOME", "REFCPU_NUM_DEVICES", "REFCPU_ISA"]).is_ok());
        let error = check(&["REFCPU_NUM_DEVICE"]).unwrap_err();
        assert!(error.to_string().contains("REFCPU_NUM_DEVICE"), "{error}");
    }

    fn config(name: &str, value: i64) -> Result<Config> {
        Config::new(&Options::new(CREATE_OPTIONS, vec![(name.into(), OptionValue::Integer(value))])?)
    }

    #[test]
    fn options_out_of_range_are_refused_by_name() {
        assert_eq!(config("num_devices", 4).unwrap().num_devices, 4);
        for (name, value) in [("num_devices", -1), ("num_devices", 1 << 40), ("num_threads", 1 << 20)] {
            let error = config(name, value).err().unwrap().to_string();
            assert!(error.contains(name), "{error}");
        }
    }

    #[test]
    fn a_memory_limit_bounds_what_is_kept_too() {
        let allocator = config("memory_limit", 1000).unwrap().allocator;
        assert_eq!((allocator.limit, allocator.cache_limit), (1000, 1000));
    }
}
