//! The program that runs, for hosts to show: on whole arrays, with the way in which they are split in annotations that HLO has.
//!
//! Hosts make HLO of what an executable reports. They cannot where the program has operations of Shardy, so these become the
//! calls that stand for them in HLO: `Sharding` for a constraint, and `SPMDFullToShardShape` and `SPMDShardToFullShape` at the
//! ends of a manual computation, whose operations come between them.

use super::error::{CompileError, Result};
use super::lower::mesh_of;
use super::sharding::with_addends;
use crate::plan::{Plan, Sharding};
use pjrt_stablehlo::Module;
use pjrt_stablehlo::ir::{
    Attribute, BackendConfig, BlockId, Body, CustomCallApiVersion, DictionaryAttribute, Function, Location,
    Op, Operation, TensorSharding, Type, ValueId, ops,
};
use std::collections::HashMap;

/// Writes a sharding as HLO's text has it. `None` is an array that every partition has whole.
pub(crate) type HloText = fn(Option<&Sharding>) -> String;

/// Rewrites a program that was compiled to `plan`.
///
/// # Errors
/// If the program is not one that can be compiled.
pub(crate) fn annotated(module: &Module, plan: &Plan, text: HloText) -> Result<Module> {
    let mut result = Module::new();
    result.name.clone_from(&module.name);
    result.attributes = without_shardy(&module.attributes, []);
    for function in module.functions() {
        let function =
            Annotator { module, partitions: plan.num_partitions, text, body: Body::new(), manual: 0 }
                .function(function, plan)?;
        result.add_function(function).map_err(|_| CompileError::internal("a function is there twice"))?;
    }
    Ok(result)
}

/// Attributes without those of Shardy, and with others in the place of what they say.
fn without_shardy<const N: usize>(
    attributes: &DictionaryAttribute,
    more: [(&str, String); N],
) -> DictionaryAttribute {
    let kept = attributes
        .entries()
        .iter()
        .filter(|(name, _)| !name.starts_with("sdy.") && !more.iter().any(|(new, _)| *new == &**name));
    let more = more.iter().map(|(name, text)| ((*name).into(), Attribute::String(text.as_str().into())));
    DictionaryAttribute::new(kept.cloned().chain(more).collect())
}

/// The attribute that a sharding is in.
const SHARDING: &str = "mhlo.sharding";

/// A function that is being copied.
struct Annotator<'m> {
    module: &'m Module,
    partitions: usize,
    text: HloText,
    body: Body,
    /// How many manual computations the copied operations are in. Of parts of arrays, constraints say nothing here.
    manual: usize,
}

/// What the values of a function are in its copy.
type Values = HashMap<ValueId, ValueId>;

impl<'m> Annotator<'m> {
    fn function(mut self, function: &'m Function, plan: &Plan) -> Result<Function> {
        let is_main = &*function.name == "main";
        let said = |attributes: &[DictionaryAttribute], count, shardings: Vec<Option<&Sharding>>| {
            let one = |i: usize| {
                let attributes = attributes.get(i).cloned().unwrap_or_default();
                match shardings.get(i) {
                    Some(sharding) => without_shardy(&attributes, [(SHARDING, (self.text)(*sharding))]),
                    None => without_shardy(&attributes, []),
                }
            };
            (0..count).map(one).collect::<Vec<_>>()
        };
        let (parameters, results) = (function.argument_types().len(), function.result_types().len());
        // Where tuples were flattened, there is no saying which of them a sharding is of.
        let of = |matches: bool, shardings: Vec<_>| if is_main && matches { shardings } else { vec![] };
        let argument_attributes = said(
            &function.argument_attributes,
            parameters,
            of(
                plan.parameters.len() == parameters,
                plan.parameters.iter().map(|p| p.sharding.as_ref()).collect(),
            ),
        );
        let result_attributes = said(
            &function.result_attributes,
            results,
            of(plan.results.len() == results, plan.results.iter().map(|r| r.sharding.as_ref()).collect()),
        );
        if let Some(entry) = function.body.entry() {
            let block = self.body.add_block(Body::ROOT);
            let mut values = Values::new();
            for argument in &function.body.block(entry).arguments {
                let new = self.body.add_argument(block, function.body.ty(*argument).clone());
                values.insert(*argument, new);
            }
            self.copy(&function.body, entry, block, &mut values)?;
        }
        Ok(Function {
            name: function.name.clone(),
            visibility: function.visibility,
            ty: function.ty.clone(),
            argument_attributes,
            result_attributes,
            attributes: without_shardy(&function.attributes, []),
            body: self.body,
            location: function.location.clone(),
        })
    }

