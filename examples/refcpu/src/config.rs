//! The configuration of refcpu, from the options of the client, environment variables and defaults, in this order of
//! precedence.

use pjrt_plugin::{Error, OptionSpec, Options, Result};
use refcpu_engine::storage::AllocatorOptions;
use refcpu_kernels::Pool;
use std::time::Duration;

/// The name of the platform.
pub(crate) const PLATFORM_NAME: &str = "refcpu";

/// The name of JAX's CPU backend, which `REFCPU_AS_CPU` gives to the platform and to the kind of its devices.
pub(crate) const CPU_NAME: &str = "cpu";

/// The options of `PJRT_Client_Create`. If an option has its default value, the environment variable in its text applies.
pub(crate) const CREATE_OPTIONS: &[OptionSpec] = &[
    OptionSpec::integer("num_devices", 0, "the number of virtual devices (REFCPU_NUM_DEVICES; default 1)"),
    OptionSpec::integer(
        "cpu_device_count",
        0,
        "the name of num_devices in XLA's CPU plugin, which ZML uses; num_devices takes precedence",
    ),
    OptionSpec::integer(
        "num_threads",
        0,
        "the number of threads of a program (REFCPU_NUM_THREADS; default one per core)",
    ),
    OptionSpec::integer(
        "memory_limit",
        0,
        "the limit of the memory of each device in bytes (REFCPU_MEMORY_LIMIT; default most of the machine's)",
    ),
    OptionSpec::integer(
        "collective_timeout",
        0,
        "the seconds that a device waits for others in a collective if they are launched separately \
         (REFCPU_COLLECTIVE_TIMEOUT; default 60)",
    ),
    OptionSpec::boolean("opaque", false, "whether device memory is hidden from the host (REFCPU_OPAQUE)"),
];

/// The options of the compiler, which JAX passes with `jax.jit(..., compiler_options={...})`.
pub(crate) const COMPILE_OPTIONS: &[OptionSpec] = &[
    OptionSpec::boolean(
        "refcpu_fusion",
        true,
        "whether elementwise operations are fused (REFCPU_FUSION=0 disables it for all programs)",
    ),
    OptionSpec::string(
        "refcpu_dump",
        "",
        "the folder to which the program's dump is written (REFCPU_DUMP applies to all programs)",
    ),
];

/// The largest number of devices that is accepted.
const MAX_DEVICES: i64 = 4096;

/// The largest number of threads that is accepted.
const MAX_THREADS: i64 = 1024;

/// The largest number of seconds that is accepted, which is a day.
const MAX_TIMEOUT: i64 = 24 * 60 * 60;

/// The default time that a device waits for others in a collective, in seconds.
const COLLECTIVE_TIMEOUT: i64 = 60;

/// The configuration of a client.
pub(crate) struct Config {
    pub(crate) num_devices: i32,
    pub(crate) num_threads: usize,
    pub(crate) allocator: AllocatorOptions,
    /// The limit of the memory of each device in bytes.
    pub(crate) memory_limit: usize,
    pub(crate) collective_timeout: Duration,
    pub(crate) opaque: bool,
    /// `true` if the client has the name of JAX's CPU backend.
    pub(crate) as_cpu: bool,
    /// `true` if launches of programs that call the host return before the program ends.
    pub(crate) async_callbacks: bool,
}

impl Config {
    /// Reads the configuration.
    ///
    /// # Errors
    /// Returns INVALID_ARGUMENT if an option or a variable is out of range or not a number, or if a variable that begins with
    /// `REFCPU_` is unknown.
    pub(crate) fn new(options: &Options) -> Result<Self> {
        check_variables(std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()))?;
        runs_partitioned()?;
        let integer = |option, variable, max| integer(options.integer(option)?, option, variable, max);
        let as_cpu = flag("REFCPU_AS_CPU")?;
        let threads = integer("num_threads", "REFCPU_NUM_THREADS", MAX_THREADS)?;
        let timeout = integer("collective_timeout", "REFCPU_COLLECTIVE_TIMEOUT", MAX_TIMEOUT)?;
        let mut allocator = AllocatorOptions::default();
        let is_named = options.integer("num_devices")? != 0;
        let count = if is_named { "num_devices" } else { "cpu_device_count" };
        let num_devices = integer(count, "REFCPU_NUM_DEVICES", MAX_DEVICES)?.unwrap_or(1) as i32;
        let mut memory_limit = allocator.limit;
        if let Some(limit) = integer("memory_limit", "REFCPU_MEMORY_LIMIT", i64::MAX)? {
            memory_limit = usize::try_from(limit).unwrap_or(usize::MAX);
            let of_all = memory_limit.saturating_mul(num_devices as usize);
            allocator.cache_limit = allocator.cache_limit.min(of_all);
        }
        Ok(Self {
            num_devices,
            num_threads: threads.map_or_else(Pool::default_threads, |n| n as usize),
            allocator,
            memory_limit,
            collective_timeout: Duration::from_secs(timeout.unwrap_or(COLLECTIVE_TIMEOUT).unsigned_abs()),
            opaque: options.boolean("opaque")? || flag("REFCPU_OPAQUE")?,
            as_cpu,
            async_callbacks: !as_cpu || flag("REFCPU_ASYNC_CALLBACKS")?,
        })
    }
}

