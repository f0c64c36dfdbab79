//! What crosses crates: ABI, real hosts, the corpus.
