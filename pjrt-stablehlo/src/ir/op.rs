//! Names of operations, and their entries of the op table.

use std::collections::HashMap;
use std::fmt;
use std::sync::OnceLock;

use super::{Op, OpCode, OpInfo};

impl OpCode {
    /// Returns the operation with this name, such as `stablehlo.add`; `None` for names outside the op table.
    pub fn from_name(name: &str) -> Option<OpCode> {
        static BY_NAME: OnceLock<HashMap<&'static str, OpCode>> = OnceLock::new();
        BY_NAME
            .get_or_init(|| Self::ALL.iter().map(|&code| (code.info().name, code)).collect())
            .get(name)
            .copied()
    }
}

impl Op {
    /// Returns the entry in the op table. All operations outside the table share one entry.
    pub fn info(&self) -> &'static OpInfo {
        self.code().info()
    }

    /// Returns the full name, such as `stablehlo.add`.
    pub fn name(&self) -> &str {
        match self {
            Op::Other(other) => &other.name,
            known => known.info().name,
        }
    }
}

impl fmt::Display for Op {
    /// Writes the name of the operation.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
