//! Modules and functions.

use std::collections::HashMap;

use super::{
    Attribute, Body, DictionaryAttribute, FunctionType, Location, Mesh, MeshReference, Op, OpId, Operation,
    Str, Type, ValueId,
};

/// A program: functions, and the meshes of devices that they use.
///
/// [`parse`](crate::parse) and the passes return verified modules; see [`verify`](crate::verify) for the rules that
/// they satisfy. `Display` writes the module in MLIR's generic form, and `{:#}` adds locations.
///
/// ```
/// use pjrt_stablehlo::Module;
///
/// let text = "module @jit_f { func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> } }";
/// let module: Module = pjrt_stablehlo::parse(text.to_owned())?;
/// assert_eq!(module.name.as_deref(), Some("jit_f"));
/// assert_eq!(module.functions().len(), 1);
/// assert_eq!(module.main().unwrap().returned(), module.main().unwrap().arguments());
/// assert_eq!(module.op_counts()["func.return"], 1);
/// # Ok::<(), pjrt_stablehlo::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Module {
    /// The name, such as `jit_f`.
    pub name: Option<Str>,
    /// The attributes, such as `mhlo.num_partitions`.
    pub attributes: DictionaryAttribute,
    /// The location of the module itself.
    pub location: Location,
    /// The version of the serialized form that the module was read from, such as VHLO 1.13.7; `None` if the form has no
    /// version.
    pub source_version: Option<crate::versions::Version>,
    functions: Vec<Function>,
    meshes: Vec<MeshDeclaration>,
    symbols: HashMap<Str, usize>,
    /// For each name, the index of the first mesh with this name.
    mesh_symbols: HashMap<Str, usize>,
}

/// A mesh that a module declares with `sdy.mesh`.
#[derive(Clone, Debug, Default)]
pub struct MeshDeclaration {
    /// The symbol name.
    pub name: Str,
    /// The mesh.
    pub mesh: Mesh,
    /// The discardable attributes.
    pub attributes: DictionaryAttribute,
    /// The location of the declaration.
    pub location: Location,
}

/// The visibility of a function, which determines its possible callers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visibility {
    /// Visible outside the module.
    Public,
    /// Visible inside the module only.
    Private,
    /// Visible in the enclosing symbol tables only.
    Nested,
}

/// A function (`func.func`).
#[derive(Clone, Debug, Default)]
pub struct Function {
    /// The symbol name, such as `main`.
    pub name: Str,
    /// The visibility; `None` if the program does not state it, which means public.
    pub visibility: Option<Visibility>,
    /// The types of the arguments and results.
    pub ty: FunctionType,
    /// The attributes of each argument (`mhlo.sharding`, `tf.aliasing_output`, `jax.buffer_donor`, ...). Empty, or one
    /// dictionary for each argument.
    pub argument_attributes: Vec<DictionaryAttribute>,
    /// The attributes of each result (`jax.result_info`, ...). Empty, or one dictionary for each result.
    pub result_attributes: Vec<DictionaryAttribute>,
    /// The discardable attributes of the function.
    pub attributes: DictionaryAttribute,
    /// The body. The body of a declaration has no entry block.
    pub body: Body,
    /// The location of the function.
    pub location: Location,
}

impl Visibility {
    /// Returns the visibility with this name in MLIR's `sym_visibility`.
    pub(crate) fn from_name(name: &str) -> Option<Visibility> {
        Some(match name {
            "public" => Visibility::Public,
            "private" => Visibility::Private,
            "nested" => Visibility::Nested,
            _ => return None,
        })
    }

    /// Returns the name of the visibility in MLIR's `sym_visibility`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Visibility::Public => "public",
            Visibility::Private => "private",
            Visibility::Nested => "nested",
        }
    }
}

impl MeshDeclaration {
    /// Returns the inherent attributes of `sdy.mesh`.
    pub(crate) fn own_attributes(&self) -> Vec<(Str, Attribute)> {
        vec![
            ("mesh".into(), Attribute::Mesh(self.mesh.clone().into())),
            ("sym_name".into(), Attribute::String(self.name.clone())),
        ]
    }
}

impl Module {
    /// Creates an empty module.
    pub fn new() -> Self {
        Module::default()
    }

    /// Returns a module with the same name, attributes, location and meshes, but no functions, as the start of a
    /// rewritten module.
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

    /// Returns the functions in program order.
    pub fn functions(&self) -> &[Function] {
        &self.functions
    }

    /// Returns the function with this name; `None` if there is none.
    pub fn function(&self, name: &str) -> Option<&Function> {
        self.symbols.get(name).map(|&index| &self.functions[index])
    }

    /// Returns the index in [`Module::functions`] of the function with this name; `None` if there is none.
    pub fn function_index(&self, name: &str) -> Option<usize> {
        self.symbols.get(name).copied()
    }

