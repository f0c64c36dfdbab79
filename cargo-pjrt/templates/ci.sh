#!/bin/sh
# Checks the plugin: formatting, lints, tests, the rules of PJRT, the wheel, and programs in JAX.
set -eu
cd "$(dirname "$0")"
cargo fmt --check
cargo clippy --all-targets -- --deny warnings
cargo test
cargo build
cargo pjrt conform target/debug/@LIBRARY@ --profile jax
cargo pjrt wheel
cargo pjrt test target/debug/@LIBRARY@ --host jax
