//! A plugin seen from C: a dummy client, called through the function table as a host would.

mod buffers;
mod canonical_shapes;
mod cross_host;
mod dummy;
mod dummy_extensions;
mod errors;
mod events;
mod executions;
mod extensions;
mod ffi;
mod host;
mod host_callbacks;
mod launches_in_flight;
mod lifetimes;
mod objects;
mod observation;
mod opt_ins;
mod profiler;
mod programs;
mod raw_buffers;
mod single_process;
mod struct_sizes;
mod traits_page;
mod transfers;
mod versions;
mod views;
