//! Rules of the verifier about the structure of modules, each violated on purpose in a module that is built here. Those of
//! single operations are in `constraints.rs`.

use pjrt_stablehlo::ir::ops::{Add, FuncCall, FuncReturn, Reduce, Return, Slice};
use pjrt_stablehlo::ir::{
    Body, ElementType, Function, FunctionType, Location, LocationKind, Module, Op, OpId, TensorType, Type,
    ValueId,
};
use pjrt_stablehlo::verify;

fn f32s(dims: &[i64]) -> Type {
    TensorType::new(ElementType::F32, dims).into()
}

fn here() -> Location {
    LocationKind::Name { name: "here".into(), child: Location::UNKNOWN }.into()
}

/// A function under construction.
struct Builder {
    body: Body,
    inputs: Vec<Type>,
}

impl Builder {
    fn new(inputs: &[Type]) -> Self {
        let mut body = Body::new();
        let entry = body.add_block(Body::ROOT);
        for input in inputs {
            body.add_argument(entry, input.clone());
        }
        Builder { body, inputs: inputs.to_vec() }
    }

    fn argument(&self, index: usize) -> ValueId {
        self.body.block(self.body.entry().unwrap()).arguments[index]
    }

    fn op(&mut self, kind: Op, operands: &[ValueId], results: &[Type]) -> OpId {
        let entry = self.body.entry().unwrap();
        self.body.add_op(entry, kind, operands, results.to_vec(), here())
    }

    fn finish(mut self, returned: &[ValueId]) -> Function {
        let results = returned.iter().map(|&value| self.body.ty(value).clone()).collect();
        self.op(Op::FuncReturn(FuncReturn {}), returned, &[]);
        let ty = FunctionType { inputs: self.inputs, results };
        Function { name: "main".into(), ty, body: self.body, ..Function::default() }
    }
}

/// The verifier's message for one operation on arguments of these types.
fn check(kind: Op, operands: &[Type], result: Type) -> String {
    let mut builder = Builder::new(operands);
    let values: Vec<_> = (0..operands.len()).map(|index| builder.argument(index)).collect();
    let op = builder.op(kind, &values, &[result]);
    let result = builder.body.op(op).result();
    message(builder.finish(&[result]))
}

fn message(function: Function) -> String {
    let mut module = Module::new();
    module.add_function(function).unwrap();
    verify(&module).map_or_else(|error| error.to_string(), |()| "valid".to_owned())
}

#[test]
fn errors_name_operation_constraint_operand_and_location() {
    let add = || Op::Add(Add {});
    assert_eq!(check(add(), &[f32s(&[2]), f32s(&[2])], f32s(&[2])), "valid");
    assert_eq!(
        check(add(), &[f32s(&[2]), f32s(&[3])], f32s(&[2])),
        "stablehlo.add (C1): operand 'rhs': expected shape [2], found tensor<3xf32> at \"here\""
    );
    assert!(check(add(), &[f32s(&[2])], f32s(&[2])).contains("expected the operands (lhs, rhs), found 1"));
}

#[test]
fn extreme_numbers_do_not_overflow() {
    let slice = |start: i64, limit: i64, stride: i64| {
        Op::Slice(Slice {
            start_indices: [start].into(),
            limit_indices: [limit].into(),
            strides: [stride].into(),
        })
    };
    assert_eq!(check(slice(1, 8, 3), &[f32s(&[8])], f32s(&[3])), "valid");
    let text = check(slice(i64::MIN, i64::MAX, i64::MAX), &[f32s(&[8])], f32s(&[8]));
    assert!(text.starts_with("stablehlo.slice (C3): "), "{text}");
}

#[test]
fn values_are_defined_before_they_are_used() {
    let mut builder = Builder::new(&[f32s(&[])]);
    let argument = builder.argument(0);
    let first = builder.op(Op::Add(Add {}), &[argument, argument], &[f32s(&[])]);
    let result = builder.body.op(first).result();
    builder.body.op_mut(first).operands[1] = result;
    assert!(message(builder.finish(&[result])).contains("not in scope"));
}

#[test]
fn values_of_a_region_stay_in_it() {
    let mut builder = Builder::new(&[f32s(&[4]), f32s(&[])]);
    let operands = [builder.argument(0), builder.argument(1)];
    let reduce = builder.op(Op::Reduce(Reduce { dimensions: [0].into() }), &operands, &[f32s(&[])]);
    let region = builder.body.add_region(Some(reduce));
    let block = builder.body.add_block(region);
    let inner = [builder.body.add_argument(block, f32s(&[])), builder.body.add_argument(block, f32s(&[]))];
    builder.body.add_op(block, Op::Return(Return {}), [inner[0]], [], here());
    let result = builder.body.op(reduce).result();
    let valid = Builder { body: builder.body.clone(), inputs: builder.inputs.clone() };
    assert_eq!(message(valid.finish(&[result])), "valid");
    assert!(message(builder.finish(&[inner[1]])).contains("not in scope"));
}

#[test]
fn blocks_end_with_their_terminator() {
    let mut builder = Builder::new(&[f32s(&[4]), f32s(&[])]);
    let operands = [builder.argument(0), builder.argument(1)];
    let reduce = builder.op(Op::Reduce(Reduce { dimensions: [0].into() }), &operands, &[f32s(&[])]);
    let region = builder.body.add_region(Some(reduce));
    let block = builder.body.add_block(region);
    let inner = [builder.body.add_argument(block, f32s(&[])), builder.body.add_argument(block, f32s(&[]))];
    builder.body.add_op(block, Op::FuncReturn(FuncReturn {}), [inner[0]], [], here());
    let result = builder.body.op(reduce).result();
    let text = message(builder.finish(&[result]));
    assert!(text.contains("expected stablehlo.return at the end of the block, found func.return"), "{text}");
}

#[test]
fn functions_exist_and_do_not_call_themselves() {
    let call = |callee: &str| {
        let mut builder = Builder::new(&[]);
        builder.op(Op::FuncCall(FuncCall::new(callee).into()), &[], &[]);
        message(builder.finish(&[]))
    };
    assert!(call("other").contains("the module has no function 'other'"));
    assert!(call("main").contains("calls itself"));
}
