//! The op table: every operation of StableHLO, `func` and Shardy that this crate represents with its own type.
//!
//! The table defines the [`Op`] enum and its structs, the names, the operand accessors, the decoding of attributes from
//! every input format, the printer, the structural part of the verifier, and the coverage list.
//!
//! Each operation is a struct whose fields are its attributes. Associated functions find its operands by name:
//!
//! ```
//! use pjrt_stablehlo::ir::Op;
//! use pjrt_stablehlo::ir::ops::Iota;
//!
//! let iota = Op::from(Iota { iota_dimension: 1 });
//! assert_eq!(iota.name(), "stablehlo.iota");
//!
//! let module = pjrt_stablehlo::parse(
//!     r#"func.func @main(%x: tensor<4xf32>, %from: tensor<i64>) -> tensor<2xf32> {
//!         %0 = stablehlo.dynamic_slice %x, %from, sizes = [2] : (tensor<4xf32>, tensor<i64>) -> tensor<2xf32>
//!         return %0 : tensor<2xf32>
//!     }"#
//!         .to_owned(),
//! )?;
//! let main = module.main().unwrap();
//! let (_, op) = main.ops().next().unwrap();
//! let Op::DynamicSlice(slice) = &op.kind else { panic!("expected a slice") };
//! assert_eq!(*slice.slice_sizes, [2]);
//! assert_eq!(pjrt_stablehlo::ir::ops::DynamicSlice::operand(op), main.arguments()[0]);
//! # Ok::<(), pjrt_stablehlo::Error>(())
//! ```

use super::define_ops::{define_ops, op_payload, op_vhlo, op_wrap, operand_accessor};
use super::{
    Attribute, AttributeError, AttributeSpec, BackendConfig, ChannelHandle, ComparisonDirection,
    ComparisonType, ConvDimensionNumbers, CustomCallApiVersion, DictionaryAttribute, DotAlgorithm,
    DotDimensionNumbers, FftType, GatherDimensionNumbers, GroupSpec, IntPairs, Ints, Layouts, Literal,
    OpInfo, Operation, OutputOperandAlias, PrecisionConfig, ReplicaGroups, ResultAccuracy, RngAlgorithm,
    RngDistribution, ScatterDimensionNumbers, Str, TensorSharding, Tilings, Trait, TransposeKind, ValueId,
    Variadicity, VhloForm, codec,
};

/// An operation outside the op table, in uninterpreted form: operations of other dialects, and rarely used
/// operations of Shardy.
#[derive(Clone, Debug, PartialEq)]
pub struct OtherOp {
    /// The full name, such as `sdy.all_gather`.
    pub name: Str,
    /// The inherent attributes of the operation (its properties).
    pub properties: DictionaryAttribute,
}