    /// Returns the function at which execution starts, which is named `main`; `None` if there is none.
    pub fn main(&self) -> Option<&Function> {
        self.function("main")
    }

    /// Adds a function.
    ///
    /// # Errors
    /// Returns the function if the module has a function with the same name.
    pub fn add_function(&mut self, function: Function) -> Result<(), Box<Function>> {
        if self.symbols.contains_key(&function.name) {
            return Err(Box::new(function));
        }
        self.symbols.insert(function.name.clone(), self.functions.len());
        self.functions.push(function);
        Ok(())
    }

    /// Returns the meshes that the module declares, in program order.
    pub fn meshes(&self) -> &[MeshDeclaration] {
        &self.meshes
    }

    /// Returns the mesh with this name; `None` if the module declares none.
    pub fn mesh(&self, name: &str) -> Option<&Mesh> {
        self.mesh_symbols.get(name).map(|&index| &self.meshes[index].mesh)
    }

    /// Adds a mesh declaration.
    pub fn add_mesh(&mut self, declaration: MeshDeclaration) {
        self.mesh_symbols.entry(declaration.name.clone()).or_insert(self.meshes.len());
        self.meshes.push(declaration);
    }

    /// Returns the number of operations in all functions, including those in nested regions.
    pub fn num_ops(&self) -> usize {
        self.functions.iter().map(|function| function.body.num_ops()).sum()
    }

    /// Returns the number of occurrences of each operation in the program, by operation name.
    pub fn op_counts(&self) -> std::collections::BTreeMap<&str, usize> {
        let mut counts = std::collections::BTreeMap::new();
        for (_, op) in self.functions.iter().flat_map(|function| function.body.all_ops()) {
            *counts.entry(op.kind.name()).or_default() += 1;
        }
        counts
    }

    /// Returns the value of an integer attribute of the module, such as `mhlo.num_replicas`; `None` if there is none.
    pub fn integer_attribute(&self, name: &str) -> Option<i64> {
        self.attributes.get(name).and_then(Attribute::as_i64)
    }
}

impl MeshReference {
    /// Returns the mesh itself, or the mesh that the module declares with the name; `None` if the module declares none.
    pub fn mesh<'a>(&'a self, module: &'a Module) -> Option<&'a Mesh> {
        match self {
            MeshReference::Symbol(name) => module.mesh(name),
            MeshReference::Mesh(mesh) => Some(mesh),
        }
    }
}

impl Function {
    /// Returns the inherent attributes of `func.func` that the function states.
    pub(crate) fn own_attributes(&self) -> Vec<(Str, Attribute)> {
        let mut attributes: Vec<(Str, Attribute)> = Vec::new();
        let dictionaries = |dictionaries: &[DictionaryAttribute]| {
            Attribute::Array(dictionaries.iter().cloned().map(Attribute::Dictionary).collect())
        };
        if !self.argument_attributes.is_empty() {
            attributes.push(("arg_attrs".into(), dictionaries(&self.argument_attributes)));
        }
        attributes.push(("function_type".into(), Attribute::Type(Type::Function(self.ty.clone().into()))));
        if !self.result_attributes.is_empty() {
            attributes.push(("res_attrs".into(), dictionaries(&self.result_attributes)));
        }
        attributes.push(("sym_name".into(), Attribute::String(self.name.clone())));
        if let Some(visibility) = self.visibility {
            attributes.push(("sym_visibility".into(), visibility.name().into()));
        }
        attributes
    }

    /// Returns the arguments of the entry block; empty for a declaration.
    pub fn arguments(&self) -> &[ValueId] {
        self.body.entry().map_or(&[], |entry| &*self.body.block(entry).arguments)
    }

    /// Returns the types of the arguments.
    pub fn argument_types(&self) -> &[Type] {
        &self.ty.inputs
    }

    /// Returns the types of the results.
    pub fn result_types(&self) -> &[Type] {
        &self.ty.results
    }

    /// Returns attribute `name` of argument `index`; `None` if the argument does not have the attribute.
    pub fn argument_attribute(&self, index: usize, name: &str) -> Option<&Attribute> {
        self.argument_attributes.get(index)?.get(name)
    }

    /// Returns attribute `name` of result `index`; `None` if the result does not have the attribute.
    pub fn result_attribute(&self, index: usize, name: &str) -> Option<&Attribute> {
        self.result_attributes.get(index)?.get(name)
    }

    /// Returns the operations of the entry block in the order in which they run; none for a declaration.
    ///
    /// The operations of nested regions, such as those of a `while`, are not included; [`Body::all_ops`] includes them.
    pub fn ops(&self) -> impl DoubleEndedIterator<Item = (OpId, &Operation)> {
        self.body.entry().into_iter().flat_map(|entry| self.body.block_ops(entry))
    }

    /// Returns the values that the function returns, which are the operands of the entry block's terminator.
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
