//! The op table: every operation of StableHLO, `func` and Shardy that this crate knows, in one place.
//!
//! From it come the [`Op`] enum and its structs, names, operand accessors, the decoding of attributes from every input
//! form, the printer, the structural part of the verifier, and the coverage list.

use super::define_ops::{define_ops, op_payload, op_vhlo, op_wrap, operand_accessor};
use super::{
    Attribute, AttributeError, AttributeSpec, BackendConfig, ChannelHandle, ComparisonDirection,
    ComparisonType, ConvDimensionNumbers, CustomCallApiVersion, DictionaryAttribute, DotAlgorithm,
    DotDimensionNumbers, FftType, GatherDimensionNumbers, GroupSpec, IntPairs, Ints, Layouts, Literal,
    OpInfo, Operation, OutputOperandAlias, PrecisionConfig, ReplicaGroups, ResultAccuracy, RngAlgorithm,
    RngDistribution, ScatterDimensionNumbers, Str, TensorSharding, Tilings, Trait, TransposeKind, ValueId,
    Variadicity, VhloForm, codec,
};

/// An operation that the table does not have, kept as it is: other dialects, and Shardy's rarer operations.
#[derive(Clone, Debug, PartialEq)]
pub struct OtherOp {
    /// Full name, such as `sdy.all_gather`.
    pub name: Str,
    /// All attributes that are the operation's own (its properties).
    pub properties: DictionaryAttribute,
}

