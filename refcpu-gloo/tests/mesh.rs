//! Meshes of several processes, which are threads of the test. They need the library that `cargo xtask gloo` builds, in
//! `REFCPU_GLOO`; without this variable, the tests only check the errors.

mod common;

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use common::on_each;
use refcpu_gloo::{Bytes, Error, Library, Listener, MESSAGE_SIZE, Mesh, Message, Transfer};

/// Sends bytes to all other processes, and returns those that they sent.
fn exchange(mesh: &Mesh, tag: u64, own: &[u8]) -> Result<Vec<Vec<u8>>, Error> {
    let mut all: Vec<Vec<u8>> = vec![vec![0; own.len()]; mesh.count()];
    let mut transfers = Vec::new();
    for (peer, bytes) in all.iter_mut().enumerate().filter(|(peer, _)| *peer != mesh.index()) {
        transfers.push(Transfer { peer, tag, bytes: Bytes::Send(own) });
        transfers.push(Transfer { peer, tag, bytes: Bytes::Receive(bytes) });
    }
    mesh.transfer(&mut transfers)?;
    all[mesh.index()] = own.to_vec();
    Ok(all)
}

#[test]
fn a_file_that_is_no_library_is_an_error() {
    let error = Library::open(Path::new("/nowhere/librefcpu_gloo.so")).unwrap_err();
    assert!(matches!(&error, Error::Library(text) if text.contains("/nowhere/librefcpu_gloo.so")), "{error}");
}

#[test]
fn a_host_without_an_address_is_an_error_with_its_name() {
    let Some(path) = std::env::var_os("REFCPU_GLOO") else { return };
    let library = Library::open(Path::new(&path)).unwrap();
    for host in ["no.such.host.invalid", "not an address"] {
        let opened = Listener::new(std::sync::Arc::clone(&library), 0, 2, Some(host), Duration::from_secs(1));
        let Err(Error::Connect(text)) = opened else { panic!("{host} is accepted") };
        assert!(text.contains(&format!("the name '{host}' has no address")), "{text}");
    }
}

#[test]
fn bytes_arrive_by_tag_whatever_their_order_and_size() {
    on_each(3, |mesh| {
        for size in [0, 1, 5000, 3 << 20] {
            let own = vec![mesh.index() as u8 + 1; size];
            let all = exchange(&mesh, 5, &own).unwrap();
            for (peer, bytes) in all.iter().enumerate() {
                assert_eq!(*bytes, vec![peer as u8 + 1; size]);
            }
        }
        // Two threads exchange at the same time.
        thread::scope(|threads| {
            for tags in [1..5_u64, 5..9] {
                let mesh = &mesh;
                threads.spawn(move || {
                    for tag in tags {
                        let own = [tag as u8, mesh.index() as u8];
                        let all = exchange(mesh, tag, &own).unwrap();
                        assert_eq!(all, (0..3).map(|peer| vec![tag as u8, peer]).collect::<Vec<_>>());
                    }
                });
            }
        });
    });
}

#[test]
fn a_process_that_ends_is_named_by_all_others() {
    let results = on_each(4, |mesh| {
        // Process 2 may end while others wait for each other.
        let first = exchange(&mesh, 1, &[0]);
        if mesh.index() == 2 {
            return None;
        }
        let begin = Instant::now();
        let error = first.and_then(|_| exchange(&mesh, 2, &[0])).unwrap_err();
        assert!(begin.elapsed() < Duration::from_secs(10));
        // Later transfers fail at once with the same reason.
        assert_eq!(exchange(&mesh, 3, &[0]).unwrap_err(), error);
        Some(error)
    });
    for error in results.into_iter().flatten().flatten() {
        assert!(error.to_string().starts_with("process 2 has ended"), "{error}");
    }
}

#[test]
fn the_reason_of_a_failure_reaches_all_processes() {
    on_each(3, |mesh| {
        // Process 1 may fail while the others wait for each other.
        let first = exchange(&mesh, 1, &[0]);
        if mesh.index() == 1 {
            mesh.fail("process 1: the program 'jit_f' failed: out of memory");
        }
        let error = first.and_then(|_| exchange(&mesh, 2, &[0])).unwrap_err();
        let reason = "process 1: the program 'jit_f' failed: out of memory";
        assert_eq!(error, Error::Broken(reason.to_owned()));
    });
}

/// Returns a message that begins with a byte.
fn message(peer: usize, number: u64, byte: u8) -> Message {
    let mut sent = [0; MESSAGE_SIZE];
    sent[0] = byte;
    Message { peer, number, sent, received: Vec::new() }
}

