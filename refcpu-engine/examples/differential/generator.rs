//! Generates random programs of operations with matching operands, attributes and regions.

use crate::ops;
use crate::program::{Argument, GeneratedProgram, Statement, Typed, to_hex};
use crate::random::Random;
use crate::types::{Element, Fill, Ty, bytes, literal};
use pjrt_stablehlo::ir::{ElementType, OpCode};

/// The maximum number of elements of a value.
const MAX_ELEMENTS: usize = 1200;

/// The number of statements with the operation that a program is about. It is chosen such that 100,000 programs contain each
/// operation of the table with each element type a hundred times.
const ABOUT: usize = 4;

/// The maximum number of further statements of a program.
const MAX_MORE: usize = 6;

/// The maximum depth of nested regions.
const MAX_DEPTH: usize = 2;

/// A value that statements may use.
#[derive(Clone, Debug)]
pub(crate) struct Value {
    pub(crate) name: String,
    pub(crate) ty: Ty,
}

/// The values of the enclosing scopes that a region may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// None, because the region is the body of a function.
    Function,
    /// The values of the enclosing function.
    Open,
    /// None: the region uses only its arguments.
    Isolated,
}

/// The generator of one program.
pub(crate) struct Generator {
    pub(crate) random: Random,
    program: GeneratedProgram,
    /// The values that the next statement may use.
    values: Vec<Value>,
    statements: Vec<Statement>,
    names: usize,
    scope: Scope,
    pub(crate) depth: usize,
}

/// Generates a program about one operation on one element type; `None` if the generator does not support this combination.
pub(crate) fn program(seed: u64, number: u64, code: OpCode, element: Element) -> Option<GeneratedProgram> {
    let mut g = Generator {
        random: Random::new(seed, number),
        program: GeneratedProgram::default(),
        values: Vec::new(),
        statements: Vec::new(),
        names: 0,
        scope: Scope::Function,
        depth: 0,
    };
    let before = g.random.below(MAX_MORE / 2 + 1);
    let after = g.random.below(MAX_MORE / 2 + 1);
    if before > 0 {
        // An input of the element type, for the first statements.
        let dims = g.dims(3);
        g.input(&Ty::new(element, &dims), Fill::Any);
    }
    (0..before).for_each(|_| g.any_statement());
    ops::emit(&mut g, code, element)?;
    (1..ABOUT).for_each(|_| drop(ops::emit(&mut g, code, element)));
    (0..after).for_each(|_| g.any_statement());
    Some(g.finish())
}

impl Generator {
    fn finish(mut self) -> GeneratedProgram {
        self.program.statements = std::mem::take(&mut self.statements);
        let used: Vec<&String> = self.program.statements.iter().flat_map(|s| &s.uses).collect();
        let defined: Vec<String> =
            self.program.statements.iter().flat_map(|s| &s.defines).map(|v| v.name.clone()).collect();
        // Unused values are results, and so are some of the used ones, so that values are used both as operands and as results.
        let random = &mut self.random;
        let returned = |name: &String| !used.contains(&name) || random.percent(15);
        let mut results: Vec<String> = defined.into_iter().filter(returned).collect();
        let types = self.program.types();
        results.retain(|name| types[name.as_str()].starts_with("tensor"));
        self.program.results = results;
        self.program
    }

    fn name(&mut self) -> String {
        self.names += 1;
        format!("%v{}", self.names)
    }

    /// Chooses the size of a dimension.
    pub(crate) fn size(&mut self) -> i64 {
        match self.random.below(40) {
            0 => 0,
            1..=8 => 1,
            9 => 17,
            10 => 33,
            _ => self.random.between(2, 6),
        }
    }

    /// Chooses a shape of at most this number of dimensions.
    pub(crate) fn dims(&mut self, max_rank: usize) -> Vec<i64> {
        let rank = self.random.below(max_rank + 1);
        self.dims_of(rank)
    }

