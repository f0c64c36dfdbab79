//! Mutates MLIR text by tokens. The names of operations and attributes are those of the op table.

use pjrt_stablehlo::ir::OpCode;

use crate::random::Random;

/// The tokens and phrases that texts consist of, besides the names of the op table.
const PHRASES: &[&str] = &[
    "tensor<2x3xf32>",
    "tensor<?x4xi32, #stablehlo.bounds<7, ?>>",
    "tensor<i1>",
    "tensor<4x!quant.uniform<i8:f32:0, {1.0:3, 2.0}>>",
    "tuple<tensor<f32>, !stablehlo.token>",
    "complex<f32>",
    "!stablehlo.token",
    "memref<2xf32>",
    "(tensor<f32>) -> tensor<f32>",
    "dense<[[1, 2], [3, 4]]> : tensor<2x2xi64>",
    "dense<\"0x0000803F\"> : tensor<1xf32>",
    "dense_resource<r> : tensor<2xi32>",
    "array<i64: 1, 0>",
    "#stablehlo.channel_handle<handle = 1, type = 1>",
    "#stablehlo<comparison_direction LT>",
    "#stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>",
    "#stablehlo.gather<offset_dims = [0], index_vector_dim = 1>",
    "#sdy.sharding<@mesh, [{\"a\"}, {?}]>",
    "loc(fused[\"a\", \"f.py\":1:2 to :3])",
    "loc(callsite(\"a\"(\"b\") at unknown))",
    "#alias",
    "!alias",
    "@main",
    "%arg0",
    "%0#1",
    "^bb0(%arg0: tensor<f32>):",
    "{a = 1 : i64, b = [unit, \"x\"]}",
    "({",
    "})",
    "->",
    " : ",
    "= ",
    "-1",
    "0x7FC00000",
    "9223372036854775807",
    "module",
    "func.func private",
    "return",
    "cond",
    "applies stablehlo.add across dimensions = [0]",
];

/// Mutates the first `size` bytes of `data`, which has room for `max_size`. Returns the new size.
///
/// `mutate` is libFuzzer's own mutation of bytes: its arguments are the buffer, its used size and its maximum size.
pub fn mutate(
    data: &mut [u8],
    size: usize,
    max_size: usize,
    seed: u32,
    mutate: fn(&mut [u8], usize, usize) -> usize,
) -> usize {
    let mut random = Random::new(seed);
    let Some(text) = std::str::from_utf8(&data[..size]).ok().filter(|_| random.below(3) > 0) else {
        return mutate(data, size, max_size);
    };
    let tokens = tokens(text);
    let mut pieces: Vec<&str> = tokens.clone();
    for _ in 0..=random.below(3) {
        let place = random.below(pieces.len());
        match random.below(5) {
            0 if !pieces.is_empty() => {
                pieces.remove(place);
            }
            1 if !pieces.is_empty() => {
                let other = random.below(pieces.len());
                pieces.swap(place, other);
            }
            2 => pieces.insert(place, tokens.get(random.below(tokens.len())).copied().unwrap_or_default()),
            3 if !pieces.is_empty() => pieces[place] = word(&mut random),
            _ => pieces.insert(place, word(&mut random)),
        }
    }
    let text = pieces.concat();
    if text.len() > max_size {
        return mutate(data, size, max_size);
    }
    data[..text.len()].copy_from_slice(text.as_bytes());
    text.len()
}

/// Returns a name of the op table, or a phrase.
fn word(random: &mut Random) -> &'static str {
    let info = OpCode::ALL[random.below(OpCode::ALL.len())].info();
    match random.below(4) {
        0 => info.name,
        1 => info.attributes.get(random.below(info.attributes.len())).map_or(info.name, |spec| spec.name),
        _ => PHRASES[random.below(PHRASES.len())],
    }
}

/// Splits the text into words, spaces, and single characters.
fn tokens(text: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let class = |c: char| (c.is_alphanumeric() || c == '_' || c == '.', c.is_whitespace());
        let end = if class(first) == (false, false) {
            first.len_utf8()
        } else {
            rest.find(|c| class(c) != class(first)).unwrap_or(rest.len())
        };
        let (token, tail) = rest.split_at(end);
        tokens.push(token);
        rest = tail;
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_the_whole_text() {
        let text = "%0 = stablehlo.add %a,  %b : tensor<2xf32>\n\u{e9}";
        assert_eq!(tokens(text).concat(), text);
        assert_eq!(tokens(text)[..5], ["%", "0", " ", "=", " "]);
    }

    #[test]
    fn mutations_stay_inside_of_the_buffer() {
        for seed in 0..2000 {
            let mut data = vec![0; 60];
            data[..20].copy_from_slice(b"%0 = \"a.b\"() : () ->");
            assert!(mutate(&mut data, 20, 60, seed, |_, size, _| size) <= 60);
        }
    }
}
