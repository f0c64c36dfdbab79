//! The requirements of hosts that [`inspect`](crate::inspect) and the conformance kit share: the functions
//! that each host needs, and the rules for a plugin's function table.

mod profile;
pub(crate) mod table;

pub use profile::Profile;
