//! Construction of programs: [`Builder`] adds operations to a function, and infers their result types.
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
//! [`Builder::op`] adds any operation of the op table, given as its struct in [`ops`](crate::ir::ops), and infers the
//! type of its result as [`infer_result_types`](crate::infer_result_types) does. Elementwise operations have methods
//! with their StableHLO names, and there are methods for constants and for moving elements. Types that cannot be
//! inferred from the operands, such as that of `dot_general`, are passed to [`Builder::op_of_type`].
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
//! // A loop that counts to ten: an operation with regions.
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
//! Methods that add operations do not return errors, so that formulas can be written without handling an error at each
//! step. Instead, the builder records the first error: an operation that rejects its operands, a value of another
//! function, or a constant of a dynamic size. Operations that are added after an error are meaningless, but do not
//! cause panics. [`Builder::finish`] and [`Builder::check`] return the error.
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
//! let message = "stablehlo.add (C1): operand 'rhs': expected the element type of tensor<f32>, found tensor<2xf64>";
//! assert_eq!(error.to_string(), message);
//! ```
//!
//! Inference does not check types that the caller provides, or attributes that the result type does not depend on.
//! [`verify`](crate::verify) checks them after the function has been added to a module. Blocks and operations that are
//! passed to a method must belong to the function: as in [`Body`](crate::ir::Body), an id that is out of range causes a
//! panic.

mod builder;
mod constants;
mod elementwise;
mod movement;
mod regions;

pub use builder::Builder;