    /// Copies the operations of a block to the end of another. Gives what the block returns, if it is one of Shardy's.
    fn copy(
        &mut self,
        from: &'m Body,
        block: BlockId,
        to: BlockId,
        values: &mut Values,
    ) -> Result<Vec<ValueId>> {
        for id in &from.block(block).ops {
            let op = from.op(*id);
            let operands = operands(op, values)?;
            let results = match &op.kind {
                Op::SdyReturn(_) => return Ok(operands),
                Op::ShardingGroup(_) => vec![],
                Op::ShardingConstraint(o) => self.constraint(to, op, operands[0], &o.sharding),
                Op::Reshard(o) => self.constraint(to, op, operands[0], &o.sharding),
                Op::ManualComputation(o) => self.manual(from, op, o, &operands, to)?,
                kind => {
                    let types = op.results.iter().map(|result| from.ty(result).clone());
                    let new = self.body.add_op(to, kind.clone(), operands, types, op.location.clone());
                    self.body.op_mut(new).attributes = without_shardy(&op.attributes, []);
                    for region in &op.regions {
                        let into = self.body.add_region(Some(new));
                        for block in &from.region(*region).blocks {
                            let target = self.body.add_block(into);
                            for argument in &from.block(*block).arguments {
                                let new = self.body.add_argument(target, from.ty(*argument).clone());
                                values.insert(*argument, new);
                            }
                            self.copy(from, *block, target, values)?;
                        }
                    }
                    self.body.op(new).results.collect()
                }
            };
            values.extend(op.results.zip(results));
        }
        Ok(vec![])
    }

    fn constraint(
        &mut self,
        to: BlockId,
        op: &Operation,
        value: ValueId,
        sharding: &TensorSharding,
    ) -> Vec<ValueId> {
        let said = if self.manual == 0 { self.said(value, sharding) } else { None };
        // An array that cannot be split so is not.
        vec![said.map_or(value, |text| self.call(to, "Sharding", value, None, &text, &op.location))]
    }

    /// What HLO's text says of a sharding; None if the value cannot be split so.
    fn said(&self, value: ValueId, sharding: &TensorSharding) -> Option<String> {
        self.text_of(self.body.ty(value), sharding)
    }

    /// The same for a value of this type.
    fn text_of(&self, ty: &Type, sharding: &TensorSharding) -> Option<String> {
        let sizes = ty.as_tensor().and_then(|tensor| tensor.static_dims())?;
        let dims: Vec<usize> = sizes.iter().map(|n| usize::try_from(*n).ok()).collect::<Option<_>>()?;
        let sharding = with_addends(self.module, sharding, &dims, self.partitions).ok()?;
        Some((self.text)(sharding.as_ref()))
    }

    /// The operations of a manual computation, between calls that take whole arrays apart and put them together again.
    fn manual(
        &mut self,
        from: &'m Body,
        op: &'m Operation,
        manual: &ops::ManualComputation,
        operands: &[ValueId],
        to: BlockId,
    ) -> Result<Vec<ValueId>> {
        let block = op.regions.first().and_then(|region| from.region(*region).blocks.first()).copied();
        let block = block.ok_or_else(|| CompileError::invalid("a manual computation without a body"))?;
        let mut values = Values::new();
        let arguments = &from.block(block).arguments;
        for ((argument, whole), sharding) in arguments.iter().zip(operands).zip(&manual.in_shardings) {
            let inside = self.inside(sharding, &manual.manual_axes, from.ty(*argument))?;
            let part = match self.said(*whole, sharding) {
                Some(text) => self.call(to, "Sharding", *whole, None, &text, &op.location),
                None => *whole,
            };
            let ty = from.ty(*argument).clone();
            let part = self.call(to, "SPMDFullToShardShape", part, Some(ty), &inside, &op.location);
            values.insert(*argument, part);
        }
        self.manual += 1;
        let parts = self.copy(from, block, to, &mut values)?;
        self.manual -= 1;
        let mut results = vec![];
        for ((result, part), sharding) in op.results.zip(parts).zip(&manual.out_shardings) {
            let inside = self.inside(sharding, &manual.manual_axes, from.ty(result))?;
            let part = self.call(to, "Sharding", part, None, &inside, &op.location);
            let ty = from.ty(result).clone();
            let outside = self.text_of(&ty, sharding).unwrap_or_else(|| (self.text)(None));
            results.push(self.call(to, "SPMDShardToFullShape", part, Some(ty), &outside, &op.location));
        }
        Ok(results)
    }

