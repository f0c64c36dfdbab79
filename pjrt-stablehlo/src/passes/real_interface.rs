//! Replacement of complex arguments and results of `main` by arrays of their parts.

use super::functions::called_functions;
use super::rewrite::{Origins, Pass, Replacement, Rewriter, definite, rewrite, unsupported};
use crate::Error;
use crate::build::Builder;
use crate::ir::ops::Concatenate;
use crate::ir::{
    DictionaryAttribute, Function, Module, Op, Operation, Str, TensorType, Type, ValueId, Visibility,
};

/// The attributes that describe the dimensions of an argument or result.
const SHARDINGS: &[&str] = &["mhlo.sharding", "sdy.sharding"];

/// Returns a program with the same `main`, except that its arguments and results of complex numbers have one more dimension, of
/// size 2, with the real and imaginary parts. These arrays have the same bytes. Returns `None` if `main` has no complex numbers.
pub(super) fn real_interface(module: &Module) -> Result<Option<Module>, Error> {
    let Some(main) = module.main() else { return Ok(None) };
    let mut types = main.ty.inputs.iter().chain(&main.ty.results);
    if !types.any(|ty| complex_type(ty).is_some()) {
        return Ok(None);
    }
    if called_functions(module).contains(&main.name) {
        return Err(unsupported("'main' has complex arguments or results, and the program calls it")
            .in_op("func.func", &main.location));
    }
    let inner = unused_name(module, &main.name);
    let outer = wrapper(main, &inner).map_err(|error| error.in_op("func.func", &main.location))?;
    let mut result = module.without_functions();
    for function in module.functions() {
        add(&mut result, if function.name == main.name { outer.clone() } else { function.clone() })?;
    }
    add(
        &mut result,
        Function { name: inner.clone(), visibility: Some(Visibility::Private), ..main.clone() },
    )?;
    let inlined = result.function_index(&inner);
    rewrite(&result, &Inline { name: &inner }, |index| Some(index) != inlined, &mut Origins::default())
        .map(Some)
}

fn add(module: &mut Module, function: Function) -> Result<(), Error> {
    module
        .add_function(function)
        .map_err(|function| unsupported(format!("there are two functions '{}'", function.name)))
}

/// Returns a name that no function has.
fn unused_name(module: &Module, name: &str) -> Str {
    let mut unused = format!("{name}.complex");
    while module.function_index(&unused).is_some() {
        unused.push('_');
    }
    unused.into()
}

/// Returns the tensor type of a complex type.
fn complex_type(ty: &Type) -> Option<&TensorType> {
    ty.as_tensor().filter(|ty| ty.element_type().is_complex())
}

/// Returns the type of the array of the parts.
fn array_of_parts(ty: &Type) -> Result<Type, Error> {
    let Some(complex) = complex_type(ty) else { return Ok(ty.clone()) };
    definite(complex)?;
    let part = complex.element_type().complex_part().unwrap_or(complex.element_type());
    Ok(TensorType::new(part, [complex.dims(), &[2]].concat()).into())
}

/// Returns the new `main`, which calls the function `inner`.
fn wrapper(main: &Function, inner: &Str) -> Result<Function, Error> {
    let inputs = main.ty.inputs.iter().map(array_of_parts).collect::<Result<Vec<_>, Error>>()?;
    let mut b = Builder::new(inputs);
    b.set_location(main.location.clone());
    let arguments = b.arguments().into_iter().zip(&main.ty.inputs);
    let arguments: Vec<ValueId> = arguments.map(|(value, ty)| joined(&mut b, value, ty)).collect();
    for ty in &main.ty.results {
        array_of_parts(ty)?;
    }
    let results = b.call(inner.clone(), &arguments, main.ty.results.clone());
    let results: Vec<ValueId> = results.into_iter().map(|value| separated(&mut b, value)).collect();
    let function = b.finish(main.name.clone(), &results)?;
    Ok(Function {
        visibility: main.visibility,
        argument_attributes: without_shardings(&main.argument_attributes, &main.ty.inputs),
        result_attributes: without_shardings(&main.result_attributes, &main.ty.results),
        attributes: main.attributes.clone(),
        location: main.location.clone(),
        ..function
    })
}

/// Returns the complex numbers of an array of parts.
fn joined(b: &mut Builder, value: ValueId, ty: &Type) -> ValueId {
    let Some(ty) = complex_type(ty) else { return value };
    let mut part = |index: i64| {
        let part = b.slice_in_dim(value, ty.rank(), index, index + 1);
        b.reshape(part, ty.dims())
    };
    let (real, imag) = (part(0), part(1));
    b.complex(real, imag)
}

/// Returns the array of the parts of complex numbers.
fn separated(b: &mut Builder, value: ValueId) -> ValueId {
    let Some(ty) = complex_type(b.ty(value)).cloned() else { return value };
    let (real, imag) = (b.real(value), b.imag(value));
    let dims = [ty.dims(), &[1]].concat();
    let parts = [b.reshape(real, &dims), b.reshape(imag, &dims)];
    b.op(Concatenate { dimension: ty.rank() as i64 }, &parts)
}

/// Returns the attributes without the shardings of complex numbers, whose arrays have one more dimension.
fn without_shardings(attributes: &[DictionaryAttribute], types: &[Type]) -> Vec<DictionaryAttribute> {
    let mut kept = attributes.to_vec();
    for (attributes, ty) in kept.iter_mut().zip(types) {
        if complex_type(ty).is_some() {
            let others = attributes.entries().iter().filter(|(name, _)| !SHARDINGS.contains(&&**name));
            *attributes = DictionaryAttribute::new(others.cloned().collect());
        }
    }
    kept
}

/// The pass that inlines the calls of one function.
struct Inline<'n> {
    name: &'n Str,
}

impl Pass for Inline<'_> {
    fn replacement<'m>(&self, _: &mut Rewriter<'m>, op: &'m Operation) -> Result<Replacement<'m>, Error> {
        match &op.kind {
            Op::FuncCall(call) if call.callee == *self.name => Ok(Replacement::Inline(&call.callee)),
            _ => Ok(Replacement::Copy),
        }
    }
}
