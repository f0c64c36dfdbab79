//! The macro that expands the op table into the [`Op`] enum, a struct for each operation, and [`OpInfo`].

use std::fmt;

use super::{DictionaryAttribute, Str};

/// The number of values or regions that a group of the op table stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variadicity {
    /// Exactly one.
    One,
    /// Any number. If several operand groups of an operation are variadic, they have equal lengths.
    Variadic,
}

/// A group of operands, results or regions in the op table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupSpec {
    /// The name in the StableHLO specification.
    pub name: &'static str,
    /// The number of values or regions in the group.
    pub variadicity: Variadicity,
}

/// An attribute in the op table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// An entry of the op table, which [`Op::info`](super::Op::info) and [`OpCode::info`] return.
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
pub struct VhloForm {
    /// The first version of VHLO with the operation, as major and minor.
    pub since: (u32, u32),
    /// The number of the newest form: 2 for `dot_general_v2`.
    pub newest: u32,
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

/// An operation outside of the op table, in uninterpreted form: operations of other dialects, and rarely used
/// operations of Shardy.
#[derive(Clone, Debug, PartialEq)]
pub struct OtherOp {
    /// The full name, such as `sdy.all_gather`.
    pub name: Str,
    /// The inherent attributes of the operation (its properties).
    pub properties: DictionaryAttribute,
}

/// An error about an attribute of an operation in the op table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("attribute '{attribute}' of {op}: expected {expected}, found {found}")]
pub struct AttributeError {
    /// The operation.
    pub op: Str,
    /// The attribute.
    pub attribute: &'static str,
    /// The expected attribute.
    pub expected: &'static str,
    /// The attribute that was found, or `nothing`.
    pub found: Str,
}

impl AttributeError {
    /// Returns the message without the operation, for errors that state the operation separately.
    pub(crate) fn message(&self) -> String {
        format!("attribute '{}': expected {}, found {}", self.attribute, self.expected, self.found)
    }
}

macro_rules! op_payload {
    (inline $name:ident) => { $name };
    (boxed $name:ident) => { Box<$name> };
}

macro_rules! op_wrap {
    (inline $value:expr) => {
        $value
    };
    (boxed $value:expr) => {
        Box::new($value)
    };
}

macro_rules! op_vhlo {
    (none) => {
        None
    };
    ($major:literal, $minor:literal, $newest:literal) => {
        Some(VhloForm { since: ($major, $minor), newest: $newest })
    };
}

macro_rules! operand_accessor {
    ($operand:ident One) => {
        #[doc = concat!("Returns the operand `", stringify!($operand), "` of an operation of this kind.\n\n# Panics\nPanics if the number of operands does not match the op table, which the verifier checks.")]
        pub fn $operand(op: &super::Operation) -> super::ValueId {
            op.operand_group(Groups::$operand as usize)[0]
        }
    };
    ($operand:ident Variadic) => {
        #[doc = concat!("Returns the operands `", stringify!($operand), "` of an operation of this kind.")]
        pub fn $operand(op: &super::Operation) -> &[super::ValueId] {
            op.operand_group(Groups::$operand as usize)
        }
    };
}

macro_rules! define_ops {
    ($(
        $(#[doc = $doc:literal])+
        $storage:ident $name:ident = $mlir:literal vhlo($($vhlo:tt)*)
            operands($($operand:ident: $operand_arity:ident),*)
            attributes($($(#[doc = $attr_doc:literal])+ $attr:ident: $attr_ty:ty = $codec:ty,)*)
            regions($($region:ident: $region_arity:ident),*)
            results($($result:ident: $result_arity:ident),*)
            traits($($property:ident),*);
    )*) => {
        $(
            $(#[doc = $doc])+
            ///
            #[doc = concat!("The operation `", $mlir, "`.\n\n| group | names |\n|---|---|\n| operands | ", $("`", stringify!($operand), "` (", stringify!($operand_arity), ") ",)* "|\n| regions | ", $("`", stringify!($region), "` (", stringify!($region_arity), ") ",)* "|\n| results | ", $("`", stringify!($result), "` (", stringify!($result_arity), ") ",)* "|")]
            #[derive(Clone, Debug, PartialEq)]
            pub struct $name {
                $($(#[doc = $attr_doc])+ pub $attr: $attr_ty,)*
            }

            impl $name {
                pub(crate) fn from_attributes(
                    find: &mut dyn FnMut(&'static str) -> Option<Attribute>,
                ) -> Result<Self, AttributeError> {
                    let _ = &find;
                    Ok($name {
                        $($attr: codec::decode::<$codec>($mlir, stringify!($attr), find(stringify!($attr)))?,)*
                    })
                }
            }

            impl From<$name> for Op {
                fn from(op: $name) -> Op {
                    Op::$name(op_wrap!($storage op))
                }
            }

            const _: () = {
                #[allow(non_camel_case_types, dead_code, reason = "only the positions of the operands by name are used")]
                enum Groups { $($operand),* }

                impl $name {
                    $(operand_accessor!($operand $operand_arity);)*
                }
            };
        )*

        /// The kind of an operation, with its typed attributes.
        ///
        /// The enum has one variant for each entry of the op table, and [`Op::Other`] for operations outside of it.
        /// [`Op::info`] describes the operands, results and regions. The structs have an accessor for each operand,
        /// such as [`Reduce::init_values`].
        #[derive(Clone, Debug, PartialEq)]
        #[non_exhaustive]
        pub enum Op {
            $(
                $(#[doc = $doc])+
                $name(op_payload!($storage $name)),
            )*
            /// An operation outside of the op table.
            Other(Box<OtherOp>),
        }

        /// The kind of an operation, without attributes: the entries of the op table.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum OpCode {
            $($(#[doc = $doc])+ $name,)*
            /// An operation outside of the op table.
            Other,
        }

        impl OpCode {
            /// Every operation in the op table.
            pub const ALL: &'static [OpCode] = &[$(OpCode::$name),*];

            /// Returns the entry in the op table.
            pub fn info(self) -> &'static OpInfo {
                &INFOS[self as usize]
            }
        }

        impl Op {
            /// Returns the kind without attributes.
            pub fn code(&self) -> OpCode {
                match self {
                    $(Op::$name(_) => OpCode::$name,)*
                    Op::Other(_) => OpCode::Other,
                }
            }

            /// Creates an operation of the op table. `find` returns the attribute with a given StableHLO name.
            pub(crate) fn from_attributes(
                code: OpCode,
                find: &mut dyn FnMut(&'static str) -> Option<Attribute>,
            ) -> Result<Op, AttributeError> {
                match code {
                    $(OpCode::$name => Ok(Op::$name(op_wrap!($storage $name::from_attributes(find)?))),)*
                    OpCode::Other => unreachable!("operations outside of the op table are created as `OtherOp`"),
                }
            }

            /// Returns the inherent attributes by their StableHLO names, without those that equal their default.
            pub fn attributes(&self) -> Vec<(Str, Attribute)> {
                match self {
                    $(
                        Op::$name(op) => {
                            let _ = op;
                            let attributes: Vec<Option<(Str, Attribute)>> =
                                vec![$(codec::encode::<$codec>(stringify!($attr), &op.$attr)),*];
                            attributes.into_iter().flatten().collect()
                        }
                    )*
                    Op::Other(op) => op.properties.entries().to_vec(),
                }
            }
        }

        static INFOS: &[OpInfo] = &[
            $(OpInfo {
                name: $mlir,
                doc: concat!($($doc),+),
                operands: &[$(GroupSpec { name: stringify!($operand), variadicity: Variadicity::$operand_arity }),*],
                attributes: &[$(AttributeSpec {
                    name: stringify!($attr),
                    expected: <$codec as codec::Codec>::EXPECTED,
                    required: <$codec as codec::Codec>::REQUIRED,
                }),*],
                regions: &[$(GroupSpec { name: stringify!($region), variadicity: Variadicity::$region_arity }),*],
                results: &[$(GroupSpec { name: stringify!($result), variadicity: Variadicity::$result_arity }),*],
                traits: &[$(Trait::$property),*],
                vhlo: op_vhlo!($($vhlo)*),
            },)*
            OpInfo {
                name: "other",
                doc: "An operation outside of the op table.",
                operands: &[GroupSpec { name: "operands", variadicity: Variadicity::Variadic }],
                attributes: &[],
                regions: &[GroupSpec { name: "regions", variadicity: Variadicity::Variadic }],
                results: &[GroupSpec { name: "results", variadicity: Variadicity::Variadic }],
                traits: &[],
                vhlo: None,
            },
        ];
    };
}

pub(super) use {define_ops, op_payload, op_vhlo, op_wrap, operand_accessor};

use super::OpCode;

impl OpCode {
    /// Returns the operation with this name, such as `stablehlo.add`; `None` for names outside of the op table.
    pub fn from_name(name: &str) -> Option<OpCode> {
        static BY_NAME: std::sync::OnceLock<std::collections::HashMap<&'static str, OpCode>> =
            std::sync::OnceLock::new();
        BY_NAME
            .get_or_init(|| Self::ALL.iter().map(|&code| (code.info().name, code)).collect())
            .get(name)
            .copied()
    }
}

impl super::Op {
    /// Returns the entry in the op table. All operations outside of the table share one entry.
    pub fn info(&self) -> &'static OpInfo {
        self.code().info()
    }

    /// Returns the full name, such as `stablehlo.add`.
    pub fn name(&self) -> &str {
        match self {
            super::Op::Other(other) => &other.name,
            known => known.info().name,
        }
    }
}

impl fmt::Display for super::Op {
    /// Writes the name of the operation.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
