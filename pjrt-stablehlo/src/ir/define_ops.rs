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
    ($major:literal, $minor:literal) => {
        Some(VhloForm { since: ($major, $minor), second_since: None })
    };
    ($major:literal, $minor:literal, second $second_major:literal, $second_minor:literal) => {
        Some(VhloForm { since: ($major, $minor), second_since: Some(($second_major, $second_minor)) })
    };
}

macro_rules! operand_accessor {
    ($operand:ident One) => {
        #[doc = concat!("Returns the operand `", stringify!($operand), "` of an operation of this kind.\n\n# Panics\nPanics if the number of operands does not match the op table, which the verifier checks.")]
        pub fn $operand(op: &Operation) -> ValueId {
            op.operand_group(Groups::$operand as usize)[0]
        }
    };
    ($operand:ident Variadic) => {
        #[doc = concat!("Returns the operands `", stringify!($operand), "` of an operation of this kind.")]
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
        /// The enum has one variant for each entry of the op table, and [`Op::Other`] for operations outside it.
        /// [`Op::info`] describes the operands, results and regions. The structs have an accessor for each operand,
        /// such as [`Reduce::init_values`].
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

        /// The kind of an operation, without attributes: the entries of the op table.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum OpCode {
            $($(#[doc = $doc])+ $name,)*
            /// An operation that the table does not have.
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
            /// Returns the code of the operation, which is its kind without attributes.
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
                    OpCode::Other => unreachable!("operations outside the op table are created as `OtherOp`"),
                }
            }

            /// Returns the inherent attributes by their StableHLO names, without those that equal their default.
            pub fn attributes(&self) -> Vec<(Str, Attribute)> {
                self.encode_attributes(false)
            }

            /// Returns the inherent attributes by their StableHLO names, with those that equal their default if `all`
            /// is `true`.
            pub(crate) fn encode_attributes(&self, all: bool) -> Vec<(Str, Attribute)> {
                match self {
                    $(
                        Op::$name(op) => {
                            let _ = (op, all);
                            let attributes: Vec<Option<(Str, Attribute)>> =
                                vec![$(codec::encode::<$codec>(stringify!($attr), &op.$attr, all)),*];
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
                doc: "An operation outside the op table.",
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