    /// Chooses a shape of this number of dimensions.
    pub(crate) fn dims_of(&mut self, rank: usize) -> Vec<i64> {
        let mut dims: Vec<i64> = (0..rank).map(|_| self.size()).collect();
        if rank == 1 && self.random.percent(10) {
            dims[0] = self.random.between(60, 700);
        }
        while dims.iter().product::<i64>() as usize > MAX_ELEMENTS {
            let largest = (0..rank).max_by_key(|&d| dims[d]).unwrap_or(0);
            dims[largest] = dims[largest] / 2 + 1;
        }
        dims
    }

    /// Chooses the elements of operands of elementwise operations.
    pub(crate) fn fill(&mut self) -> Fill {
        if self.random.percent(60) { Fill::Any } else { Fill::Tame }
    }

    /// Adds an argument of `main`, or a constant in a region that cannot use arguments.
    pub(crate) fn input(&mut self, ty: &Ty, fill: Fill) -> Value {
        if self.scope != Scope::Function || self.random.percent(12) {
            return self.constant(ty, fill);
        }
        let data: Vec<u8> = (0..ty.count()).flat_map(|_| bytes(&mut self.random, ty.element, fill)).collect();
        let name = format!("%a{}", self.program.arguments.len());
        let value = Typed { name: name.clone(), ty: ty.text() };
        self.program.arguments.push(Argument { value, data: to_hex(&data) });
        let value = Value { name, ty: ty.clone() };
        if fill == Fill::Any {
            self.values.push(value.clone());
        }
        value
    }

    /// Adds a constant.
    pub(crate) fn constant(&mut self, ty: &Ty, fill: Fill) -> Value {
        let count = ty.count();
        let elements: Vec<Vec<u8>> = if self.random.percent(30) && count > 1 {
            vec![bytes(&mut self.random, ty.element, fill); count]
        } else {
            (0..count).map(|_| bytes(&mut self.random, ty.element, fill)).collect()
        };
        let value = format!("value = {}", literal(ty, &elements));
        self.push("stablehlo.constant", &[], &value, &[], std::slice::from_ref(ty)).remove(0)
    }

    /// Adds a constant vector of 64-bit or 32-bit integers.
    pub(crate) fn integers(&mut self, values: &[i64]) -> Value {
        let element = if self.random.percent(50) { ElementType::I64 } else { ElementType::I32 };
        let ty = Ty::plain(element, &[values.len() as i64]);
        let elements: Vec<Vec<u8>> =
            values.iter().map(|v| v.to_le_bytes()[..element.byte_width()].to_vec()).collect();
        let value = format!("value = {}", literal(&ty, &elements));
        self.push("stablehlo.constant", &[], &value, &[], &[ty]).remove(0)
    }

    /// Returns a value of this type, which may be an existing one if its elements are arbitrary.
    pub(crate) fn operand(&mut self, ty: &Ty, fill: Fill) -> Value {
        let fitting: Vec<&Value> = self.values.iter().filter(|v| v.ty == *ty).collect();
        if fill == Fill::Any && !fitting.is_empty() && self.random.percent(65) {
            let chosen = self.random.below(fitting.len());
            return fitting[chosen].clone();
        }
        self.input(ty, fill)
    }

    /// Returns an existing value with these elements and this number of dimensions, or a new one.
    pub(crate) fn some(
        &mut self,
        element: Element,
        ranks: std::ops::RangeInclusive<usize>,
        fill: Fill,
    ) -> Value {
        let fitting: Vec<&Value> =
            self.values.iter().filter(|v| v.ty.element == element && ranks.contains(&v.ty.rank())).collect();
        if fill == Fill::Any && !fitting.is_empty() && self.random.percent(65) {
            let chosen = self.random.below(fitting.len());
            return fitting[chosen].clone();
        }
        let rank = self.random.between(*ranks.start() as i64, *ranks.end() as i64) as usize;
        let dims = self.dims_of(rank);
        self.input(&Ty::new(element, &dims), fill)
    }

