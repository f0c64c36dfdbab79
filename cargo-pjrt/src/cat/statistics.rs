//! Statistics of a program: the numbers of operations, constants and values.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

use pjrt_stablehlo::Module;
use pjrt_stablehlo::ir::{ElementType, Literal, LiteralData, Op, Type};

/// The statistics of a program.
pub(super) struct Statistics<'a> {
    file: &'a str,
    program_len: usize,
    module: &'a Module,
    constants: Constants,
    /// The number of values by element type, or by type if they are not tensors.
    values: BTreeMap<String, usize>,
}

#[derive(Default)]
struct Constants {
    count: usize,
    /// The number of bytes of the constants in the program.
    stored: u64,
    /// The number of bytes of the constants with all elements.
    dense: u64,
}

impl Constants {
    fn add(&mut self, value: &Literal) {
        let (LiteralData::Dense(bytes) | LiteralData::Splat(bytes) | LiteralData::Bits(bytes)) = value.data();
        self.count += 1;
        self.stored = self.stored.saturating_add(bytes.len() as u64);
        self.dense = self.dense.saturating_add(value.dense_len());
    }
}

impl<'a> Statistics<'a> {
    pub(super) fn of(file: &'a str, program: &[u8], module: &'a Module) -> Self {
        let mut constants = Constants::default();
        let mut values = BTreeMap::new();
        for function in module.functions() {
            for (_, op) in function.body.all_ops() {
                if let Op::Constant(constant) = &op.kind {
                    constants.add(&constant.value);
                }
                let results = op.results;
                for value in results {
                    *values.entry(element(function.body.ty(value))).or_default() += 1;
                }
            }
        }
        Statistics { file, program_len: program.len(), module, constants, values }
    }
}

/// Returns the element type of a tensor, or the whole type of another value.
fn element(ty: &Type) -> String {
    match ty {
        Type::Tensor(tensor) | Type::Buffer(tensor) => match tensor.element_type() {
            ElementType::Quantized => format!("quantized {}", tensor.storage_type()),
            element => element.to_string(),
        },
        Type::Token => "token".into(),
        Type::Tuple(_) => "tuple".into(),
        Type::Future(_) => "future".into(),
        other => other.to_string(),
    }
}

impl Display for Statistics<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let module = self.module;
        writeln!(f, "{}", self.file)?;
        writeln!(f, "  bytes        {}", self.program_len)?;
        if let Some(version) = module.source_version {
            writeln!(f, "  VHLO         {version}")?;
        }
        if let Some(name) = &module.name {
            writeln!(f, "  module       {name}")?;
        }
        writeln!(f, "  functions    {}", module.functions().len())?;
        let Constants { count, stored, dense } = self.constants;
        writeln!(f, "  constants    {count}: {stored} bytes in the program, {dense} with all elements")?;
        if let Some(main) = module.main() {
            for (what, types) in [("parameters", main.argument_types()), ("results", main.result_types())] {
                writeln!(f, "  {what:<12} {}", types.len())?;
                types.iter().try_for_each(|ty| writeln!(f, "  {:12} {ty}", ""))?;
            }
        }
        let operations = module.op_counts();
        let operations: Vec<_> = operations.iter().map(|(&name, &count)| (name, count)).collect();
        let values: Vec<_> = self.values.iter().map(|(name, &count)| (&**name, count)).collect();
        table(f, "operations", module.num_ops(), operations)?;
        table(f, "results by element type", self.values.values().sum(), values)
    }
}

/// Writes a table of counts, in descending order.
fn table(f: &mut Formatter<'_>, title: &str, total: usize, mut rows: Vec<(&str, usize)>) -> fmt::Result {
    rows.sort_by_key(|&(name, count)| (std::cmp::Reverse(count), name));
    writeln!(f, "{total:>9}  {title}")?;
    rows.iter().try_for_each(|(name, count)| writeln!(f, "{count:>9}    {name}"))
}