    /// What HLO's text says of a value inside of a manual computation along some axes.
    fn inside(
        &self,
        sharding: &TensorSharding,
        axes: &[pjrt_stablehlo::ir::Str],
        ty: &Type,
    ) -> Result<String> {
        let mesh = mesh_of(self.module, sharding)?;
        let size = |index: usize| usize::try_from(mesh.axes[index].size).unwrap_or(0);
        let (manual, rest): (Vec<usize>, Vec<usize>) =
            (0..mesh.axes.len()).partition(|index| axes.contains(&mesh.axes[*index].name));
        let count = |of: &[usize]| of.iter().map(|index| size(*index)).product::<usize>();
        let others = count(&rest);
        if others <= 1 {
            return Ok("{manual}".to_owned());
        }
        // The partitions of each position along the manual axes, one position after the other.
        let stride = |index: usize| ((index + 1)..mesh.axes.len()).map(size).product::<usize>();
        let coordinate = |at: usize, index: usize| at / stride(index) % size(index);
        let mut order: Vec<usize> = (0..self.partitions).collect();
        let key = |of: &[usize], at: usize| {
            of.iter().fold(0, |key, index| key * size(*index) + coordinate(at, *index))
        };
        order.sort_by_key(|at| (key(&manual, *at), key(&rest, *at)));
        let device = |at: &usize| match mesh.device_ids.get(*at) {
            Some(id) => id.to_string(),
            None => at.to_string(),
        };
        let devices: Vec<String> = order.iter().map(device).collect();
        let rank = ty.as_tensor().map_or(0, |tensor| tensor.dims().len());
        let ones = "1,".repeat(rank);
        Ok(format!(
            "{{devices=[{ones}{},{others}]{} last_tile_dims={{manual, replicated}}}}",
            count(&manual),
            devices.join(",")
        ))
    }

    /// A call that gives its operand, as a value of another type if there is one.
    fn call(
        &mut self,
        to: BlockId,
        target: &str,
        value: ValueId,
        ty: Option<Type>,
        sharding: &str,
        location: &Location,
    ) -> ValueId {
        let call = ops::CustomCall {
            call_target_name: target.into(),
            has_side_effect: false,
            backend_config: BackendConfig::default(),
            api_version: CustomCallApiVersion::Original,
            called_computations: Box::default(),
            operand_layouts: None,
            result_layouts: None,
            output_operand_aliases: Box::default(),
            result_tilings: None,
        };
        let ty = ty.unwrap_or_else(|| self.body.ty(value).clone());
        let op = self.body.add_op(to, Op::CustomCall(call.into()), [value], [ty], location.clone());
        let said = (SHARDING.into(), Attribute::String(sharding.into()));
        self.body.op_mut(op).attributes = DictionaryAttribute::new(vec![said]);
        self.body.op(op).result()
    }
}

/// What an operation's operands are in the copy.
fn operands(op: &Operation, values: &Values) -> Result<Vec<ValueId>> {
    let one = |value: &ValueId| {
        let found = values.get(value).copied();
        found.ok_or_else(|| CompileError::internal("a value is used before it is defined"))
    };
    op.operands.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::{CompileOptions, compile};

    fn text(program: &str) -> String {
        let module = pjrt_stablehlo::parse(program.as_bytes()).unwrap();
        let options = CompileOptions {
            num_partitions: 4,
            use_spmd_partitioning: true,
            propagate_to_results: vec![true],
            ..CompileOptions::default()
        };
        let plan = compile(&module, &options).unwrap();
        let as_text = |sharding: Option<&Sharding>| match sharding {
            Some(sharding) => format!("{:?}", sharding.parts),
            None => "whole".to_owned(),
        };
        let text = annotated(&module, &plan, as_text).unwrap().to_string();
        assert!(!text.contains("sdy."), "{text}");
        pjrt_stablehlo::parse(text.as_bytes()).unwrap();
        text
    }

    #[test]
    fn constraints_become_calls_and_parameters_say_how_they_are_split() {
        let text = text(
            r#"module { sdy.mesh @mesh = <["x"=2, "y"=2]>
               func.func public @main(%a: tensor<8x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
                   -> tensor<8x2xf32> {
                 %b = sdy.sharding_constraint %a <@mesh, [{"x"}, {"y"}]> : tensor<8x2xf32>
                 %c = stablehlo.negate %b : tensor<8x2xf32>
                 return %c : tensor<8x2xf32> } }"#,
        );
        assert!(text.contains(r#"@Sharding"#) || text.contains(r#""Sharding""#), "{text}");
        assert!(text.contains("[2, 2]"), "{text}");
        assert!(text.contains("[2, 1]"), "{text}");
    }

    #[test]
    fn manual_computations_become_their_operations() {
        let program = |axes: &str| {
            format!(
                r#"module {{ sdy.mesh @mesh = <["x"=2, "y"=2]>
                   func.func public @main(%a: tensor<8xf32>) -> tensor<8xf32> {{
                     %r = sdy.manual_computation(%a) in_shardings=[<@mesh, [{{"x"}}]>] out_shardings=[<@mesh, [{{"x"}}]>]
                         manual_axes={{{axes}}} (%p: tensor<4xf32>) {{
                       %n = stablehlo.negate %p : tensor<4xf32>
                       sdy.return %n : tensor<4xf32>
                     }} : (tensor<8xf32>) -> tensor<8xf32>
                     return %r : tensor<8xf32> }} }}"#
            )
        };
        let all = text(&program(r#""x", "y""#));
        assert!(all.contains("SPMDFullToShardShape") && all.contains("SPMDShardToFullShape"), "{all}");
        assert!(all.contains("{manual}"), "{all}");
        let some = text(&program(r#""x""#));
        assert!(some.contains("{devices=[1,2,2]0,1,2,3 last_tile_dims={manual, replicated}}"), "{some}");
    }
}