    /// Adds an operation in MLIR's generic form.
    pub(crate) fn push(
        &mut self,
        op: &str,
        operands: &[&Value],
        attributes: &str,
        regions: &[Region],
        results: &[Ty],
    ) -> Vec<Value> {
        let texts: Vec<String> = results.iter().map(Ty::text).collect();
        let values = self.push_text(op, operands, attributes, regions, &texts);
        let defined: Vec<Value> =
            values.into_iter().zip(results).map(|(name, ty)| Value { name, ty: ty.clone() }).collect();
        self.values.extend(defined.iter().cloned());
        defined
    }

    /// Adds an operation whose results may have any type. Later statements do not choose these results as operands.
    pub(crate) fn push_text(
        &mut self,
        op: &str,
        operands: &[&Value],
        attributes: &str,
        regions: &[Region],
        results: &[String],
    ) -> Vec<String> {
        let operands: Vec<(String, String)> =
            operands.iter().map(|v| (v.name.clone(), v.ty.text())).collect();
        self.push_raw(op, &operands, attributes, regions, results)
    }

    /// Adds an operation whose operands may have any type. They are given as names and types.
    pub(crate) fn push_raw(
        &mut self,
        op: &str,
        operands: &[(String, String)],
        attributes: &str,
        regions: &[Region],
        results: &[String],
    ) -> Vec<String> {
        let names: Vec<String> = results.iter().map(|_| self.name()).collect();
        let left = if names.is_empty() { String::new() } else { format!("{} = ", names.join(", ")) };
        let uses: Vec<&str> = operands.iter().map(|(name, _)| name.as_str()).collect();
        let types: Vec<&str> = operands.iter().map(|(_, ty)| ty.as_str()).collect();
        let bodies: Vec<&str> = regions.iter().map(|r| r.text.as_str()).collect();
        let bodies = if bodies.is_empty() { String::new() } else { format!(" ({})", bodies.join(", ")) };
        let attributes = if attributes.is_empty() { String::new() } else { format!(" {{{attributes}}}") };
        let text = format!(
            "{left}\"{op}\"({}){bodies}{attributes} : ({}) -> ({})",
            uses.join(", "),
            types.join(", "),
            results.join(", ")
        );
        let mut uses: Vec<String> = uses.into_iter().map(str::to_owned).collect();
        uses.extend(regions.iter().flat_map(|r| r.uses.iter().cloned()));
        let defines = names
            .iter()
            .zip(results)
            .map(|(name, ty)| Typed { name: name.clone(), ty: ty.clone() })
            .collect();
        self.statements.push(Statement { op: op.to_owned(), text, uses, defines });
        names
    }

    /// Generates a region with these arguments. `body` adds its statements and returns its results.
    pub(crate) fn region(
        &mut self,
        scope: Scope,
        arguments: &[Ty],
        body: impl FnOnce(&mut Self, &[Value]) -> Vec<Value>,
    ) -> Region {
        let outer_values = self.values.clone();
        let outer_statements = std::mem::take(&mut self.statements);
        let outer_scope = std::mem::replace(&mut self.scope, scope);
        let isolated = scope == Scope::Isolated || outer_scope == Scope::Isolated;
        if isolated {
            self.scope = Scope::Isolated;
        }
        if scope == Scope::Isolated {
            self.values.clear();
        }
        self.depth += 1;
        let arguments: Vec<Value> =
            arguments.iter().map(|ty| Value { name: self.name(), ty: ty.clone() }).collect();
        self.values.extend(arguments.iter().cloned());
        let results = body(self, &arguments);
        let names: Vec<&str> = results.iter().map(|v| v.name.as_str()).collect();
        let types: Vec<String> = results.iter().map(|v| v.ty.text()).collect();
        let header: Vec<String> = arguments.iter().map(|v| format!("{}: {}", v.name, v.ty.text())).collect();
        let header = if header.is_empty() { String::new() } else { format!("^bb0({}): ", header.join(", ")) };
        let inner = std::mem::replace(&mut self.statements, outer_statements);
        let mut text = format!("{{ {header}");
        inner.iter().for_each(|s| text.push_str(&format!("{}\n      ", s.text)));
        text.push_str(&format!(
            "\"stablehlo.return\"({}) : ({}) -> () }}",
            names.join(", "),
            types.join(", ")
        ));
        let local: Vec<&str> = (inner.iter().flat_map(|s| &s.defines).map(|v| v.name.as_str()))
            .chain(arguments.iter().map(|v| v.name.as_str()))
            .collect();
        let used = inner.iter().flat_map(|s| s.uses.iter().map(String::as_str)).chain(names);
        let uses = used.filter(|name| !local.contains(name)).map(str::to_owned).collect();
        self.values = outer_values;
        self.scope = outer_scope;
        self.depth -= 1;
        Region { text, uses }
    }

