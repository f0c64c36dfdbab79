//! Inherent attributes of the operations outside the op table.

use super::OpCode;

/// The presence of an inherent attribute in an operation's bytecode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Presence {
    /// The attribute is always present.
    Required,
    /// The bytecode records the presence.
    Optional,
    /// The bytecode records the presence, except bytecode of writers that predate the attribute. The number orders such
    /// attributes by age: the oldest has the least.
    Since(u8),
    /// The attribute is always present, and contains the sizes of this many operand or result groups. Since format 6
    /// the sizes follow the other attributes as integers.
    SegmentSizes(usize),
}

use Presence::{Optional, Required, SegmentSizes, Since};

const BROADCAST: &[(&str, Presence)] = &[("broadcast_dimensions", Optional)];
const OVERFLOW: &[(&str, Presence)] = &[("overflowFlags", Optional)];

/// The mnemonics of CHLO's operations, sorted.
const CHLO: &[&str] = &[
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "bessel_i1e",
    "broadcast_add",
    "broadcast_and",
    "broadcast_atan2",
    "broadcast_compare",
    "broadcast_complex",
    "broadcast_divide",
    "broadcast_maximum",
    "broadcast_minimum",
    "broadcast_multiply",
    "broadcast_next_after",
    "broadcast_or",
    "broadcast_polygamma",
    "broadcast_power",
    "broadcast_remainder",
    "broadcast_select",
    "broadcast_shift_left",
    "broadcast_shift_right_arithmetic",
    "broadcast_shift_right_logical",
    "broadcast_subtract",
    "broadcast_xor",
    "broadcast_zeta",
    "conj",
    "constant",
    "constant_like",
    "cosh",
    "digamma",
    "erf",
    "erf_inv",
    "erfc",
    "is_inf",
    "is_neg_inf",
    "is_pos_inf",
    "lgamma",
    "mulhi",
    "next_after",
    "polygamma",
    "ragged_dot",
    "scan",
    "sinh",
    "square",
    "tan",
    "top_k",
    "zeta",
];

/// The mnemonics of the operations of `func` outside the op table.
const FUNC: &[&str] = &["call_indirect", "constant", "func"];

/// Returns `true` if the name belongs to a dialect whose operations are all known, but is none of them.
pub(crate) fn is_unknown(name: &str) -> bool {
    let (dialect, mnemonic) = name.split_once('.').unwrap_or_default();
    match dialect {
        "" | "stablehlo" | "vhlo" => OpCode::from_name(name).is_none(),
        "chlo" => CHLO.binary_search(&mnemonic).is_err(),
        "func" => OpCode::from_name(name).is_none() && !FUNC.contains(&mnemonic),
        "builtin" | "sdy" => OpCode::from_name(name).is_none() && own_attributes(name).is_none(),
        _ => false,
    }
}

/// Returns the name of the most similar operation, if it is similar enough to suggest it.
pub(crate) fn similar_operation(name: &str) -> Option<String> {
    /// Longer names than any operation has are not compared.
    const LONGEST: usize = 64;
    if name.len() > LONGEST {
        return None;
    }
    let table = OpCode::ALL.iter().map(|code| code.info().name.to_owned());
    let all = table.chain(CHLO.iter().map(|mnemonic| format!("chlo.{mnemonic}")));
    let (distance, nearest) = all.map(|known| (strsim::levenshtein(name, &known), known)).min()?;
    let mnemonic = name.split_once('.').map_or(name, |(_, mnemonic)| mnemonic);
    (distance <= 1 + mnemonic.len() / 5).then_some(nearest)
}

/// Returns the inherent attributes of an operation outside the op table, sorted by name as in bytecode; `None` if
/// they are not known.
pub(crate) fn own_attributes(name: &str) -> Option<&'static [(&'static str, Presence)]> {
    Some(match name {
        "builtin.module" => &[("sym_name", Optional), ("sym_visibility", Optional)],
        "builtin.unrealized_conversion_cast" => &[],
        "func.func" => &[
            ("arg_attrs", Optional),
            ("function_type", Required),
            ("no_inline", Since(1)),
            ("res_attrs", Optional),
            ("sym_name", Required),
            ("sym_visibility", Optional),
        ],
        "func.call" => {
            &[("arg_attrs", Since(2)), ("callee", Required), ("no_inline", Since(1)), ("res_attrs", Since(2))]
        }
        "sdy.mesh" => &[("mesh", Required), ("sym_name", Required)],
        "sdy.constant" => &[("value", Required)],
        "sdy.data_flow_edge" => &[("sharding", Optional)],
        "sdy.propagation_barrier" => &[("allowed_direction", Required)],
        "sdy.named_computation" => {
            &[("in_shardings", Optional), ("name", Required), ("out_shardings", Optional)]
        }
        "sdy.all_gather" => &[("gathering_axes", Required), ("out_sharding", Required)],
        "sdy.all_slice" => &[("out_sharding", Required), ("slicing_axes", Required)],
        "sdy.all_to_all" => &[("out_sharding", Required), ("params", Required)],
        "sdy.collective_permute" => &[("out_sharding", Required)],
        "sdy.all_reduce" => {
            &[("out_sharding", Required), ("reduction_axes", Required), ("reduction_op", Since(1))]
        }
        "sdy.reduce_scatter" => {
            &[("out_sharding", Required), ("reduce_scatter_axes", Required), ("reduction_op", Since(1))]
        }
        "sdy.sharded_to_unreduced" | "sdy.replicated_to_unreduced" => {
            &[("axes", Required), ("out_sharding", Required)]
        }
        "chlo.broadcast_compare" => &[
            ("broadcast_dimensions", Optional),
            ("compare_type", Optional),
            ("comparison_direction", Required),
        ],
        "chlo.constant" | "chlo.constant_like" | "arith.constant" => &[("value", Required)],
        "chlo.ragged_dot" => &[("precision_config", Optional), ("ragged_dot_dimension_numbers", Required)],
        "chlo.scan" => &[
            ("dimension", Required),
            ("is_associative", Optional),
            ("is_reverse", Optional),
            ("operandSegmentSizes", SegmentSizes(2)),
            ("resultSegmentSizes", SegmentSizes(2)),
            ("scan_dim_size", Optional),
        ],
        "chlo.top_k" => &[("is_stable", Since(3)), ("k", Required)],
        "arith.addi" | "arith.muli" | "arith.shli" | "arith.subi" | "arith.trunci" => OVERFLOW,
        "shape.broadcast" => &[("error", Optional)],
        "shape.const_shape" => &[("shape", Required)],
        "chlo.broadcast_select" => &[],
        other if other.starts_with("chlo.broadcast_") && !is_unknown(other) => BROADCAST,
        other if other.strip_prefix("chlo.").is_some_and(|name| CHLO.binary_search(&name).is_ok()) => &[],
        _ => return None,
    })
}
