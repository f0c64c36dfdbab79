//! The text of attributes.

use std::fmt::{self, Display, Formatter, Write};

use crate::ir::{
    Attribute, AxisRef, ChannelHandle, ConvDimensionNumbers, DYNAMIC, DictionaryAttribute, DimensionSharding,
    DotAlgorithm, DotDimensionNumbers, ElementKind, ElementType, EnumValue, GatherDimensionNumbers, Literal,
    LiteralData, Mesh, MeshAxis, MeshReference, OutputOperandAlias, Reduction, ReplicaGroupMeshAxes,
    ResultAccuracy, ScatterDimensionNumbers, Str, TensorSharding, fmt_finite, fmt_quoted,
};

/// The maximum number of elements that are listed. Larger constants are printed as hexadecimal bytes.
const MAX_LISTED_ELEMENTS: u64 = 64;

impl Display for Attribute {
    /// Writes the attribute in MLIR's syntax.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Attribute::Unit => f.write_str("unit"),
            Attribute::Bool(value) => write!(f, "{value}"),
            Attribute::Integer { value, ty } => {
                fmt_integer(f, *value, *ty)?;
                write!(f, " : {ty}")
            }
            Attribute::Float { value, ty } => {
                fmt_float(f, *value, *ty)?;
                write!(f, " : {ty}")
            }
            Attribute::String(text) => fmt_quoted(f, text.as_bytes()),
            Attribute::Bytes(bytes) => fmt_quoted(f, bytes),
            Attribute::Type(ty) => write!(f, "{ty}"),
            Attribute::Array(elements) => {
                fmt_list(f, "[", elements.iter(), "]", |f, element| write!(f, "{element}"))
            }
            Attribute::Dictionary(entries) => write!(f, "{entries}"),
            Attribute::Symbol(path) => fmt_symbol_path(f, path),
            Attribute::IntegerArray { ty, values } => fmt_array(f, *ty, values, fmt_array_integer),
            Attribute::FloatArray { ty, values } => fmt_array(f, *ty, values, fmt_float),
            Attribute::Elements(literal) | Attribute::Resource { value: literal, .. } => {
                write!(f, "{literal}")
            }
            Attribute::Location(location) => write!(f, "loc({location})"),
            Attribute::Enum(value) => fmt_enum(f, *value),
            Attribute::DotDimensionNumbers(numbers) => fmt_dot(f, numbers),
            Attribute::DotAlgorithm(algorithm) => fmt_algorithm(f, algorithm),
            Attribute::ConvDimensionNumbers(numbers) => fmt_convolution(f, numbers),
            Attribute::GatherDimensionNumbers(numbers) => fmt_gather(f, numbers),
            Attribute::ScatterDimensionNumbers(numbers) => fmt_scatter(f, numbers),
            Attribute::ChannelHandle(channel) => fmt_channel(f, channel),
            Attribute::ResultAccuracy(accuracy) => fmt_accuracy(f, accuracy),
            Attribute::OutputOperandAlias(alias) => fmt_alias(f, alias),
            Attribute::ReplicaGroupMeshAxes(groups) => fmt_replica_groups(f, groups),
            Attribute::Bounds(bounds) => fmt_list(f, "#stablehlo.bounds<", bounds.iter(), ">", fmt_bound),
            Attribute::Mesh(mesh) => mesh.fmt(f),
            Attribute::AxisRef(axis) => fmt_enclosed(f, "axis_ref", |f| fmt_axis(f, axis)),
            Attribute::SubAxis(sub) => write!(f, "#sdy.sub_axis_info<({}){}>", sub.pre_size, sub.size),
            Attribute::MeshAxis(axis) => fmt_enclosed(f, "mesh_axis", |f| fmt_mesh_axis(f, axis)),
            Attribute::DimensionSharding(dimension) => {
                fmt_enclosed(f, "dimension_sharding", |f| fmt_dimension(f, dimension))
            }
            Attribute::Sharding(sharding) => sharding.fmt(f),
            Attribute::ShardingPerValue(shardings) => {
                fmt_list(f, "#sdy.sharding_per_value<[", shardings.iter(), "]>", |f, sharding| {
                    fmt_sharding(f, "", sharding)
                })
            }
            Attribute::ManualAxes(axes) => {
                fmt_list(f, "#sdy<manual_axes{", axes.iter(), "}>", |f, axis| fmt_quoted(f, axis.as_bytes()))
            }
            Attribute::Opaque(text) => write!(f, "#{text}"),
        }
    }
}

