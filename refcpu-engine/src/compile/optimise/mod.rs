//! Passes that optimize graphs, and the choice of values that are computed together.

mod arg_reduction;
mod expand;
mod fuse;
mod recognise;
mod region;

pub(super) use expand::{expand, reduce};
pub(super) use fuse::{Fusion, STORED_SPLAT, fuse, fused_reduction};
pub(super) use recognise::recognise;
pub(super) use region::{reading_body, region_of, region_of_body};
