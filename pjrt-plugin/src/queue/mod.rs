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
//!   writes to a block. With [`MemoryPool::new`], its commands also own their blocks until they were executed.
//!
//! # Several queues
//!
//! Queues execute independently of each other, so a command says for which commands of other queues it waits:
//! [`Queue::submit_after`] takes their events. A device with two queues for programs and one for copies, whose commands contain
//! addresses because the pool is [shared](MemoryPool::shared):
//!
//! ```
//! use std::sync::{Arc, Mutex};
//!
//! use pjrt_plugin::queue::{Block, MemoryPool, Queue};
//! use pjrt_plugin::{Event, Execution, HostBuffer, Pending, Prepared, Result};
//!
//! /// The memory of the device, which all of its queues access.
//! type Ram = Arc<Mutex<Vec<u8>>>;
//!
//! struct Chip {
//!     programs: [Arc<Queue<Ram>>; 2],
//!     copies: Arc<Queue<Ram>>,
//!     memory: MemoryPool,
//! }
//!
//! struct Array(Block);
//!
//! fn start() -> Result<Chip> {
//!     let ram = Arc::new(Mutex::new(vec![0; 1 << 20]));
//!     let queue = |name: &str| -> Result<_> { Ok(Arc::new(Queue::start(name, Arc::clone(&ram))?)) };
//!     let (programs, copies) = ([queue("first")?, queue("second")?], queue("copies")?);
//!     let all = [programs.clone().to_vec(), vec![Arc::clone(&copies)]].concat();
//!     // A block is free when the commands of all queues that were submitted before it was dropped are executed.
//!     let submitted = move || Event::all(all.iter().map(|queue| queue.last()).collect());
//!     let memory = MemoryPool::shared("chip", 1 << 20, 64, submitted);
//!     Ok(Chip { programs, copies, memory })
//! }
//!
//! /// Copies an array from the host, while programs run.
//! fn upload(chip: &Chip, data: HostBuffer) -> Result<Pending<Array>> {
//!     let block = chip.memory.allocate(data.dense_size(), "array from the host")?;
//!     let range = block.address()..block.address() + block.size();
//!     // Commands that used the memory before may still be in a queue.
//!     let ready = chip.copies.submit_after(vec![block.free_since()], move |ram| {
//!         data.copy_into(&mut ram.lock().unwrap()[range])
//!     });
//!     Ok(Pending::allocated(Array(block), ready))
//! }
//!
//! /// Adds 1 to each byte of the argument, in place if it is donated, on one of the queues.
//! fn execute(chip: Arc<Chip>, queue: usize, execution: Execution<Array>) {
//!     execution.when_allocated(move |ready| {
//!         ready.enqueue(
//!             |_, inputs| {
//!                 let (from, size) = (inputs[0].0.address(), inputs[0].0.size());
//!                 let mut events = Vec::new();
//!                 let output = match inputs.remove(0).into_donated() {
//!                     // Commands of the other queue may still read the array.
//!                     Ok(array) => {
//!                         events.push(chip.memory.submitted());
//!                         array.0
//!                     }
//!                     Err(input) => {
//!                         inputs.push(input);
//!                         chip.memory.allocate(size, "output")?
//!                     }
//!                 };
//!                 events.push(output.free_since());
//!                 let command = (events, from, output.address(), size);
//!                 Ok(Prepared { outputs: vec![Array(output)], command, until_submitted: () })
//!             },
//!             // The arguments may be the results of commands of any queue.
//!             |_, (events, from, to, size), arrivals| {
//!                 chip.programs[queue].submit_after([events, arrivals].concat(), move |ram| {
//!                     let mut ram = ram.lock().unwrap();
//!                     let bytes: Vec<u8> = ram[from..from + size].iter().map(|byte| byte + 1).collect();
//!                     ram[to..to + size].copy_from_slice(&bytes);
//!                     Ok(())
//!                 })
//!             },
//!         );
//!     });
//! }
//! # let chip = start()?;
//! # let data = HostBuffer::from_vec(pjrt_plugin::ElementType::U8, vec![4], vec![1, 2, 3, 4])?;
//! # let _ = upload(&chip, data)?;
//! # chip.copies.submit(|ram| { assert_eq!(ram.lock().unwrap()[..5], [1, 2, 3, 4, 0]); Ok(()) }).wait()?;
//! # Ok::<(), pjrt_plugin::Error>(())
//! ```
//!
//! A command may wait for all events that `enqueue` passes to `submit`: the SDK calls the closure of [`Execution::when_allocated`](crate::Execution::when_allocated) only when no input needs an action of the host
//! any more, so these events belong to commands that are submitted already.
//!
//! [`PjrtClient::MAX_LAUNCHES_IN_FLIGHT`](crate::PjrtClient::MAX_LAUNCHES_IN_FLIGHT) limits the length of a queue. The example
//! `accelerator` is a driver that uses all of these.

mod address_space;
mod command_queue;
mod memory_pool;

pub use address_space::AddressSpace;
pub use command_queue::Queue;
pub use memory_pool::{Block, MemoryPool};
