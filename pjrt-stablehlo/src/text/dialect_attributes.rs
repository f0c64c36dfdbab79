//! The attributes of StableHLO, and of dialects that are not interpreted.

use super::lexer::Kind;
use super::parser::Parser;
use crate::Error;
use crate::ir::{
    Attribute, AxisRef, ChannelHandle, ComparisonDirection, ComparisonType, ConvDimensionNumbers,
    CustomCallApiVersion, DYNAMIC, DotAlgorithm, DotDimensionNumbers, ElementType, EnumValue, FftType,
    GatherDimensionNumbers, Ints, Mesh, MeshAxis, MeshReference, OutputOperandAlias, Precision,
    ReplicaGroupMeshAxes, ResultAccuracy, ResultAccuracyMode, RngAlgorithm, RngDistribution,
    ScatterDimensionNumbers, SubAxis, TransposeKind, Type,
};

impl<'a> Parser<'a> {
    /// Reads `#dialect.name<...>` or `#dialect<name ...>`.
    pub(super) fn dialect_attribute(&mut self) -> Result<Attribute, Error> {
        let start = self.token.start;
        let name = self.found();
        if name == "#stablehlo" {
            self.advance();
            self.expect("<")?;
            let enumeration = self.bare("the name of an enumeration")?;
            let case = self.case(enumeration)?;
            self.expect(">")?;
            return Ok(Attribute::Enum(case));
        }
        if let Some(name) = name.strip_prefix("#stablehlo.") {
            self.advance();
            return self.stablehlo_attribute(name, start);
        }
        self.advance();
        if self.at("<") && self.token.start == self.previous_end {
            self.balanced()?;
        }
        let text = &self.text[start + 1..self.previous_end];
        if ["#sdy.sharding", "#sdy.mesh", "#sdy.sharding_per_value", "#sdy.manual_axes"].contains(&name) {
            return self.shardy_attribute(text, start);
        }
        Ok(super::sharding::parse(text).unwrap_or_else(|| Attribute::Opaque(one_line(text).into())))
    }

    /// Reads a case of an enumeration.
    pub(super) fn case(&mut self, enumeration: &str) -> Result<EnumValue, Error> {
        fn find<T: Into<EnumValue>>(found: Option<T>) -> Option<EnumValue> {
            found.map(Into::into)
        }
        let case = self.found();
        let value = match enumeration {
            ComparisonDirection::MLIR_NAME => find(ComparisonDirection::from_name(case)),
            ComparisonType::MLIR_NAME => find(ComparisonType::from_name(case)),
            CustomCallApiVersion::MLIR_NAME => find(CustomCallApiVersion::from_name(case)),
            FftType::MLIR_NAME => find(FftType::from_name(case)),
            Precision::MLIR_NAME => find(Precision::from_name(case)),
            ResultAccuracyMode::MLIR_NAME => find(ResultAccuracyMode::from_name(case)),
            RngAlgorithm::MLIR_NAME => find(RngAlgorithm::from_name(case)),
            RngDistribution::MLIR_NAME => find(RngDistribution::from_name(case)),
            TransposeKind::MLIR_NAME => find(TransposeKind::from_name(case)),
            other => {
                let message = format!("StableHLO has no enumeration '{other}'");
                return Err(self.error_at(self.token.start, message));
            }
        };
        match value {
            Some(value) => {
                self.advance();
                Ok(value)
            }
            None => Err(self.expected(&format!("a case of {enumeration}"))),
        }
    }

