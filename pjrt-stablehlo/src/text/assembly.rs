//! The custom assembly of operations without regions.
//!
//! Most operations consist of the same parts: operands, fields such as `dims = [0, 1]`, a dictionary, and types.
//! [`fields`] defines the fields of these operations, and [`TypeForm`] the form of their types. Each other operation
//! has its own function.

use super::assembly_types::TypeForm;
use super::lexer::{self, Kind};
use super::parser::{Parser, shortened};
use super::pending::{Frame, Pending, Types};
use crate::Error;
use crate::ir::{
    Attribute, BlockId, ComparisonType, DotDimensionNumbers, ElementType, FftType, OpCode, Precision,
    RngAlgorithm, RngDistribution, Type, ValueId,
};

/// The syntax of a field's value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// `1`
    Integer,
    /// `[1, 2]`
    Integers,
    /// `true`
    Boolean,
    /// `"text"`
    Text,
    /// `[HIGH, DEFAULT]`
    Precisions,
    /// `FFT`, a case of an enumeration.
    Case(&'static str),
    /// `e5m10`
    FloatFormat,
    /// `[1] x [0]`: batching dimensions of the left and the right operand.
    BatchingDimensions,
    /// `[1] x [0]`: contracting dimensions of the left and the right operand.
    ContractingDimensions,
    /// `<lhs_precision_type = tf32, ...>`
    Algorithm,
}

/// The directions of `sdy.propagation_barrier`, in the order of their codes.
const PROPAGATION_DIRECTIONS: &[&str] = &["NONE", "FORWARD", "BACKWARD", "BOTH"];

/// A field: its keyword, the attribute that it represents, and the syntax of its value.
type Field = (&'static str, &'static str, Form);

/// Returns the fields of an operation, in order.
fn fields(code: OpCode) -> &'static [Field] {
    match code {
        OpCode::Broadcast => &[("sizes", "broadcast_sizes", Form::Integers)],
        OpCode::BroadcastInDim | OpCode::DynamicBroadcastInDim => {
            &[("dims", "broadcast_dimensions", Form::Integers)]
        }
        OpCode::Cholesky => &[("lower", "lower", Form::Boolean)],
        OpCode::Concatenate => &[("dim", "dimension", Form::Integer)],
        OpCode::Dot => &[("precision", "precision_config", Form::Precisions)],
        OpCode::DotGeneral => &[
            ("batching_dims", "", Form::BatchingDimensions),
            ("contracting_dims", "", Form::ContractingDimensions),
            ("precision", "precision_config", Form::Precisions),
            ("algorithm", "algorithm", Form::Algorithm),
        ],
        OpCode::DynamicSlice => &[("sizes", "slice_sizes", Form::Integers)],
        OpCode::Einsum | OpCode::UnaryEinsum => &[("config", "einsum_config", Form::Text)],
        OpCode::Fft => {
            &[("type", "fft_type", Form::Case(FftType::MLIR_NAME)), ("length", "fft_length", Form::Integers)]
        }
        OpCode::GetDimensionSize | OpCode::SetDimensionSize => &[("dim", "dimension", Form::Integer)],
        OpCode::Iota | OpCode::DynamicIota => &[("dim", "iota_dimension", Form::Integer)],
        OpCode::Pad => &[
            ("low", "edge_padding_low", Form::Integers),
            ("high", "edge_padding_high", Form::Integers),
            ("interior", "interior_padding", Form::Integers),
        ],
        OpCode::ReducePrecision => &[("format", "", Form::FloatFormat)],
        OpCode::Reverse => &[("dims", "dimensions", Form::Integers)],
        OpCode::Rng => &[("distribution", "rng_distribution", Form::Case(RngDistribution::MLIR_NAME))],
        OpCode::RngBitGenerator => &[("algorithm", "rng_algorithm", Form::Case(RngAlgorithm::MLIR_NAME))],
        OpCode::TorchIndexSelect => {
            &[("dim", "dim", Form::Integer), ("batch_dims", "batch_dims", Form::Integer)]
        }
        OpCode::Transpose => &[("dims", "permutation", Form::Integers)],
        _ => &[],
    }
}

/// Returns `true` if a field is optional.
fn is_optional(code: OpCode, keyword: &str) -> bool {
    match code {
        OpCode::Cholesky | OpCode::Dot => true,
        OpCode::DotGeneral => keyword != "contracting_dims",
        _ => false,
    }
}