    /// Adds a function with these arguments. Returns its name and the types of its results.
    pub(crate) fn function(
        &mut self,
        arguments: &[Ty],
        body: impl FnOnce(&mut Self, &[Value]) -> Vec<Value>,
    ) -> (String, Vec<Ty>) {
        let name = format!("main_{}", self.program.functions.len() + 1);
        // Reserves the name, so that functions that `body` adds have other names.
        self.program.functions.push(String::new());
        let place = self.program.functions.len() - 1;
        let mut types = Vec::new();
        let region = self.region(Scope::Isolated, arguments, |g, values| {
            let results = body(g, values);
            types = results.iter().map(|v| v.ty.clone()).collect();
            results
        });
        // The last return is that of the function; the others are those of its regions.
        let (before, after) = region.text.rsplit_once("stablehlo.return").unwrap_or((&region.text, ""));
        let body = format!("{before}func.return{after}");
        let list = |types: &[Ty]| types.iter().map(Ty::text).collect::<Vec<_>>().join(", ");
        self.program.functions[place] = format!(
            "  \"func.func\"() ({body}) {{sym_name = \"{name}\", sym_visibility = \"private\", function_type = ({}) -> ({})}} : () -> ()\n",
            list(arguments),
            list(&types)
        );
        (name, types)
    }

    /// Applies random operations to a value that do not change its type.
    pub(crate) fn transformed(&mut self, value: &Value, steps: usize) -> Value {
        (0..steps).fold(value.clone(), |value, _| ops::step(self, &value))
    }

    /// Adds a random statement.
    fn any_statement(&mut self) {
        let (code, element) = ops::any(self);
        // If the generator does not support the combination, no statement is added.
        let _ = ops::emit(self, code, element);
    }

    /// Returns whether the next region may contain further regions.
    pub(crate) fn may_nest(&self) -> bool {
        self.depth < MAX_DEPTH
    }

    /// Chooses the element type of an existing value, or any element type.
    pub(crate) fn some_element(&mut self) -> Element {
        if !self.values.is_empty() && self.random.percent(80) {
            let chosen = self.random.below(self.values.len());
            return self.values[chosen].ty.element;
        }
        let all = crate::types::elements();
        self.random.pick(&all)
    }
}

/// The text of a region, and the values of enclosing scopes that it uses.
pub(crate) struct Region {
    pub(crate) text: String,
    pub(crate) uses: Vec<String>,
}

/// Formats integers as `array<i64: 1, 2>`.
pub(crate) fn array(values: &[i64]) -> String {
    if values.is_empty() {
        return "array<i64>".to_owned();
    }
    let values: Vec<String> = values.iter().map(i64::to_string).collect();
    format!("array<i64: {}>", values.join(", "))
}

/// Formats integers as `[1, 2]`.
pub(crate) fn list(values: &[i64]) -> String {
    format!("{values:?}")
}

/// Formats pairs as `dense<[[0, 1]]> : tensor<1x2xi64>`.
pub(crate) fn pairs(values: &[(i64, i64)]) -> String {
    if values.is_empty() {
        return "dense<> : tensor<0x2xi64>".to_owned();
    }
    let rows: Vec<String> = values.iter().map(|(low, high)| format!("[{low}, {high}]")).collect();
    format!("dense<[{}]> : tensor<{}x2xi64>", rows.join(", "), values.len())
}
