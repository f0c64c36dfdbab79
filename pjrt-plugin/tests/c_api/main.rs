//! A plugin seen from C: a dummy client, called through the function table as a host would.

mod buffers;
mod dummy;
mod errors;
mod events;
mod executions;
mod extensions;
mod host;
mod host_callbacks;
mod lifetimes;
mod objects;
mod observation;
mod programs;
mod slot_page;
mod slot_rows;
mod struct_sizes;
mod transfers;
mod versions;