// Each entry: storage of the variant (boxed keeps `Op` small), struct name = full name, vhlo(first major, first
// minor, newest form), operands, attributes (field: type = codec), regions, results, traits.
define_ops! {
    /// Magnitude.
    inline Abs = "stablehlo.abs" vhlo(0, 9, 1)
        operands(operand: One) attributes() regions() results(result: One) traits(Elementwise);
    /// Sum; logical or of booleans.
    inline Add = "stablehlo.add" vhlo(0, 9, 1)
        operands(lhs: One, rhs: One) attributes() regions() results(result: One) traits(Elementwise, SameType, Commutative);
    /// A token that is ready when all its operands are.
    inline AfterAll = "stablehlo.after_all" vhlo(0, 9, 1)
        operands(inputs: Variadic) attributes() regions() results(result: One) traits();
    /// Concatenates the operands of all processes of a group.
    boxed AllGather = "stablehlo.all_gather" vhlo(0, 9, 2)
        operands(operands: Variadic) attributes(
            /// Dimension of concatenation.
            all_gather_dim: i64 = codec::I64,
            /// Groups of processes that communicate.
            replica_groups: ReplicaGroups = codec::Groups,
            /// Channel; decides with the groups which processes they number.
            channel_handle: Option<ChannelHandle> = codec::OptionalChannel,
            /// Whether groups number devices of the whole program.
            use_global_device_ids: bool = codec::UnitFlag,
        ) regions() results(results: Variadic) traits(Collective);
    /// Reduces the operands of all processes of a group elementwise.
    boxed AllReduce = "stablehlo.all_reduce" vhlo(0, 9, 2)
        operands(operands: Variadic) attributes(
            /// Groups of processes that communicate.
            replica_groups: ReplicaGroups = codec::Groups,
            /// Channel; decides with the groups which processes they number.
            channel_handle: Option<ChannelHandle> = codec::OptionalChannel,
            /// Whether groups number devices of the whole program.
            use_global_device_ids: bool = codec::UnitFlag,
        ) regions(computation: One) results(results: Variadic) traits(Collective);
    /// Splits operands and exchanges the parts within a group.
    boxed AllToAll = "stablehlo.all_to_all" vhlo(0, 9, 2)
        operands(operands: Variadic) attributes(
            /// Dimension that is split.
            split_dimension: i64 = codec::I64,
            /// Dimension along which parts are put together.
            concat_dimension: i64 = codec::I64,
            /// Number of parts.
            split_count: i64 = codec::I64,
            /// Groups of processes that communicate.
            replica_groups: ReplicaGroups = codec::Groups,
            /// Channel; decides with the groups which processes they number.
            channel_handle: Option<ChannelHandle> = codec::OptionalChannel,
        ) regions() results(results: Variadic) traits(Collective);
    /// Logical and of booleans, bitwise and of integers.
    inline And = "stablehlo.and" vhlo(0, 9, 1)
        operands(lhs: One, rhs: One) attributes() regions() results(result: One) traits(Elementwise, SameType, Commutative);
    /// Starts the collective in its region.
    inline AsyncStart = "stablehlo.async_start" vhlo(1, 15, 1)
        operands(operands: Variadic) attributes() regions(body: One) results(result: One) traits(SideEffect);
    /// Waits for what `async_start` started.
    inline AsyncDone = "stablehlo.async_done" vhlo(1, 15, 1)
        operands(operand: One) attributes() regions() results(results: Variadic) traits(SideEffect);
    /// Angle of the point (rhs, lhs).
    inline Atan2 = "stablehlo.atan2" vhlo(0, 9, 1)
        operands(lhs: One, rhs: One) attributes() regions() results(result: One) traits(Elementwise, SameType);
    /// Gradients of `batch_norm_training`.
    inline BatchNormGrad = "stablehlo.batch_norm_grad" vhlo(0, 9, 1)
        operands(operand: One, scale: One, mean: One, variance: One, grad_output: One) attributes(
            /// Added to the variance.
            epsilon: f32 = codec::F32,
            /// Feature dimension.
            feature_index: i64 = codec::I64,
        ) regions() results(grad_operand: One, grad_scale: One, grad_offset: One) traits();
    /// Normalizes with given mean and variance.
    inline BatchNormInference = "stablehlo.batch_norm_inference" vhlo(0, 9, 1)
        operands(operand: One, scale: One, offset: One, mean: One, variance: One) attributes(
            /// Added to the variance.
            epsilon: f32 = codec::F32,
            /// Feature dimension.
            feature_index: i64 = codec::I64,
        ) regions() results(result: One) traits();
    /// Normalizes with the mean and variance of the operand.
    inline BatchNormTraining = "stablehlo.batch_norm_training" vhlo(0, 9, 1)
        operands(operand: One, scale: One, offset: One) attributes(
            /// Added to the variance.
            epsilon: f32 = codec::F32,
            /// Feature dimension.
            feature_index: i64 = codec::I64,
        ) regions() results(output: One, batch_mean: One, batch_var: One) traits();
    /// Reinterprets the bits of the operand.
    inline BitcastConvert = "stablehlo.bitcast_convert" vhlo(0, 9, 1)
        operands(operand: One) attributes() regions() results(result: One) traits();
    /// Adds dimensions in front; older programs only.
    inline Broadcast = "stablehlo.broadcast" vhlo(0, 9, 1)
        operands(operand: One) attributes(
            /// Sizes of the added dimensions.
            broadcast_sizes: Ints = codec::IntArray,
        ) regions() results(result: One) traits();
    /// Repeats the operand along dimensions.
    inline BroadcastInDim = "stablehlo.broadcast_in_dim" vhlo(0, 9, 1)
        operands(operand: One) attributes(
            /// Dimension of the result that each dimension of the operand becomes.
            broadcast_dimensions: Ints = codec::IntArray,
        ) regions() results(result: One) traits();
    /// Runs one of its regions: the one that the index says, the last when it is out of range.
    inline Case = "stablehlo.case" vhlo(0, 9, 1)
        operands(index: One) attributes() regions(branches: Variadic) results(results: Variadic) traits();
    /// Cube root.
    boxed Cbrt = "stablehlo.cbrt" vhlo(0, 9, 2)
        operands(operand: One) attributes(
            /// The accuracy asked for.
            result_accuracy: ResultAccuracy = codec::Accuracy,
        ) regions() results(result: One) traits(Elementwise, SameType);
    /// Rounds up.
    inline Ceil = "stablehlo.ceil" vhlo(0, 9, 1)
        operands(operand: One) attributes() regions() results(result: One) traits(Elementwise, SameType);
    /// Cholesky decomposition of a batch of matrices.
    inline Cholesky = "stablehlo.cholesky" vhlo(0, 9, 1)
        operands(a: One) attributes(
            /// Whether the lower triangle is read and written.
            lower: bool = codec::OptionalBool,
        ) regions() results(result: One) traits();
    /// Limits elements to a range.
    inline Clamp = "stablehlo.clamp" vhlo(0, 9, 1)
        operands(min: One, operand: One, max: One) attributes() regions() results(result: One) traits(Elementwise);
    /// Sends the operand of the first process of each group to the others.
    boxed CollectiveBroadcast = "stablehlo.collective_broadcast" vhlo(0, 16, 2)
        operands(operands: Variadic) attributes(
            /// Groups of processes that communicate.
            replica_groups: ReplicaGroups = codec::Groups,
            /// Channel; decides with the groups which processes they number.
            channel_handle: Option<ChannelHandle> = codec::OptionalChannel,
            /// Whether a further operand says which process of the group sends.
            has_dynamic_root: bool = codec::UnitFlag,
        ) regions() results(results: Variadic) traits(Collective);
    /// Sends operands from process to process.
    inline CollectivePermute = "stablehlo.collective_permute" vhlo(0, 9, 1)
        operands(operand: One) attributes(
            /// Who sends to whom.
            source_target_pairs: IntPairs = codec::PairMatrix,
            /// Channel; decides with the groups which processes they number.
            channel_handle: Option<ChannelHandle> = codec::OptionalChannel,
        ) regions() results(result: One) traits(Collective);
    /// Reduces the operands of all processes of a group; the result is for one of them.
    boxed CollectiveReduce = "stablehlo.collective_reduce" vhlo(1, 19, 1)
        operands(operands: Variadic) attributes(
            /// Groups of processes that communicate.
            replica_groups: ReplicaGroups = codec::Groups,
            /// Channel; decides with the groups which processes they number.
            channel_handle: Option<ChannelHandle> = codec::OptionalChannel,
            /// Whether groups number devices of the whole program.
            use_global_device_ids: bool = codec::UnitFlag,
            /// Whether a further operand says which process of the group receives.
            has_dynamic_root: bool = codec::UnitFlag,
        ) regions(computation: One) results(results: Variadic) traits(Collective);
    /// Compares elementwise.
    inline Compare = "stablehlo.compare" vhlo(0, 9, 1)
        operands(lhs: One, rhs: One) attributes(
            /// What is tested.
            comparison_direction: ComparisonDirection = codec::Direction,
            /// In which order.
            compare_type: ComparisonType = codec::OptionalComparisonType,
        ) regions() results(result: One) traits(Elementwise);
    /// Complex numbers from real and imaginary parts.
    inline Complex = "stablehlo.complex" vhlo(0, 9, 1)
        operands(lhs: One, rhs: One) attributes() regions() results(result: One) traits(Elementwise);
    /// An operation made of others: a function that a target may know by name.
    boxed Composite = "stablehlo.composite" vhlo(0, 19, 2)
        operands(inputs: Variadic) attributes(
            /// Name of the composite, such as `chlo.top_k`.
            name: Str = codec::Text,
            /// Attributes of the composite.
            composite_attributes: DictionaryAttribute = codec::OptionalDictionary,
            /// Function that computes the same.
            decomposition: Str = codec::Symbol,
            /// Version of the composite.
            version: i64 = codec::OptionalI32,
        ) regions(composite_regions: Variadic) results(results: Variadic) traits();
    /// Puts operands one after the other along a dimension.
    inline Concatenate = "stablehlo.concatenate" vhlo(0, 9, 1)
        operands(inputs: Variadic) attributes(
            /// The dimension.
            dimension: i64 = codec::I64,
        ) regions() results(result: One) traits();
    /// A constant.
    inline Constant = "stablehlo.constant" vhlo(0, 9, 1)
        operands() attributes(
            /// The constant.
            value: Literal = codec::Value,
        ) regions() results(output: One) traits();
    /// Converts to another element type.
    inline Convert = "stablehlo.convert" vhlo(0, 9, 1)
        operands(operand: One) attributes() regions() results(result: One) traits(Elementwise);
    /// Convolution, with strides, padding, dilation and groups.
    boxed Convolution = "stablehlo.convolution" vhlo(0, 9, 1)
        operands(lhs: One, rhs: One) attributes(
            /// Strides, one for each spatial dimension.
            window_strides: Ints = codec::Factors,
            /// Low and high padding, one pair for each spatial dimension.
            padding: IntPairs = codec::Padding,
            /// Dilation of the left operand, one for each spatial dimension.
            lhs_dilation: Ints = codec::Factors,
            /// Dilation of the kernel, one for each spatial dimension.
            rhs_dilation: Ints = codec::Factors,
            /// Whether windows are reversed, one for each spatial dimension.
            window_reversal: Box<[bool]> = codec::OptionalBoolArray,
            /// Which dimension is what.
            dimension_numbers: ConvDimensionNumbers = codec::ConvDimensions,
            /// Groups of input features.
            feature_group_count: i64 = codec::I64,
            /// Groups of batches.
            batch_group_count: i64 = codec::I64,
            /// Precision of each operand.
            precision_config: PrecisionConfig = codec::Precisions,
        ) regions() results(result: One) traits();
    /// Cosine.
    boxed Cosine = "stablehlo.cosine" vhlo(0, 9, 2)
        operands(operand: One) attributes(
            /// The accuracy asked for.
            result_accuracy: ResultAccuracy = codec::Accuracy,
        ) regions() results(result: One) traits(Elementwise, SameType);
    /// Number of leading zero bits.
    inline CountLeadingZeros = "stablehlo.count_leading_zeros" vhlo(0, 9, 1)
        operands(operand: One) attributes() regions() results(result: One) traits(Elementwise, SameType);
    /// A token; older programs only.
    inline CreateToken = "stablehlo.create_token" vhlo(0, 9, 1)
        operands() attributes() regions() results(output: One) traits();
    /// Sum over replicas; older programs only.
    inline CrossReplicaSum = "stablehlo.cross-replica-sum" vhlo(0, 9, 1)
        operands(operand: One) attributes(
            /// Groups of processes that communicate.
            replica_groups: ReplicaGroups = codec::Groups,
        ) regions() results(result: One) traits(Collective);
    /// Calls something that the target knows by name.
    boxed CustomCall = "stablehlo.custom_call" vhlo(0, 9, 2)
        operands(inputs: Variadic) attributes(
            /// Name of the target.
            call_target_name: Str = codec::Text,
            /// Whether the call does something beyond computing its results.
            has_side_effect: bool = codec::OptionalBool,
            /// Configuration.
            backend_config: BackendConfig = codec::Config,
            /// How the target is called.
            api_version: CustomCallApiVersion = codec::OptionalApiVersion,
            /// Functions that the target may call.
            called_computations: Box<[Str]> = codec::OptionalSymbols,
            /// Layouts that operands must have.
            operand_layouts: Option<Layouts> = codec::OptionalLayouts,
            /// Layouts that results must have.
            result_layouts: Option<Layouts> = codec::OptionalLayouts,
            /// Which results share memory with operands.
            output_operand_aliases: Box<[OutputOperandAlias]> = codec::Aliases,
            /// Tilings of results.
            result_tilings: Option<Tilings> = codec::OptionalTilings,
        ) regions() results(results: Variadic) traits(SideEffect);
    /// Quotient; integers round towards zero.
    inline Divide = "stablehlo.divide" vhlo(0, 9, 1)
        operands(lhs: One, rhs: One) attributes() regions() results(result: One) traits(Elementwise, SameType);
    /// Product of vectors and matrices; older programs only.
    inline Dot = "stablehlo.dot" vhlo(0, 9, 1)
        operands(lhs: One, rhs: One) attributes(
            /// Precision of each operand.
            precision_config: PrecisionConfig = codec::Precisions,
        ) regions() results(result: One) traits();
    /// Product with batching and contracting dimensions.
    boxed DotGeneral = "stablehlo.dot_general" vhlo(0, 9, 2)
        operands(lhs: One, rhs: One) attributes(
            /// Which dimensions are batched and contracted.
            dot_dimension_numbers: DotDimensionNumbers = codec::DotDimensions,
            /// Precision of each operand.
            precision_config: PrecisionConfig = codec::Precisions,
            /// How to compute.
            algorithm: Option<DotAlgorithm> = codec::Algorithm,
        ) regions() results(result: One) traits();
    /// `broadcast_in_dim` to a shape known at run time.
    inline DynamicBroadcastInDim = "stablehlo.dynamic_broadcast_in_dim" vhlo(0, 9, 1)
        operands(operand: One, output_dimensions: One) attributes(
            /// Dimension of the result that each dimension of the operand becomes.
            broadcast_dimensions: Ints = codec::IntArray,
            /// Dimensions of the operand that are known to be repeated.
            known_expanding_dimensions: Ints = codec::OptionalIntArray,
            /// Dimensions of the operand that are known not to be repeated.
            known_nonexpanding_dimensions: Ints = codec::OptionalIntArray,
        ) regions() results(result: One) traits();
    /// `convolution` with padding known at run time.
    boxed DynamicConv = "stablehlo.dynamic_conv" vhlo(0, 9, 2)
        operands(lhs: One, rhs: One, padding: One) attributes(
            /// Strides, one for each spatial dimension.
            window_strides: Ints = codec::Factors,
            /// Dilation of the left operand, one for each spatial dimension.
            lhs_dilation: Ints = codec::Factors,
            /// Dilation of the kernel, one for each spatial dimension.
            rhs_dilation: Ints = codec::Factors,
            /// Whether windows are reversed, one for each spatial dimension.
            window_reversal: Box<[bool]> = codec::OptionalBoolArray,
            /// Which dimension is what.
            dimension_numbers: ConvDimensionNumbers = codec::ConvDimensions,
            /// Groups of input features.
            feature_group_count: i64 = codec::I64,
            /// Groups of batches.
            batch_group_count: i64 = codec::I64,
            /// Precision of each operand.
            precision_config: PrecisionConfig = codec::Precisions,
        ) regions() results(result: One) traits();
    /// `gather` with slice sizes known at run time.
    boxed DynamicGather = "stablehlo.dynamic_gather" vhlo(0, 9, 2)
        operands(operand: One, start_indices: One, slice_sizes: One) attributes(
            /// How slices are found and placed.
            dimension_numbers: GatherDimensionNumbers = codec::GatherDimensions,
            /// Whether indices are known to be sorted.
            indices_are_sorted: bool = codec::OptionalBool,
        ) regions() results(result: One) traits();
    /// `iota` of a shape known at run time.
    inline DynamicIota = "stablehlo.dynamic_iota" vhlo(0, 9, 1)
        operands(output_shape: One) attributes(
            /// Dimension along which values grow.
            iota_dimension: i64 = codec::I64,
        ) regions() results(result: One) traits();
    /// `pad` with padding known at run time.
    inline DynamicPad = "stablehlo.dynamic_pad" vhlo(0, 9, 1)
        operands(operand: One, padding_value: One, edge_padding_low: One, edge_padding_high: One, interior_padding: One) attributes() regions() results(result: One) traits();
    /// `reshape` to a shape known at run time.
    inline DynamicReshape = "stablehlo.dynamic_reshape" vhlo(0, 9, 1)
        operands(operand: One, output_shape: One) attributes() regions() results(result: One) traits();
    /// A slice that starts at indices known at run time, moved to lie inside.
    inline DynamicSlice = "stablehlo.dynamic_slice" vhlo(0, 9, 1)
        operands(operand: One, start_indices: Variadic) attributes(
            /// Sizes of the slice.
            slice_sizes: Ints = codec::IntArray,
        ) regions() results(result: One) traits();
    /// Replaces a slice that starts at indices known at run time, moved to lie inside.
    inline DynamicUpdateSlice = "stablehlo.dynamic_update_slice" vhlo(0, 9, 1)
        operands(operand: One, update: One, start_indices: Variadic) attributes() regions() results(result: One) traits();
    /// Einstein summation; older programs only.
    inline Einsum = "stablehlo.einsum" vhlo(0, 9, 1)
        operands(lhs: One, rhs: One) attributes(
            /// The equation.
            einsum_config: Str = codec::Text,
        ) regions() results(result: One) traits();
    /// Exponential function.
    boxed Exponential = "stablehlo.exponential" vhlo(0, 9, 2)
        operands(operand: One) attributes(
            /// The accuracy asked for.
            result_accuracy: ResultAccuracy = codec::Accuracy,
        ) regions() results(result: One) traits(Elementwise, SameType);
    /// `exp(x) - 1`, precise near 0.
    boxed ExponentialMinusOne = "stablehlo.exponential_minus_one" vhlo(0, 9, 2)
        operands(operand: One) attributes(
            /// The accuracy asked for.
            result_accuracy: ResultAccuracy = codec::Accuracy,
        ) regions() results(result: One) traits(Elementwise, SameType);
    /// Fast Fourier transform of the last dimensions.
    inline Fft = "stablehlo.fft" vhlo(0, 9, 1)
        operands(operand: One) attributes(
            /// Kind.
            fft_type: FftType = codec::FftKind,
            /// Lengths of the transformed dimensions.
            fft_length: Ints = codec::IntArray,
        ) regions() results(result: One) traits();
    /// Rounds down.
    inline Floor = "stablehlo.floor" vhlo(0, 9, 1)
        operands(operand: One) attributes() regions() results(result: One) traits(Elementwise, SameType);
    /// Gathers slices.
    boxed Gather = "stablehlo.gather" vhlo(0, 9, 2)
        operands(operand: One, start_indices: One) attributes(
            /// How slices are found and placed.
            dimension_numbers: GatherDimensionNumbers = codec::GatherDimensions,
            /// Sizes of slices.
            slice_sizes: Ints = codec::IntArray,
            /// Whether indices are known to be sorted.
            indices_are_sorted: bool = codec::OptionalBool,
        ) regions() results(result: One) traits();
    /// Size of a dimension, as `i32`.
    inline GetDimensionSize = "stablehlo.get_dimension_size" vhlo(0, 9, 1)
        operands(operand: One) attributes(
            /// The dimension.
            dimension: i64 = codec::I64,
        ) regions() results(result: One) traits();
    /// An element of a tuple.
    inline GetTupleElement = "stablehlo.get_tuple_element" vhlo(0, 9, 1)
        operands(operand: One) attributes(
            /// Position of the element.
            index: i64 = codec::I32,
        ) regions() results(result: One) traits();
    /// Runs one of its two regions.
    inline If = "stablehlo.if" vhlo(0, 9, 1)
        operands(pred: One) attributes() regions(true_branch: One, false_branch: One) results(results: Variadic) traits();
    /// Imaginary part.
    inline Imag = "stablehlo.imag" vhlo(0, 9, 1)
        operands(operand: One) attributes() regions() results(result: One) traits(Elementwise);
    /// Reads from the infeed; the last result is a token.
    inline Infeed = "stablehlo.infeed" vhlo(0, 9, 1)
        operands(token: One) attributes(
            /// Configuration.
            infeed_config: Str = codec::OptionalText,
            /// Layouts of the results.
            layout: Option<Box<[Attribute]>> = codec::OptionalArray,
        ) regions() results(results: Variadic) traits(SideEffect);
    /// Counts from 0 along a dimension.
    inline Iota = "stablehlo.iota" vhlo(0, 9, 1)
        operands() attributes(
            /// The dimension.
            iota_dimension: i64 = codec::I64,
        ) regions() results(output: One) traits();
    /// Whether elements are neither infinite nor NaN.
    inline IsFinite = "stablehlo.is_finite" vhlo(0, 9, 1)
        operands(x: One) attributes() regions() results(y: One) traits(Elementwise);
    /// Natural logarithm.
    boxed Log = "stablehlo.log" vhlo(0, 9, 2)
        operands(operand: One) attributes(
            /// The accuracy asked for.
            result_accuracy: ResultAccuracy = codec::Accuracy,
        ) regions() results(result: One) traits(Elementwise, SameType);
    /// `log(x + 1)`, precise near 0.
    boxed LogPlusOne = "stablehlo.log_plus_one" vhlo(0, 9, 2)
        operands(operand: One) attributes(
            /// The accuracy asked for.
            result_accuracy: ResultAccuracy = codec::Accuracy,
        ) regions() results(result: One) traits(Elementwise, SameType);
    /// `1 / (1 + exp(-x))`.
    boxed Logistic = "stablehlo.logistic" vhlo(0, 9, 2)
        operands(operand: One) attributes(
            /// The accuracy asked for.
            result_accuracy: ResultAccuracy = codec::Accuracy,
        ) regions() results(result: One) traits(Elementwise, SameType);
    /// Applies its region to each element.
    inline Map = "stablehlo.map" vhlo(0, 9, 1)
        operands(inputs: Variadic) attributes(
            /// All dimensions, in order.
            dimensions: Ints = codec::IntArray,
        ) regions(computation: One) results(result: One) traits();
    /// The greater; logical or of booleans.
    inline Maximum = "stablehlo.maximum" vhlo(0, 9, 1)
        operands(lhs: One, rhs: One) attributes() regions() results(result: One) traits(Elementwise, SameType, Commutative);
    /// The lesser; logical and of booleans.
    inline Minimum = "stablehlo.minimum" vhlo(0, 9, 1)
        operands(lhs: One, rhs: One) attributes() regions() results(result: One) traits(Elementwise, SameType, Commutative);
    /// Product; logical and of booleans.
    inline Multiply = "stablehlo.multiply" vhlo(0, 9, 1)
        operands(lhs: One, rhs: One) attributes() regions() results(result: One) traits(Elementwise, SameType, Commutative);
    /// Negative.
    inline Negate = "stablehlo.negate" vhlo(0, 9, 1)
        operands(operand: One) attributes() regions() results(result: One) traits(Elementwise, SameType);
    /// Logical or bitwise negation.
    inline Not = "stablehlo.not" vhlo(0, 9, 1)
        operands(operand: One) attributes() regions() results(result: One) traits(Elementwise, SameType);
    /// Gives its operands, which no computation may be moved across.
    inline OptimizationBarrier = "stablehlo.optimization_barrier" vhlo(0, 9, 1)
        operands(operand: Variadic) attributes() regions() results(result: Variadic) traits();
    /// Logical or of booleans, bitwise or of integers.
    inline Or = "stablehlo.or" vhlo(0, 9, 1)
        operands(lhs: One, rhs: One) attributes() regions() results(result: One) traits(Elementwise, SameType, Commutative);
    /// Writes to the outfeed.
    inline Outfeed = "stablehlo.outfeed" vhlo(0, 9, 1)
        operands(inputs: Variadic, token: One) attributes(
            /// Configuration.
            outfeed_config: Str = codec::OptionalText,
        ) regions() results(result: One) traits(SideEffect);
    /// Adds elements at the edges and between elements, or removes them at the edges.
    inline Pad = "stablehlo.pad" vhlo(0, 9, 1)
        operands(operand: One, padding_value: One) attributes(
            /// Elements added before, negative to remove, for each dimension.
            edge_padding_low: Ints = codec::IntArray,
            /// Elements added after, negative to remove, for each dimension.
            edge_padding_high: Ints = codec::IntArray,
            /// Elements added between elements, for each dimension.
            interior_padding: Ints = codec::IntArray,
        ) regions() results(result: One) traits();
    /// Number of the running partition.
    inline PartitionId = "stablehlo.partition_id" vhlo(0, 9, 1)
        operands() attributes() regions() results(result: One) traits();
    /// Number of one bits.
    inline PopulationCount = "stablehlo.popcnt" vhlo(0, 9, 1)
        operands(operand: One) attributes() regions() results(result: One) traits(Elementwise, SameType);
    /// Power.
    inline Power = "stablehlo.power" vhlo(0, 9, 1)
        operands(lhs: One, rhs: One) attributes() regions() results(result: One) traits(Elementwise, SameType);
    /// Real part.
    inline Real = "stablehlo.real" vhlo(0, 9, 1)
        operands(operand: One) attributes() regions() results(result: One) traits(Elementwise);
    /// A slice whose bounds are known at run time.
    inline RealDynamicSlice = "stablehlo.real_dynamic_slice" vhlo(0, 9, 1)
        operands(operand: One, start_indices: One, limit_indices: One, strides: One) attributes() regions() results(result: One) traits();
    /// Receives from a channel; the last result is a token.
    inline Recv = "stablehlo.recv" vhlo(0, 9, 2)
        operands(token: One) attributes(
            /// Channel.
            channel_handle: ChannelHandle = codec::Channel,
            /// Whether the other side is the host.
            is_host_transfer: bool = codec::OptionalBool,
            /// Who sends to whom; empty when not given.
            source_target_pairs: IntPairs = codec::OptionalPairs,
        ) regions() results(results: Variadic) traits(SideEffect);
    /// Reduces dimensions with its region.
    inline Reduce = "stablehlo.reduce" vhlo(0, 9, 1)
        operands(inputs: Variadic, init_values: Variadic) attributes(
            /// The dimensions.
            dimensions: Ints = codec::IntArray,
        ) regions(body: One) results(results: Variadic) traits();
    /// Rounds to a float format with fewer bits.
    inline ReducePrecision = "stablehlo.reduce_precision" vhlo(0, 9, 1)
        operands(operand: One) attributes(
            /// Exponent bits of the format.
            exponent_bits: i64 = codec::I32,
            /// Mantissa bits of the format.
            mantissa_bits: i64 = codec::I32,
        ) regions() results(output: One) traits(Elementwise, SameType);
    /// `all_reduce`, of which each process keeps its part.
    boxed ReduceScatter = "stablehlo.reduce_scatter" vhlo(0, 9, 1)
        operands(operand: One) attributes(
            /// Dimension that is split.
            scatter_dimension: i64 = codec::I64,
            /// Groups of processes that communicate.
            replica_groups: ReplicaGroups = codec::Groups,
            /// Channel; decides with the groups which processes they number.
            channel_handle: Option<ChannelHandle> = codec::OptionalChannel,
            /// Whether groups number devices of the whole program.
            use_global_device_ids: bool = codec::UnitFlag,
        ) regions(computation: One) results(result: One) traits(Collective);
    /// Reduces windows with its region.
    boxed ReduceWindow = "stablehlo.reduce_window" vhlo(0, 9, 1)
        operands(inputs: Variadic, init_values: Variadic) attributes(
            /// Sizes of windows.
            window_dimensions: Ints = codec::IntArray,
            /// Strides of windows, one for each dimension.
            window_strides: Ints = codec::Factors,
            /// Dilation of the inputs, one for each dimension.
            base_dilations: Ints = codec::Factors,
            /// Dilation of windows, one for each dimension.
            window_dilations: Ints = codec::Factors,
            /// Low and high padding, one pair for each dimension.
            padding: IntPairs = codec::Padding,
        ) regions(body: One) results(results: Variadic) traits();
    /// Remainder with the sign of the dividend.
    inline Remainder = "stablehlo.remainder" vhlo(0, 9, 1)
        operands(lhs: One, rhs: One) attributes() regions() results(result: One) traits(Elementwise, SameType);
    /// Number of the running replica.
    inline ReplicaId = "stablehlo.replica_id" vhlo(0, 9, 1)
        operands() attributes() regions() results(result: One) traits();
    /// The same elements in another shape.
    inline Reshape = "stablehlo.reshape" vhlo(0, 9, 1)
        operands(operand: One) attributes() regions() results(result: One) traits();
    /// Ends a region and gives its results.
    inline Return = "stablehlo.return" vhlo(0, 9, 1)
        operands(results: Variadic) attributes() regions() results() traits(Terminator);
    /// Reverses the order along dimensions.
    inline Reverse = "stablehlo.reverse" vhlo(0, 9, 1)
        operands(operand: One) attributes(
            /// The dimensions.
            dimensions: Ints = codec::IntArray,
        ) regions() results(result: One) traits();
    /// Random numbers.
    inline Rng = "stablehlo.rng" vhlo(0, 9, 1)
        operands(a: One, b: One, shape: One) attributes(
            /// Distribution.
            rng_distribution: RngDistribution = codec::Distribution,
        ) regions() results(result: One) traits(SideEffect);
    /// Random bits from a state.
    inline RngBitGenerator = "stablehlo.rng_bit_generator" vhlo(0, 9, 1)
        operands(initial_state: One) attributes(
            /// Algorithm.
            rng_algorithm: RngAlgorithm = codec::Generator,
        ) regions() results(output_state: One, output: One) traits();
    /// Rounds to nearest, ties away from zero.
    inline RoundNearestAfz = "stablehlo.round_nearest_afz" vhlo(0, 9, 1)
        operands(operand: One) attributes() regions() results(result: One) traits(Elementwise, SameType);
    /// Rounds to nearest, ties to even.
    inline RoundNearestEven = "stablehlo.round_nearest_even" vhlo(0, 9, 1)
        operands(operand: One) attributes() regions() results(result: One) traits(Elementwise, SameType);
    /// Reciprocal square root.
    boxed Rsqrt = "stablehlo.rsqrt" vhlo(0, 9, 2)
        operands(operand: One) attributes(
            /// The accuracy asked for.
            result_accuracy: ResultAccuracy = codec::Accuracy,
        ) regions() results(result: One) traits(Elementwise, SameType);
    /// Combines updates into places of the inputs with its region.
    boxed Scatter = "stablehlo.scatter" vhlo(0, 9, 2)
        operands(inputs: Variadic, scatter_indices: One, updates: Variadic) attributes(
            /// How updates are found and placed.
            scatter_dimension_numbers: ScatterDimensionNumbers = codec::ScatterDimensions,
            /// Whether indices are known to be sorted.
            indices_are_sorted: bool = codec::OptionalBool,
            /// Whether no two updates are known to meet.
            unique_indices: bool = codec::OptionalBool,
        ) regions(update_computation: One) results(results: Variadic) traits();
    /// Elements of one operand or the other.
    inline Select = "stablehlo.select" vhlo(0, 9, 1)
        operands(pred: One, on_true: One, on_false: One) attributes() regions() results(result: One) traits(Elementwise);
    /// Selects an element in each window and combines the source into its place.
    inline SelectAndScatter = "stablehlo.select_and_scatter" vhlo(0, 9, 1)
        operands(operand: One, source: One, init_value: One) attributes(
            /// Sizes of windows.
            window_dimensions: Ints = codec::OptionalIntArray,
            /// Strides of windows, one for each dimension.
            window_strides: Ints = codec::Factors,
            /// Low and high padding, one pair for each dimension.
            padding: IntPairs = codec::Padding,
        ) regions(select: One, scatter: One) results(result: One) traits();
    /// Sends to a channel.
    inline Send = "stablehlo.send" vhlo(0, 9, 2)
        operands(inputs: Variadic, token: One) attributes(
            /// Channel.
            channel_handle: ChannelHandle = codec::Channel,
            /// Whether the other side is the host.
            is_host_transfer: bool = codec::OptionalBool,
            /// Who sends to whom; empty when not given.
            source_target_pairs: IntPairs = codec::OptionalPairs,
        ) regions() results(result: One) traits(SideEffect);
    /// Declares how much of a dimension counts.
    inline SetDimensionSize = "stablehlo.set_dimension_size" vhlo(0, 9, 1)
        operands(operand: One, size: One) attributes(
            /// The dimension.
            dimension: i64 = codec::I64,
        ) regions() results(result: One) traits();
    /// Shifts bits left.
    inline ShiftLeft = "stablehlo.shift_left" vhlo(0, 9, 1)
        operands(lhs: One, rhs: One) attributes() regions() results(result: One) traits(Elementwise, SameType);
    /// Shifts bits right, repeating the sign.
    inline ShiftRightArithmetic = "stablehlo.shift_right_arithmetic" vhlo(0, 9, 1)
        operands(lhs: One, rhs: One) attributes() regions() results(result: One) traits(Elementwise, SameType);
    /// Shifts bits right, filling with zeros.
    inline ShiftRightLogical = "stablehlo.shift_right_logical" vhlo(0, 9, 1)
        operands(lhs: One, rhs: One) attributes() regions() results(result: One) traits(Elementwise, SameType);
    /// Sign: -1, 0, 1, or NaN.
    inline Sign = "stablehlo.sign" vhlo(0, 9, 1)
        operands(operand: One) attributes() regions() results(result: One) traits(Elementwise, SameType);
    /// Sine.
    boxed Sine = "stablehlo.sine" vhlo(0, 9, 2)
        operands(operand: One) attributes(
            /// The accuracy asked for.
            result_accuracy: ResultAccuracy = codec::Accuracy,
        ) regions() results(result: One) traits(Elementwise, SameType);
    /// A slice with strides.
    inline Slice = "stablehlo.slice" vhlo(0, 9, 1)
        operands(operand: One) attributes(
            /// First index, for each dimension.
            start_indices: Ints = codec::IntArray,
            /// Index behind the last, for each dimension.
            limit_indices: Ints = codec::IntArray,
            /// Step, for each dimension.
            strides: Ints = codec::IntArray,
        ) regions() results(result: One) traits();
    /// Sorts along a dimension with its region as order.
    inline Sort = "stablehlo.sort" vhlo(0, 9, 1)
        operands(inputs: Variadic) attributes(
            /// The dimension; negative counts from the end.
            dimension: i64 = codec::SortDimension,
            /// Whether equal elements keep their order.
            is_stable: bool = codec::OptionalBool,
        ) regions(comparator: One) results(results: Variadic) traits();
    /// Square root.
    boxed Sqrt = "stablehlo.sqrt" vhlo(0, 9, 2)
        operands(operand: One) attributes(
            /// The accuracy asked for.
            result_accuracy: ResultAccuracy = codec::Accuracy,
        ) regions() results(result: One) traits(Elementwise, SameType);
    /// Difference.
    inline Subtract = "stablehlo.subtract" vhlo(0, 9, 1)
        operands(lhs: One, rhs: One) attributes() regions() results(result: One) traits(Elementwise, SameType);
    /// Tangent.
    boxed Tan = "stablehlo.tan" vhlo(1, 4, 2)
        operands(operand: One) attributes(
            /// The accuracy asked for.
            result_accuracy: ResultAccuracy = codec::Accuracy,
        ) regions() results(result: One) traits(Elementwise, SameType);
    /// Hyperbolic tangent.
    boxed Tanh = "stablehlo.tanh" vhlo(0, 9, 2)
        operands(operand: One) attributes(
            /// The accuracy asked for.
            result_accuracy: ResultAccuracy = codec::Accuracy,
        ) regions() results(result: One) traits(Elementwise, SameType);
    /// Selects slices by index; older programs only.
    inline TorchIndexSelect = "stablehlo.torch_index_select" vhlo(0, 9, 1)
        operands(operand: One, index: One) attributes(
            /// Dimension that is indexed.
            dim: i64 = codec::I64,
            /// Number of batch dimensions.
            batch_dims: i64 = codec::I64,
        ) regions() results(result: One) traits();
    /// Permutes dimensions.
    inline Transpose = "stablehlo.transpose" vhlo(0, 9, 1)
        operands(operand: One) attributes(
            /// Dimension of the operand that each dimension of the result is.
            permutation: Ints = codec::IntArray,
        ) regions() results(result: One) traits();
    /// Solves batches of triangular systems.
    boxed TriangularSolve = "stablehlo.triangular_solve" vhlo(0, 9, 1)
        operands(a: One, b: One) attributes(
            /// Whether `a` stands on the left of the unknown.
            left_side: bool = codec::Bool,
            /// Whether the lower triangle of `a` is read.
            lower: bool = codec::Bool,
            /// Whether the diagonal of `a` counts as ones.
            unit_diagonal: bool = codec::Bool,
            /// What is done with `a` first.
            transpose_a: TransposeKind = codec::TransposeCase,
        ) regions() results(result: One) traits();
    /// A tuple of its operands.
    inline Tuple = "stablehlo.tuple" vhlo(0, 9, 1)
        operands(val: Variadic) attributes() regions() results(result: One) traits();
    /// Einstein summation of one operand; older programs only.
    inline UnaryEinsum = "stablehlo.unary_einsum" vhlo(0, 9, 1)
        operands(operand: One) attributes(
            /// The equation.
            einsum_config: Str = codec::Text,
        ) regions() results(result: One) traits();
    /// Quantized numbers to floats.
    inline UniformDequantize = "stablehlo.uniform_dequantize" vhlo(0, 9, 1)
        operands(operand: One) attributes() regions() results(result: One) traits(Elementwise);
    /// Floats or quantized numbers to quantized numbers.
    inline UniformQuantize = "stablehlo.uniform_quantize" vhlo(0, 9, 1)
        operands(operand: One) attributes() regions() results(result: One) traits(Elementwise);
    /// Repeats its second region while its first gives true.
    inline While = "stablehlo.while" vhlo(0, 9, 1)
        operands(operand: Variadic) attributes() regions(cond: One, body: One) results(results: Variadic) traits();
    /// Logical or bitwise exclusive or.
    inline Xor = "stablehlo.xor" vhlo(0, 9, 1)
        operands(lhs: One, rhs: One) attributes() regions() results(result: One) traits(Elementwise, SameType, Commutative);
    /// Calls a function of the module.
    boxed FuncCall = "func.call" vhlo(0, 9, 1)
        operands(operands: Variadic) attributes(
            /// Attributes of each operand.
            arg_attrs: Option<Box<[Attribute]>> = codec::OptionalArray,
            /// The function.
            callee: Str = codec::Symbol,
            /// Whether MLIR's inliner is to leave the call alone.
            no_inline: bool = codec::UnitFlag,
            /// Attributes of each result.
            res_attrs: Option<Box<[Attribute]>> = codec::OptionalArray,
        ) regions() results(results: Variadic) traits();
    /// Ends a function and gives its results.
    inline FuncReturn = "func.return" vhlo(none)
        operands(operands: Variadic) attributes() regions() results() traits(Terminator);
    /// Gives its operand, which must be sharded so.
    boxed ShardingConstraint = "sdy.sharding_constraint" vhlo(none)
        operands(input: One) attributes(
            /// The sharding.
            sharding: TensorSharding = codec::Sharding,
        ) regions() results(result: One) traits();
    /// Gives its operand, sharded differently.
    boxed Reshard = "sdy.reshard" vhlo(none)
        operands(input: One) attributes(
            /// The sharding.
            sharding: TensorSharding = codec::Sharding,
        ) regions() results(result: One) traits();
    /// Says that its operand is sharded as the others of a group are.
    inline ShardingGroup = "sdy.sharding_group" vhlo(none)
        operands(input: One) attributes(
            /// The group.
            group_id: i64 = codec::I64,
        ) regions() results() traits(SideEffect);
    /// Runs its region on each device of some mesh axes, with that device's part of the operands.
    inline ManualComputation = "sdy.manual_computation" vhlo(none)
        operands(tensors: Variadic) attributes(
            /// Shardings of the operands.
            in_shardings: Box<[TensorSharding]> = codec::Shardings,
            /// Shardings of the results.
            out_shardings: Box<[TensorSharding]> = codec::Shardings,
            /// Axes along which the region runs once for each position.
            manual_axes: Box<[Str]> = codec::ManualAxes,
        ) regions(body: One) results(results: Variadic) traits(IsolatedFromAbove);
    /// Ends a region of a Shardy operation.
    inline SdyReturn = "sdy.return" vhlo(none)
        operands(results: Variadic) attributes() regions() results() traits(Terminator);
}
