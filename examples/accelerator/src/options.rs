//! The options that users can set, and the faults that some of them switch on.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use pjrt_plugin::{Error, OptionSpec, Options, Result};

/// The largest plausible number of bytes, microseconds or commands.
const MAX: i64 = 1 << 40;

/// Declares a fault, which 0 switches off.
const fn fault(name: &'static str, meaning: &'static str) -> OptionSpec {
    OptionSpec::integer(name, 0, meaning).in_range(0, MAX)
}

/// The options of the client, which JAX sets with `jax.config.update("jax_pjrt_client_create_options", ...)`.
pub(crate) const CREATE_OPTIONS: &[OptionSpec] = &[
    OptionSpec::integer("memory_limit", 128 << 20, "bytes of memory of each device").in_range(1, MAX),
    fault("latency", "fault: microseconds that each command takes longer"),
    fault("slow_device", "fault: microseconds that each command of the last device takes longer"),
    fault("fail_copy", "fault: the number of the copy that fails, from 1; 0 for none"),
    fault("memory_end", "fault: the byte at which the memory of each device ends; 0 for none"),
    fault("lose_device", "fault: the number of commands after which device 0 is lost; 0 for none"),
];

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
    pub(crate) fn of_devices(options: &Options, num_devices: usize) -> Result<Vec<Self>> {
        let time = |name: &str| options.integer(name).map(|us| Duration::from_micros(us as u64));
        let (latency, slow) = (time("latency")?, time("slow_device")?);
        let (end, lose) = (options.integer("memory_end")?, options.integer("lose_device")?);
        // Without a fault, the counter never reaches zero.
        let counter = |count: i64| Arc::new(AtomicI64::new(if count == 0 { i64::MAX } else { count }));
        let copies = counter(options.integer("fail_copy")?);
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

    fn options(name: &str, value: i64) -> Result<Options> {
        Options::new(CREATE_OPTIONS, vec![(name.to_owned(), OptionValue::Integer(value))])
    }

    #[test]
    fn a_value_out_of_range_is_refused_by_name() {
        assert!(options("memory_limit", 4096).is_ok() && options("latency", 0).is_ok());
        for (name, wrong) in [("memory_limit", 0), ("latency", -1), ("lose_device", i64::MAX)] {
            let error = options(name, wrong).unwrap_err();
            assert!(error.message().contains(name), "{error}");
        }
    }

    #[test]
    fn faults_strike_once_or_for_good() {
        let faults = Faults::of_devices(&options("fail_copy", 2).unwrap(), 2).unwrap();
        let copies = [&faults[0], &faults[1], &faults[0]].map(|device| device.copy("chip").is_ok());
        assert_eq!(copies, [true, false, true]);
        let faults = Faults::of_devices(&options("lose_device", 1).unwrap(), 2).unwrap();
        let commands = [0, 0, 0, 1].map(|device: usize| faults[device].command("chip").is_ok());
        assert_eq!(commands, [true, false, false, true]);
    }
}
