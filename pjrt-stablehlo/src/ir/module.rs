//! Modules and functions.

use std::collections::HashMap;

use super::{
    Attribute, Body, DictionaryAttribute, FunctionType, Location, Mesh, MeshReference, Op, OpId, Operation,
    Str, Type, ValueId,
};

/// A program: named functions.
///
/// What [`parse`](crate::parse) gives has been verified: see the [crate documentation](crate) for what that means.
#[derive(Clone, Debug, Default)]
pub struct Module {
    /// Name, such as `jit_f`.
    pub name: Option<Str>,
    /// Attributes, such as `mhlo.num_partitions`.
    pub attributes: DictionaryAttribute,
    /// Location of the module itself.
    pub location: Location,
    /// Version of the serialized form that the module came from, such as VHLO 1.13.7; for reports.
    pub source_version: Option<crate::versions::Version>,
    functions: Vec<Function>,
    meshes: Vec<MeshDeclaration>,
    symbols: HashMap<Str, usize>,
    /// The first mesh of each name.
    mesh_symbols: HashMap<Str, usize>,
}

/// A mesh that a module declares: `sdy.mesh`.
#[derive(Clone, Debug, Default)]
pub struct MeshDeclaration {
    /// Symbol name.
    pub name: Str,
    /// The mesh.
    pub mesh: Mesh,
    /// Further attributes.
    pub attributes: DictionaryAttribute,
    /// Location.
    pub location: Location,
}

/// Who may call a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visibility {
    /// Everyone.
    Public,
    /// The module only.
    Private,
    /// The enclosing symbol tables only.
    Nested,
}

/// A function: `func.func`.
#[derive(Clone, Debug, Default)]
pub struct Function {
    /// Symbol name, such as `main`.
    pub name: Str,
    /// Visibility; `None` where the program does not say it, which means that everyone may call the function.
    pub visibility: Option<Visibility>,
    /// Types of arguments and results.
    pub ty: FunctionType,
    /// Attributes of each argument (`mhlo.sharding`, `tf.aliasing_output`, `jax.buffer_donor`, ...): empty, or as
    /// many as arguments.
    pub argument_attributes: Vec<DictionaryAttribute>,
    /// Attributes of each result (`jax.result_info`, ...): empty, or as many as results.
    pub result_attributes: Vec<DictionaryAttribute>,
    /// Further attributes of the function.
    pub attributes: DictionaryAttribute,
    /// Code; without an entry block in a declaration.
    pub body: Body,
    /// Location.
    pub location: Location,
}

impl Visibility {
    /// The visibility of this name in MLIR's `sym_visibility`.
    pub(crate) fn from_name(name: &str) -> Option<Visibility> {
        Some(match name {
            "public" => Visibility::Public,
            "private" => Visibility::Private,
            "nested" => Visibility::Nested,
            _ => return None,
        })
    }

    /// The name in MLIR's `sym_visibility`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Visibility::Public => "public",
            Visibility::Private => "private",
            Visibility::Nested => "nested",
        }
    }
}

impl Module {
    /// A module without functions.
    pub fn new() -> Self {
        Module::default()
    }

    /// This module's name, attributes, location and meshes: what a rewritten one starts from.
    pub(crate) fn without_functions(&self) -> Self {
        Self {
            name: self.name.clone(),
            attributes: self.attributes.clone(),
            location: self.location.clone(),
            source_version: self.source_version,
            functions: Vec::new(),
            meshes: self.meshes.clone(),
            symbols: HashMap::new(),
            mesh_symbols: self.mesh_symbols.clone(),
        }
    }

    /// The functions in the order of the program.
    pub fn functions(&self) -> &[Function] {
        &self.functions
    }

    /// The function of this name.
    pub fn function(&self, name: &str) -> Option<&Function> {
        self.symbols.get(name).map(|&index| &self.functions[index])
    }

    /// Position among [`Module::functions`] of the function of this name.
    pub fn function_index(&self, name: &str) -> Option<usize> {
        self.symbols.get(name).copied()
    }

