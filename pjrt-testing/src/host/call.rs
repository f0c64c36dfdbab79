//! Calls of functions of the table that return errors.

use super::error::Result;
use super::error_object;
use super::plugin::{Plugin, SlotArgs};

impl Plugin {
    /// Calls a function of the table, and returns the struct after the call.
    pub(crate) fn call<A: SlotArgs>(self, args: A) -> Result<A> {
        let mut args = args;
        let error = self.call_raw(&mut args)?;
        match error_object::take(self, A::INDEX, error) {
            None => Ok(args),
            Some(error) => Err(error),
        }
    }
}

/// Implements `Drop` with a function of the table that destroys the object. An error of that function is
/// ignored.
macro_rules! destroyed_by {
    ($type:ident $args:ident $field:ident) => {
        impl Drop for $type {
            fn drop(&mut self) {
                $crate::host::handles::give_back(self.raw);
                let args = pjrt_sys::$args {
                    $field: self.raw,
                    ..<pjrt_sys::$args as pjrt_sys::SizedStruct>::zeroed()
                };
                if let Err(error) = self.plugin.call(args) {
                    $crate::host::called::note_refused_destroy(error);
                }
            }
        }

        // SAFETY: the interface allows the use and destruction of its objects on every thread.
        unsafe impl Send for $type {}
        // SAFETY: as above.
        unsafe impl Sync for $type {}
    };
}
pub(crate) use destroyed_by;

/// Fills in an Args struct and calls its function: `call!(plugin, PJRT_Buffer_Delete_Args { buffer })`.
macro_rules! call {
    ($plugin:expr, $args:ident { $($field:ident $(: $value:expr)?),* $(,)? }) => {{
        #[allow(clippy::needless_update, reason = "some structs have no other fields")]
        let args = pjrt_sys::$args { $($field $(: $value)?,)* ..<pjrt_sys::$args as pjrt_sys::SizedStruct>::zeroed() };
        $plugin.call(args)
    }};
}
pub(crate) use call;

/// Defines methods that return a string which lives as long as its object.
macro_rules! text_of {
    ($($(#[$doc:meta])* $method:ident $args:ident $object:ident -> $start:ident $len:ident;)*) => {
        $(
            $(#[$doc])*
            ///
            /// # Errors
            ///
            /// Returns the plugin's error.
            pub fn $method(&self) -> Result<String> {
                let args = call!(self.plugin, $args { $object: self.raw })?;
                const FUNCTION: &str = stringify!($args).split_at(stringify!($args).len() - "_Args".len()).0;
                // SAFETY: the plugin returned the pointer and the length of a string that lives as long as
                // its object.
                unsafe { $crate::host::slices::given_text(FUNCTION, args.$start, args.$len) }
            }
        )*
    };
}
pub(crate) use text_of;

/// Defines methods that return one value.
macro_rules! value_of {
    ($($(#[$doc:meta])* $method:ident $args:ident $object:ident -> $field:ident: $type:ty;)*) => {
        $(
            $(#[$doc])*
            ///
            /// # Errors
            ///
            /// Returns the plugin's error.
            pub fn $method(&self) -> Result<$type> {
                Ok(call!(self.plugin, $args { $object: self.raw })?.$field)
            }
        )*
    };
}
pub(crate) use value_of;