// Each entry has: the storage of the variant (`boxed` keeps `Op` small), struct name = operation name, vhlo(major and minor
// version of its introduction, and of the introduction of its second form), operands, attributes (field: type = codec),
// regions, results and traits.
define_ops! {
    /// Absolute value. For complex numbers, the modulus.
    inline Abs = "stablehlo.abs" vhlo(0, 9)
        operands(operand: One) attributes() regions() results(result: One) traits(Elementwise);
    /// Addition. For booleans, logical OR.
    inline Add = "stablehlo.add" vhlo(0, 9)
        operands(lhs: One, rhs: One) attributes() regions() results(result: One) traits(Elementwise, SameType, Commutative);
    /// Produces a token that is ready when all its operands are ready.
    inline AfterAll = "stablehlo.after_all" vhlo(0, 9)
        operands(inputs: Variadic) attributes() regions() results(result: One) traits();
    /// Concatenates the operands of all processes in a group.
    boxed AllGather = "stablehlo.all_gather" vhlo(0, 9, second 1, 5)
        operands(operands: Variadic) attributes(
            /// The dimension of concatenation.
            all_gather_dim: i64 = codec::I64,
            /// The groups of processes that communicate.
            replica_groups: ReplicaGroups = codec::Groups,
            /// The channel. With the groups, it determines how process ids are interpreted.
            channel_handle: Option<ChannelHandle> = codec::OptionalChannel,
            /// `true` if the groups contain ids of devices, rather than of replicas or partitions.
            use_global_device_ids: bool = codec::UnitFlag,
        ) regions() results(results: Variadic) traits(Collective);
    /// Reduces the operands of all processes in a group elementwise.
    boxed AllReduce = "stablehlo.all_reduce" vhlo(0, 9, second 1, 5)
        operands(operands: Variadic) attributes(
            /// The groups of processes that communicate.
            replica_groups: ReplicaGroups = codec::Groups,
            /// The channel. With the groups, it determines how process ids are interpreted.
            channel_handle: Option<ChannelHandle> = codec::OptionalChannel,
            /// `true` if the groups contain ids of devices, rather than of replicas or partitions.
            use_global_device_ids: bool = codec::UnitFlag,
        ) regions(computation: One) results(results: Variadic) traits(Collective);
    /// Splits the operands and exchanges the parts within a group.
    boxed AllToAll = "stablehlo.all_to_all" vhlo(0, 9, second 1, 5)
        operands(operands: Variadic) attributes(
            /// The dimension that is split.
            split_dimension: i64 = codec::I64,
            /// The dimension along which the parts are concatenated.
            concat_dimension: i64 = codec::I64,
            /// The number of parts.
            split_count: i64 = codec::I64,
            /// The groups of processes that communicate.
            replica_groups: ReplicaGroups = codec::Groups,
            /// The channel. With the groups, it determines how process ids are interpreted.
            channel_handle: Option<ChannelHandle> = codec::OptionalChannel,
        ) regions() results(results: Variadic) traits(Collective);
    /// Logical AND of booleans, bitwise AND of integers.
    inline And = "stablehlo.and" vhlo(0, 9)
        operands(lhs: One, rhs: One) attributes() regions() results(result: One) traits(Elementwise, SameType, Commutative);
    /// Starts the collective operation in its region.
    inline AsyncStart = "stablehlo.async_start" vhlo(1, 15)
        operands(operands: Variadic) attributes() regions(body: One) results(result: One) traits(SideEffect);
    /// Waits for an operation that `async_start` started.
    inline AsyncDone = "stablehlo.async_done" vhlo(1, 15)
        operands(operand: One) attributes() regions() results(results: Variadic) traits(SideEffect);
    /// Angle of the point (rhs, lhs) in radians.
    inline Atan2 = "stablehlo.atan2" vhlo(0, 9)
        operands(lhs: One, rhs: One) attributes() regions() results(result: One) traits(Elementwise, SameType);
    /// Computes the gradients of `batch_norm_training`.
    inline BatchNormGrad = "stablehlo.batch_norm_grad" vhlo(0, 9)
        operands(operand: One, scale: One, mean: One, variance: One, grad_output: One) attributes(
            /// The number that is added to the variance.
            epsilon: f32 = codec::F32,
            /// The feature dimension.
            feature_index: i64 = codec::I64,
        ) regions() results(grad_operand: One, grad_scale: One, grad_offset: One) traits();
    /// Normalizes the operand with the given mean and variance.
    inline BatchNormInference = "stablehlo.batch_norm_inference" vhlo(0, 9)
        operands(operand: One, scale: One, offset: One, mean: One, variance: One) attributes(
            /// The number that is added to the variance.
            epsilon: f32 = codec::F32,
            /// The feature dimension.
            feature_index: i64 = codec::I64,
        ) regions() results(result: One) traits();
    /// Normalizes the operand with its own mean and variance.
    inline BatchNormTraining = "stablehlo.batch_norm_training" vhlo(0, 9)
        operands(operand: One, scale: One, offset: One) attributes(
            /// The number that is added to the variance.
            epsilon: f32 = codec::F32,
            /// The feature dimension.
            feature_index: i64 = codec::I64,
        ) regions() results(output: One, batch_mean: One, batch_var: One) traits();
    /// Reinterprets the bits of the operand as another element type.
    inline BitcastConvert = "stablehlo.bitcast_convert" vhlo(0, 9)
        operands(operand: One) attributes() regions() results(result: One) traits();
    /// Adds leading dimensions. Deprecated; occurs in older programs only.
    inline Broadcast = "stablehlo.broadcast" vhlo(0, 9)
        operands(operand: One) attributes(
            /// The sizes of the added dimensions.
            broadcast_sizes: Ints = codec::IntArray,
        ) regions() results(result: One) traits();
    /// Broadcasts the operand to the shape of the result.
    inline BroadcastInDim = "stablehlo.broadcast_in_dim" vhlo(0, 9)
        operands(operand: One) attributes(
            /// For each dimension of the operand, the corresponding dimension of the result.
            broadcast_dimensions: Ints = codec::IntArray,
        ) regions() results(result: One) traits();
    /// Runs one of its regions, selected by the index. An index out of range selects the last region.
    inline Case = "stablehlo.case" vhlo(0, 9)
        operands(index: One) attributes() regions(branches: Variadic) results(results: Variadic) traits();
    /// Cube root.
    boxed Cbrt = "stablehlo.cbrt" vhlo(0, 9, second 1, 10)
        operands(operand: One) attributes(
            /// The requested accuracy.
            result_accuracy: ResultAccuracy = codec::Accuracy,
        ) regions() results(result: One) traits(Elementwise, SameType);
    /// Rounds towards positive infinity.
    inline Ceil = "stablehlo.ceil" vhlo(0, 9)
        operands(operand: One) attributes() regions() results(result: One) traits(Elementwise, SameType);
    /// Computes the Cholesky decomposition of a batch of matrices.
    inline Cholesky = "stablehlo.cholesky" vhlo(0, 9)
        operands(a: One) attributes(
            /// `true` for the lower triangle, `false` for the upper one.
            lower: bool = codec::OptionalBool,
        ) regions() results(result: One) traits();
    /// Clamps elements to a range, whose bounds have the shape of the operand, or are scalars.
    inline Clamp = "stablehlo.clamp" vhlo(0, 9)
        operands(min: One, operand: One, max: One) attributes() regions() results(result: One) traits(Elementwise);
    /// Sends the operand of the first process of each group to the others.
    boxed CollectiveBroadcast = "stablehlo.collective_broadcast" vhlo(0, 16, second 1, 20)
        operands(operands: Variadic) attributes(
            /// The groups of processes that communicate.
            replica_groups: ReplicaGroups = codec::Groups,
            /// The channel. With the groups, it determines how process ids are interpreted.
            channel_handle: Option<ChannelHandle> = codec::OptionalChannel,
            /// `true` if a further operand contains the position of the sending process in its group.
            has_dynamic_root: bool = codec::UnitFlag,
        ) regions() results(results: Variadic) traits(Collective);
    /// Sends operands between pairs of processes.
    inline CollectivePermute = "stablehlo.collective_permute" vhlo(0, 9)
        operands(operand: One) attributes(
            /// The pairs of sending and receiving processes.
            source_target_pairs: IntPairs = codec::PairMatrix,
            /// The channel. With the groups, it determines how process ids are interpreted.
            channel_handle: Option<ChannelHandle> = codec::OptionalChannel,
        ) regions() results(result: One) traits(Collective);
    /// Reduces the operands of all processes in a group. One of the processes receives the result.
    boxed CollectiveReduce = "stablehlo.collective_reduce" vhlo(1, 19)
        operands(operands: Variadic) attributes(
            /// The groups of processes that communicate.
            replica_groups: ReplicaGroups = codec::Groups,
            /// The channel. With the groups, it determines how process ids are interpreted.
            channel_handle: Option<ChannelHandle> = codec::OptionalChannel,
            /// `true` if the groups contain ids of devices, rather than of replicas or partitions.
            use_global_device_ids: bool = codec::UnitFlag,
            /// `true` if a further operand contains the position of the receiving process in its group.
            has_dynamic_root: bool = codec::UnitFlag,
        ) regions(computation: One) results(results: Variadic) traits(Collective);
    /// Compares elementwise.
    inline Compare = "stablehlo.compare" vhlo(0, 9)
        operands(lhs: One, rhs: One) attributes(
            /// The comparison to perform.
            comparison_direction: ComparisonDirection = codec::Direction,
            /// The order that the comparison uses.
            compare_type: ComparisonType = codec::OptionalComparisonType,
        ) regions() results(result: One) traits(Elementwise);
    /// Combines real and imaginary parts into complex numbers.
    inline Complex = "stablehlo.complex" vhlo(0, 9)
        operands(lhs: One, rhs: One) attributes() regions() results(result: One) traits(Elementwise);
    /// A named operation, with a function that computes it for targets that do not implement it.
    boxed Composite = "stablehlo.composite" vhlo(0, 19, second 1, 14)
        operands(inputs: Variadic) attributes(
            /// The name of the composite, such as `chlo.top_k`.
            name: Str = codec::Text,
            /// The attributes of the composite.
            composite_attributes: DictionaryAttribute = codec::OptionalDictionary,
            /// The name of the function that computes the same results.
            decomposition: Str = codec::Symbol,
            /// The version of the composite.
            version: i64 = codec::OptionalI32,
        ) regions(composite_regions: Variadic) results(results: Variadic) traits();
    /// Concatenates the operands along a dimension.
    inline Concatenate = "stablehlo.concatenate" vhlo(0, 9)
        operands(inputs: Variadic) attributes(
            /// The dimension.
            dimension: i64 = codec::I64,
        ) regions() results(result: One) traits();
    /// A constant tensor.
    inline Constant = "stablehlo.constant" vhlo(0, 9)
        operands() attributes(
            /// The value of the tensor.
            value: Literal = codec::Value,
        ) regions() results(output: One) traits();
    /// Converts elements to another element type.
    inline Convert = "stablehlo.convert" vhlo(0, 9)
        operands(operand: One) attributes() regions() results(result: One) traits(Elementwise);
    /// Convolution with strides, padding, dilation and groups.
    boxed Convolution = "stablehlo.convolution" vhlo(0, 9)
        operands(lhs: One, rhs: One) attributes(
            /// The strides, one for each spatial dimension.
            window_strides: Ints = codec::Factors,
            /// The low and high padding, one pair for each spatial dimension.
            padding: IntPairs = codec::Padding,
            /// The dilation of the left operand, one factor for each spatial dimension.
            lhs_dilation: Ints = codec::Factors,
            /// The dilation of the kernel, one factor for each spatial dimension.
            rhs_dilation: Ints = codec::Factors,
            /// `true` for each spatial dimension along which the kernel is reversed.
            window_reversal: Box<[bool]> = codec::OptionalBoolArray,
            /// The roles of the dimensions of the operands and the result.
            dimension_numbers: ConvDimensionNumbers = codec::ConvDimensions,
            /// The number of groups of input features.
            feature_group_count: i64 = codec::I64,
            /// The number of groups of the batch.
            batch_group_count: i64 = codec::I64,
            /// The precision of each operand.
            precision_config: PrecisionConfig = codec::Precisions,
        ) regions() results(result: One) traits();
    /// Cosine.
    boxed Cosine = "stablehlo.cosine" vhlo(0, 9, second 1, 10)
        operands(operand: One) attributes(
            /// The requested accuracy.
            result_accuracy: ResultAccuracy = codec::Accuracy,
        ) regions() results(result: One) traits(Elementwise, SameType);
    /// Counts the leading zero bits.
    inline CountLeadingZeros = "stablehlo.count_leading_zeros" vhlo(0, 9)
        operands(operand: One) attributes() regions() results(result: One) traits(Elementwise, SameType);
    /// Creates a token. Deprecated; occurs in older programs only.
    inline CreateToken = "stablehlo.create_token" vhlo(0, 9)
        operands() attributes() regions() results(output: One) traits();
    /// Sum over replicas. Deprecated; occurs in older programs only.
    inline CrossReplicaSum = "stablehlo.cross-replica-sum" vhlo(0, 9)
        operands(operand: One) attributes(
            /// The groups of processes that communicate.
            replica_groups: ReplicaGroups = codec::Groups,
        ) regions() results(result: One) traits(Collective);
    /// Calls a function that the target identifies by name.
    boxed CustomCall = "stablehlo.custom_call" vhlo(0, 9, second 1, 18)
        operands(inputs: Variadic) attributes(
            /// The name of the called function.
            call_target_name: Str = codec::Text,
            /// `true` if the call has effects other than computing its results.
            has_side_effect: bool = codec::OptionalBool,
            /// The configuration of the call.
            backend_config: BackendConfig = codec::Config,
            /// The calling convention.
            api_version: CustomCallApiVersion = codec::OptionalApiVersion,
            /// The functions that the target may call.
            called_computations: Box<[Str]> = codec::OptionalSymbols,
            /// The layouts that the operands must have.
            operand_layouts: Option<Layouts> = codec::OptionalLayouts,
            /// The layouts that the results must have.
            result_layouts: Option<Layouts> = codec::OptionalLayouts,
            /// The results that share memory with operands.
            output_operand_aliases: Box<[OutputOperandAlias]> = codec::Aliases,
            /// The tilings of the results.
            result_tilings: Option<Tilings> = codec::OptionalTilings,
        ) regions() results(results: Variadic) traits(SideEffect);
    /// Division. For integers, rounds towards zero.
    inline Divide = "stablehlo.divide" vhlo(0, 9)
        operands(lhs: One, rhs: One) attributes() regions() results(result: One) traits(Elementwise, SameType);
    /// Product of vectors and matrices. Deprecated; occurs in older programs only.
    inline Dot = "stablehlo.dot" vhlo(0, 9)
        operands(lhs: One, rhs: One) attributes(
            /// The precision of each operand.
            precision_config: PrecisionConfig = codec::Precisions,
        ) regions() results(result: One) traits();
    /// Dot product with batching and contracting dimensions.
    boxed DotGeneral = "stablehlo.dot_general" vhlo(0, 9, second 1, 6)
        operands(lhs: One, rhs: One) attributes(
            /// The batching and contracting dimensions.
            dot_dimension_numbers: DotDimensionNumbers = codec::DotDimensions,
            /// The precision of each operand.
            precision_config: PrecisionConfig = codec::Precisions,
            /// The algorithm that must be used; `None` if the choice is the implementation's.
            algorithm: Option<DotAlgorithm> = codec::Algorithm,
        ) regions() results(result: One) traits();
    /// `broadcast_in_dim` to a shape specified by an operand.
    inline DynamicBroadcastInDim = "stablehlo.dynamic_broadcast_in_dim" vhlo(0, 9)
        operands(operand: One, output_dimensions: One) attributes(
            /// For each dimension of the operand, the corresponding dimension of the result.
            broadcast_dimensions: Ints = codec::IntArray,
            /// The dimensions of the operand that are known to be repeated.
            known_expanding_dimensions: Ints = codec::OptionalIntArray,
            /// The dimensions of the operand that are known not to be repeated.
            known_nonexpanding_dimensions: Ints = codec::OptionalIntArray,
        ) regions() results(result: One) traits();
    /// `convolution` with padding specified by an operand.
    boxed DynamicConv = "stablehlo.dynamic_conv" vhlo(0, 9, second 0, 20)
        operands(lhs: One, rhs: One, padding: One) attributes(
            /// The strides, one for each spatial dimension.
            window_strides: Ints = codec::Factors,
            /// The dilation of the left operand, one factor for each spatial dimension.
            lhs_dilation: Ints = codec::Factors,
            /// The dilation of the kernel, one factor for each spatial dimension.
            rhs_dilation: Ints = codec::Factors,
            /// `true` for each spatial dimension along which the kernel is reversed.
            window_reversal: Box<[bool]> = codec::OptionalBoolArray,
            /// The roles of the dimensions of the operands and the result.
            dimension_numbers: ConvDimensionNumbers = codec::ConvDimensions,
            /// The number of groups of input features.
            feature_group_count: i64 = codec::I64,
            /// The number of groups of the batch.
            batch_group_count: i64 = codec::I64,
            /// The precision of each operand.
            precision_config: PrecisionConfig = codec::Precisions,
        ) regions() results(result: One) traits();
    /// `gather` with slice sizes specified by an operand.
    boxed DynamicGather = "stablehlo.dynamic_gather" vhlo(0, 9, second 1, 1)
        operands(operand: One, start_indices: One, slice_sizes: One) attributes(
            /// The roles of the dimensions of the operands and the result.
            dimension_numbers: GatherDimensionNumbers = codec::GatherDimensions,
            /// `true` if the indices are known to be sorted.
            indices_are_sorted: bool = codec::OptionalBool,
        ) regions() results(result: One) traits();
    /// `iota` of a shape specified by an operand.
    inline DynamicIota = "stablehlo.dynamic_iota" vhlo(0, 9)
        operands(output_shape: One) attributes(
            /// The dimension along which values increase.
            iota_dimension: i64 = codec::I64,
        ) regions() results(result: One) traits();
    /// `pad` with padding specified by operands.
    inline DynamicPad = "stablehlo.dynamic_pad" vhlo(0, 9)
        operands(operand: One, padding_value: One, edge_padding_low: One, edge_padding_high: One, interior_padding: One) attributes() regions() results(result: One) traits();
    /// `reshape` to a shape specified by an operand.
    inline DynamicReshape = "stablehlo.dynamic_reshape" vhlo(0, 9)
        operands(operand: One, output_shape: One) attributes() regions() results(result: One) traits();
    /// Extracts a slice that starts at indices given by operands. The start is clamped so that the slice is in bounds.
    inline DynamicSlice = "stablehlo.dynamic_slice" vhlo(0, 9)
        operands(operand: One, start_indices: Variadic) attributes(
            /// The sizes of the slice.
            slice_sizes: Ints = codec::IntArray,
        ) regions() results(result: One) traits();
    /// Replaces a slice that starts at indices given by operands. The start is clamped so that the slice is in bounds.
    inline DynamicUpdateSlice = "stablehlo.dynamic_update_slice" vhlo(0, 9)
        operands(operand: One, update: One, start_indices: Variadic) attributes() regions() results(result: One) traits();
    /// Einstein summation of two operands. Deprecated; occurs in older programs only.
    inline Einsum = "stablehlo.einsum" vhlo(0, 9)
        operands(lhs: One, rhs: One) attributes(
            /// The equation.
            einsum_config: Str = codec::Text,
        ) regions() results(result: One) traits();
    /// Exponential function.
    boxed Exponential = "stablehlo.exponential" vhlo(0, 9, second 1, 9)
        operands(operand: One) attributes(
            /// The requested accuracy.
            result_accuracy: ResultAccuracy = codec::Accuracy,
        ) regions() results(result: One) traits(Elementwise, SameType);
    /// `exp(x) - 1`, accurate near 0.
    boxed ExponentialMinusOne = "stablehlo.exponential_minus_one" vhlo(0, 9, second 1, 10)
        operands(operand: One) attributes(
            /// The requested accuracy.
            result_accuracy: ResultAccuracy = codec::Accuracy,
        ) regions() results(result: One) traits(Elementwise, SameType);
    /// Fast Fourier transform of the last dimensions.
    inline Fft = "stablehlo.fft" vhlo(0, 9)
        operands(operand: One) attributes(
            /// The kind of transform.
            fft_type: FftType = codec::FftKind,
            /// The lengths of the transformed dimensions.
            fft_length: Ints = codec::IntArray,
        ) regions() results(result: One) traits();
    /// Rounds towards negative infinity.
    inline Floor = "stablehlo.floor" vhlo(0, 9)
        operands(operand: One) attributes() regions() results(result: One) traits(Elementwise, SameType);
    /// Gathers slices of the operand.
    boxed Gather = "stablehlo.gather" vhlo(0, 9, second 1, 1)
        operands(operand: One, start_indices: One) attributes(
            /// The roles of the dimensions of the operands and the result.
            dimension_numbers: GatherDimensionNumbers = codec::GatherDimensions,
            /// The sizes of the slices.
            slice_sizes: Ints = codec::IntArray,
            /// `true` if the indices are known to be sorted.
            indices_are_sorted: bool = codec::OptionalBool,
        ) regions() results(result: One) traits();
    /// Returns the size of a dimension as `i32`.
    inline GetDimensionSize = "stablehlo.get_dimension_size" vhlo(0, 9)
        operands(operand: One) attributes(
            /// The dimension.
            dimension: i64 = codec::I64,
        ) regions() results(result: One) traits();
    /// Extracts an element of a tuple.
    inline GetTupleElement = "stablehlo.get_tuple_element" vhlo(0, 9)
        operands(operand: One) attributes(
            /// The position of the element.
            index: i64 = codec::I32,
        ) regions() results(result: One) traits();
    /// Runs one of its two regions, selected by a boolean.
    inline If = "stablehlo.if" vhlo(0, 9)
        operands(pred: One) attributes() regions(true_branch: One, false_branch: One) results(results: Variadic) traits();
    /// Imaginary part.
    inline Imag = "stablehlo.imag" vhlo(0, 9)
        operands(operand: One) attributes() regions() results(result: One) traits(Elementwise);
    /// Reads from the infeed. The last result is a token.
    inline Infeed = "stablehlo.infeed" vhlo(0, 9)
        operands(token: One) attributes(
            /// The configuration.
            infeed_config: Str = codec::OptionalText,
            /// The layouts of the results.
            layout: Option<Box<[Attribute]>> = codec::OptionalArray,
        ) regions() results(results: Variadic) traits(SideEffect);
    /// Increasing integers from 0 along a dimension.
    inline Iota = "stablehlo.iota" vhlo(0, 9)
        operands() attributes(
            /// The dimension.
            iota_dimension: i64 = codec::I64,
        ) regions() results(output: One) traits();
    /// Tests whether elements are neither infinite nor NaN.
    inline IsFinite = "stablehlo.is_finite" vhlo(0, 9)
        operands(x: One) attributes() regions() results(y: One) traits(Elementwise);
    /// Natural logarithm.
    boxed Log = "stablehlo.log" vhlo(0, 9, second 1, 10)
        operands(operand: One) attributes(
            /// The requested accuracy.
            result_accuracy: ResultAccuracy = codec::Accuracy,
        ) regions() results(result: One) traits(Elementwise, SameType);
    /// `log(x + 1)`, accurate near 0.
    boxed LogPlusOne = "stablehlo.log_plus_one" vhlo(0, 9, second 1, 10)
        operands(operand: One) attributes(
            /// The requested accuracy.
            result_accuracy: ResultAccuracy = codec::Accuracy,
        ) regions() results(result: One) traits(Elementwise, SameType);
    /// Logistic function: `1 / (1 + exp(-x))`.
    boxed Logistic = "stablehlo.logistic" vhlo(0, 9, second 1, 10)
        operands(operand: One) attributes(
            /// The requested accuracy.
            result_accuracy: ResultAccuracy = codec::Accuracy,
        ) regions() results(result: One) traits(Elementwise, SameType);
    /// Applies its region to each element.
    inline Map = "stablehlo.map" vhlo(0, 9)
        operands(inputs: Variadic) attributes(
            /// All dimensions, in ascending order.
            dimensions: Ints = codec::IntArray,
        ) regions(computation: One) results(result: One) traits();
    /// Maximum. For booleans, logical OR.
    inline Maximum = "stablehlo.maximum" vhlo(0, 9)
        operands(lhs: One, rhs: One) attributes() regions() results(result: One) traits(Elementwise, SameType, Commutative);
    /// Minimum. For booleans, logical AND.
    inline Minimum = "stablehlo.minimum" vhlo(0, 9)
        operands(lhs: One, rhs: One) attributes() regions() results(result: One) traits(Elementwise, SameType, Commutative);
    /// Multiplication. For booleans, logical AND.
    inline Multiply = "stablehlo.multiply" vhlo(0, 9)
        operands(lhs: One, rhs: One) attributes() regions() results(result: One) traits(Elementwise, SameType, Commutative);
    /// Negation.
    inline Negate = "stablehlo.negate" vhlo(0, 9)
        operands(operand: One) attributes() regions() results(result: One) traits(Elementwise, SameType);
    /// Logical NOT of booleans, bitwise NOT of integers.
    inline Not = "stablehlo.not" vhlo(0, 9)
        operands(operand: One) attributes() regions() results(result: One) traits(Elementwise, SameType);
    /// Returns its operands, and prevents the movement of computations across it.
    inline OptimizationBarrier = "stablehlo.optimization_barrier" vhlo(0, 9)
        operands(operand: Variadic) attributes() regions() results(result: Variadic) traits();
    /// Logical OR of booleans, bitwise OR of integers.
    inline Or = "stablehlo.or" vhlo(0, 9)
        operands(lhs: One, rhs: One) attributes() regions() results(result: One) traits(Elementwise, SameType, Commutative);
    /// Writes to the outfeed.
    inline Outfeed = "stablehlo.outfeed" vhlo(0, 9)
        operands(inputs: Variadic, token: One) attributes(
            /// The configuration.
            outfeed_config: Str = codec::OptionalText,
        ) regions() results(result: One) traits(SideEffect);
    /// Adds elements at the edges and between elements, or removes elements at the edges.
    inline Pad = "stablehlo.pad" vhlo(0, 9)
        operands(operand: One, padding_value: One) attributes(
            /// For each dimension, the number of elements added at the start; negative to remove elements.
            edge_padding_low: Ints = codec::IntArray,
            /// For each dimension, the number of elements added at the end; negative to remove elements.
            edge_padding_high: Ints = codec::IntArray,
            /// For each dimension, the number of elements added between elements.
            interior_padding: Ints = codec::IntArray,
        ) regions() results(result: One) traits();
    /// Returns the id of the partition that the process runs.
    inline PartitionId = "stablehlo.partition_id" vhlo(0, 9)
        operands() attributes() regions() results(result: One) traits();
    /// Counts the bits that are set.
    inline PopulationCount = "stablehlo.popcnt" vhlo(0, 9)
        operands(operand: One) attributes() regions() results(result: One) traits(Elementwise, SameType);
    /// Exponentiation.
    inline Power = "stablehlo.power" vhlo(0, 9)
        operands(lhs: One, rhs: One) attributes() regions() results(result: One) traits(Elementwise, SameType);
    /// Real part.
    inline Real = "stablehlo.real" vhlo(0, 9)
        operands(operand: One) attributes() regions() results(result: One) traits(Elementwise);
    /// Extracts a slice with bounds and strides specified by operands.
    inline RealDynamicSlice = "stablehlo.real_dynamic_slice" vhlo(0, 9)
        operands(operand: One, start_indices: One, limit_indices: One, strides: One) attributes() regions() results(result: One) traits();
    /// Receives from a channel. The last result is a token.
    inline Recv = "stablehlo.recv" vhlo(0, 9, second 1, 12)
        operands(token: One) attributes(
            /// The channel.
            channel_handle: ChannelHandle = codec::Channel,
            /// `true` if the host is the other side of the transfer.
            is_host_transfer: bool = codec::OptionalBool,
            /// The pairs of sending and receiving processes; empty if not given.
            source_target_pairs: IntPairs = codec::OptionalPairs,
        ) regions() results(results: Variadic) traits(SideEffect);
    /// Reduces dimensions with the computation in its region.
    inline Reduce = "stablehlo.reduce" vhlo(0, 9)
        operands(inputs: Variadic, init_values: Variadic) attributes(
            /// The dimensions.
            dimensions: Ints = codec::IntArray,
        ) regions(body: One) results(results: Variadic) traits();
    /// Rounds elements to the precision of a float format with fewer bits.
    inline ReducePrecision = "stablehlo.reduce_precision" vhlo(0, 9)
        operands(operand: One) attributes(
            /// The number of exponent bits of the format.
            exponent_bits: i64 = codec::I32,
            /// The number of mantissa bits of the format.
            mantissa_bits: i64 = codec::I32,
        ) regions() results(output: One) traits(Elementwise, SameType);
    /// Reduces the operands of all processes in a group elementwise. Each process receives a part of the result.
    boxed ReduceScatter = "stablehlo.reduce_scatter" vhlo(0, 9)
        operands(operand: One) attributes(
            /// The dimension along which the result is split.
            scatter_dimension: i64 = codec::I64,
            /// The groups of processes that communicate.
            replica_groups: ReplicaGroups = codec::Groups,
            /// The channel. With the groups, it determines how process ids are interpreted.
            channel_handle: Option<ChannelHandle> = codec::OptionalChannel,
            /// `true` if the groups contain ids of devices, rather than of replicas or partitions.
            use_global_device_ids: bool = codec::UnitFlag,
        ) regions(computation: One) results(result: One) traits(Collective);
    /// Reduces windows with the computation in its region.
    boxed ReduceWindow = "stablehlo.reduce_window" vhlo(0, 9)
        operands(inputs: Variadic, init_values: Variadic) attributes(
            /// The sizes of the windows.
            window_dimensions: Ints = codec::IntArray,
            /// The strides of the windows, one for each dimension.
            window_strides: Ints = codec::Factors,
            /// The dilation of the inputs, one factor for each dimension.
            base_dilations: Ints = codec::Factors,
            /// The dilation of the windows, one factor for each dimension.
            window_dilations: Ints = codec::Factors,
            /// The low and high padding, one pair for each dimension.
            padding: IntPairs = codec::Padding,
        ) regions(body: One) results(results: Variadic) traits();
    /// Remainder, with the sign of the dividend.
    inline Remainder = "stablehlo.remainder" vhlo(0, 9)
        operands(lhs: One, rhs: One) attributes() regions() results(result: One) traits(Elementwise, SameType);
    /// Returns the id of the replica that the process runs.
    inline ReplicaId = "stablehlo.replica_id" vhlo(0, 9)
        operands() attributes() regions() results(result: One) traits();
    /// Arranges the elements in a different shape, in row-major order.
    inline Reshape = "stablehlo.reshape" vhlo(0, 9)
        operands(operand: One) attributes() regions() results(result: One) traits();
    /// Terminates a region and returns its results.
    inline Return = "stablehlo.return" vhlo(0, 9)
        operands(results: Variadic) attributes() regions() results() traits(Terminator);
    /// Reverses the order of elements along dimensions.
    inline Reverse = "stablehlo.reverse" vhlo(0, 9)
        operands(operand: One) attributes(
            /// The dimensions.
            dimensions: Ints = codec::IntArray,
        ) regions() results(result: One) traits();
    /// Generates random numbers.
    inline Rng = "stablehlo.rng" vhlo(0, 9)
        operands(a: One, b: One, shape: One) attributes(
            /// The distribution.
            rng_distribution: RngDistribution = codec::Distribution,
        ) regions() results(result: One) traits(SideEffect);
    /// Generates random bits from a state.
    inline RngBitGenerator = "stablehlo.rng_bit_generator" vhlo(0, 9)
        operands(initial_state: One) attributes(
            /// The algorithm.
            rng_algorithm: RngAlgorithm = codec::Generator,
        ) regions() results(output_state: One, output: One) traits();
    /// Rounds to the nearest integer, ties away from zero.
    inline RoundNearestAfz = "stablehlo.round_nearest_afz" vhlo(0, 9)
        operands(operand: One) attributes() regions() results(result: One) traits(Elementwise, SameType);
    /// Rounds to the nearest integer, ties to even.
    inline RoundNearestEven = "stablehlo.round_nearest_even" vhlo(0, 9)
        operands(operand: One) attributes() regions() results(result: One) traits(Elementwise, SameType);
    /// Reciprocal square root.
    boxed Rsqrt = "stablehlo.rsqrt" vhlo(0, 9, second 1, 10)
        operands(operand: One) attributes(
            /// The requested accuracy.
            result_accuracy: ResultAccuracy = codec::Accuracy,
        ) regions() results(result: One) traits(Elementwise, SameType);
    /// Updates slices of the inputs, combining elements with the computation in its region.
    boxed Scatter = "stablehlo.scatter" vhlo(0, 9, second 1, 1)
        operands(inputs: Variadic, scatter_indices: One, updates: Variadic) attributes(
            /// The roles of the dimensions of the operands.
            scatter_dimension_numbers: ScatterDimensionNumbers = codec::ScatterDimensions,
            /// `true` if the indices are known to be sorted.
            indices_are_sorted: bool = codec::OptionalBool,
            /// `true` if it is known that no two updates affect the same element.
            unique_indices: bool = codec::OptionalBool,
        ) regions(update_computation: One) results(results: Variadic) traits();
    /// Selects elements of one of two operands by a predicate, which has the shape of the result or is a scalar.
    inline Select = "stablehlo.select" vhlo(0, 9)
        operands(pred: One, on_true: One, on_false: One) attributes() regions() results(result: One) traits(Elementwise);
    /// Selects an element in each window, and combines the source with it, using the computations in its regions.
    inline SelectAndScatter = "stablehlo.select_and_scatter" vhlo(0, 9)
        operands(operand: One, source: One, init_value: One) attributes(
            /// The sizes of the windows.
            window_dimensions: Ints = codec::OptionalIntArray,
            /// The strides of the windows, one for each dimension.
            window_strides: Ints = codec::Factors,
            /// The low and high padding, one pair for each dimension.
            padding: IntPairs = codec::Padding,
        ) regions(select: One, scatter: One) results(result: One) traits();
    /// Sends to a channel.
    inline Send = "stablehlo.send" vhlo(0, 9, second 1, 12)
        operands(inputs: Variadic, token: One) attributes(
            /// The channel.
            channel_handle: ChannelHandle = codec::Channel,
            /// `true` if the host is the other side of the transfer.
            is_host_transfer: bool = codec::OptionalBool,
            /// The pairs of sending and receiving processes; empty if not given.
            source_target_pairs: IntPairs = codec::OptionalPairs,
        ) regions() results(result: One) traits(SideEffect);
    /// Declares the number of valid elements along a dimension.
    inline SetDimensionSize = "stablehlo.set_dimension_size" vhlo(0, 9)
        operands(operand: One, size: One) attributes(
            /// The dimension.
            dimension: i64 = codec::I64,
        ) regions() results(result: One) traits();
    /// Shifts bits to the left.
    inline ShiftLeft = "stablehlo.shift_left" vhlo(0, 9)
        operands(lhs: One, rhs: One) attributes() regions() results(result: One) traits(Elementwise, SameType);
    /// Shifts bits to the right, replicating the sign bit.
    inline ShiftRightArithmetic = "stablehlo.shift_right_arithmetic" vhlo(0, 9)
        operands(lhs: One, rhs: One) attributes() regions() results(result: One) traits(Elementwise, SameType);
    /// Shifts bits to the right, inserting zeros.
    inline ShiftRightLogical = "stablehlo.shift_right_logical" vhlo(0, 9)
        operands(lhs: One, rhs: One) attributes() regions() results(result: One) traits(Elementwise, SameType);
    /// Sign: -1, 0, 1, or NaN. For complex numbers, the direction.
    inline Sign = "stablehlo.sign" vhlo(0, 9)
        operands(operand: One) attributes() regions() results(result: One) traits(Elementwise, SameType);
    /// Sine.
    boxed Sine = "stablehlo.sine" vhlo(0, 9, second 1, 10)
        operands(operand: One) attributes(
            /// The requested accuracy.
            result_accuracy: ResultAccuracy = codec::Accuracy,
        ) regions() results(result: One) traits(Elementwise, SameType);
    /// Extracts a slice, with strides.
    inline Slice = "stablehlo.slice" vhlo(0, 9)
        operands(operand: One) attributes(
            /// For each dimension, the first index.
            start_indices: Ints = codec::IntArray,
            /// For each dimension, the index after the last.
            limit_indices: Ints = codec::IntArray,
            /// For each dimension, the step.
            strides: Ints = codec::IntArray,
        ) regions() results(result: One) traits();
    /// Sorts along a dimension, in the order that the comparator in its region defines.
    inline Sort = "stablehlo.sort" vhlo(0, 9)
        operands(inputs: Variadic) attributes(
            /// The dimension. Negative values count from the end.
            dimension: i64 = codec::SortDimension,
            /// `true` if equal elements keep their order.
            is_stable: bool = codec::OptionalBool,
        ) regions(comparator: One) results(results: Variadic) traits();
    /// Square root.
    boxed Sqrt = "stablehlo.sqrt" vhlo(0, 9, second 1, 10)
        operands(operand: One) attributes(
            /// The requested accuracy.
            result_accuracy: ResultAccuracy = codec::Accuracy,
        ) regions() results(result: One) traits(Elementwise, SameType);
    /// Subtraction.
    inline Subtract = "stablehlo.subtract" vhlo(0, 9)
        operands(lhs: One, rhs: One) attributes() regions() results(result: One) traits(Elementwise, SameType);
    /// Tangent.
    boxed Tan = "stablehlo.tan" vhlo(1, 4, second 1, 10)
        operands(operand: One) attributes(
            /// The requested accuracy.
            result_accuracy: ResultAccuracy = codec::Accuracy,
        ) regions() results(result: One) traits(Elementwise, SameType);
    /// Hyperbolic tangent.
    boxed Tanh = "stablehlo.tanh" vhlo(0, 9, second 1, 10)
        operands(operand: One) attributes(
            /// The requested accuracy.
            result_accuracy: ResultAccuracy = codec::Accuracy,
        ) regions() results(result: One) traits(Elementwise, SameType);
    /// Selects slices by index. Deprecated; occurs in older programs only.
    inline TorchIndexSelect = "stablehlo.torch_index_select" vhlo(0, 9)
        operands(operand: One, index: One) attributes(
            /// The dimension that is indexed.
            dim: i64 = codec::I64,
            /// The number of batch dimensions.
            batch_dims: i64 = codec::I64,
        ) regions() results(result: One) traits();
    /// Permutes the dimensions.
    inline Transpose = "stablehlo.transpose" vhlo(0, 9)
        operands(operand: One) attributes(
            /// For each dimension of the result, the corresponding dimension of the operand.
            permutation: Ints = codec::IntArray,
        ) regions() results(result: One) traits();
    /// Solves batches of triangular systems of linear equations.
    boxed TriangularSolve = "stablehlo.triangular_solve" vhlo(0, 9)
        operands(a: One, b: One) attributes(
            /// `true` to solve `a * x = b`, `false` to solve `x * a = b`.
            left_side: bool = codec::Bool,
            /// `true` to read the lower triangle of `a`, `false` to read the upper one.
            lower: bool = codec::Bool,
            /// `true` if the diagonal of `a` is assumed to contain ones.
            unit_diagonal: bool = codec::Bool,
            /// The operation that is applied to `a` before solving.
            transpose_a: TransposeKind = codec::TransposeCase,
        ) regions() results(result: One) traits();
    /// Combines its operands into a tuple.
    inline Tuple = "stablehlo.tuple" vhlo(0, 9)
        operands(val: Variadic) attributes() regions() results(result: One) traits();
    /// Einstein summation of one operand. Deprecated; occurs in older programs only.
    inline UnaryEinsum = "stablehlo.unary_einsum" vhlo(0, 9)
        operands(operand: One) attributes(
            /// The equation.
            einsum_config: Str = codec::Text,
        ) regions() results(result: One) traits();
    /// Converts quantized elements to floats.
    inline UniformDequantize = "stablehlo.uniform_dequantize" vhlo(0, 9)
        operands(operand: One) attributes() regions() results(result: One) traits(Elementwise);
    /// Converts floats or quantized elements to quantized elements.
    inline UniformQuantize = "stablehlo.uniform_quantize" vhlo(0, 9)
        operands(operand: One) attributes() regions() results(result: One) traits(Elementwise);
    /// Runs its body while its condition returns `true`.
    inline While = "stablehlo.while" vhlo(0, 9)
        operands(operand: Variadic) attributes() regions(cond: One, body: One) results(results: Variadic) traits();
    /// Logical XOR of booleans, bitwise XOR of integers.
    inline Xor = "stablehlo.xor" vhlo(0, 9)
        operands(lhs: One, rhs: One) attributes() regions() results(result: One) traits(Elementwise, SameType, Commutative);
    /// Calls a function of the module.
    boxed FuncCall = "func.call" vhlo(0, 9)
        operands(operands: Variadic) attributes(
            /// The attributes of each operand.
            arg_attrs: Option<Box<[Attribute]>> = codec::OptionalArray,
            /// The name of the function.
            callee: Str = codec::Symbol,
            /// `true` if MLIR's inliner must not inline the call.
            no_inline: bool = codec::UnitFlag,
            /// The attributes of each result.
            res_attrs: Option<Box<[Attribute]>> = codec::OptionalArray,
        ) regions() results(results: Variadic) traits();
    /// Terminates a function and returns its results.
    inline FuncReturn = "func.return" vhlo(none)
        operands(operands: Variadic) attributes() regions() results() traits(Terminator);
    /// Returns its operand, and requires it to have a sharding.
    boxed ShardingConstraint = "sdy.sharding_constraint" vhlo(none)
        operands(input: One) attributes(
            /// The sharding.
            sharding: TensorSharding = codec::Sharding,
        ) regions() results(result: One) traits();
    /// Returns its operand with another sharding.
    boxed Reshard = "sdy.reshard" vhlo(none)
        operands(input: One) attributes(
            /// The sharding.
            sharding: TensorSharding = codec::Sharding,
        ) regions() results(result: One) traits();
    /// Requires its operand to have the same sharding as the other members of a group.
    inline ShardingGroup = "sdy.sharding_group" vhlo(none)
        operands(input: One) attributes(
            /// The id of the group.
            group_id: i64 = codec::I64,
        ) regions() results() traits(SideEffect);
    /// Runs its region on each device along some mesh axes, on the device's part of the operands.
    inline ManualComputation = "sdy.manual_computation" vhlo(none)
        operands(tensors: Variadic) attributes(
            /// The shardings of the operands.
            in_shardings: Box<[TensorSharding]> = codec::Shardings,
            /// The shardings of the results.
            out_shardings: Box<[TensorSharding]> = codec::Shardings,
            /// The axes along which each device runs the region on its own part.
            manual_axes: Box<[Str]> = codec::ManualAxes,
        ) regions(body: One) results(results: Variadic) traits(IsolatedFromAbove);
    /// Terminates the region of a Shardy operation.
    inline SdyReturn = "sdy.return" vhlo(none)
        operands(results: Variadic) attributes() regions() results() traits(Terminator);
}
