//! The operations after which values are not used any more.

use super::{BlockId, Body, Definition, OpId, ValueId};

/// For each operation of a function, the values that no later operation uses: a compiler that assigns memory can use theirs for
/// other values.
///
/// An operation in a region counts as the operation of the value's block that contains it, because a loop or a branch may read
/// the value at any time until it ends. A terminator uses what it returns.
///
/// ```
/// use pjrt_stablehlo::ir::LastUses;
///
/// let module = pjrt_stablehlo::parse(
///     r#"func.func @main(%x: tensor<f32>, %p: tensor<i1>) -> tensor<f32> {
///         %0 = stablehlo.sine %x : tensor<f32>
///         %1 = stablehlo.cosine %0 : tensor<f32>
///         %2 = "stablehlo.if"(%p) ({
///             stablehlo.return %0 : tensor<f32>
///         }, {
///             stablehlo.return %1 : tensor<f32>
///         }) : (tensor<i1>) -> tensor<f32>
///         return %2 : tensor<f32>
///     }"#
///     .to_owned(),
/// )?;
/// let main = module.main().unwrap();
/// let uses = LastUses::of(&main.body);
/// let counts: Vec<usize> = main.ops().map(|(id, _)| uses.after(id).len()).collect();
/// // The sine is the last one to read `%x`. The branch is the last one to read `%p`, `%0` and `%1`.
/// assert_eq!(counts, [1, 0, 3, 1]);
/// # Ok::<(), pjrt_stablehlo::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct LastUses {
    by_op: Vec<Vec<ValueId>>,
}

impl LastUses {
    /// Finds the last uses of all values of a function, including those in regions.
    pub fn of(body: &Body) -> Self {
        let mut positions = vec![0; body.num_ops()];
        for block in body.blocks() {
            block.ops.iter().enumerate().for_each(|(position, op)| positions[op.index()] = position);
        }
        // A result that nothing uses is not needed after its operation.
        let mut last: Vec<Option<OpId>> = body.values().map(|(id, _)| body.defining_op(id)).collect();
        for (id, op) in body.all_ops() {
            for operand in &op.operands {
                let user = containing(body, id, home(body, *operand));
                let last = &mut last[operand.index()];
                if last.is_none_or(|last| positions[last.index()] < positions[user.index()]) {
                    *last = Some(user);
                }
            }
        }
        let mut by_op = vec![Vec::new(); body.num_ops()];
        for ((value, _), last) in body.values().zip(last) {
            last.into_iter().for_each(|last| by_op[last.index()].push(value));
        }
        Self { by_op }
    }

    /// Returns the values of the operation's block that are not used after the operation: operands, what its regions read, and
    /// results that nothing uses. An argument of a block that nothing uses is not among them.
    pub fn after(&self, op: OpId) -> &[ValueId] {
        &self.by_op[op.index()]
    }
}

/// Returns the block in which a value is defined.
fn home(body: &Body, value: ValueId) -> BlockId {
    match body.value(value).definition {
        Definition::Argument { block, .. } => block,
        Definition::Result { op, .. } => body.op(op).block,
    }
}

/// Returns the operation of a block that is, or contains, an operation.
fn containing(body: &Body, mut op: OpId, block: BlockId) -> OpId {
    while body.op(op).block != block {
        op = body
            .region(body.block(body.op(op).block).region)
            .parent
            .expect("a value is visible to its users");
    }
    op
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::Function;

    /// Returns the names of the operations, with the number of values that are not used after each of them.
    fn freed<'m>(main: &'m Function, block: BlockId, uses: &LastUses) -> Vec<(&'m str, usize)> {
        main.body.block_ops(block).map(|(id, op)| (op.kind.name(), uses.after(id).len())).collect()
    }

    #[test]
    fn a_loop_uses_until_it_ends_what_its_regions_read() {
        let module = crate::parse(
            "func.func @main(%x: tensor<f32>, %n: tensor<f32>) -> tensor<f32> {
                %0 = stablehlo.sine %x : tensor<f32>
                %1 = stablehlo.cosine %x : tensor<f32>
                %2 = stablehlo.while(%i = %x) : tensor<f32> cond {
                    %p = stablehlo.compare LT, %i, %n : (tensor<f32>, tensor<f32>) -> tensor<i1>
                    stablehlo.return %p : tensor<i1>
                } do {
                    %a = stablehlo.add %i, %0 : tensor<f32>
                    %b = stablehlo.tanh %a : tensor<f32>
                    %c = stablehlo.add %a, %0 : tensor<f32>
                    stablehlo.return %c : tensor<f32>
                }
                return %2 : tensor<f32>
            }"
            .to_owned(),
        )
        .unwrap();
        let main = module.main().unwrap();
        let uses = LastUses::of(&main.body);
        // `%1` is not used at all, and the loop is the last one to use `%x`, `%n` and `%0`.
        let entry = freed(main, main.body.entry().unwrap(), &uses);
        let names = ["stablehlo.sine", "stablehlo.cosine", "stablehlo.while", "func.return"];
        assert_eq!(entry, names.into_iter().zip([0, 1, 3, 1]).collect::<Vec<_>>());
        // In the body, `%i` ends with the first sum, `%b` at once, `%a` with the second sum; `%0` belongs to the function.
        let (_, op) = main.ops().nth(2).unwrap();
        let body = main.body.region(op.regions[1]).blocks[0];
        let counts: Vec<usize> = freed(main, body, &uses).into_iter().map(|(_, count)| count).collect();
        assert_eq!(counts, [1, 1, 1, 1]);
    }
}
