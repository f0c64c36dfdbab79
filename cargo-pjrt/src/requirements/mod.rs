//! The requirements of hosts that [`inspect`](crate::inspect) and the conformance kit share: the functions
//! that each host needs, and the rules for a plugin's function table.

mod functions;
mod profile;
pub(crate) mod table;

pub use functions::{Calls, FUNCTIONS, Function};
pub use profile::Profile;
