//! The options that users can set, and the faults that some of them switch on.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use pjrt_plugin::{Error, OptionSpec, Options, Result};

/// The options of the client, which JAX sets with `jax.config.update("jax_pjrt_client_create_options", ...)`.
pub(crate) const CREATE_OPTIONS: &[OptionSpec] = &[
    OptionSpec::integer("memory_limit", 128 << 20, "bytes of memory of each device"),
    OptionSpec::integer("latency", 0, "fault: microseconds that each command takes longer"),
    OptionSpec::integer(
        "slow_device",
        0,
        "fault: microseconds that each command of the last device takes longer",
    ),
    OptionSpec::integer("fail_copy", 0, "fault: the number of the copy that fails, from 1; 0 for none"),
    OptionSpec::integer(
        "memory_end",
        0,
        "fault: the byte at which the memory of each device ends; 0 for none",
    ),
    OptionSpec::integer(
        "lose_device",
        0,
        "fault: the number of commands after which device 0 is lost; 0 for none",
    ),
];

/// The largest plausible number of bytes, microseconds or commands.
const MAX: i64 = 1 << 40;

/// Returns the size of a device's memory in bytes.
///
/// # Errors
///
/// Returns INVALID_ARGUMENT if the value is not in the valid range.
pub(crate) fn memory_limit(options: &Options) -> Result<usize> {
    Ok(integer(options, "memory_limit", 1)? as usize)
}

fn integer(options: &Options, name: &str, min: i64) -> Result<i64> {
    let value = options.integer(name)?;
    if (min..=MAX).contains(&value) {
        return Ok(value);
    }
    let message = format!("the option {name}={value} is invalid; expected a number from {min} to {MAX}");
    Err(Error::invalid_argument(message))
}

/// The faults of one device. A clone shares the counters.
#[derive(Clone)]
pub(crate) struct Faults {
    /// The time that each command takes longer.
    latency: Duration,
    /// The byte at which the memory ends.
    pub(crate) memory_end: Option<usize>,
    /// The number of copies before the one that fails. All devices of the client count together.
    copies: Arc<AtomicI64>,
    /// The number of commands before the device is lost.
    commands: Arc<AtomicI64>,
}

impl Faults {
    /// Reads the faults of all devices.
    ///
    /// # Errors
    ///
    /// Returns INVALID_ARGUMENT if a value is not in the valid range.
    pub(crate) fn of_devices(options: &Options, num_devices: usize) -> Result<Vec<Self>> {
        let [latency, slow, copy, end, lose] =
            ["latency", "slow_device", "fail_copy", "memory_end", "lose_device"]
                .map(|name| integer(options, name, 0));
        let [latency, slow] = [latency?, slow?].map(|us| Duration::from_micros(us as u64));
        let (end, lose) = (end?, lose?);
        // Without a fault, the counter never reaches zero.
        let counter = |count: i64| Arc::new(AtomicI64::new(if count == 0 { i64::MAX } else { count }));
        let copies = counter(copy?);
        let device = |id: usize| Self {
            latency: if id + 1 == num_devices { latency + slow } else { latency },
            memory_end: (end > 0).then_some(end as usize),
            copies: Arc::clone(&copies),
            commands: counter(if id == 0 { lose } else { 0 }),
        };
        Ok((0..num_devices).map(device).collect())
    }

    /// Delays a command, and returns the error with which it fails, if the device is lost.
    pub(crate) fn command(&self, device: &str) -> Result<()> {
        std::thread::sleep(self.latency);
        match self.commands.fetch_sub(1, Ordering::Relaxed) {
            1.. => Ok(()),
            _ => Err(Error::unavailable(format!("{device} is lost (option lose_device)"))),
        }
    }

    /// Returns the error with which a copy fails, if it is the one that fails.
    pub(crate) fn copy(&self, device: &str) -> Result<()> {
        match self.copies.fetch_sub(1, Ordering::Relaxed) {
            1 => Err(Error::data_loss(format!("{device} failed to copy an array (option fail_copy)"))),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pjrt_plugin::OptionValue;

    fn options(name: &str, value: i64) -> Options {
        Options::new(CREATE_OPTIONS, vec![(name.to_owned(), OptionValue::Integer(value))]).unwrap()
    }

    #[test]
    fn a_value_out_of_range_is_refused_by_name() {
        assert_eq!(memory_limit(&options("memory_limit", 4096)).unwrap(), 4096);
        for wrong in [-1, i64::MAX] {
            assert!(
                memory_limit(&options("memory_limit", wrong)).unwrap_err().message().contains("memory_limit")
            );
            let error = Faults::of_devices(&options("latency", wrong), 1).err().unwrap();
            assert!(error.message().contains("latency"), "{error}");
        }
    }

    #[test]
    fn faults_strike_once_or_for_good() {
        let faults = Faults::of_devices(&options("fail_copy", 2), 2).unwrap();
        let copies = [&faults[0], &faults[1], &faults[0]].map(|device| device.copy("chip").is_ok());
        assert_eq!(copies, [true, false, true]);
        let faults = Faults::of_devices(&options("lose_device", 1), 2).unwrap();
        let commands = [0, 0, 0, 1].map(|device: usize| faults[device].command("chip").is_ok());
        assert_eq!(commands, [true, false, false, true]);
    }
}
