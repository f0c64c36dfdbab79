//! The options that users can set.

use iree_runtime::CodeTarget;
use pjrt_plugin::{CompileOptions, Error, OptionSpec, OptionValue, Options, Result};

use crate::target::Target;

/// The options of the client, which JAX sets with `jax.config.update("jax_pjrt_client_create_options", ...)`.
pub(crate) const CREATE_OPTIONS: &[OptionSpec] = &[
    OptionSpec::string(
        "device",
        "local-task",
        "the driver, local-task, local-sync, vulkan or cuda, with the ordinals of its devices, as in vulkan:0,1; without \
         ordinals, all devices",
    ),
    OptionSpec::string("compiler", "", "the path of libIREECompiler.so; if it is empty, it is searched"),
    COMPILER_FLAGS,
    OptionSpec::integer(
        "memory_limit",
        0,
        "bytes that the arrays of each device can occupy; 0 is the memory of the host, or no limit for other devices",
    ),
    OptionSpec::string("dump", "", "a folder for the programs, the flags and the code of all compilations"),
];

/// The option with flags of IREE's compiler. It is an option of clients, and one of `jax.jit(f, compiler_options=...)`.
const COMPILER_FLAGS: OptionSpec =
    OptionSpec::string("compiler_flags", "", "flags of iree-compile, separated by spaces");

/// The values of the client's options.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) target: &'static Target,
    /// For what code is made; without the features of the devices, until they are started.
    pub(crate) code: CodeTarget,
    /// The ordinals of the devices; `None` for all devices.
    pub(crate) ordinals: Option<Vec<usize>>,
    /// The path of the compiler; empty if it is searched.
    pub(crate) compiler: String,
    pub(crate) compiler_flags: Vec<String>,
    /// The bytes of memory of each device, or 0.
    pub(crate) memory_limit: i64,
    /// The folder for the files of compilations; empty if there are none.
    pub(crate) dump: String,
}

impl Settings {
    /// Reads the options.
    ///
    /// # Errors
    ///
    /// Returns INVALID_ARGUMENT if a value is invalid.
    pub(crate) fn of(options: &Options) -> Result<Self> {
        let device = options.string("device")?;
        let (driver, ordinals) = match device.split_once(':') {
            None => (&*device, None),
            Some((driver, ordinals)) => (driver, Some(ordinals)),
        };
        let ordinals = ordinals.map(|list| list.split(',').map(|text| ordinal(&device, text)).collect());
        Ok(Self {
            target: Target::named(driver)
                .map_err(|error| error.context(format!("the option device={device}")))?,
            code: CodeTarget::of_driver(driver),
            ordinals: ordinals.transpose()?,
            compiler: options.string("compiler")?,
            compiler_flags: flags(&options.string("compiler_flags")?)?,
            memory_limit: memory_limit(options)?,
            dump: options.string("dump")?,
        })
    }

    /// Returns the default values of the options for a kind of devices, with the features of those of this host.
    ///
    /// # Errors
    ///
    /// Returns INVALID_ARGUMENT if there is no such kind.
    pub(crate) fn for_kind(kind: &str) -> Result<Self> {
        let device = vec![("device".to_owned(), OptionValue::String(kind.to_owned()))];
        let settings = Self::of(&Options::new(CREATE_OPTIONS, device)?)?;
        Ok(Self { code: settings.code.for_host(), ..settings })
    }
}

fn memory_limit(options: &Options) -> Result<i64> {
    let limit = options.integer("memory_limit")?;
    let message = || format!("the option memory_limit={limit} is invalid; expected a number of bytes");
    if limit >= 0 { Ok(limit) } else { Err(Error::invalid_argument(message())) }
}

fn ordinal(device: &str, text: &str) -> Result<usize> {
    text.trim().parse().map_err(|_| {
        let message = format!(
            "the option device={device} is invalid; expected numbers after the colon, found '{text}'"
        );
        Error::invalid_argument(message)
    })
}

fn flags(text: &str) -> Result<Vec<String>> {
    let flags: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    match flags.iter().find(|flag| !flag.starts_with("--")) {
        None => Ok(flags),
        Some(wrong) => Err(Error::invalid_argument(format!(
            "the option compiler_flags={text} is invalid; expected flags that begin with --, found '{wrong}'"
        ))),
    }
}

/// Returns the flags of one compilation.
///
/// # Errors
///
/// Returns INVALID_ARGUMENT if the host set an option that is not declared, or an invalid value.
pub(crate) fn compiler_flags(options: &CompileOptions) -> Result<Vec<String>> {
    flags(&options.compiler_options(&[COMPILER_FLAGS])?.string("compiler_flags")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(name: &str, value: &str) -> Result<Settings> {
        let given = vec![(name.to_owned(), OptionValue::String(value.to_owned()))];
        Settings::of(&Options::new(CREATE_OPTIONS, given).unwrap())
    }

    #[test]
    fn a_device_is_a_driver_with_ordinals() {
        let all = settings("device", "local-sync").unwrap();
        assert_eq!((all.target.driver, all.ordinals), ("local-sync", None));
        let some = settings("device", "vulkan:2,0").unwrap();
        assert_eq!((some.target.driver, some.ordinals), ("vulkan", Some(vec![2, 0])));
    }

    #[test]
    fn invalid_values_are_refused_with_the_name_of_the_option() {
        for (name, value, part) in [
            ("device", "metal", "expected one of local-task, local-sync, vulkan, cuda"),
            ("device", "vulkan:x", "found 'x'"),
            ("compiler_flags", "-O3", "begin with --"),
        ] {
            let error = settings(name, value).unwrap_err();
            assert!(error.message().contains(name) && error.message().contains(part), "{error}");
        }
    }
}
