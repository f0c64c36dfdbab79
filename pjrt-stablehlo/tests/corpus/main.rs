//! The programs of a corpus folder and those that hosts sent, in every form: they are read, verified
//! and decomposed, and agree with each other. Damaged ones become an error or a module.
//!
//! The folders come from `PJRT_CORPUS` and `PJRT_CAPTURED`; without them the tests are skipped with a note, except in CI.

mod bytecode;
mod damage;
mod decompose;
mod files;
mod hlo;
mod text;
mod write;
