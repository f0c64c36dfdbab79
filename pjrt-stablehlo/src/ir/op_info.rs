//! An entry of the op table at run time.

/// The number of values or regions that a group of the op table represents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variadicity {
    /// Exactly one.
    One,
    /// Any number. If several operand groups of an operation are variadic, they have equal lengths.
    Variadic,
}

/// A group of operands, results or regions in the op table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GroupSpec {
    /// The name in the StableHLO specification.
    pub name: &'static str,
    /// The number of values or regions in the group.
    pub variadicity: Variadicity,
}

/// An attribute in the op table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AttributeSpec {
    /// The name in StableHLO programs.
    pub name: &'static str,
    /// A description of the expected attribute, for messages and documentation.
    pub expected: &'static str,
    /// `true` if the attribute has no default.
    pub required: bool,
}

/// A property of an operation that passes and checks query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Trait {
    /// Each element of the result depends only on the elements of the operands at the same position.
    Elementwise,
    /// The operands and results have equal shapes and element types.
    SameType,
    /// The operands can be exchanged.
    Commutative,
    /// The operation ends a block.
    Terminator,
    /// The operation communicates with other processes of the program.
    Collective,
    /// The operation has effects other than computing its results.
    SideEffect,
    /// The operation's regions use no values of enclosing regions.
    IsolatedFromAbove,
}

/// An entry of the op table, which [`Op::info`](super::Op::info) and [`OpCode::info`](super::OpCode::info) return.
///
/// ```
/// use pjrt_stablehlo::ir::{OpCode, OpInfo, Trait, Variadicity};
///
/// let info: &OpInfo = OpCode::from_name("stablehlo.reduce").unwrap().info();
/// assert_eq!(info.mnemonic(), "reduce");
/// assert_eq!(info.operands[1].name, "init_values");
/// assert_eq!(info.operands[1].variadicity, Variadicity::Variadic);
/// assert!(!info.has(Trait::Elementwise));
/// ```
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpInfo {
    /// The full name, such as `stablehlo.add`.
    pub name: &'static str,
    /// A one-line description.
    pub doc: &'static str,
    /// The groups of operands.
    pub operands: &'static [GroupSpec],
    /// The attributes.
    pub attributes: &'static [AttributeSpec],
    /// The groups of regions.
    pub regions: &'static [GroupSpec],
    /// The groups of results.
    pub results: &'static [GroupSpec],
    /// The properties.
    pub traits: &'static [Trait],
    /// The forms of the operation in VHLO; `None` if VHLO does not have it.
    pub vhlo: Option<VhloForm>,
}

/// The forms of an operation in VHLO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct VhloForm {
    /// The first version of VHLO with the operation, as major and minor.
    pub since: (u32, u32),
    /// The first version of VHLO with the operation's second form, such as `dot_general_v2`, as major and minor; `None`
    /// if there is one form.
    pub second_since: Option<(u32, u32)>,
}

impl VhloForm {
    /// Returns the number of the newest form: 2 for `dot_general_v2`.
    pub fn newest(&self) -> u32 {
        1 + u32::from(self.second_since.is_some())
    }
}

impl OpInfo {
    /// Returns `true` if the operation has the property.
    pub fn has(&self, property: Trait) -> bool {
        self.traits.contains(&property)
    }

    /// Returns the name without the dialect: `add`.
    pub fn mnemonic(&self) -> &'static str {
        self.name.split_once('.').map_or(self.name, |(_, mnemonic)| mnemonic)
    }
}