    /// The function where execution starts: `main`.
    pub fn main(&self) -> Option<&Function> {
        self.function("main")
    }

    /// Adds a function. Gives it back when there is one of its name already.
    ///
    /// # Errors
    /// The function itself, when its name is taken.
    pub fn add_function(&mut self, function: Function) -> Result<(), Box<Function>> {
        if self.symbols.contains_key(&function.name) {
            return Err(Box::new(function));
        }
        self.symbols.insert(function.name.clone(), self.functions.len());
        self.functions.push(function);
        Ok(())
    }

    /// The meshes that the module declares.
    pub fn meshes(&self) -> &[MeshDeclaration] {
        &self.meshes
    }

    /// The mesh of this name.
    pub fn mesh(&self, name: &str) -> Option<&Mesh> {
        self.mesh_symbols.get(name).map(|&index| &self.meshes[index].mesh)
    }

    /// Adds a mesh.
    pub fn add_mesh(&mut self, declaration: MeshDeclaration) {
        self.mesh_symbols.entry(declaration.name.clone()).or_insert(self.meshes.len());
        self.meshes.push(declaration);
    }

    /// Number of operations in all functions.
    pub fn num_ops(&self) -> usize {
        self.functions.iter().map(|function| function.body.num_ops()).sum()
    }

    /// How often each operation occurs in the program, by name, sorted by name.
    pub fn op_counts(&self) -> std::collections::BTreeMap<&str, usize> {
        let mut counts = std::collections::BTreeMap::new();
        for (_, op) in self.functions.iter().flat_map(|function| function.body.all_ops()) {
            *counts.entry(op.kind.name()).or_default() += 1;
        }
        counts
    }

    /// The value of an integer attribute of the module, such as `mhlo.num_replicas`.
    pub fn integer_attribute(&self, name: &str) -> Option<i64> {
        self.attributes.get(name).and_then(Attribute::as_i64)
    }
}

impl MeshReference {
    /// The mesh: itself, or the one that the module declares by this name, if it does.
    pub fn mesh<'a>(&'a self, module: &'a Module) -> Option<&'a Mesh> {
        match self {
            MeshReference::Symbol(name) => module.mesh(name),
            MeshReference::Mesh(mesh) => Some(mesh),
        }
    }
}

impl Function {
    /// The entry block's arguments; empty in a declaration.
    pub fn arguments(&self) -> &[ValueId] {
        self.body.entry().map_or(&[], |entry| &*self.body.block(entry).arguments)
    }

    /// Types of the arguments.
    pub fn argument_types(&self) -> &[Type] {
        &self.ty.inputs
    }

    /// Types of the results.
    pub fn result_types(&self) -> &[Type] {
        &self.ty.results
    }

    /// Attribute `name` of argument `index`.
    pub fn argument_attribute(&self, index: usize, name: &str) -> Option<&Attribute> {
        self.argument_attributes.get(index)?.get(name)
    }

    /// Attribute `name` of result `index`.
    pub fn result_attribute(&self, index: usize, name: &str) -> Option<&Attribute> {
        self.result_attributes.get(index)?.get(name)
    }

    /// The operations of the entry block in the order in which they run; none in a declaration.
    ///
    /// Operations of nested regions, such as those of a `while`, are not among them: [`Body::all_ops`] has them too.
    pub fn ops(&self) -> impl DoubleEndedIterator<Item = (OpId, &Operation)> {
        self.body.entry().into_iter().flat_map(|entry| self.body.block_ops(entry))
    }

    /// The values that the function returns: the operands of the entry block's terminator.
    pub fn returned(&self) -> &[ValueId] {
        let Some(&last) = self.body.entry().and_then(|entry| self.body.block(entry).ops.last()) else {
            return &[];
        };
        match &self.body.op(last).kind {
            Op::FuncReturn(_) => &self.body.op(last).operands,
            _ => &[],
        }
    }
}
