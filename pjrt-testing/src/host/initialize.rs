//! The initialization of a plugin and its attributes.

use pjrt_sys::*;

use super::error::Result;
use super::plugin::Plugin;
use super::values::{NamedValue, named_values};

const ATTRIBUTES: &str = "PJRT_Plugin_Attributes";

impl Plugin {
    /// Initializes the plugin (`PJRT_Plugin_Initialize`). Hosts call this once, before all other functions.
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn initialize(self) -> Result<()> {
        self.call(PJRT_Plugin_Initialize_Args::zeroed()).map(drop)
    }

    /// Returns the plugin's attributes (`PJRT_Plugin_Attributes`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn attributes(self) -> Result<Vec<NamedValue>> {
        let args = self.call(PJRT_Plugin_Attributes_Args::zeroed())?;
        // SAFETY: the plugin returned the pointer and the length of an array that lives as long as the
        // process.
        unsafe { named_values(ATTRIBUTES, args.attributes, args.num_attributes) }
    }

    /// Returns the addresses of the attributes and of the first one's name, which must not change between
    /// calls.
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn attributes_address(self) -> Result<usize> {
        Ok(self.call(PJRT_Plugin_Attributes_Args::zeroed())?.attributes.addr())
    }

    /// Returns the attributes as a host for version 0.70 of the C API or older sees them. Such a host passes a struct of 32
    /// bytes whose `struct_size` is 24. Returns `None` if the plugin does not write the number of attributes.
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn attributes_of_old_struct(self) -> Result<Option<Vec<NamedValue>>> {
        let unwritten = usize::MAX;
        let args = PJRT_Plugin_Attributes_Args {
            struct_size: 24,
            num_attributes: unwritten,
            ..PJRT_Plugin_Attributes_Args::zeroed()
        };
        let args = self.call(args)?;
        // SAFETY: the plugin wrote pointer and length of an array that lives as long as the process.
        let values = || unsafe { named_values(ATTRIBUTES, args.attributes, args.num_attributes) };
        (args.num_attributes != unwritten).then(values).transpose()
    }
}