/// The environment variables that refcpu reads.
const VARIABLES: &[&str] = &[
    "REFCPU_NUM_DEVICES",
    "REFCPU_NUM_THREADS",
    "REFCPU_MEMORY_LIMIT",
    "REFCPU_OPAQUE",
    "REFCPU_COLLECTIVE_TIMEOUT",
    "REFCPU_AS_CPU",
    "REFCPU_ASYNC_CALLBACKS",
    "REFCPU_GLOO",
    "REFCPU_GLOO_HOST",
    "REFCPU_DUMP",
    "REFCPU_FUSION",
    "REFCPU_PARTITIONED",
    "REFCPU_ISA",
    "REFCPU_CODEGEN",
    "REFCPU_PERF_MAP",
];

/// Returns an error if the name of a variable is misspelled, because it would have no effect.
fn check_variables(names: impl Iterator<Item = String>) -> Result<()> {
    for name in names.filter(|name| name.starts_with("REFCPU_")) {
        if !VARIABLES.contains(&name.as_str()) {
            return Err(Error::invalid_argument(format!(
                "refcpu does not have the environment variable {name}"
            ))
            .with_hint(format!("its environment variables are {}", VARIABLES.join(", "))));
        }
    }
    Ok(())
}

/// Returns the option if it is set, and otherwise the variable. The value must be from 1 to `max`.
fn integer(option: i64, name: &str, variable: &str, max: i64) -> Result<Option<i64>> {
    let (value, from) = if option != 0 {
        (option, format!("the option {name}"))
    } else {
        let Some(text) = std::env::var_os(variable).filter(|text| !text.is_empty()) else { return Ok(None) };
        let number = text.to_str().and_then(|text| text.trim().parse().ok());
        let number = number
            .ok_or_else(|| Error::invalid_argument(format!("{variable} is {text:?}; expected an integer")))?;
        (number, variable.to_owned())
    };
    if (1..=max).contains(&value) {
        return Ok(Some(value));
    }
    Err(Error::invalid_argument(format!("{from} is {value}; expected 1 to {max}")))
}

/// Returns whether programs in the global view run partitioned, in the form of one device, instead of on whole arrays.
///
/// # Errors
/// Returns INVALID_ARGUMENT if the variable is neither 0 nor 1.
pub(crate) fn runs_partitioned() -> Result<bool> {
    flag("REFCPU_PARTITIONED")
}

fn flag(variable: &str) -> Result<bool> {
    match std::env::var(variable).as_deref() {
        Err(_) | Ok("" | "0" | "false") => Ok(false),
        Ok("1" | "true") => Ok(true),
        Ok(other) => Err(Error::invalid_argument(format!("{variable} is {other:?}; expected 0 or 1"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pjrt_plugin::OptionValue;

    #[test]
    fn a_misspelled_variable_is_refused() {
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
        for name in ["num_devices", "cpu_device_count"] {
            assert_eq!(config(name, 4).unwrap().num_devices, 4);
        }
        for (name, value) in [("num_devices", -1), ("num_devices", 1 << 40), ("num_threads", 1 << 20)] {
            let error = config(name, value).err().unwrap().to_string();
            assert!(error.contains(name), "{error}");
        }
    }

    #[test]
    fn a_memory_limit_bounds_what_is_kept_too() {
        let config = config("memory_limit", 1000).unwrap();
        assert_eq!((config.memory_limit, config.allocator.cache_limit), (1000, 1000));
    }
}