    fn stablehlo_attribute(&mut self, name: &str, start: usize) -> Result<Attribute, Error> {
        Ok(match name {
            "dot" => Attribute::DotDimensionNumbers(self.dot()?.into()),
            "dot_algorithm" => Attribute::DotAlgorithm(self.dot_algorithm()?.into()),
            "conv" => Attribute::ConvDimensionNumbers(self.convolution_attribute()?.into()),
            "gather" => Attribute::GatherDimensionNumbers(self.gather()?.into()),
            "scatter" => Attribute::ScatterDimensionNumbers(self.scatter()?.into()),
            "channel_handle" => Attribute::ChannelHandle(self.channel_handle(start)?),
            "result_accuracy" => Attribute::ResultAccuracy(self.result_accuracy()?.into()),
            "output_operand_alias" => Attribute::OutputOperandAlias(self.output_operand_alias()?.into()),
            "bounds" => Attribute::Bounds(self.list("<", ">", Self::bound)?.into()),
            "type_extensions" => {
                let mut bounds = Vec::new();
                self.fields(|parser, field| {
                    bounds = parser.list("[", "]", Self::bound)?;
                    Ok(field == "bounds")
                })?;
                Attribute::Bounds(bounds.into())
            }
            "replica_group_mesh_axes" => {
                Attribute::ReplicaGroupMeshAxes(self.replica_group_mesh_axes()?.into())
            }
            "axis_ref" => Attribute::AxisRef(self.axis_ref_fields()?.into()),
            "sub_axis_info" => {
                self.expect("<")?;
                let sub = self.sub_axis()?;
                self.expect(">")?;
                Attribute::SubAxis(sub)
            }
            "mesh" => Attribute::Mesh(self.stablehlo_mesh()?.into()),
            "mesh_axis" => Attribute::MeshAxis(self.mesh_axis_fields()?.into()),
            enumeration if self.at("<") => {
                self.expect("<")?;
                let case = self.case(enumeration)?;
                self.expect(">")?;
                Attribute::Enum(case)
            }
            other => return Err(self.error_at(start, format!("StableHLO has no attribute '{other}'"))),
        })
    }

