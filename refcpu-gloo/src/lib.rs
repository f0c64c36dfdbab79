//! Connections between the processes of a computation, over [Gloo](https://github.com/pytorch/gloo).
//!
//! Gloo is a C++ library. `shim/gloo.cc` contains the few functions of it that this crate needs, as C functions; `cargo xtask
//! gloo` builds them into a shared library. This crate loads that library at run time, so that neither building a plugin nor
//! running one process needs Gloo.
//!
//! A [`Mesh`] connects each process with every other over TCP, and transfers bytes between any two of them. The processes
//! exchange the addresses at which they listen by other means, such as the key-value store of a host:
//!
//! ```no_run
//! use std::path::Path;
//! use std::time::Duration;
//!
//! use refcpu_gloo::{Bytes, Library, Listener, Transfer};
//!
//! # fn exchange(addresses: Vec<Vec<u8>>) -> Vec<Vec<u8>> { addresses }
//! let library = Library::open(Path::new("librefcpu_gloo.so"))?;
//! let listener = Listener::new(library, 0, 2, None, Duration::from_secs(60))?;
//! let addresses = exchange((0..2).map(|peer| listener.address(peer).to_vec()).collect());
//! let mesh = listener.connect(&addresses)?;
//! let mut received = [0; 4];
//! mesh.transfer(&mut [
//!     Transfer { peer: 1, tag: 7, bytes: Bytes::Send(&[1, 2, 3, 4]) },
//!     Transfer { peer: 1, tag: 7, bytes: Bytes::Receive(&mut received) },
//! ])?;
//! # Ok::<(), refcpu_gloo::Error>(())
//! ```
//!
//! A mesh is whole or broken. It breaks when the connection to any process breaks, because this process has ended, or when a
//! process calls [`Mesh::fail`]. Then all transfers on all processes fail with the first reason that the process has learned,
//! which names the process that failed. A broken mesh stays broken.
//!
//! A process that ends in order calls [`Mesh::end`] when its transfers are complete. That does not break the mesh until another
//! process needs a transfer with it. [`Library::when_host_ends`] tells when a host that is a Python program ends.

#![deny(unsafe_code)]

mod inbox;
mod library;
mod mesh;

pub use library::Library;
pub use mesh::{Listener, Mesh};

/// A transfer of bytes between this process and another.
///
/// The n-th send to a process with a tag belongs to the n-th receive with that tag on the other side, from this process. Both
/// must have the same size.
#[derive(Debug)]
pub struct Transfer<'a> {
    /// The index of the other process.
    pub peer: usize,
    /// The tag, which is less than `1 << 63`.
    pub tag: u64,
    /// The bytes.
    pub bytes: Bytes<'a>,
}

/// The bytes of a [`Transfer`], with its direction.
#[derive(Debug)]
pub enum Bytes<'a> {
    /// Bytes that are sent.
    Send(&'a [u8]),
    /// Memory that receives bytes.
    Receive(&'a mut [u8]),
}

/// The size of a [`Message`] in bytes.
pub const MESSAGE_SIZE: usize = 512;

/// A short message to another process, and one from it ([`Mesh::exchange`]).
#[derive(Debug)]
pub struct Message {
    /// The index of the other process.
    pub peer: usize,
    /// The number of the message among those with this process, from 0. Each number is used once. The processes need not exchange
    /// messages in the order of their numbers, but do so in about this order.
    pub number: u64,
    /// The bytes that are sent.
    pub sent: [u8; MESSAGE_SIZE],
    /// The bytes that have been received: [`MESSAGE_SIZE`] after the exchange.
    pub received: Vec<u8>,
}

/// The reasons for which connecting or a transfer fails.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The library of `shim/gloo.cc` cannot be used.
    #[error("{0}")]
    Library(String),
    /// The processes could not be connected.
    #[error("{0}")]
    Connect(String),
    /// The mesh is broken.
    #[error("{0}")]
    Broken(String),
    /// The check of [`Mesh::exchange`] failed.
    #[error("{0}")]
    Refused(String),
}
