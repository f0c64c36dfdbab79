//! The serial form of a region: its nodes, replayed through the builder when read.
