//! The report on the needs of programs.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The needs of programs, by tier.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Report {
    /// The plugin that compiled the programs, if there is one.
    pub plugin: Option<PathBuf>,
    /// The tiers, in order.
    pub tiers: Vec<Tier>,
}

/// The programs of a tier, and the operations that they need.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Tier {
    /// The name of the tier, or the path of a folder or recording.
    pub name: String,
    /// `true` if a refused program is a failure: for the programs of the arguments, and the tiers of `--require`.
    pub required: bool,
    /// The programs, in order.
    pub programs: Vec<ProgramRow>,
    /// The operations, by name and element types.
    pub ops: Vec<OpRow>,
}

/// A program.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ProgramRow {
    /// The name.
    pub name: String,
    /// The reason why the program could not be read.
    pub unreadable: Option<String>,
    /// The plugin's answer.
    pub outcome: Option<Outcome>,
    /// The operations of a refused program that the plugin refuses alone, each with its element types.
    pub refused_ops: Vec<String>,
}

/// An operation with its element types.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct OpRow {
    /// The name, with the target of a custom call or the name of a composite.
    pub op: String,
    /// The element types of the operands and results, each once.
    pub element_types: Vec<String>,
    /// The number of uses in the programs of the tier.
    pub uses: usize,
    /// The number of programs of the tier that use the operation.
    pub programs: usize,
    /// The plugin's answer; `None` if it was not asked.
    pub outcome: Option<Outcome>,
    /// A description of the operations by which `pjrt_stablehlo::passes::decompose` replaces the operation, if it can.
    pub decomposition: Option<String>,
}

/// The answer of a plugin to a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The plugin compiles the program, or a program with the operation.
    Accepted,
    /// The plugin refuses it with this error.
    Refused(String),
    /// The plugin accepts some forms of the operation, with these element types, and refuses others.
    Partly {
        /// The number of refused forms.
        refused: usize,
        /// The number of all forms.
        forms: usize,
        /// The properties of the first refused form that no accepted form has.
        difference: Option<String>,
        /// The error of the first refused form.
        error: String,
    },
    /// The plugin refuses the operation with this error; its regions, or the function that it calls, contain a refused
    /// operation.
    Contains(String),
}

impl Report {
    /// Returns the number of required programs that the plugin refuses or that cannot be read.
    #[must_use]
    pub fn failures(&self) -> usize {
        let programs = self.tiers.iter().filter(|tier| tier.required).flat_map(|tier| &tier.programs);
        programs.filter(|program| program.unreadable.is_some() || program.is_refused()).count()
    }
}

impl ProgramRow {
    /// Returns `true` if the plugin refuses the program.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        matches!(self.outcome, Some(Outcome::Refused(_)))
    }
}
