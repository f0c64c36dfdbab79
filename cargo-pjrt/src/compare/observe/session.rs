//! Recorded sessions of hosts.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use super::fact::{array, behavior, failed, skipped};
use super::observer::Observer;
use crate::session::log::Log;
use crate::session::replay::{Observed, Options, Replayer};

/// Replays a session, and notes the outcomes of its calls and the arrays that the host read.
pub(super) fn observe(observer: &Observer, path: &str) {
    let log = match Log::open(Path::new(path)) {
        Ok(log) => log,
        Err(why) => return skipped("not read", &why),
    };
    let options = Options {
        log: path.into(),
        plugin: path.into(),
        tolerance: 0.0,
        options: observer.options.clone(),
        all: false,
        timeout: Duration::default(),
    };
    // The host may read an array several times.
    let times: RefCell<HashMap<String, usize>> = RefCell::default();
    let numbered = |what: &str| {
        let mut times = times.borrow_mut();
        let count = times.entry(what.to_owned()).or_default();
        *count += 1;
        if *count == 1 { what.to_owned() } else { format!("{what}, read {count}") }
    };
    let visit = |what: &str, observed: Observed<'_>| {
        let what = numbered(what);
        match observed {
            Observed::Call(Ok(())) => behavior(what, "ok"),
            Observed::Call(Err(error)) | Observed::Failed(error) => failed(&what, error),
            Observed::Array(shape, bytes) => array(&what, shape, bytes, &observer.scratch),
            Observed::Skipped(why) => skipped(what, why),
        }
    };
    let mut replayer = Replayer::new(&log, observer.plugin, &options).visited_by(visit);
    for (index, entry) in log.entries.iter().enumerate() {
        if let Err(why) = replayer.step(index, entry) {
            behavior(format!("entry {} of the log", index + 1), format!("it cannot be replayed: {why}"));
            break;
        }
    }
    drop(replayer);
}
