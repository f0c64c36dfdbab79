//! The tasks of this repository, such as `cargo xtask test` and `cargo xtask demo`.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

mod accuracy;
mod bench;
mod bindgen;
mod book;
mod conform_faults;
mod conformance_ladder;
mod corpus;
mod demo;
mod differential;
mod distributed;
mod environment;
mod fuzz;
mod gloo;
mod gomlx;
mod host_matrix;
mod host_suite;
mod iree;
mod jax_multiprocess;
mod jax_tests;
mod libraries;
mod loom;
mod lowerings;
mod needs_programs;
mod numerics_suites;
mod packaged;
mod protos;
mod release;
mod sanitize;
mod sharding_agreement;
mod test;
mod torch;
mod wheel;

/// The tasks of this repository.
#[derive(Parser)]
#[command(name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Train a classifier of handwritten digits with JAX on refcpu or the plugin around IREE, and compare with XLA's CPU backend
    Demo(demo::Options),
    /// Train the classifier in one, two and four processes on refcpu, and kill processes at random moments; needs Gloo
    DemoDistributed(distributed::DemoOptions),
    /// Build the library with which refcpu connects several processes into target/gloo; needs Gloo
    Gloo(distributed::GlooOptions),
    /// Set up and run all tests
    Test(test::Options),
    /// Build the wheel of pjrt-refcpu into dist/, with the library that connects several processes if Gloo is installed
    Wheel,
    /// Build the plugin around IREE into target/iree, with the compiler and the tools that it needs
    Iree(iree::Options),
    /// Run smoke tests on refcpu with many releases of JAX, each in its own virtual environment
    TestHosts(host_matrix::Options),
    /// Run programs of PyTorch/XLA on refcpu, and compare with PyTorch's own CPU device; or run PyTorch/XLA's
    /// own tests, and compare with XLA's CPU backend
    TestTorch(torch::Options),
    /// Test refcpu with GoMLX's client, as a CPU plugin; needs Go
    TestGomlx(gomlx::Options),
    /// Run JAX's own tests on refcpu or another plugin, and compare their outcomes with those on XLA's CPU backend
    JaxTests(jax_tests::Options),
    /// Run JAX's own tests of several processes on refcpu and on XLA's CPU backend, and compare the outcomes; needs Gloo
    JaxMultiprocess(jax_multiprocess::Options),
    /// Run programs that use libraries on JAX, such as Flax and NumPyro, on refcpu and on XLA's CPU backend,
    /// compare their results, and write docs/libraries.md
    Libraries(libraries::Options),
    /// Time refcpu beside XLA's CPU backend on random programs: chains of operations, loop nests and loops
    Bench(bench::Options),
    /// Measure the errors of refcpu's functions and of XLA's, and write docs/accuracy.md
    Accuracy(accuracy::Options),
    /// Make the suites of `cargo pjrt numerics`, and compare their results with XLA's CPU backend
    NumericsSuites(numerics_suites::Options),
    /// Compare the results of JAX programs on 8 devices, and the shardings of these, with XLA's CPU backend
    ShardingAgreement(sharding_agreement::Options),
    /// Read about a hundred functions as many releases of JAX lower them, and compare with MLIR's own reader
    TestLowerings(lowerings::Options),
    /// Write the programs of `cargo pjrt needs`, which are functions of JAX, into cargo-pjrt/data/needs
    NeedsPrograms,
    /// Run programs with known results on refcpu: the folder that PJRT_CORPUS names, or a small sample
    Corpus(corpus::Options),
    /// Inject each fault of the conformance kit's test, and run every check that could detect it
    ConformFaults,
    /// Run the conformance kit on this repository's plugins and on plugins from PyPI, prove the errors that it
    /// finds in these, and write the results into docs/conformance.md
    ConformanceLadder(conformance_ladder::Options),
    /// Run random programs on refcpu, on XLA's CPU backend and on StableHLO's reference interpreter, and
    /// compare
    Differential(differential::Options),
    /// Run a fuzz target of pjrt-stablehlo on one core, starting from the programs of the folder that
    /// PJRT_CORPUS names
    Fuzz(fuzz::Options),
    /// Check models of events, buffers and executions under every interleaving of their threads
    Loom,
    /// Run the SDK's tests, and the conformance kit on hello, the accelerator and refcpu, under
    /// AddressSanitizer
    Sanitize,
    /// Build the documentation as a book into target/book, and check its links
    Book,
    /// Check that the crates can be published, or change the version of the workspace
    Release(release::Options),
    /// Regenerate pjrt-sys from its C headers
    Bindgen {
        /// Write nothing; fail if the checked-in files differ
        #[arg(long)]
        check: bool,
        /// Compare every struct with those of upstream's headers, which are downloaded
        #[arg(long)]
        upstream: bool,
    },
    /// Regenerate the structs of protocol buffers from the .proto files
    Protos {
        /// Write nothing; fail if the checked-in files differ
        #[arg(long)]
        check: bool,
    },
}

fn main() -> ExitCode {
    // Errors are printed without a backtrace, even if RUST_BACKTRACE is set.
    run(Arguments::parse().task).unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}

fn run(task: Task) -> Result<ExitCode> {
    match task {
        Task::Demo(options) => demo::train_digits(&options)?,
        Task::DemoDistributed(options) => distributed::demo(&options)?,
        Task::Gloo(options) => distributed::build(&options)?,
        Task::Test(options) => return Ok(test::run(&options)),
        Task::Wheel => wheel::build_for_users()?,
        Task::Iree(options) => iree::build(&options)?,
        Task::TestHosts(options) => return host_matrix::run(&options),
        Task::TestTorch(options) => return torch::run(&options),
        Task::TestGomlx(options) => return gomlx::run(&options),
        Task::JaxTests(options) => return jax_tests::run(&options),
        Task::JaxMultiprocess(options) => return jax_multiprocess::run(&options),
        Task::Libraries(options) => return libraries::run(&options),
        Task::Bench(options) => return bench::run(&options),
        Task::Accuracy(options) => return accuracy::run(&options),
        Task::NumericsSuites(options) => return numerics_suites::run(&options),
        Task::ShardingAgreement(options) => return sharding_agreement::run(&options),
        Task::NeedsPrograms => needs_programs::run()?,
        Task::TestLowerings(options) => return lowerings::run(&options),
        Task::Corpus(options) => corpus::run_with(&options)?,
        Task::ConformanceLadder(options) => return conformance_ladder::run(&options),
        Task::ConformFaults => conform_faults::whole_matrix()?,
        Task::Differential(options) => return differential::run(&options),
        Task::Fuzz(options) => fuzz::fuzz(&options)?,
        Task::Loom => loom::models()?,
        Task::Sanitize => sanitize::address()?,
        Task::Bindgen { upstream: true, .. } => bindgen::compare_with_upstream()?,
        Task::Bindgen { check, .. } => bindgen::run(check)?,
        Task::Book => _ = book::build()?,
        Task::Release(options) => release::run_step(&options)?,
        Task::Protos { check } => protos::run(check)?,
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_arguments_of_every_task_are_consistent() {
        super::Arguments::command().debug_assert();
    }
}