#[test]
fn messages_arrive_by_number_even_if_they_are_not_exchanged_in_order() {
    on_each(3, |mesh| {
        let exchange = |number: u64| {
            let byte = |index: usize| 10 * index as u8 + number as u8;
            let peers = (0..3).filter(|peer| *peer != mesh.index());
            let mut messages: Vec<Message> =
                peers.map(|peer| message(peer, number, byte(mesh.index()))).collect();
            mesh.exchange(&mut messages, |_| Ok(()), &mut []).unwrap();
            for message in messages {
                assert_eq!(message.received.len(), MESSAGE_SIZE);
                assert_eq!(message.received[0], byte(message.peer));
            }
        };
        (0..20).for_each(exchange);
        // All exchange the second before the first.
        [21, 20].into_iter().for_each(exchange);
        thread::scope(|threads| {
            for number in 22..26 {
                let exchange = &exchange;
                threads.spawn(move || exchange(number));
            }
        });
    });
}

#[test]
fn a_message_that_a_process_will_not_send_is_abandoned_when_it_ends() {
    on_each(2, |mesh| {
        if mesh.index() == 0 {
            let error = mesh.exchange(&mut [message(1, 0, 1)], |_| Ok(()), &mut []).unwrap_err();
            assert!(error.to_string().starts_with("process 1 has ended"), "{error}");
        }
    });
}

#[test]
fn transfers_are_abandoned_if_the_check_of_the_first_ones_fails() {
    on_each(2, |mesh| {
        let (peer, own) = (1 - mesh.index(), [mesh.index() as u8]);
        let mut data = [0; 100];
        // The other process sends nothing with this tag.
        let mut rest = [Transfer { peer, tag: 10 + mesh.index() as u64, bytes: Bytes::Receive(&mut data) }];
        let refuse = |messages: &[Message]| match messages[0].received[0] as usize == peer {
            true => Err("they differ".to_owned()),
            false => Err(format!("unexpected: {messages:?}")),
        };
        let error = mesh.exchange(&mut [message(peer, 0, own[0])], refuse, &mut rest).unwrap_err();
        assert_eq!(error, Error::Refused("they differ".to_owned()));
        // The mesh is whole.
        assert_eq!(exchange(&mesh, 3, &own).unwrap(), [[0], [1]]);
    });
}

#[test]
fn a_process_that_ends_in_order_fails_only_what_needs_it() {
    on_each(3, |mesh| {
        let all = exchange(&mesh, 1, &[mesh.index() as u8]).unwrap();
        assert_eq!(all, [[0], [1], [2]]);
        let reason = "process 2 has ended with an exception";
        if mesh.index() == 2 {
            mesh.end(reason);
        }
        // The others go on with each other.
        let own = [mesh.index() as u8];
        if let Some(peer) = 1_usize.checked_sub(mesh.index()) {
            let mut received = [9];
            let mut pair = [
                Transfer { peer, tag: 2, bytes: Bytes::Send(&own) },
                Transfer { peer, tag: 2, bytes: Bytes::Receive(&mut received) },
            ];
            mesh.transfer(&mut pair).unwrap();
            assert_eq!(received, [peer as u8]);
            let begin = Instant::now();
            assert_eq!(exchange(&mesh, 3, &own).unwrap_err(), Error::Broken(reason.to_owned()));
            assert!(begin.elapsed() < Duration::from_secs(8));
        } else {
            // The connections of this process stay open until the mesh breaks.
            while !mesh.is_broken() {
                thread::sleep(Duration::from_millis(5));
            }
        }
    });
}

#[test]
fn large_transfers_after_messages_that_are_refused_leave_the_mesh_whole() {
    on_each(3, |mesh| {
        for round in 0..6 {
            let own = vec![mesh.index() as u8; 1 << 20];
            let peers: Vec<usize> = (0..3).filter(|peer| *peer != mesh.index()).collect();
            let mut messages: Vec<Message> =
                peers.iter().map(|peer| message(*peer, round, mesh.index() as u8)).collect();
            let mut received: Vec<Vec<u8>> = peers.iter().map(|_| vec![9; own.len()]).collect();
            let mut transfers = Vec::new();
            for (peer, bytes) in peers.iter().zip(&mut received) {
                transfers.push(Transfer { peer: *peer, tag: round, bytes: Bytes::Send(&own) });
                transfers.push(Transfer { peer: *peer, tag: round, bytes: Bytes::Receive(bytes) });
            }
            let check = |_: &[Message]| if round % 2 == 0 { Err("no".to_owned()) } else { Ok(()) };
            let outcome = mesh.exchange(&mut messages, check, &mut transfers);
            drop(transfers);
            let all_are = |expected: &dyn Fn(usize) -> u8| {
                peers
                    .iter()
                    .zip(&received)
                    .all(|(peer, bytes)| bytes.iter().all(|byte| *byte == expected(*peer)))
            };
            if round % 2 == 0 {
                assert_eq!(outcome, Err(Error::Refused("no".to_owned())));
                // Nothing was sent.
                assert!(all_are(&|_| 9));
            } else {
                outcome.unwrap();
                assert!(all_are(&|peer| peer as u8));
            }
        }
    });
}
