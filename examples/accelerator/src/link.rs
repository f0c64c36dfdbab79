//! Copies between devices of different processes.

use std::thread;

use pjrt_plugin::distributed::Processes;
use pjrt_plugin::ext::{CrossHostTransfers, Received, RemoteTransfer, Sent};
use pjrt_plugin::{DeviceId, Error, PjrtClient, PjrtDevice, Result};

use crate::Accelerator;

/// The simulated devices have no network between processes, so the arrays pass through the host's key-value store. A plugin for real
/// devices starts a transfer in their network here, and calls `done` when it has ended.
impl CrossHostTransfers for Accelerator {
    fn send_to_process(&self, transfer: RemoteTransfer, bytes: Result<Vec<u8>>, done: Sent) {
        let name = name(transfer);
        let sent = self.process_of(transfer.to).and_then(|(processes, peer)| {
            // The receiver learns that the array is in error.
            let message = match &bytes {
                Ok(bytes) => [&[ARRAY], bytes.as_slice()].concat(),
                Err(error) => [&[ERROR], error.to_string().as_bytes()].concat(),
            };
            processes.send(peer, &name, &message)
        });
        done(sent.and(bytes.map(drop)));
    }

    fn receive_from_process(&self, transfer: RemoteTransfer, size: usize, done: Received) {
        let (processes, peer) = match self.process_of(transfer.from) {
            Ok((processes, peer)) => (processes.clone(), peer),
            Err(error) => return done(Err(error)),
        };
        // The host's thread goes on.
        thread::spawn(move || {
            let message = processes.receive(peer, &name(transfer));
            done(message.and_then(|message| array(message, transfer, size)));
        });
    }
}

/// The first byte of a message with an array, and of one with the error of an array.
const ARRAY: u8 = 0;
const ERROR: u8 = 1;

fn name(transfer: RemoteTransfer) -> String {
    format!("array/{}/{}/{}", transfer.from, transfer.to, transfer.key)
}

/// Returns the array of a message.
fn array(mut message: Vec<u8>, transfer: RemoteTransfer, size: usize) -> Result<Vec<u8>> {
    match message.first() {
        Some(&ARRAY) if message.len() == size + 1 => {
            message.remove(0);
            Ok(message)
        }
        Some(&ERROR) => Err(Error::aborted(format!(
            "the array from device {} is in error: {}",
            transfer.from,
            String::from_utf8_lossy(&message[1..])
        ))),
        _ => Err(Error::invalid_argument(format!(
            "device {} sent an array of {} bytes; expected {size}",
            transfer.from,
            message.len().saturating_sub(1)
        ))),
    }
}

impl Accelerator {
    /// Returns the processes, and the index of the one to which a device belongs.
    fn process_of(&self, device: DeviceId) -> Result<(&Processes, usize)> {
        let peer = self.device(device)?.description().process_index();
        let processes = self.processes.as_ref();
        let processes =
            processes.ok_or_else(|| Error::internal("a client of one process copies to another one"))?;
        Ok((processes, peer as usize))
    }
}
