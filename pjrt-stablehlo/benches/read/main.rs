//! Measures the speed of reading, verifying and printing programs: `cargo bench -p pjrt-stablehlo`.
//!
//! An argument selects the benchmarks whose names contain it. `docs/performance.md` contains results.

#![forbid(unsafe_code)]
#![allow(missing_docs, reason = "Criterion's macros make functions without documentation")]

mod program;

use std::hint::black_box;
use std::time::Duration;

use criterion::{BatchSize, Criterion, SamplingMode, Throughput, criterion_group, criterion_main};
use pjrt_stablehlo::{Bytes, parse, verify};

/// The number of operations in the program with many operations.
const OPS: usize = 200_000;

/// The size of the constant in bytes.
const CONSTANT: usize = 64 << 20;

/// Measures reading a program, printing it as text, and reading the text.
fn forms(criterion: &mut Criterion, name: &str, bytecode: Bytes, size: Throughput) {
    let mut group = criterion.benchmark_group(name);
    // A run takes up to half a second.
    group.sampling_mode(SamplingMode::Flat).sample_size(10);
    let module = parse(bytecode.clone()).expect("generated programs are valid");
    let printed = module.to_string();
    let text = Bytes::from(printed.as_str());
    let read = |bytes: Bytes| parse(bytes).expect("what was read once is read again");
    group.throughput(size);
    group.bench_function("bytecode", |b| {
        b.iter_batched(|| bytecode.clone(), |bytes| black_box(read(bytes)), BatchSize::PerIteration);
    });
    group.bench_function("verify", |b| b.iter(|| verify(black_box(&module))));
    group.throughput(Throughput::BytesDecimal(printed.len() as u64));
    group.bench_function("text", |b| {
        b.iter_batched(|| text.clone(), |text| black_box(read(text)), BatchSize::PerIteration);
    });
    group.bench_function("print", |b| b.iter_with_large_drop(|| black_box(&module).to_string()));
    group.finish();
}

fn operations(criterion: &mut Criterion) {
    let bytecode = Bytes::from(program::of_many_ops(OPS));
    let ops = parse(bytecode.clone()).expect("generated programs are valid").num_ops();
    forms(criterion, "operations", bytecode, Throughput::Elements(ops as u64));
}

fn constant(criterion: &mut Criterion) {
    let bytecode = Bytes::from(program::of_one_constant(CONSTANT));
    forms(criterion, "constant", bytecode, Throughput::BytesDecimal(CONSTANT as u64));
}

criterion_group! {
    name = reading;
    config = Criterion::default().warm_up_time(Duration::from_secs(1)).measurement_time(Duration::from_secs(3));
    targets = operations, constant
}
criterion_main!(reading);
