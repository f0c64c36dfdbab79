//! Names of operations, and their entries of the op table.

use std::collections::HashMap;
use std::fmt;
use std::sync::OnceLock;

use super::{Op, OpCode, OpInfo};

impl OpCode {
    /// The operation of this name, such as `stablehlo.add`.
    pub fn from_name(name: &str) -> Option<OpCode> {
        static BY_NAME: OnceLock<HashMap<&'static str, OpCode>> = OnceLock::new();
        BY_NAME
            .get_or_init(|| Self::ALL.iter().map(|&code| (code.info().name, code)).collect())
            .get(name)
            .copied()
    }
}

impl Op {
    /// The table's entry.
    pub fn info(&self) -> &'static OpInfo {
        self.code().info()
    }

    /// Full name, such as `stablehlo.add`.
    pub fn name(&self) -> &str {
        match self {
            Op::Other(other) => &other.name,
            known => known.info().name,
        }
    }
}

impl fmt::Display for Op {
    /// The operation's name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
