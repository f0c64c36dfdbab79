//! The properties by which the uses of an operation differ.

use pjrt_stablehlo::Module;
use pjrt_stablehlo::ir::{Attribute, Body, Operation, TensorType, ValueId};

/// The maximum number of differences that a message names.
const SHOWN: usize = 3;

/// A property of an operation in a program, such as that all values of an attribute are 1.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Feature {
    /// The attribute or operand, and the property: "window_dilations is not all 1".
    pub(crate) property: String,
    /// The value, if the property does not tell it.
    value: String,
}

impl Feature {
    fn text(&self) -> String {
        if self.value.is_empty() {
            self.property.clone()
        } else {
            format!("{}: {}", self.property, self.value)
        }
    }
}

/// Returns the first of the properties that are not among the known ones, for a message: "a is 1, nor b is 2". Returns `None` if
/// all are known.
pub(crate) fn differences(features: &[Feature], is_known: impl Fn(&Feature) -> bool) -> Option<String> {
    let new: Vec<String> =
        features.iter().filter(|feature| !is_known(feature)).take(SHOWN).map(Feature::text).collect();
    (!new.is_empty()).then(|| new.join(", nor "))
}

/// Returns the properties of the operations of a module with a mnemonic.
pub(crate) fn of_module(module: &Module, name: &str) -> Vec<Feature> {
    let mut found = Vec::new();
    for function in module.functions() {
        for (_, op) in function.body.all_ops() {
            if op.info().mnemonic() == name {
                of_operation(&function.body, op, &mut found);
            }
        }
    }
    found
}

fn of_operation(body: &Body, op: &Operation, found: &mut Vec<Feature>) {
    let mut add = |property: String, value: String| {
        let feature = Feature { property, value };
        if !found.contains(&feature) {
            found.push(feature);
        }
    };
    for (name, attribute) in op.kind.attributes() {
        match numbers(&attribute) {
            Some(numbers) => {
                for (property, holds) in properties(&numbers) {
                    let (word, value) =
                        if holds { ("", String::new()) } else { ("not ", attribute.to_string()) };
                    add(format!("{name} is {word}{property}"), value);
                }
            }
            None if !matches!(attribute, Attribute::Elements(_)) => {
                add(format!("{name} is {attribute}"), String::new());
            }
            None => {}
        }
    }
    let tensor = |value: &ValueId| body.ty(*value).as_tensor().cloned();
    for (index, ty) in op.operands.iter().filter_map(tensor).enumerate() {
        of_type(&format!("operand {index}"), &ty, &mut add);
    }
    for (index, ty) in op.results.filter_map(|value| tensor(&value)).enumerate() {
        of_type(&format!("result {index}"), &ty, &mut add);
    }
    for &region in &op.regions {
        for &block in &body.region(region).blocks {
            let ops = body.block(block).ops.iter().map(|&id| body.op(id).info().mnemonic());
            let ops: Vec<&str> = ops.filter(|name| *name != "return").collect();
            add(format!("the computation is {}", ops.join(", ")), String::new());
        }
    }
}

fn of_type(what: &str, ty: &TensorType, add: &mut impl FnMut(String, String)) {
    add(format!("{what} has the element type {}", ty.element_type()), String::new());
    add(format!("{what} has the rank {}", ty.rank()), String::new());
    if ty.num_elements() == Some(0) {
        add(format!("{what} has no elements"), String::new());
    }
}

/// Returns the integers of an attribute that is a list of them.
fn numbers(attribute: &Attribute) -> Option<Vec<i64>> {
    match attribute {
        Attribute::IntegerArray { values, .. } => Some(values.to_vec()),
        Attribute::Elements(literal) => literal.to_i64s(64),
        _ => None,
    }
}

/// Returns the properties of lists of integers that devices distinguish, and whether they hold.
fn properties(numbers: &[i64]) -> [(&'static str, bool); 3] {
    let all = |is_right: fn(i64) -> bool| numbers.iter().all(|&number| is_right(number));
    [
        ("all 0", all(|number| number == 0)),
        ("all 1", all(|number| number == 1)),
        ("nonnegative", all(|number| number >= 0)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_values_that_differ_are_named() {
        let pad = |low: i64, interior: i64, rank: usize| {
            let size = 4 + low + 3 * interior;
            let (dims, more) =
                if rank == 1 { (String::new(), String::new()) } else { ("1x".to_owned(), "0, ".to_owned()) };
            let text = format!(
                "func.func @main(%x: tensor<{dims}4xf32>, %v: tensor<f32>) -> tensor<{dims}{size}xf32> {{
                   %0 = stablehlo.pad %x, %v, low = [{more}{low}], high = [{more}0], interior = [{more}{interior}] :
                     (tensor<{dims}4xf32>, tensor<f32>) -> tensor<{dims}{size}xf32>
                   return %0 : tensor<{dims}{size}xf32>
                 }}"
            );
            of_module(&pjrt_stablehlo::parse(text).unwrap(), "pad")
        };
        let known = pad(2, 0, 1);
        let new = |features: Vec<Feature>| -> Vec<String> {
            let new = features
                .into_iter()
                .filter(|feature| known.iter().all(|other| other.property != feature.property));
            new.map(|feature| feature.text()).collect()
        };
        assert_eq!(new(pad(3, 0, 1)), Vec::<String>::new());
        assert_eq!(new(pad(2, 1, 1))[0], "interior_padding is not all 0: array<i64: 1>");
        assert_eq!(new(pad(-1, 0, 1)), ["edge_padding_low is not nonnegative: array<i64: -1>"]);
        assert!(new(pad(2, 0, 2)).contains(&"operand 0 has the rank 2".to_owned()));
    }
}
