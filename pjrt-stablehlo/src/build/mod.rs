//! Building programs: [`Builder`] adds operations to a function, with result types inferred.
//!
//! ```
//! use pjrt_stablehlo::Module;
//! use pjrt_stablehlo::build::Builder;
//! use pjrt_stablehlo::ir::{ElementType, OpCode, TensorType};
//!
//! // Softmax over the last dimension.
//! let ty = TensorType::new(ElementType::F32, [4, 8]);
//! let mut b = Builder::new([ty.clone().into()]);
//! let x = b.argument(0);
//! let greatest = b.reduce(x, &[1], OpCode::Maximum, f64::NEG_INFINITY);
//! let greatest = b.broadcast(greatest, &[0], ty.dims());
//! let shifted = b.subtract(x, greatest);
//! let powers = b.exponential(shifted);
//! let sum = b.reduce(powers, &[1], OpCode::Add, 0.0);
//! let sum = b.broadcast(sum, &[0], ty.dims());
//! let result = b.divide(powers, sum);
//!
//! let mut module = Module::new();
//! module.add_function(b.finish("main", &[result])?).expect("the only function");
//! pjrt_stablehlo::verify(&module)?;
//! let text = module.to_string();
//! let line = r#"%5 = "stablehlo.subtract"(%arg0, %4) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>"#;
//! assert!(text.contains(line), "{text}");
//! # Ok::<(), pjrt_stablehlo::Error>(())
//! ```
//!
//! # Operations and their types
//!
//! [`Builder::op`] takes any operation of the table, as its struct in [`ops`](crate::ir::ops), and infers the types of its
//! results as [`infer_result_types`](crate::infer_result_types) does. There are methods for operations that many programs
//! have: elementwise ones by their StableHLO name, constants, and movements of elements. Types that do not follow from the
//! operands, such as that of `dot_general`, are given to [`Builder::op_of_type`].
//!
//! ```
//! use pjrt_stablehlo::build::Builder;
//! use pjrt_stablehlo::ir::{ComparisonDirection, ElementType, TensorType, Type, ops};
//!
//! let ty = TensorType::new(ElementType::F32, [2, 3]);
//! let mut b = Builder::new([ty.into()]);
//! let transpose = ops::Transpose { permutation: [1, 0].into() };
//! let y = b.op(transpose, &[b.argument(0)]);
//! assert_eq!(b.tensor(y).to_string(), "tensor<3x2xf32>");
//!
//! // Operations with regions, and with any number of results: a loop that counts to ten.
//! let counter: Type = TensorType::new(ElementType::I32, []).into();
//! let start = b.number_of_type(0.0, TensorType::new(ElementType::I32, []));
//! let count = b.op_with_regions(ops::While {}, &[start], |b, op| {
//!     b.region(op, [counter.clone()], |b, arguments| {
//!         vec![b.compare_with(ComparisonDirection::Lt, arguments[0], 10.0)]
//!     });
//!     b.region(op, [counter], |b, arguments| {
//!         let one = b.number(1.0, arguments[0]);
//!         vec![b.add(arguments[0], one)]
//!     });
//! });
//! let [count] = b.results(count);
//! let function = b.finish("main", &[y, count])?;
//! assert_eq!(function.result_types().len(), 2);
//! # Ok::<(), pjrt_stablehlo::Error>(())
//! ```
//!
//! # Errors
//!
//! Methods that add operations cannot fail, so that formulas can be written without looking at each step. A builder
//! keeps the first error: an operation whose operands its rules do not allow, a value that is not one of the function's,
//! a constant of unknown size. What is added afterwards has no meaning, but does not panic either; [`Builder::finish`]
//! returns the error, and [`Builder::check`] does at any time.
//!
//! ```
//! use pjrt_stablehlo::build::Builder;
//! use pjrt_stablehlo::ir::{ElementType, TensorType};
//!
//! let types = [ElementType::F32, ElementType::F64].map(|element| TensorType::new(element, [2]).into());
//! let mut b = Builder::new(types);
//! let sum = b.add(b.argument(0), b.argument(1));
//! let square = b.multiply(sum, sum);
//! let error = b.finish("main", &[square]).unwrap_err();
//! let message = "stablehlo.add (C1): operand 'rhs': expected elements of tensor<f32>, found tensor<2xf64>";
//! assert_eq!(error.to_string(), message);
//! ```
//!
//! What inference does not look at, such as types that the caller gives and attributes that no result type depends on, is
//! checked by [`verify`](crate::verify) once the function is in a module. Blocks and operations that a method is given have
//! to be the function's own: as in [`Body`](crate::ir::Body), an id that the function does not have is a panic.

mod builder;
mod constants;
mod elementwise;
mod movement;
mod regions;

pub use builder::Builder;
