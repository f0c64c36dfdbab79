//! Processes of a mesh, which are threads of the test.

use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use refcpu_gloo::{Library, Listener, Mesh};

const LIMIT: Duration = Duration::from_secs(20);

/// Connects a process with the others through channels, one for each process.
fn connect(library: &std::sync::Arc<Library>, index: usize, ends: Ends) -> Mesh {
    let count = ends.to.len();
    let listener =
        Listener::new(std::sync::Arc::clone(library), index, count, Some("127.0.0.1"), LIMIT).unwrap();
    for (peer, to) in ends.to.iter().enumerate() {
        to.send((index, listener.address(peer).to_vec())).unwrap();
    }
    let mut addresses = vec![vec![]; count];
    for (peer, address) in ends.from.iter().take(count) {
        addresses[peer] = address;
    }
    listener.connect(&addresses).unwrap()
}

struct Ends {
    to: Vec<Sender<(usize, Vec<u8>)>>,
    from: Receiver<(usize, Vec<u8>)>,
}

/// Runs a function on each process of a mesh, and returns the results. Does nothing without the library.
pub(crate) fn on_each<R: Send>(count: usize, run: impl Fn(Mesh) -> R + Sync) -> Option<Vec<R>> {
    let Some(path) = std::env::var_os("REFCPU_GLOO") else {
        eprintln!(
            "skipped: REFCPU_GLOO does not name the library; `cargo xtask gloo --test` runs these tests"
        );
        return None;
    };
    let library = Library::open(Path::new(&path)).unwrap();
    let (to, from): (Vec<_>, Vec<_>) = (0..count).map(|_| channel()).unzip();
    let (library, run) = (&library, &run);
    Some(thread::scope(|threads| {
        let start = |(index, from)| {
            let ends = Ends { to: to.clone(), from };
            threads.spawn(move || run(connect(library, index, ends)))
        };
        let started: Vec<_> = from.into_iter().enumerate().map(start).collect();
        started.into_iter().map(|thread| thread.join().unwrap()).collect()
    }))
}
