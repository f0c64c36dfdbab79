//! The refcpu plugin: the four traits of `pjrt-plugin` on top of `refcpu-engine`.
#![forbid(unsafe_code)]

mod buffer;
mod call_partitioner;
mod canonical;
mod client;
mod cluster;
mod config;
mod device;
mod device_memory;
mod element_type;
mod errors;
mod executable;
mod executor;
mod extensions;
mod host;
mod launch;
mod sharding;
mod view;

pub use buffer::RefcpuBuffer;
pub use client::RefcpuClient;
pub use device::RefcpuDevice;
pub use executable::RefcpuExecutable;
pub use launch::Loaded;
