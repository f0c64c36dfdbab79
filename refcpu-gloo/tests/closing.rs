//! Meshes that end. This is a program of its own because it counts the sockets and the threads of the process.

mod common;

use std::fs;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use common::on_each;

/// The number of sockets of this process, and of its threads.
fn sockets_and_threads() -> (usize, usize) {
    let links =
        fs::read_dir("/proc/self/fd").unwrap().flatten().filter_map(|file| fs::read_link(file.path()).ok());
    let sockets = links.filter(|target| target.to_string_lossy().starts_with("socket:")).count();
    (sockets, fs::read_dir("/proc/self/task").unwrap().count())
}

#[test]
fn a_mesh_that_ends_leaves_no_socket_and_no_thread() {
    let before = sockets_and_threads();
    for broken in [false, true] {
        let all_are_connected = Barrier::new(3);
        let during = on_each(3, |mesh| {
            all_are_connected.wait();
            let during = sockets_and_threads();
            all_are_connected.wait();
            if broken {
                mesh.fail("the test breaks the mesh");
            }
            during
        });
        let Some(during) = during else { return };
        // Two connections of the process to others exist, whichever process of the mesh counts.
        assert!(during.iter().all(|(sockets, _)| *sockets >= before.0 + 2), "{during:?}");
        let begin = Instant::now();
        // The threads of the test end shortly after they are joined.
        while sockets_and_threads() != before {
            let after = sockets_and_threads();
            assert!(begin.elapsed() < Duration::from_secs(10), "before {before:?}, after {after:?}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
