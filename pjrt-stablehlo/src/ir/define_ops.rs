//! The macro that makes from the op table the [`Op`](super::Op) enum, a struct for each operation, and
//! [`OpInfo`](super::OpInfo).

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
        #[doc = concat!("The operand `", stringify!($operand), "`.\n\n# Panics\nWhen the operation does not have the table's operands; the verifier has checked that.")]
        pub fn $operand(op: &Operation) -> ValueId {
            op.operand_group(Groups::$operand as usize)[0]
        }
    };
    ($operand:ident Variadic) => {
        #[doc = concat!("The operands `", stringify!($operand), "`.")]
        pub fn $operand(op: &Operation) -> &[ValueId] {
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
            #[doc = concat!("`", $mlir, "`. Operands: ", $("`", stringify!($operand), "` (", stringify!($operand_arity), ") ",)* "; results: ", $("`", stringify!($result), "` (", stringify!($result_arity), ") ",)* "; regions: ", $("`", stringify!($region), "` (", stringify!($region_arity), ") ",)* ".")]
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

        /// What an operation does, with its typed attributes.
        ///
        /// One variant for each entry of the op table, and [`Op::Other`] for what the table does not have. Which
        /// operands, results and regions an operation has says [`Op::info`]; the structs have an accessor for each
        /// operand, such as [`Reduce::init_values`].
        #[derive(Clone, Debug, PartialEq)]
        #[non_exhaustive]
        pub enum Op {
            $(
                $(#[doc = $doc])+
                $name(op_payload!($storage $name)),
            )*
            /// An operation that the table does not have.
            Other(Box<OtherOp>),
        }

        /// Which operation of the table: an [`Op`] without its attributes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum OpCode {
            $($(#[doc = $doc])+ $name,)*
            /// An operation that the table does not have.
            Other,
        }

        impl OpCode {
            /// Every operation of the table.
            pub const ALL: &'static [OpCode] = &[$(OpCode::$name),*];

            /// The table's entry.
            pub fn info(self) -> &'static OpInfo {
                &INFOS[self as usize]
            }
        }

        impl Op {
            /// Which operation of the table.
            pub fn code(&self) -> OpCode {
                match self {
                    $(Op::$name(_) => OpCode::$name,)*
                    Op::Other(_) => OpCode::Other,
                }
            }

            /// An operation of the table from its attributes. `find` gives an attribute by its StableHLO name.
            pub(crate) fn from_attributes(
                code: OpCode,
                find: &mut dyn FnMut(&'static str) -> Option<Attribute>,
            ) -> Result<Op, AttributeError> {
                match code {
                    $(OpCode::$name => Ok(Op::$name(op_wrap!($storage $name::from_attributes(find)?))),)*
                    OpCode::Other => unreachable!("operations outside of the table are not made from attributes"),
                }
            }

            /// The operation's own attributes by their StableHLO names, without those that have their default.
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
                doc: "An operation that the table does not have.",
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
