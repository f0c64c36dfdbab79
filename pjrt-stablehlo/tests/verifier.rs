//! Rules of the verifier, each broken on purpose in a module that is built here.

use pjrt_stablehlo::ir::ops::{
    Add, BroadcastInDim, Concatenate, Constant, DotGeneral, FuncCall, FuncReturn, Gather, Iota, Reduce,
    Reshape, Return, Select, Slice, Transpose, While,
};
use pjrt_stablehlo::ir::{
    Body, DotDimensionNumbers, ElementType, Function, FunctionType, GatherDimensionNumbers, Literal,
    LiteralData, Location, LocationKind, Module, Op, OpId, TensorType, Type, ValueId,
};
use pjrt_stablehlo::verify;

fn f32s(dims: &[i64]) -> Type {
    TensorType::new(ElementType::F32, dims).into()
}

fn i32s(dims: &[i64]) -> Type {
    TensorType::new(ElementType::I32, dims).into()
}

fn i1s(dims: &[i64]) -> Type {
    TensorType::new(ElementType::I1, dims).into()
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
fn elementwise_operands_have_one_shape() {
    let add = || Op::Add(Add {});
    assert_eq!(check(add(), &[f32s(&[2]), f32s(&[2])], f32s(&[2])), "valid");
    assert_eq!(
        check(add(), &[f32s(&[2]), f32s(&[3])], f32s(&[2])),
        "stablehlo.add: operand 'rhs': expected shape [2], found tensor<3xf32> at \"here\""
    );
    assert!(check(add(), &[f32s(&[2]), i32s(&[2])], f32s(&[2])).contains("expected elements of f32"));
    assert!(check(add(), &[f32s(&[2])], f32s(&[2])).contains("expected the operands (lhs, rhs), found 1"));
    let dynamic = f32s(&[pjrt_stablehlo::ir::DYNAMIC]);
    assert_eq!(check(add(), &[dynamic, f32s(&[3])], f32s(&[3])), "valid");
}

#[test]
fn select_takes_a_predicate_for_each_or_all() {
    let select = || Op::Select(Select {});
    let values = [f32s(&[2]), f32s(&[2])];
    let check_with = |predicate: Type| check(select(), &[&[predicate], &values[..]].concat(), f32s(&[2]));
    assert_eq!(check_with(i1s(&[])), "valid");
    assert_eq!(check_with(i1s(&[2])), "valid");
    assert!(check_with(i1s(&[3])).contains("operand 'pred'"));
    assert!(check_with(i32s(&[])).contains("expected elements of i1"));
}

#[test]
fn shapes_that_do_not_fit() {
    let broadcast = |dims: &[i64]| Op::BroadcastInDim(BroadcastInDim { broadcast_dimensions: dims.into() });
    assert_eq!(check(broadcast(&[1]), &[f32s(&[3])], f32s(&[2, 3])), "valid");
    assert!(
        check(broadcast(&[0]), &[f32s(&[3])], f32s(&[2, 3]))
            .contains("expected size 1 or that of dimension 0")
    );
    assert!(
        check(broadcast(&[2]), &[f32s(&[3])], f32s(&[2, 3]))
            .contains("expected a dimension below 2, found 2")
    );
    assert!(check(Op::Reshape(Reshape {}), &[f32s(&[2, 3])], f32s(&[5])).contains("expected 6 elements"));
    let transpose = |dims: &[i64]| Op::Transpose(Transpose { permutation: dims.into() });
    assert!(check(transpose(&[0, 0]), &[f32s(&[2, 3])], f32s(&[2, 2])).contains("found 0 twice"));
    assert!(check(transpose(&[1, 0]), &[f32s(&[2, 3])], f32s(&[2, 3])).contains("expected shape [3, 2]"));
    let iota = Op::Iota(Iota { iota_dimension: 1 });
    assert!(check(iota, &[], i32s(&[4])).contains("iota_dimension: expected a dimension below 1, found 1"));
    let concatenate = Op::Concatenate(Concatenate { dimension: 0 });
    assert!(check(concatenate, &[f32s(&[2, 3]), f32s(&[2, 4])], f32s(&[4, 3])).contains("operand 1"));
}

#[test]
fn slices_stay_inside() {
    let slice = |start: i64, limit: i64, stride: i64| {
        Op::Slice(Slice {
            start_indices: [start].into(),
            limit_indices: [limit].into(),
            strides: [stride].into(),
        })
    };
    assert_eq!(check(slice(1, 8, 3), &[f32s(&[8])], f32s(&[3])), "valid");
    for (start, limit, stride) in
        [(0, 9, 1), (-1, 4, 1), (5, 4, 1), (0, 8, 0), (i64::MIN, i64::MAX, i64::MAX)]
    {
        assert!(
            check(slice(start, limit, stride), &[f32s(&[8])], f32s(&[8])).contains("expected 0 <= start")
        );
    }
}

#[test]
fn contractions_agree() {
    let dot = |numbers: DotDimensionNumbers| {
        Op::DotGeneral(Box::new(DotGeneral {
            dot_dimension_numbers: numbers,
            precision_config: Box::default(),
            algorithm: None,
        }))
    };
    let numbers = |lhs: &[i64], rhs: &[i64]| DotDimensionNumbers {
        lhs_contracting_dimensions: lhs.into(),
        rhs_contracting_dimensions: rhs.into(),
        ..DotDimensionNumbers::default()
    };
    let operands = [f32s(&[2, 3]), f32s(&[3, 4])];
    assert_eq!(check(dot(numbers(&[1], &[0])), &operands, f32s(&[2, 4])), "valid");
    assert!(check(dot(numbers(&[1], &[1])), &operands, f32s(&[2, 3])).contains("expected the same size"));
    assert!(
        check(dot(numbers(&[1], &[])), &operands, f32s(&[2, 3])).contains("expected 1 elements, found 0")
    );
    assert!(check(dot(numbers(&[1], &[0])), &operands, f32s(&[4, 2])).contains("expected shape [2, 4]"));
}

#[test]
fn gathers_index_dimensions_that_exist() {
    let gather = |numbers: GatherDimensionNumbers, sizes: &[i64]| {
        let slice_sizes = sizes.into();
        Op::Gather(Box::new(Gather { dimension_numbers: numbers, slice_sizes, indices_are_sorted: false }))
    };
    let rows = GatherDimensionNumbers {
        offset_dims: [1].into(),
        collapsed_slice_dims: [0].into(),
        start_index_map: [0].into(),
        index_vector_dim: 1,
        ..GatherDimensionNumbers::default()
    };
    let operands = [f32s(&[5, 4]), i32s(&[3, 1])];
    assert_eq!(check(gather(rows.clone(), &[1, 4]), &operands, f32s(&[3, 4])), "valid");
    assert!(check(gather(rows.clone(), &[1, 5]), &operands, f32s(&[3, 5])).contains("slice_sizes"));
    let outside = GatherDimensionNumbers { start_index_map: [7].into(), ..rows };
    assert!(check(gather(outside, &[1, 4]), &operands, f32s(&[3, 4])).contains("start_index_map"));
}

#[test]
fn constants_have_the_type_of_their_result() {
    let ty = TensorType::new(ElementType::F32, [2]);
    let value = Literal::new(ty, LiteralData::Dense(vec![0; 8].into())).unwrap();
    let constant = || Op::Constant(Constant { value: value.clone() });
    assert_eq!(check_constant(constant(), f32s(&[2])), "valid");
    assert!(
        check_constant(constant(), f32s(&[3])).contains("expected tensor<2xf32>, the type of the constant")
    );
}

fn check_constant(kind: Op, result: Type) -> String {
    check(kind, &[], result)
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
fn loops_keep_the_types_of_their_state() {
    let mut builder = Builder::new(&[i32s(&[])]);
    let start = builder.argument(0);
    let op = builder.op(Op::While(While {}), &[start], &[i32s(&[])]);
    for returned in [i32s(&[]), i32s(&[])] {
        let region = builder.body.add_region(Some(op));
        let block = builder.body.add_block(region);
        let state = builder.body.add_argument(block, returned);
        builder.body.add_op(block, Op::Return(Return {}), [state], [], here());
    }
    let result = builder.body.op(op).result();
    let text = message(builder.finish(&[result]));
    assert!(
        text.contains("region 'cond', returned values 0: expected tensor<i1>, found tensor<i32>"),
        "{text}"
    );
}

#[test]
fn functions_exist_and_do_not_call_themselves() {
    let call = |callee: &str| {
        let mut builder = Builder::new(&[]);
        builder.op(Op::FuncCall(FuncCall { callee: callee.into() }), &[], &[]);
        message(builder.finish(&[]))
    };
    assert!(call("other").contains("the module has no function 'other'"));
    assert!(call("main").contains("calls itself"));
}
