//! Transfers between processes through the host's key-value store.

use super::{Received, RemoteTransfer};
use crate::client::PjrtClient;
use crate::device::{DeviceId, PjrtDevice};
use crate::distributed::Processes;
use crate::error::{Error, Result};

/// The first byte of a message with an array, and of one with the error of an array.
const ARRAY: u8 = 0;
const ERROR: u8 = 1;

/// Sends an array, or its error.
///
/// # Errors
///
/// Returns the error of the array, or an error of the store.
pub(super) fn send<C: PjrtClient>(
    client: &C,
    processes: &Processes,
    transfer: RemoteTransfer,
    bytes: Result<Vec<u8>>,
) -> Result<()> {
    let message = match &bytes {
        Ok(bytes) => [&[ARRAY], bytes.as_slice()].concat(),
        Err(error) => [&[ERROR], error.to_string().as_bytes()].concat(),
    };
    processes.send(process_of(client, transfer.to)?, &name(transfer), &message)?;
    bytes.map(drop)
}

/// Receives an array on a thread of its own, which waits for it.
pub(super) fn receive<C: PjrtClient>(
    client: &C,
    processes: &Processes,
    transfer: RemoteTransfer,
    size: usize,
    done: Received,
) {
    let peer = match process_of(client, transfer.from) {
        Ok(peer) => peer,
        Err(error) => return done(Err(error)),
    };
    let processes = processes.clone();
    std::thread::spawn(move || {
        done(processes.receive(peer, &name(transfer)).and_then(|message| array(message, transfer, size)));
    });
}

fn name(transfer: RemoteTransfer) -> String {
    format!("array/{}/{}/{}", transfer.from, transfer.to, transfer.key)
}

/// Returns the process of a device.
fn process_of<C: PjrtClient>(client: &C, id: DeviceId) -> Result<usize> {
    let mut descriptions = client.devices().iter().map(PjrtDevice::description);
    let found = descriptions.find(|description| description.id() == id);
    let process = found.and_then(|description| usize::try_from(description.process_index()).ok());
    process.ok_or_else(|| Error::invalid_argument(format!("there is no device {id}")))
}

/// Returns the array of a message.
fn array(mut message: Vec<u8>, transfer: RemoteTransfer, size: usize) -> Result<Vec<u8>> {
    let from = transfer.from;
    match message.first() {
        Some(&ERROR) => {
            let why = String::from_utf8_lossy(&message[1..]);
            Err(Error::aborted(format!("the array from device {from} is in error: {why}")))
        }
        Some(&ARRAY) if message.len() == size + 1 => {
            message.remove(0);
            Ok(message)
        }
        _ => {
            let found = message.len().saturating_sub(1);
            Err(Error::invalid_argument(format!(
                "device {from} sent {found} bytes; expected an array of {size}"
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorCode;

    #[test]
    fn messages_of_the_wrong_size_or_with_an_error_are_no_arrays() {
        let transfer = RemoteTransfer { from: 3, to: 4, key: 5 };
        assert_eq!(array(vec![ARRAY, 1, 2], transfer, 2).unwrap(), [1, 2]);
        for message in [vec![], vec![ARRAY, 1], vec![7, 1, 2]] {
            assert_eq!(array(message, transfer, 2).unwrap_err().code(), ErrorCode::InvalidArgument);
        }
        let error = array([&[ERROR], "lost".as_bytes()].concat(), transfer, 2).unwrap_err();
        assert!(error.message().contains("device 3") && error.message().contains("lost"), "{error}");
    }
}