impl<'a> Parser<'a> {
    /// Reads an operation in its custom assembly, or the part before its first region.
    pub(super) fn custom(
        &mut self,
        mut pending: Pending<'a>,
        block: BlockId,
    ) -> Result<Option<Frame<'a>>, Error> {
        let pending = match (pending.code, pending.name) {
            (Some(OpCode::While), _) => return self.while_loop(pending, block).map(Some),
            (Some(OpCode::Reduce), _) => return self.reduce(pending, block),
            (Some(OpCode::Composite), _) => return self.composite(pending, block),
            (Some(OpCode::ManualComputation), _) => return self.manual_computation(pending, block).map(Some),
            (_, "chlo.scan") => return self.scan(pending, block).map(Some),
            (_, "sdy.named_computation") => return self.named_computation(pending, block).map(Some),
            (Some(OpCode::Constant), _) | (_, "sdy.constant" | "arith.constant" | "chlo.constant") => {
                self.constant(&mut pending, block)?;
                pending
            }
            (Some(OpCode::CustomCall), _) => self.call(pending, block, "call_target_name")?,
            (Some(OpCode::FuncCall), _) => self.call(pending, block, "callee")?,
            (Some(OpCode::Convolution | OpCode::DynamicConv), _) => self.convolution(pending, block)?,
            (Some(OpCode::ShardingConstraint | OpCode::Reshard), _) => {
                let operands = self.values()?;
                let sharding = self.sharding()?;
                pending.set("sharding", Attribute::Sharding(sharding.into()));
                self.begin(&mut pending, operands, block);
                self.rest(&mut pending, TypeForm::One)?;
                pending
            }
            (Some(OpCode::ShardingGroup), _) => self.shardy(pending, block)?,
            (Some(_), _) => self.standard(pending, block)?,
            (None, name) if name.starts_with("chlo.") => self.chlo(pending, block)?,
            (None, name) if name.starts_with("sdy.") => self.shardy(pending, block)?,
            (None, _) => self.other_dialect(pending, block)?,
        };
        self.finish(pending).map(|()| None)
    }

    /// Reads `%a, %b, dims = [0, 1] {x.y = 1} : (tensor<f32>, tensor<f32>) -> tensor<f32>`.
    fn standard(&mut self, mut pending: Pending<'a>, block: BlockId) -> Result<Pending<'a>, Error> {
        let code = pending.code.unwrap_or(OpCode::Other);
        let Some(form) = TypeForm::of(code) else { return Err(self.no_assembly(&pending)) };
        // The dictionary of these operations precedes the operands.
        let is_dictionary_first =
            matches!(code, OpCode::FuncReturn | OpCode::SdyReturn | OpCode::OptimizationBarrier);
        if is_dictionary_first {
            pending.dictionary = self.optional_dictionary()?;
        }
        if code == OpCode::Compare {
            let direction = self.case("comparison_direction")?;
            pending.set("comparison_direction", Attribute::Enum(direction));
            self.expect(",")?;
        }
        let no_operands = code == OpCode::OptimizationBarrier
            && self.at("(")
            && lexer::next(self.text, self.token.end).kind != Kind::Value;
        let operands = if no_operands { self.list("(", ")", Self::value)? } else { self.values()? };
        match code {
            OpCode::Slice => self.slice_indices(&mut pending)?,
            OpCode::GetTupleElement => {
                self.expect("[")?;
                let value = self.integer()?;
                pending.set("index", Attribute::Integer { value, ty: ElementType::I32 });
                self.expect("]")?;
            }
            _ => {}
        }
        self.fields_of(&mut pending, code, operands.is_empty())?;
        self.begin(&mut pending, operands, block);
        if is_dictionary_first {
            self.types_of(&mut pending, form)?;
        } else {
            self.rest(&mut pending, form)?;
        }
        Ok(pending)
    }

    /// Reads `, dims = [0, 1], sizes = [2]`: the fields of an operation. Commas separate them from the operands and
    /// each other.
    fn fields_of(
        &mut self,
        pending: &mut Pending<'a>,
        code: OpCode,
        mut is_first: bool,
    ) -> Result<(), Error> {
        if code == OpCode::Compare {
            if self.eat(",") {
                let value = self.case(ComparisonType::MLIR_NAME)?;
                pending.set("compare_type", Attribute::Enum(value));
            }
            return Ok(());
        }
        let mut dot = DotDimensionNumbers::default();
        let mut rest = fields(code);
        loop {
            let required = rest.iter().position(|(keyword, ..)| !is_optional(code, keyword));
            if !is_first && !self.at(",") {
                match required {
                    Some(index) => return Err(self.expected(&format!("', {} ='", rest[index].0))),
                    None => break,
                }
            }
            if is_first && rest.is_empty() {
                break;
            }
            if !is_first {
                self.advance();
            }
            is_first = false;
            let keyword = self.found();
            // The fields up to the next required one.
            let next = &rest[..required.map_or(rest.len(), |index| index + 1)];
            let Some(index) = next.iter().position(|(known, ..)| *known == keyword) else {
                let known: Vec<_> = next.iter().map(|(known, ..)| format!("'{known}'")).collect();
                let what =
                    if known.is_empty() { "the end of the operands".to_owned() } else { known.join(" or ") };
                return Err(self.expected(&what));
            };
            let (_, attribute, form) = rest[index];
            rest = &rest[index + 1..];
            self.advance();
            self.expect("=")?;
            self.field(pending, attribute, form, &mut dot)?;
        }
        if code == OpCode::DotGeneral {
            pending.set("dot_dimension_numbers", Attribute::DotDimensionNumbers(dot.into()));
        }
        Ok(())
    }

    /// Reads the value of a field.
    fn field(
        &mut self,
        pending: &mut Pending<'a>,
        attribute: &str,
        form: Form,
        dot: &mut DotDimensionNumbers,
    ) -> Result<(), Error> {
        let value = match form {
            Form::Integer => Attribute::from(self.integer()?),
            Form::Integers => {
                Attribute::IntegerArray { ty: ElementType::I64, values: self.integers()?.into() }
            }
            Form::Boolean => Attribute::Bool(self.boolean()?),
            Form::Text => Attribute::String(self.string()?),
            Form::Precisions => {
                let cases = self.list("[", "]", |parser| parser.case(Precision::MLIR_NAME))?;
                Attribute::Array(cases.into_iter().map(Attribute::Enum).collect())
            }
            Form::Case(enumeration) => Attribute::Enum(self.case(enumeration)?),
            Form::Algorithm => Attribute::DotAlgorithm(self.dot_algorithm()?.into()),
            Form::FloatFormat => return self.float_format(pending),
            Form::BatchingDimensions => {
                (dot.lhs_batching_dimensions, dot.rhs_batching_dimensions) = self.dimension_pairs()?;
                return Ok(());
            }
            Form::ContractingDimensions => {
                (dot.lhs_contracting_dimensions, dot.rhs_contracting_dimensions) = self.dimension_pairs()?;
                return Ok(());
            }
        };
        pending.set(attribute, value);
        Ok(())
    }

    /// Reads `[1] x [0]`.
    fn dimension_pairs(&mut self) -> Result<(crate::ir::Ints, crate::ir::Ints), Error> {
        let lhs = self.integers()?;
        self.expect("x")?;
        Ok((lhs.into(), self.integers()?.into()))
    }

    /// Reads `e5m10`.
    fn float_format(&mut self, pending: &mut Pending<'a>) -> Result<(), Error> {
        let bits = self.found().strip_prefix('e').and_then(|text| text.split_once('m'));
        let parse = |digits: &str| digits.parse::<u16>().ok();
        let Some((Some(exponent), Some(mantissa))) = bits.map(|(e, m)| (parse(e), parse(m))) else {
            return Err(self.expected("a float format such as e5m10"));
        };
        self.advance();
        let integer = |bits: u16| Attribute::Integer { value: i64::from(bits), ty: ElementType::I32 };
        pending.set("exponent_bits", integer(exponent));
        pending.set("mantissa_bits", integer(mantissa));
        Ok(())
    }

    /// Reads `[0:4, 1:5:2]`: the start, limit and stride of each dimension.
    fn slice_indices(&mut self, pending: &mut Pending<'a>) -> Result<(), Error> {
        let ranges = self.list("[", "]", |parser| {
            let start = parser.integer()?;
            parser.expect(":")?;
            let limit = parser.integer()?;
            let stride = if parser.eat(":") { parser.integer()? } else { 1 };
            Ok([start, limit, stride])
        })?;
        for (index, name) in ["start_indices", "limit_indices", "strides"].into_iter().enumerate() {
            let values = ranges.iter().map(|range| range[index]).collect();
            pending.set(name, Attribute::IntegerArray { ty: ElementType::I64, values });
        }
        Ok(())
    }

    /// Reads `{x.y = 1} : types`, the end of operations in custom assembly.
    pub(super) fn rest(&mut self, pending: &mut Pending<'a>, form: TypeForm) -> Result<(), Error> {
        pending.dictionary = self.optional_dictionary()?;
        self.types_of(pending, form)
    }

    /// Returns the error for an operation that has no custom assembly.
    pub(super) fn no_assembly(&self, pending: &Pending<'a>) -> Error {
        let name = shortened(pending.name);
        self.error_at(
            pending.start,
            format!("the operation '{name}' has no custom assembly; use its generic form, \"{name}\"(...)"),
        )
    }

    /// Reads `dense<1> : tensor<2xi32>`, preceded by an optional dictionary.
    fn constant(&mut self, pending: &mut Pending<'a>, block: BlockId) -> Result<(), Error> {
        self.begin(pending, Vec::new(), block);
        if self.at("(") {
            // Quantized constants have the form `() {value = ...} : () -> type`.
            self.expect("(")?;
            self.expect(")")?;
            pending.properties = self.optional_properties()?.entries().to_vec();
            return self.rest(pending, TypeForm::Function);
        }
        pending.dictionary = self.optional_dictionary()?;
        let at = self.token.start;
        let value = self.attribute()?;
        let ty = match &value {
            Attribute::Elements(literal) | Attribute::Resource { value: literal, .. } => {
                literal.ty().clone().into()
            }
            Attribute::Integer { ty, .. } | Attribute::Float { ty, .. } => Type::Scalar(*ty),
            Attribute::Bool(_) => Type::Scalar(ElementType::I1),
            other => return Err(self.error_at(at, format!("expected a constant, found {}", other.kind()))),
        };
        pending.set("value", value);
        pending.types = Some(Types { operands: None, results: vec![ty] });
        Ok(())
    }

    /// Reads `@f(%a, %b) {x.y = 1} : (A, B) -> C`.
    fn call(
        &mut self,
        mut pending: Pending<'a>,
        block: BlockId,
        target: &'static str,
    ) -> Result<Pending<'a>, Error> {
        let name = self.symbol()?;
        let is_symbol = pending.code == Some(OpCode::FuncCall);
        pending
            .set(target, if is_symbol { Attribute::Symbol([name].into()) } else { Attribute::String(name) });
        let operands = self.list("(", ")", Self::value)?;
        self.begin(&mut pending, operands, block);
        self.rest(&mut pending, TypeForm::Function)?;
        Ok(pending)
    }

    /// Reads `(%a, %b) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {stride = [1]} {...} : ...`.
    fn convolution(&mut self, mut pending: Pending<'a>, block: BlockId) -> Result<Pending<'a>, Error> {
        let operands = self.list("(", ")", Self::value)?;
        self.expect("dim_numbers")?;
        self.expect("=")?;
        let numbers = self.convolution_dimensions()?;
        pending.set("dimension_numbers", Attribute::ConvDimensionNumbers(numbers.into()));
        self.expect(",")?;
        self.expect("window")?;
        self.expect("=")?;
        self.list("{", "}", |parser| {
            let at = parser.token.start;
            let keyword = parser.bare("a property of the window")?;
            parser.expect("=")?;
            let (attribute, value) = match keyword {
                "stride" => ("window_strides", parser.integer_array()?),
                "lhs_dilate" => ("lhs_dilation", parser.integer_array()?),
                "rhs_dilate" => ("rhs_dilation", parser.integer_array()?),
                "pad" => ("padding", parser.pairs()?),
                "reverse" => {
                    let values = parser.list("[", "]", |parser| {
                        if parser.token.kind == Kind::Integer {
                            return parser.integer();
                        }
                        parser.boolean().map(i64::from)
                    })?;
                    (
                        "window_reversal",
                        Attribute::IntegerArray { ty: ElementType::I1, values: values.into() },
                    )
                }
                other => {
                    let message = format!(
                        "expected 'stride', 'pad', 'lhs_dilate', 'rhs_dilate' or 'reverse', found '{other}'"
                    );
                    return Err(parser.error_at(at, message));
                }
            };
            pending.set(attribute, value);
            Ok(())
        })?;
        self.begin(&mut pending, operands, block);
        self.rest(&mut pending, TypeForm::Function)?;
        Ok(pending)
    }

    fn integer_array(&mut self) -> Result<Attribute, Error> {
        Ok(Attribute::IntegerArray { ty: ElementType::I64, values: self.integers()?.into() })
    }

    /// Reads `[[1, 2], [3, 4]]`.
    fn pairs(&mut self) -> Result<Attribute, Error> {
        let at = self.token.start;
        let rows = self.list("[", "]", Self::integers)?;
        if let Some(row) = rows.iter().find(|row| row.len() != 2) {
            let message = format!("expected pairs of integers, found a list of {}", row.len());
            return Err(self.error_at(at, message));
        }
        let bytes: Vec<u8> = rows.iter().flatten().flat_map(|value| value.to_le_bytes()).collect();
        let ty = crate::ir::TensorType::new(ElementType::I64, [rows.len() as i64, 2]);
        let literal = crate::ir::Literal::new(ty, crate::ir::LiteralData::Dense(bytes.into()));
        literal.map(Attribute::Elements).map_err(|error| self.error_at(at, error.to_string()))
    }

    /// Reads `%a, %b {x.y = 1} : A, B -> C`, or `(%a, k = 8) : A -> (B, C)`.
    fn chlo(&mut self, mut pending: Pending<'a>, block: BlockId) -> Result<Pending<'a>, Error> {
        let form = match pending.name {
            "chlo.constant_like" | "chlo.ragged_dot" => return Err(self.no_assembly(&pending)),
            name if name.starts_with("chlo.broadcast_") => TypeForm::Function,
            _ => TypeForm::Arrow,
        };
        let operands: Vec<ValueId> = if pending.name == "chlo.top_k" {
            self.expect("(")?;
            let operand = self.value()?;
            self.expect(",")?;
            self.expect("k")?;
            self.expect("=")?;
            let k = self.integer()?;
            pending.set("k", Attribute::from(k));
            self.expect(")")?;
            vec![operand]
        } else {
            self.values()?
        };
        self.begin(&mut pending, operands, block);
        self.rest(&mut pending, form)?;
        Ok(pending)
    }

    /// Reads other operations of Shardy, which have keywords and attributes before or after the operand.
    fn shardy(&mut self, mut pending: Pending<'a>, block: BlockId) -> Result<Pending<'a>, Error> {
        let mnemonic = pending.name.strip_prefix("sdy.").unwrap_or_default();
        let (axes, axes_kind) = match mnemonic {
            "all_gather" => ("gathering_axes", "list_of_axis_ref_lists"),
            "all_slice" => ("slicing_axes", "list_of_axis_ref_lists"),
            "reduce_scatter" => ("reduce_scatter_axes", "list_of_axis_ref_lists"),
            "all_reduce" => ("reduction_axes", "axis_ref_list"),
            "sharded_to_unreduced" | "replicated_to_unreduced" => ("axes", "axis_ref_list"),
            "all_to_all" => ("params", "all_to_all_param_list"),
            "collective_permute" | "sharding_group" | "data_flow_edge" | "propagation_barrier" => ("", ""),
            other => {
                let message =
                    format!("the custom assembly of 'sdy.{other}' is not supported; use its generic form");
                return Err(self.unsupported_at(pending.start, message));
            }
        };
        if !axes.is_empty() {
            let text = self.balanced()?;
            pending.set(axes, Attribute::Opaque(format!("sdy<{axes_kind}{text}>").into()));
        }
        let operands = self.values()?;
        self.begin(&mut pending, operands, block);
        while self.token.kind == Kind::Bare {
            let at = self.token.start;
            let keyword = self.bare("a keyword")?;
            self.expect("=")?;
            let value = match keyword {
                "out_sharding" | "sharding" => Attribute::Sharding(self.sharding()?.into()),
                "group_id" => Attribute::from(self.integer()?),
                "allowed_direction" => {
                    let at = self.token.start;
                    let direction = self.bare("a direction")?;
                    let value = PROPAGATION_DIRECTIONS.iter().position(|&name| name == direction);
                    let value = value.ok_or_else(|| {
                        let expected = PROPAGATION_DIRECTIONS.join(", ");
                        self.error_at(at, format!("expected one of {expected}, found '{direction}'"))
                    })?;
                    Attribute::Integer { value: value as i64, ty: ElementType::I32 }
                }
                other => return Err(self.error_at(at, format!("unexpected keyword '{other}'"))),
            };
            pending.set(keyword, value);
        }
        self.rest(&mut pending, TypeForm::One)?;
        if mnemonic == "sharding_group"
            && let Some(types) = &mut pending.types
        {
            types.results.clear();
        }
        Ok(pending)
    }
}
