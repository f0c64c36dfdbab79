//! Removes what annotates a program without being part of its computation.

use crate::ir::{Body, DictionaryAttribute, Function, Module, OpId};

/// Returns the program without annotations: the discardable attributes of the module, of its functions, arguments and results and
/// of its operations, and the meshes.
///
/// Annotations, such as shardings, are of dialects of the frameworks. A compiler over MLIR cannot read a program that contains
/// attributes of a dialect that it does not know. The results of a program on one device do not depend on annotations. Read
/// those that the plugin needs, such as donated arguments, before.
///
/// Operations of Shardy remain. [`decompose`](super::decompose) removes them if they are not in the set.
///
/// ```
/// use pjrt_stablehlo::passes::without_annotations;
///
/// let text = "module {
///     sdy.mesh @mesh = <[\"x\"=1]>
///     func.func @main(%x: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"x\"}]>}) -> (tensor<4xf32> {jax.result_info = \"\"}) {
///         return %x : tensor<4xf32>
///     }
/// }";
/// let module = pjrt_stablehlo::parse(text.to_owned())?;
/// let stripped = without_annotations(&module).to_string();
/// assert!(!stripped.contains("sdy") && !stripped.contains("jax"));
/// # Ok::<(), pjrt_stablehlo::Error>(())
/// ```
#[must_use]
pub fn without_annotations(module: &Module) -> Module {
    let mut stripped = Module::new();
    stripped.name.clone_from(&module.name);
    stripped.location = module.location.clone();
    stripped.source_version = module.source_version;
    for function in module.functions() {
        let function = Function {
            argument_attributes: Vec::new(),
            result_attributes: Vec::new(),
            attributes: DictionaryAttribute::default(),
            body: without_attributes(function.body.clone()),
            ..function.clone()
        };
        let added = stripped.add_function(function);
        debug_assert!(added.is_ok(), "the names of the functions of a module differ");
    }
    stripped
}

fn without_attributes(mut body: Body) -> Body {
    let annotated = body.all_ops().filter(|(_, op)| !op.attributes.is_empty());
    let annotated: Vec<OpId> = annotated.map(|(id, _)| id).collect();
    for id in annotated {
        body.op_mut(id).attributes = DictionaryAttribute::default();
    }
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_of_operations_and_of_regions_are_removed_and_locations_remain() {
        let text = "module @m attributes {mhlo.num_partitions = 1 : i32} {
            func.func @main(%x: tensor<4xf32>, %y: tensor<f32>) -> tensor<f32> {
                %0 = stablehlo.abs %x {mhlo.sharding = \"{replicated}\"} : tensor<4xf32> loc(\"model.py\":3:7)
                %1 = \"stablehlo.reduce\"(%0, %y) <{dimensions = array<i64: 0>}> ({
                ^bb0(%a: tensor<f32>, %b: tensor<f32>):
                    %2 = stablehlo.add %a, %b {mhlo.sharding = \"{replicated}\"} : tensor<f32>
                    stablehlo.return %2 : tensor<f32>
                }) : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
                return %1 : tensor<f32>
            }
        }";
        let module = crate::parse(text.as_bytes().to_vec()).unwrap();
        let stripped = without_annotations(&module);
        let printed = format!("{stripped:#}");
        assert!(!printed.contains("mhlo."), "{printed}");
        assert!(printed.contains("sym_name = \"m\"") && printed.contains("\"model.py\":3:7"), "{printed}");
        assert_eq!(stripped.op_counts(), module.op_counts());
        crate::verify(&stripped).unwrap();
    }
}
