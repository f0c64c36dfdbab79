//! How fast programs are read, checked and printed: `cargo bench -p pjrt-stablehlo`.
//!
//! Each line is the best of several runs on one thread. An argument selects the lines that contain it. Figures are in
//! `docs/performance.md`.

#![forbid(unsafe_code)]

mod program;

use std::hint::black_box;
use std::time::{Duration, Instant};

use pjrt_stablehlo::{Bytes, Module, parse, verify};

/// Operations of the program of many operations.
const OPS: usize = 200_000;

/// Bytes of the constant.
const CONSTANT: usize = 64 << 20;

/// How long each line is measured.
const MEASURED: Duration = Duration::from_secs(2);

/// The least time that `work` takes; making its input and dropping its result is not counted.
fn best<I, T>(mut input: impl FnMut() -> I, mut work: impl FnMut(I) -> T) -> Duration {
    let mut best = Duration::MAX;
    let started = Instant::now();
    while started.elapsed() < MEASURED {
        let input = input();
        let start = Instant::now();
        let result = black_box(work(black_box(input)));
        best = best.min(start.elapsed());
        drop(result);
    }
    best
}

/// What a line counts.
enum Unit {
    Ops(usize),
    Bytes(usize),
}

fn report(name: &str, time: Duration, unit: Unit) {
    let seconds = time.as_secs_f64();
    let speed = match unit {
        Unit::Ops(count) => format!("{:>9.2} million operations/s", count as f64 / seconds / 1e6),
        Unit::Bytes(count) => format!("{:>9.0} MB/s", count as f64 / seconds / 1e6),
    };
    println!("{name:<28} {:>9.2} ms {speed}", seconds * 1e3);
}

fn main() {
    // Cargo passes `--bench` as well.
    let filter = std::env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_default();
    let run = |name: &str, measure: &dyn Fn() -> (Duration, Unit)| {
        if name.contains(&*filter) {
            let (time, unit) = measure();
            report(name, time, unit);
        }
    };
    let read = |bytes: &Bytes| -> Module { parse(bytes.clone()).expect("generated programs are valid") };

    let many = Bytes::from(program::of_many_ops(OPS));
    let module = read(&many);
    let ops = module.num_ops();
    let text = module.to_string();
    run("bytecode, operations", &|| (best(|| many.clone(), |bytes| read(&bytes)), Unit::Ops(ops)));
    run("text, operations", &|| {
        let text = Bytes::from(text.as_str());
        (best(|| text.clone(), |text| read(&text)), Unit::Bytes(text.len()))
    });
    run("verify", &|| (best(|| (), |()| verify(&module)), Unit::Ops(ops)));
    run("print, operations", &|| (best(|| (), |()| module.to_string()), Unit::Bytes(text.len())));

    let constant = Bytes::from(program::of_one_constant(CONSTANT));
    let module = read(&constant);
    let text = module.to_string();
    run("bytecode, constant", &|| (best(|| constant.clone(), |bytes| read(&bytes)), Unit::Bytes(CONSTANT)));
    run("text, constant", &|| {
        let text = Bytes::from(text.as_str());
        (best(|| text.clone(), |text| read(&text)), Unit::Bytes(text.len()))
    });
    run("print, constant", &|| (best(|| (), |()| module.to_string()), Unit::Bytes(text.len())));
}
