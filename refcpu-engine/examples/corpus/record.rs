//! The records of the corpus, whose README describes them.

use anyhow::{Context, Result};
use serde::Deserialize;
use std::collections::HashMap;
use std::path::Path;

/// A range of a group's blob.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Piece {
    pub(crate) off: usize,
    pub(crate) len: usize,
}

/// An array in a group's blob.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct ArrayRecord {
    pub(crate) dtype: String,
    pub(crate) shape: Vec<usize>,
    #[serde(flatten)]
    pub(crate) piece: Piece,
    #[serde(default)]
    pub(crate) tol: Tolerance,
}

/// The tolerance of an array's elements.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Tolerance {
    #[serde(default)]
    pub(crate) exact: bool,
    pub(crate) ulp: Option<u64>,
    #[serde(default)]
    pub(crate) atol: f64,
    #[serde(default)]
    pub(crate) rtol: f64,
}

/// The arrays of one device.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Device {
    pub(crate) inputs: Vec<ArrayRecord>,
    pub(crate) outputs: Vec<Option<ArrayRecord>>,
}

/// A program and its expected results.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Record {
    pub(crate) name: String,
    pub(crate) group: String,
    pub(crate) category: String,
    pub(crate) kind: String,
    pub(crate) programs: HashMap<String, Piece>,
    #[serde(default)]
    pub(crate) inputs: Vec<ArrayRecord>,
    #[serde(default)]
    pub(crate) outputs: Vec<Option<ArrayRecord>>,
    #[serde(default)]
    devices: Vec<Device>,
    #[serde(default = "one")]
    pub(crate) num_replicas: usize,
    #[serde(default = "one")]
    pub(crate) num_partitions: usize,
}

fn one() -> usize {
    1
}

impl Record {
    /// Returns the arrays of every device, replica-major.
    pub(crate) fn devices(&self) -> Vec<Device> {
        if self.devices.is_empty() {
            vec![Device { inputs: self.inputs.clone(), outputs: self.outputs.clone() }]
        } else {
            self.devices.clone()
        }
    }
}

/// A group of records, and their blob.
pub(crate) struct Group {
    pub(crate) records: Vec<Record>,
    pub(crate) blob: Vec<u8>,
}

/// Reads every group of the folder, in order of their names.
pub(crate) fn read(folder: &Path) -> Result<Vec<Group>> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
    let mut files: Vec<_> = entries.map(|e| Ok(e?.path())).collect::<Result<_>>()?;
    files.retain(|p| p.extension().is_some_and(|e| e == "jsonl"));
    files.sort();
    files
        .iter()
        .map(|path| {
            let text = std::fs::read_to_string(path)?;
            let records = text
                .lines()
                .enumerate()
                .map(|(n, line)| {
                    serde_json::from_str(line).with_context(|| format!("{}:{}", path.display(), n + 1))
                })
                .collect::<Result<_>>()?;
            Ok(Group { records, blob: std::fs::read(path.with_extension("bin"))? })
        })
        .collect()
}