    /// `<handle = 1, type = 0>`. `start` is the position at which the attribute begins.
    fn channel_handle(&mut self, start: usize) -> Result<ChannelHandle, Error> {
        let mut channel = ChannelHandle::default();
        let given = self.fields(|parser, field| {
            match field {
                "handle" => channel.handle = parser.integer()?,
                "type" => channel.channel_type = parser.integer()?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        if given != 2 {
            return Err(self.error_at(start, "expected the fields 'handle' and 'type' of a channel"));
        }
        Ok(channel)
    }

    /// `<mesh = @mesh, axes = [...]>`.
    fn replica_group_mesh_axes(&mut self) -> Result<ReplicaGroupMeshAxes, Error> {
        let mut groups =
            ReplicaGroupMeshAxes { mesh: MeshReference::Symbol("".into()), axes: Box::default() };
        self.fields(|parser, field| {
            match field {
                "mesh" => groups.mesh = parser.mesh_reference()?,
                "axes" => groups.axes = parser.list("[", "]", Self::axis_ref)?.into(),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(groups)
    }

    /// Reads `<name = value, ...>`, and returns the number of fields. `read` reads the value of a field, and returns
    /// `false` if there is no field with this name.
    fn fields(
        &mut self,
        mut read: impl FnMut(&mut Self, &'a str) -> Result<bool, Error>,
    ) -> Result<usize, Error> {
        let mut seen: Vec<&str> = Vec::new();
        self.expect("<")?;
        while !self.eat(">") {
            let start = self.token.start;
            let name = self.bare("the name of a field or '>'")?;
            self.expect("=")?;
            if seen.contains(&name) {
                return Err(self.error_at(start, format!("field '{name}' is given twice")));
            }
            if !read(self, name)? {
                return Err(self.error_at(start, format!("there is no field '{name}' in this attribute")));
            }
            seen.push(name);
            // A comma may also follow the last field.
            if !self.at(">") {
                self.expect(",")?;
            }
        }
        Ok(seen.len())
    }

    fn ints(&mut self) -> Result<Ints, Error> {
        Ok(self.integers()?.into())
    }

    fn bound(&mut self) -> Result<i64, Error> {
        if self.eat("?") { Ok(DYNAMIC) } else { self.integer() }
    }

    fn dot(&mut self) -> Result<DotDimensionNumbers, Error> {
        let mut numbers = DotDimensionNumbers::default();
        self.fields(|parser, field| {
            let place = match field {
                "lhs_batching_dimensions" => &mut numbers.lhs_batching_dimensions,
                "rhs_batching_dimensions" => &mut numbers.rhs_batching_dimensions,
                "lhs_contracting_dimensions" => &mut numbers.lhs_contracting_dimensions,
                "rhs_contracting_dimensions" => &mut numbers.rhs_contracting_dimensions,
                _ => return Ok(false),
            };
            *place = parser.ints()?;
            Ok(true)
        })?;
        Ok(numbers)
    }

    /// Reads `<lhs_precision_type = tf32, ...>`.
    pub(super) fn dot_algorithm(&mut self) -> Result<DotAlgorithm, Error> {
        let unknown = || Type::Scalar(ElementType::F32);
        let mut algorithm = DotAlgorithm {
            lhs_precision_type: unknown(),
            rhs_precision_type: unknown(),
            accumulation_type: unknown(),
            lhs_component_count: 1,
            rhs_component_count: 1,
            num_primitive_operations: 1,
            allow_imprecise_accumulation: false,
        };
        let start = self.token.start;
        let given = self.fields(|parser, field| {
            match field {
                "lhs_precision_type" => algorithm.lhs_precision_type = parser.ty()?,
                "rhs_precision_type" => algorithm.rhs_precision_type = parser.ty()?,
                "accumulation_type" => algorithm.accumulation_type = parser.ty()?,
                "lhs_component_count" => algorithm.lhs_component_count = parser.integer()?,
                "rhs_component_count" => algorithm.rhs_component_count = parser.integer()?,
                "num_primitive_operations" => algorithm.num_primitive_operations = parser.integer()?,
                "allow_imprecise_accumulation" => {
                    algorithm.allow_imprecise_accumulation = parser.boolean()?
                }
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        match given {
            7 => Ok(algorithm),
            _ => {
                Err(self.error_at(start, format!("expected the 7 fields of a dot algorithm, found {given}")))
            }
        }
    }

    fn gather(&mut self) -> Result<GatherDimensionNumbers, Error> {
        let mut numbers = GatherDimensionNumbers::default();
        self.fields(|parser, field| {
            let place = match field {
                "offset_dims" => &mut numbers.offset_dims,
                "collapsed_slice_dims" => &mut numbers.collapsed_slice_dims,
                "operand_batching_dims" => &mut numbers.operand_batching_dims,
                "start_indices_batching_dims" => &mut numbers.start_indices_batching_dims,
                "start_index_map" => &mut numbers.start_index_map,
                "index_vector_dim" => {
                    numbers.index_vector_dim = parser.integer()?;
                    return Ok(true);
                }
                _ => return Ok(false),
            };
            *place = parser.ints()?;
            Ok(true)
        })?;
        Ok(numbers)
    }

    fn scatter(&mut self) -> Result<ScatterDimensionNumbers, Error> {
        let mut numbers = ScatterDimensionNumbers::default();
        self.fields(|parser, field| {
            let place = match field {
                "update_window_dims" => &mut numbers.update_window_dims,
                "inserted_window_dims" => &mut numbers.inserted_window_dims,
                "input_batching_dims" => &mut numbers.input_batching_dims,
                "scatter_indices_batching_dims" => &mut numbers.scatter_indices_batching_dims,
                "scatter_dims_to_operand_dims" => &mut numbers.scatter_dims_to_operand_dims,
                "index_vector_dim" => {
                    numbers.index_vector_dim = parser.integer()?;
                    return Ok(true);
                }
                _ => return Ok(false),
            };
            *place = parser.ints()?;
            Ok(true)
        })?;
        Ok(numbers)
    }

    fn result_accuracy(&mut self) -> Result<ResultAccuracy, Error> {
        let mut accuracy = ResultAccuracy::default();
        self.fields(|parser, field| {
            match field {
                "atol" => accuracy.atol = parser.double()?,
                "rtol" => accuracy.rtol = parser.double()?,
                "ulps" => accuracy.ulps = parser.integer()?,
                "mode" => {
                    let start = parser.token.start;
                    let Attribute::Enum(EnumValue::ResultAccuracyMode(mode)) = parser.attribute()? else {
                        return Err(parser.error_at(start, "expected a result accuracy mode"));
                    };
                    accuracy.mode = mode;
                }
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(accuracy)
    }

    /// Reads a floating-point number.
    fn double(&mut self) -> Result<f64, Error> {
        let negative = self.eat("-");
        let value = match self.token.kind {
            Kind::Float | Kind::Integer => self.found().parse::<f64>().ok(),
            _ => None,
        };
        let Some(value) = value else { return Err(self.expected("a number")) };
        self.advance();
        Ok(if negative { -value } else { value })
    }

    fn output_operand_alias(&mut self) -> Result<OutputOperandAlias, Error> {
        let mut alias = OutputOperandAlias::default();
        let start = self.token.start;
        let given = self.fields(|parser, field| {
            match field {
                "output_tuple_indices" => alias.output_tuple_indices = parser.ints()?,
                "operand_index" => alias.operand_index = parser.integer()?,
                "operand_tuple_indices" => alias.operand_tuple_indices = parser.ints()?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        match given {
            3 => Ok(alias),
            _ => Err(self.error_at(
                start,
                "expected the fields 'output_tuple_indices', 'operand_index' and 'operand_tuple_indices'",
            )),
        }
    }

    /// Reads `<[b, 0, f]x[0, i, o]->[b, 0, f]>`, or `raw` and a name for each number.
    fn convolution_attribute(&mut self) -> Result<ConvDimensionNumbers, Error> {
        self.expect("<")?;
        if !self.eat("raw") {
            let numbers = self.convolution_dimensions()?;
            self.expect(">")?;
            return Ok(numbers);
        }
        let mut numbers = ConvDimensionNumbers::default();
        while !self.eat(">") {
            let start = self.token.start;
            let field = self.bare("the name of a field")?;
            self.expect("=")?;
            match field {
                "input_batch_dimension" => numbers.input_batch_dimension = self.integer()?,
                "input_feature_dimension" => numbers.input_feature_dimension = self.integer()?,
                "input_spatial_dimensions" => numbers.input_spatial_dimensions = self.ints()?,
                "kernel_input_feature_dimension" => {
                    numbers.kernel_input_feature_dimension = self.integer()?
                }
                "kernel_output_feature_dimension" => {
                    numbers.kernel_output_feature_dimension = self.integer()?;
                }
                "kernel_spatial_dimensions" => numbers.kernel_spatial_dimensions = self.ints()?,
                "output_batch_dimension" => numbers.output_batch_dimension = self.integer()?,
                "output_feature_dimension" => numbers.output_feature_dimension = self.integer()?,
                "output_spatial_dimensions" => numbers.output_spatial_dimensions = self.ints()?,
                other => {
                    return Err(
                        self.error_at(start, format!("there is no field '{other}' in this attribute"))
                    );
                }
            }
            if !self.at(">") {
                self.expect(",")?;
            }
        }
        Ok(numbers)
    }

    /// Reads `[b, 0, f]x[0, i, o]->[b, 0, f]`.
    pub(super) fn convolution_dimensions(&mut self) -> Result<ConvDimensionNumbers, Error> {
        let (input_batch_dimension, input_feature_dimension, input_spatial_dimensions) =
            self.convolution_shape("b", "f")?;
        self.expect("x")?;
        let (kernel_input_feature_dimension, kernel_output_feature_dimension, kernel_spatial_dimensions) =
            self.convolution_shape("i", "o")?;
        self.expect("->")?;
        let (output_batch_dimension, output_feature_dimension, output_spatial_dimensions) =
            self.convolution_shape("b", "f")?;
        Ok(ConvDimensionNumbers {
            input_batch_dimension,
            input_feature_dimension,
            input_spatial_dimensions,
            kernel_input_feature_dimension,
            kernel_output_feature_dimension,
            kernel_spatial_dimensions,
            output_batch_dimension,
            output_feature_dimension,
            output_spatial_dimensions,
        })
    }

    /// Reads `[b, 0, f]`, and returns the positions of the two named dimensions and of the numbered ones.
    fn convolution_shape(&mut self, first: &str, second: &str) -> Result<(i64, i64, Ints), Error> {
        let start = self.token.start;
        let mut named = [None; 2];
        let mut spatial: Vec<(i64, i64)> = Vec::new();
        let mut place = 0;
        self.list("[", "]", |parser| {
            let name = parser.found();
            match [first, second].iter().position(|&known| known == name) {
                Some(index) if named[index].is_none() => {
                    named[index] = Some(place);
                    parser.advance();
                }
                Some(_) => return Err(parser.error(format!("dimension '{name}' is given twice"))),
                // An unused dimension.
                None if parser.eat("?") => {}
                None => spatial.push((parser.integer()?, place)),
            }
            place += 1;
            Ok(())
        })?;
        spatial.sort_unstable();
        let is_complete = spatial.iter().enumerate().all(|(index, &(number, _))| number == index as i64);
        match named {
            [Some(first), Some(second)] if is_complete => {
                Ok((first, second, spatial.into_iter().map(|(_, place)| place).collect()))
            }
            _ => Err(self.error_at(
                start,
                format!("expected each of the dimensions '{first}', '{second}' and 0, 1, ... once"),
            )),
        }
    }

    fn mesh_reference(&mut self) -> Result<MeshReference, Error> {
        if self.token.kind == Kind::Symbol {
            return Ok(MeshReference::Symbol(self.symbol()?));
        }
        let start = self.token.start;
        match self.attribute()? {
            Attribute::Mesh(mesh) => Ok(MeshReference::Mesh((*mesh).clone())),
            other => Err(self.error_at(start, format!("expected a mesh, found {}", other.kind()))),
        }
    }

    fn axis_ref(&mut self) -> Result<AxisRef, Error> {
        if self.at("<") {
            return self.axis_ref_fields();
        }
        let start = self.token.start;
        match self.attribute()? {
            Attribute::AxisRef(axis) => Ok((*axis).clone()),
            other => Err(self.error_at(start, format!("expected a mesh axis, found {}", other.kind()))),
        }
    }

    fn axis_ref_fields(&mut self) -> Result<AxisRef, Error> {
        let mut axis = AxisRef { name: "".into(), sub_axis: None };
        self.fields(|parser, field| {
            match field {
                "name" => axis.name = parser.string()?,
                "sub_axis_info" => axis.sub_axis = Some(parser.sub_axis()?),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(axis)
    }

    /// Reads `(1)2`.
    fn sub_axis(&mut self) -> Result<SubAxis, Error> {
        self.expect("(")?;
        let pre_size = self.integer()?;
        self.expect(")")?;
        Ok(SubAxis { pre_size, size: self.integer()? })
    }

    fn stablehlo_mesh(&mut self) -> Result<Mesh, Error> {
        let mut mesh = Mesh::default();
        self.fields(|parser, field| {
            match field {
                "axes" => mesh.axes = parser.list("[", "]", Self::mesh_axis)?.into(),
                "device_ids" => {
                    let start = parser.token.start;
                    let ids = parser.attribute()?;
                    parser.charge(&ids)?;
                    let ids = match &ids {
                        Attribute::Elements(ids) => ids.to_i64s(crate::limits::MAX_ATTRIBUTE_ELEMENTS),
                        _ => None,
                    };
                    let ids = ids.ok_or_else(|| parser.error_at(start, "expected a list of device ids"))?;
                    mesh.device_ids = ids.into();
                }
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(mesh)
    }

    fn mesh_axis(&mut self) -> Result<MeshAxis, Error> {
        if self.at("<") {
            return self.mesh_axis_fields();
        }
        let start = self.token.start;
        match self.attribute()? {
            Attribute::MeshAxis(axis) => Ok((*axis).clone()),
            other => Err(self.error_at(start, format!("expected a mesh axis, found {}", other.kind()))),
        }
    }

    fn mesh_axis_fields(&mut self) -> Result<MeshAxis, Error> {
        let mut axis = MeshAxis { name: "".into(), size: 1 };
        self.fields(|parser, field| {
            match field {
                "name" => axis.name = parser.string()?,
                "size" => axis.size = parser.integer()?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(axis)
    }
}

/// Returns a text with line breaks and indentation replaced by spaces. Texts with strings or comments, whose ends
/// depend on line breaks, are returned unchanged.
fn one_line(text: &str) -> String {
    if text.contains('"') || text.contains("//") || !text.contains('\n') {
        return text.to_owned();
    }
    let line = text.lines().map(str::trim).collect::<Vec<_>>().join(" ");
    // The replacement below would create an arrow.
    if line.contains("- >") {
        return line;
    }
    line.replace("< ", "<").replace(" >", ">")
}