/// Prints the mesh as an attribute: `#sdy.mesh<["x"=2]>`.
impl Display for Mesh {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        fmt_mesh(f, "#sdy.mesh", self)
    }
}

/// Prints the sharding as an attribute: `#sdy.sharding<@mesh, [{"x"}]>`.
impl Display for TensorSharding {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        fmt_sharding(f, "#sdy.sharding", self)
    }
}

impl Display for DictionaryAttribute {
    /// Writes the dictionary in MLIR's syntax.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        fmt_entries(f, self.entries())
    }
}

/// `@outer::@inner`.
fn fmt_symbol_path(f: &mut Formatter<'_>, path: &[Str]) -> fmt::Result {
    for (index, name) in path.iter().enumerate() {
        f.write_str(if index == 0 { "" } else { "::" })?;
        fmt_symbol(f, name)?;
    }
    Ok(())
}

/// `array<i64: 1, 2>`.
fn fmt_array<T: Copy>(
    f: &mut Formatter<'_>,
    ty: ElementType,
    values: &[T],
    element: impl Fn(&mut Formatter<'_>, T, ElementType) -> fmt::Result,
) -> fmt::Result {
    write!(f, "array<{ty}")?;
    let open = if values.is_empty() { "" } else { ": " };
    fmt_list(f, open, values.iter(), ">", |f, &value| element(f, value, ty))
}

/// Writes an element of an array of integers, or of booleans.
fn fmt_array_integer(f: &mut Formatter<'_>, value: i64, ty: ElementType) -> fmt::Result {
    if ty == ElementType::I1 { write!(f, "{}", value != 0) } else { fmt_integer(f, value, ty) }
}

/// Writes a bound of a dimension, or `?` if there is none.
fn fmt_bound(f: &mut Formatter<'_>, bound: &i64) -> fmt::Result {
    if *bound == DYNAMIC { f.write_str("?") } else { write!(f, "{bound}") }
}

/// `#stablehlo<precision HIGH>`.
fn fmt_enum(f: &mut Formatter<'_>, value: EnumValue) -> fmt::Result {
    let (name, case) = value.names();
    match value {
        EnumValue::ResultAccuracyMode(_) => write!(f, "#stablehlo.{name}<{case}>"),
        _ => write!(f, "#stablehlo<{name} {case}>"),
    }
}

/// Writes `{a = 1, b}`.
pub(super) fn fmt_entries(f: &mut Formatter<'_>, entries: &[(Str, Attribute)]) -> fmt::Result {
    fmt_list(f, "{", entries.iter(), "}", |f, (name, attribute)| {
        if is_bare(name, ".") {
            f.write_str(name)?
        } else {
            fmt_quoted(f, name.as_bytes())?
        }
        if *attribute == Attribute::Unit { Ok(()) } else { write!(f, " = {attribute}") }
    })
}

/// Returns `true` if a name needs no quotes. `further` lists the allowed characters besides letters, digits and
/// underscores.
fn is_bare(name: &str, further: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$' || further.contains(c);
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && name.chars().all(allowed)
}

/// Writes `@name`.
pub(super) fn fmt_symbol(f: &mut Formatter<'_>, name: &str) -> fmt::Result {
    f.write_str("@")?;
    if is_bare(name, ".") { f.write_str(name) } else { fmt_quoted(f, name.as_bytes()) }
}

fn fmt_list<T>(
    f: &mut Formatter<'_>,
    open: &str,
    elements: impl Iterator<Item = T>,
    close: &str,
    mut element: impl FnMut(&mut Formatter<'_>, T) -> fmt::Result,
) -> fmt::Result {
    f.write_str(open)?;
    for (index, value) in elements.enumerate() {
        f.write_str(if index == 0 { "" } else { ", " })?;
        element(f, value)?;
    }
    f.write_str(close)
}

fn fmt_ints(f: &mut Formatter<'_>, values: &[i64]) -> fmt::Result {
    fmt_list(f, "[", values.iter(), "]", |f, value| write!(f, "{value}"))
}

/// Writes `#stablehlo.name<a = [1], b = 2>`. Empty lists are omitted.
fn fmt_fields(
    f: &mut Formatter<'_>,
    name: &str,
    lists: &[(&str, &[i64])],
    last: Option<(&str, i64)>,
) -> fmt::Result {
    write!(f, "#stablehlo.{name}<")?;
    let mut separator = "";
    for (field, values) in lists {
        if !values.is_empty() {
            write!(f, "{separator}{field} = ")?;
            fmt_ints(f, values)?;
            separator = ", ";
        }
    }
    if let Some((field, value)) = last {
        write!(f, "{separator}{field} = {value}")?;
    }
    f.write_str(">")
}

fn fmt_integer(f: &mut Formatter<'_>, value: i64, ty: ElementType) -> fmt::Result {
    if ty.kind() == ElementKind::UnsignedInteger {
        write!(f, "{}", value as u64)
    } else {
        write!(f, "{value}")
    }
}

fn fmt_float(f: &mut Formatter<'_>, value: f64, ty: ElementType) -> fmt::Result {
    if !value.is_finite() {
        // MLIR writes NaN and infinities as bits.
        let (exponent, mantissa) = (ty.exponent_bits(), ty.mantissa_bits());
        let ones = ((1u64 << exponent) - 1) << mantissa;
        let quiet = if value.is_nan() { 1u64 << mantissa.saturating_sub(1) } else { 0 };
        let sign = if value.is_sign_negative() { 1u64 << (exponent + mantissa) } else { 0 };
        let digits = (ty.bits() as usize).div_ceil(4);
        return write!(f, "0x{:0digits$X}", sign | ones | quiet);
    }
    fmt_finite(f, value)
}

impl Display for Literal {
    /// Writes the literal in MLIR's syntax: `dense<1> : tensor<2xi32>`. Equal elements are written as a splat, however
    /// they are stored.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("dense<")?;
        let ty = self.ty().storage_type();
        let width = ty.byte_width().max(1);
        match self.data() {
            LiteralData::Splat(element) => fmt_element(f, ty, element)?,
            LiteralData::Dense(_) | LiteralData::Bits(_) => {
                let bytes = self.dense_bytes().map_err(|_| fmt::Error)?;
                match bytes.split_at_checked(width) {
                    // MLIR treats a list of equal elements as a splat.
                    Some((first, rest))
                        if !rest.is_empty() && rest.chunks_exact(width).all(|other| other == first) =>
                    {
                        fmt_element(f, ty, first)?;
                    }
                    _ if self.num_elements() > MAX_LISTED_ELEMENTS && ty != ElementType::I1 => {
                        fmt_hexadecimal(f, &bytes)?;
                    }
                    _ => fmt_nested(f, ty, self.ty().dims(), &bytes, width)?,
                }
            }
        }
        write!(f, "> : {}", self.storage_tensor_type())
    }
}

/// Writes `"0x0102"`.
fn fmt_hexadecimal(f: &mut Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    const CHUNK: usize = 256;
    f.write_str("\"0x")?;
    let mut text = String::with_capacity(2 * CHUNK);
    for chunk in bytes.chunks(CHUNK) {
        text.clear();
        for byte in chunk {
            text.push(DIGITS[usize::from(byte >> 4)].into());
            text.push(DIGITS[usize::from(byte & 15)].into());
        }
        f.write_str(&text)?;
    }
    f.write_str("\"")
}

/// Writes the elements with a pair of brackets for each dimension.
fn fmt_nested(
    f: &mut Formatter<'_>,
    ty: ElementType,
    dims: &[i64],
    bytes: &[u8],
    width: usize,
) -> fmt::Result {
    if bytes.is_empty() {
        return Ok(());
    }
    // The number of elements between the brackets of each dimension, from the outermost.
    let mut rows = vec![1usize; dims.len()];
    for index in (0..dims.len()).rev() {
        let inner = rows.get(index + 1).copied().unwrap_or(1);
        rows[index] = inner.saturating_mul(usize::try_from(dims[index]).unwrap_or(0));
    }
    for (index, element) in bytes.chunks_exact(width).enumerate() {
        f.write_str(if index == 0 { "" } else { ", " })?;
        rows.iter().filter(|&&row| index.is_multiple_of(row)).try_for_each(|_| f.write_str("["))?;
        fmt_element(f, ty, element)?;
        rows.iter().filter(|&&row| (index + 1).is_multiple_of(row)).try_for_each(|_| f.write_str("]"))?;
    }
    Ok(())
}

fn fmt_element(f: &mut Formatter<'_>, ty: ElementType, element: &[u8]) -> fmt::Result {
    if let Some(part) = ty.complex_part() {
        let (real, imaginary) = element.split_at(element.len() / 2);
        f.write_str("(")?;
        fmt_element(f, part, real)?;
        f.write_str(",")?;
        fmt_element(f, part, imaginary)?;
        return f.write_str(")");
    }
    if ty.is_float() {
        let value = match *element {
            [a, b, c, d] => Some(f64::from(f32::from_le_bytes([a, b, c, d]))),
            [a, b, c, d, e, g, h, i] => Some(f64::from_le_bytes([a, b, c, d, e, g, h, i])),
            _ => None,
        };
        return match value {
            Some(value) if value.is_finite() => fmt_finite(f, value),
            _ => {
                f.write_str("0x")?;
                element.iter().rev().try_for_each(|byte| write!(f, "{byte:02X}"))
            }
        };
    }
    let value = crate::ir::integer_value(ty, element);
    if ty == ElementType::I1 { write!(f, "{}", value != 0) } else { fmt_integer(f, value, ty) }
}

fn fmt_dot(f: &mut Formatter<'_>, numbers: &DotDimensionNumbers) -> fmt::Result {
    let lists: [(&str, &[i64]); 4] = [
        ("lhs_batching_dimensions", &numbers.lhs_batching_dimensions),
        ("rhs_batching_dimensions", &numbers.rhs_batching_dimensions),
        ("lhs_contracting_dimensions", &numbers.lhs_contracting_dimensions),
        ("rhs_contracting_dimensions", &numbers.rhs_contracting_dimensions),
    ];
    fmt_fields(f, "dot", &lists, None)
}

fn fmt_gather(f: &mut Formatter<'_>, numbers: &GatherDimensionNumbers) -> fmt::Result {
    let lists: [(&str, &[i64]); 5] = [
        ("offset_dims", &numbers.offset_dims),
        ("collapsed_slice_dims", &numbers.collapsed_slice_dims),
        ("operand_batching_dims", &numbers.operand_batching_dims),
        ("start_indices_batching_dims", &numbers.start_indices_batching_dims),
        ("start_index_map", &numbers.start_index_map),
    ];
    fmt_fields(f, "gather", &lists, Some(("index_vector_dim", numbers.index_vector_dim)))
}

fn fmt_scatter(f: &mut Formatter<'_>, numbers: &ScatterDimensionNumbers) -> fmt::Result {
    let lists: [(&str, &[i64]); 5] = [
        ("update_window_dims", &numbers.update_window_dims),
        ("inserted_window_dims", &numbers.inserted_window_dims),
        ("input_batching_dims", &numbers.input_batching_dims),
        ("scatter_indices_batching_dims", &numbers.scatter_indices_batching_dims),
        ("scatter_dims_to_operand_dims", &numbers.scatter_dims_to_operand_dims),
    ];
    fmt_fields(f, "scatter", &lists, Some(("index_vector_dim", numbers.index_vector_dim)))
}

fn fmt_channel(f: &mut Formatter<'_>, channel: &ChannelHandle) -> fmt::Result {
    let ChannelHandle { handle, channel_type } = channel;
    write!(f, "#stablehlo.channel_handle<handle = {handle}, type = {channel_type}>")
}

fn fmt_alias(f: &mut Formatter<'_>, alias: &OutputOperandAlias) -> fmt::Result {
    f.write_str("#stablehlo.output_operand_alias<output_tuple_indices = ")?;
    fmt_ints(f, &alias.output_tuple_indices)?;
    write!(f, ", operand_index = {}, operand_tuple_indices = ", alias.operand_index)?;
    fmt_ints(f, &alias.operand_tuple_indices)?;
    f.write_str(">")
}

fn fmt_replica_groups(f: &mut Formatter<'_>, groups: &ReplicaGroupMeshAxes) -> fmt::Result {
    f.write_str("#stablehlo.replica_group_mesh_axes<mesh = ")?;
    match &groups.mesh {
        MeshReference::Symbol(name) => fmt_symbol(f, name)?,
        MeshReference::Mesh(mesh) => fmt_stablehlo_mesh(f, mesh)?,
    }
    f.write_str(", axes = ")?;
    fmt_list(f, "[", groups.axes.iter(), "]>", |f, axis| {
        f.write_str("#stablehlo.axis_ref<name = ")?;
        fmt_quoted(f, axis.name.as_bytes())?;
        if let Some(sub) = axis.sub_axis {
            write!(f, ", sub_axis_info = ({}){}", sub.pre_size, sub.size)?;
        }
        f.write_str(">")
    })
}

fn fmt_algorithm(f: &mut Formatter<'_>, algorithm: &DotAlgorithm) -> fmt::Result {
    write!(
        f,
        "#stablehlo.dot_algorithm<lhs_precision_type = {}, rhs_precision_type = {}, accumulation_type = {}, \
         lhs_component_count = {}, rhs_component_count = {}, num_primitive_operations = {}, \
         allow_imprecise_accumulation = {}>",
        algorithm.lhs_precision_type,
        algorithm.rhs_precision_type,
        algorithm.accumulation_type,
        algorithm.lhs_component_count,
        algorithm.rhs_component_count,
        algorithm.num_primitive_operations,
        algorithm.allow_imprecise_accumulation
    )
}

fn fmt_accuracy(f: &mut Formatter<'_>, accuracy: &ResultAccuracy) -> fmt::Result {
    f.write_str("#stablehlo.result_accuracy<")?;
    if accuracy.atol != 0.0 {
        f.write_str("atol = ")?;
        fmt_finite(f, accuracy.atol)?;
        f.write_str(", ")?;
    }
    if accuracy.rtol != 0.0 {
        f.write_str("rtol = ")?;
        fmt_finite(f, accuracy.rtol)?;
        f.write_str(", ")?;
    }
    if accuracy.ulps != 0 {
        write!(f, "ulps = {}, ", accuracy.ulps)?;
    }
    write!(f, "mode = #stablehlo.result_accuracy_mode<{}>>", accuracy.mode)
}

/// Writes `[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]`, or all fields if the numbers cannot be written in that form.
fn fmt_convolution(f: &mut Formatter<'_>, numbers: &ConvDimensionNumbers) -> fmt::Result {
    let shape = |batch: (i64, &str), feature: (i64, &str), spatial: &[i64]| -> Option<String> {
        let mut places = vec![String::new(); spatial.len() + 2];
        let named = [batch, feature].map(|(place, name)| (place, name.to_owned()));
        let numbered = spatial.iter().enumerate().map(|(index, &place)| (place, index.to_string()));
        for (place, name) in named.into_iter().chain(numbered) {
            let place = places.get_mut(usize::try_from(place).ok()?)?;
            if !std::mem::replace(place, name).is_empty() {
                return None;
            }
        }
        Some(format!("[{}]", places.join(", ")))
    };
    let n = numbers;
    let input =
        shape((n.input_batch_dimension, "b"), (n.input_feature_dimension, "f"), &n.input_spatial_dimensions);
    let kernel = shape(
        (n.kernel_input_feature_dimension, "i"),
        (n.kernel_output_feature_dimension, "o"),
        &n.kernel_spatial_dimensions,
    );
    let output = shape(
        (n.output_batch_dimension, "b"),
        (n.output_feature_dimension, "f"),
        &n.output_spatial_dimensions,
    );
    if let (Some(input), Some(kernel), Some(output)) = (input, kernel, output) {
        return write!(f, "#stablehlo.conv<{input}x{kernel}->{output}>");
    }
    write!(f, "#stablehlo.conv<raw input_batch_dimension = {}, ", n.input_batch_dimension)?;
    write!(f, "input_feature_dimension = {}, input_spatial_dimensions = ", n.input_feature_dimension)?;
    fmt_ints(f, &n.input_spatial_dimensions)?;
    write!(f, ", kernel_input_feature_dimension = {}, ", n.kernel_input_feature_dimension)?;
    write!(f, "kernel_output_feature_dimension = {}, ", n.kernel_output_feature_dimension)?;
    f.write_str("kernel_spatial_dimensions = ")?;
    fmt_ints(f, &n.kernel_spatial_dimensions)?;
    write!(f, ", output_batch_dimension = {}, ", n.output_batch_dimension)?;
    write!(f, "output_feature_dimension = {}, output_spatial_dimensions = ", n.output_feature_dimension)?;
    fmt_ints(f, &n.output_spatial_dimensions)?;
    f.write_char('>')
}

fn fmt_stablehlo_mesh(f: &mut Formatter<'_>, mesh: &Mesh) -> fmt::Result {
    fmt_list(f, "#stablehlo.mesh<axes=[", mesh.axes.iter(), "]", |f, axis| {
        f.write_str("<name = ")?;
        fmt_quoted(f, axis.name.as_bytes())?;
        write!(f, ", size = {}>", axis.size)
    })?;
    if !mesh.device_ids.is_empty() {
        f.write_str(", device_ids=dense<")?;
        fmt_ints(f, &mesh.device_ids)?;
        write!(f, "> : tensor<{}xi64>", mesh.device_ids.len())?;
    }
    f.write_str(">")
}

fn fmt_mesh(f: &mut Formatter<'_>, name: &str, mesh: &Mesh) -> fmt::Result {
    f.write_str(name)?;
    fmt_list(f, "<[", mesh.axes.iter(), "]", fmt_mesh_axis)?;
    if !mesh.device_ids.is_empty() {
        f.write_str(", device_ids=")?;
        fmt_ints(f, &mesh.device_ids)?;
    }
    f.write_str(">")
}

/// `#sdy.name<...>`.
fn fmt_enclosed(
    f: &mut Formatter<'_>,
    name: &str,
    contents: impl FnOnce(&mut Formatter<'_>) -> fmt::Result,
) -> fmt::Result {
    write!(f, "#sdy.{name}<")?;
    contents(f)?;
    f.write_str(">")
}

/// `"x"=2`.
fn fmt_mesh_axis(f: &mut Formatter<'_>, axis: &MeshAxis) -> fmt::Result {
    fmt_quoted(f, axis.name.as_bytes())?;
    write!(f, "={}", axis.size)
}

fn fmt_axis(f: &mut Formatter<'_>, axis: &AxisRef) -> fmt::Result {
    fmt_quoted(f, axis.name.as_bytes())?;
    match axis.sub_axis {
        Some(sub) => write!(f, ":({}){}", sub.pre_size, sub.size),
        None => Ok(()),
    }
}

fn fmt_dimension(f: &mut Formatter<'_>, dimension: &DimensionSharding) -> fmt::Result {
    fmt_list(f, "{", dimension.axes.iter(), "", fmt_axis)?;
    if !dimension.is_closed {
        f.write_str(if dimension.axes.is_empty() { "?" } else { ", ?" })?;
    }
    f.write_str("}")?;
    match dimension.priority {
        Some(priority) => write!(f, "p{priority}"),
        None => Ok(()),
    }
}

fn fmt_sharding(f: &mut Formatter<'_>, name: &str, sharding: &TensorSharding) -> fmt::Result {
    write!(f, "{name}<")?;
    match &sharding.mesh {
        MeshReference::Symbol(name) => fmt_symbol(f, name)?,
        MeshReference::Mesh(mesh) => fmt_mesh(f, "mesh", mesh)?,
    }
    f.write_str(", ")?;
    fmt_list(f, "[", sharding.dim_shardings.iter(), "]", fmt_dimension)?;
    if !sharding.replicated_axes.is_empty() {
        fmt_list(f, ", replicated={", sharding.replicated_axes.iter(), "}", fmt_axis)?;
    }
    if !sharding.unreduced_axes.is_empty() {
        let reduction = if sharding.reduction == Reduction::Sum { "" } else { sharding.reduction.name() };
        write!(f, ", unreduced={reduction}")?;
        fmt_list(f, "{", sharding.unreduced_axes.iter(), "}", fmt_axis)?;
    }
    f.write_str(">")
}
