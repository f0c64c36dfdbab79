//! Tests that span crates: the ABI, real hosts, and the corpus.
