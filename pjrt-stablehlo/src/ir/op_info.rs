//! An entry of the op table at run time.

/// Whether an operand, result or region of the table stands for one or for any number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variadicity {
    /// Exactly one.
    One,
    /// Any number. Where several operand groups of an operation are variadic, they are equally long.
    Variadic,
}

/// An operand, result or region group of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GroupSpec {
    /// Name in the StableHLO specification.
    pub name: &'static str,
    /// How many.
    pub variadicity: Variadicity,
}

/// An attribute of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AttributeSpec {
    /// Name in StableHLO programs.
    pub name: &'static str,
    /// What it has to be, for messages and documentation.
    pub expected: &'static str,
    /// Whether it has to be given: it has no default.
    pub required: bool,
}

/// Properties of an operation that passes and checks ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Trait {
    /// Each element of the result depends on the elements of the operands at the same place only.
    Elementwise,
    /// Operands and results have one shape and element type.
    SameType,
    /// Operands can be exchanged.
    Commutative,
    /// Ends a block.
    Terminator,
    /// Communicates with other processes of the program.
    Collective,
    /// Does something beyond computing its results.
    SideEffect,
    /// Regions use no values of enclosing regions.
    IsolatedFromAbove,
}

/// An entry of the op table.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpInfo {
    /// Full name, such as `stablehlo.add`.
    pub name: &'static str,
    /// One-line description.
    pub doc: &'static str,
    /// Operand groups.
    pub operands: &'static [GroupSpec],
    /// Attributes.
    pub attributes: &'static [AttributeSpec],
    /// Region groups.
    pub regions: &'static [GroupSpec],
    /// Result groups.
    pub results: &'static [GroupSpec],
    /// Properties.
    pub traits: &'static [Trait],
    /// First VHLO version (major, minor) with the operation, and the number of its newest form there (`add_v1`);
    /// `None` for operations that VHLO does not have.
    pub vhlo: Option<VhloForm>,
}

/// Where VHLO has an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct VhloForm {
    /// First version, as major and minor.
    pub since: (u32, u32),
    /// Number of the newest form: 2 for `dot_general_v2`.
    pub newest: u32,
}

impl OpInfo {
    /// Whether the operation has a property.
    pub fn has(&self, property: Trait) -> bool {
        self.traits.contains(&property)
    }

    /// Name without dialect: `add`.
    pub fn mnemonic(&self) -> &'static str {
        self.name.split_once('.').map_or(self.name, |(_, mnemonic)| mnemonic)
    }
}
