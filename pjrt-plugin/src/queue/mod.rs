//! Helpers for devices with command queues: a queue, and the memory that commands refer to by address.
//!
//! A driver submits commands that a device executes later, and decides about memory when it submits. Two rules follow:
//!
//! * **The outputs of a program become visible after its command was submitted**, because the commands of programs that read
//!   them are submitted next. [`ReadyExecution::enqueue`](crate::ReadyExecution::enqueue) allocates, submits and publishes in
//!   this order. For the same reason, the receive command of a copy between devices is submitted before
//!   [`PjrtClient::copy_buffer`](crate::PjrtClient::copy_buffer) returns: [`Queue::transfer`] submits both commands.
//! * **Memory is freed in the order of submission**: when the last command that uses it *was submitted*, and not before. Commands
//!   therefore contain addresses, and the driver owns [`Block`]s. `enqueue` drops the inputs and the temporary memory of a
//!   program at the right time. A second queue of the device, such as a copy engine, waits for [`Block::free_since`] before it
//!   writes to a block.
//!
//! [`PjrtClient::MAX_LAUNCHES_IN_FLIGHT`](crate::PjrtClient::MAX_LAUNCHES_IN_FLIGHT) limits the length of a queue. The example
//! `accelerator` is a driver that uses all of these.

mod address_space;
mod command_queue;
mod memory_pool;

pub use address_space::AddressSpace;
pub use command_queue::Queue;
pub use memory_pool::{Block, MemoryPool};
