//! Programs as lists of statements, which the driver splits to find the cause of a difference.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The name of a value and the text of its type.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Typed {
    pub(crate) name: String,
    #[serde(rename = "type")]
    pub(crate) ty: String,
}

/// An argument of `main`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Argument {
    #[serde(flatten)]
    pub(crate) value: Typed,
    /// The elements as little-endian bytes in hexadecimal. An element of less than a byte occupies one byte.
    pub(crate) data: String,
}

/// An operation of `main` with its regions.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Statement {
    pub(crate) op: String,
    pub(crate) text: String,
    /// The values that the operation and its regions use, other than those that are defined in its regions.
    pub(crate) uses: Vec<String>,
    pub(crate) defines: Vec<Typed>,
}

/// A program: the statements of `main`, and the functions that it calls.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct GeneratedProgram {
    pub(crate) arguments: Vec<Argument>,
    pub(crate) statements: Vec<Statement>,
    pub(crate) results: Vec<String>,
    pub(crate) functions: Vec<String>,
}

impl GeneratedProgram {
    /// Returns the types of all values of `main`.
    pub(crate) fn types(&self) -> BTreeMap<&str, &str> {
        let arguments = self.arguments.iter().map(|a| &a.value);
        let defined = self.statements.iter().flat_map(|s| &s.defines);
        arguments.chain(defined).map(|v| (v.name.as_str(), v.ty.as_str())).collect()
    }

    /// Returns the program as MLIR text. If `donated`, results may use the memory of arguments.
    pub(crate) fn text(&self, donated: bool) -> String {
        let types = self.types();
        let attribute = if donated { " {jax.buffer_donor = true}" } else { "" };
        let list = |items: Vec<String>| items.join(", ");
        let arguments = self.arguments.iter().map(|a| format!("{}: {}{attribute}", a.value.name, a.value.ty));
        let results: Vec<String> = self.results.iter().map(|r| types[r.as_str()].to_owned()).collect();
        let results = list(results);
        let mut text = format!(
            "module @differential {{\n  func.func @main({}) -> ({results}) {{\n",
            list(arguments.collect())
        );
        for statement in &self.statements {
            let _ = writeln!(text, "    {}", statement.text);
        }
        let _ = writeln!(text, "    \"func.return\"({}) : ({results}) -> ()\n  }}", self.results.join(", "));
        self.functions.iter().for_each(|function| text.push_str(function));
        text + "}\n"
    }

    /// Splits the program before a statement. The values of the first part that the second uses become results of the first and
    /// arguments (without data) of the second. Both contain the constants, because operations may require constant operands.
    pub(crate) fn split(&self, at: usize) -> (GeneratedProgram, GeneratedProgram) {
        let (first, second) = self.statements.split_at(at);
        let is_needed =
            |name: &String| self.results.contains(name) || second.iter().any(|s| s.uses.contains(name));
        let (constants, others): (Vec<&Statement>, Vec<&Statement>) =
            first.iter().partition(|s| s.op == "stablehlo.constant");
        let repeated = constants.into_iter().filter(|s| s.defines.iter().any(|v| is_needed(&v.name)));
        let defined = others.into_iter().flat_map(|s| &s.defines);
        let crossing: Vec<Typed> = defined.filter(|v| is_needed(&v.name)).cloned().collect();
        let before = GeneratedProgram {
            statements: first.to_vec(),
            results: crossing.iter().map(|v| v.name.clone()).collect(),
            ..self.clone()
        };
        let passed = crossing.into_iter().map(|value| Argument { value, data: String::new() });
        let after = GeneratedProgram {
            arguments: self.arguments.iter().cloned().chain(passed).collect(),
            statements: repeated.chain(second).cloned().collect(),
            ..self.clone()
        };
        (before, after)
    }
}

/// Converts bytes to hexadecimal digits.
pub(crate) fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Converts hexadecimal digits to bytes; `None` if the text contains other characters.
pub(crate) fn from_hex(text: &str) -> Option<Vec<u8>> {
    let pairs = text.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}
