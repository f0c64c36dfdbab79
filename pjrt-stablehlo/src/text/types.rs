//! Types.

use std::sync::Arc;

use super::lexer::Kind;
use super::parser::{Parser, shortened};
use crate::ir::{Attribute, DYNAMIC, ElementType, FunctionType, QuantizedType, Str, TensorType, Type};
use crate::limits::MAX_RANK;
use crate::{Error, ErrorKind};

/// The contents of a shaped type: its sizes and element type.
struct Shape {
    /// The sizes; `None` for `*`.
    dims: Option<Vec<i64>>,
    element: Type,
}

impl<'a> Parser<'a> {
    /// Reads a type.
    pub(super) fn ty(&mut self) -> Result<Type, Error> {
        match self.token.kind {
            Kind::Exclamation => self.dialect_type(),
            Kind::Bare => self.builtin_type(),
            Kind::Punctuation if self.at("(") => Ok(Type::Function(self.nested(Self::function_type)?.into())),
            _ => Err(self.expected("a type")),
        }
    }

    /// Reads `(tensor<f32>) -> tensor<f32>`.
    pub(super) fn function_type(&mut self) -> Result<FunctionType, Error> {
        let inputs = self.list("(", ")", Self::ty)?;
        self.expect("->")?;
        Ok(FunctionType { inputs, results: self.result_types()? })
    }

    /// Reads one type, or several types in parentheses.
    pub(super) fn result_types(&mut self) -> Result<Vec<Type>, Error> {
        if self.at("(") { self.list("(", ")", Self::ty) } else { Ok(vec![self.ty()?]) }
    }

    /// Reads types, separated by commas.
    pub(super) fn types(&mut self) -> Result<Vec<Type>, Error> {
        let mut types = vec![self.ty()?];
        while self.eat(",") {
            types.push(self.ty()?);
        }
        Ok(types)
    }

    fn builtin_type(&mut self) -> Result<Type, Error> {
        let start = self.token.start;
        let name = self.found();
        match name {
            "tensor" => self.tensor(),
            "memref" => {
                self.advance();
                self.nested(Self::buffer)
            }
            "tuple" => {
                self.advance();
                self.nested(|parser| Ok(Type::Tuple(parser.list("<", ">", Self::ty)?.into())))
            }
            "complex" => {
                self.advance();
                self.expect("<")?;
                let part = self.nested(Self::ty)?;
                self.expect(">")?;
                match part {
                    Type::Scalar(ElementType::F32) => Ok(Type::Scalar(ElementType::ComplexF32)),
                    Type::Scalar(ElementType::F64) => Ok(Type::Scalar(ElementType::ComplexF64)),
                    other => {
                        Err(self
                            .unsupported_at(start, format!("complex numbers of {other} are not supported")))
                    }
                }
            }
            "none" => {
                self.advance();
                Ok(Type::None)
            }
            _ => {
                if let Some(ty) = ElementType::from_name(name) {
                    self.advance();
                    return Ok(Type::Scalar(ty));
                }
                match unsupported(name) {
                    Some(message) => Err(self.unsupported_at(start, message)),
                    None => Err(self.expected("a type")),
                }
            }
        }
    }

    /// Reads `tensor<2x?xf32>`. Most types occur repeatedly, so a type is looked up by its text first.
    fn tensor(&mut self) -> Result<Type, Error> {
        let start = self.token.start;
        let key = simple_end(self.text.as_bytes(), self.token.end).map(|end| &self.text[start..end]);
        if let Some(key) = key
            && let Some(ty) = self.types.get(key)
        {
            let ty = ty.clone();
            self.weight += 1;
            self.previous_end = start + key.len();
            self.seek(self.previous_end);
            return Ok(ty);
        }
        self.advance();
        let ty = self.nested(Self::tensor_contents)?;
        if let Some(key) = key
            && self.previous_end == start + key.len()
            && !self.is_incomplete()
        {
            self.types.insert(key, ty.clone());
        }
        Ok(ty)
    }

    fn tensor_contents(&mut self) -> Result<Type, Error> {
        let start = self.token.end;
        self.expect("<")?;
        let Shape { dims, element } = self.shape()?;
        let Some(dims) = dims else {
            self.expect(">")?;
            return Ok(Type::UnrankedTensor(element.into()));
        };
        let mut encoding = None;
        if self.eat(",") {
            let at = self.token.start;
            encoding = Some((self.attribute()?, at));
        }
        self.expect(">")?;
        self.ranked_tensor(dims, element, start, encoding)
    }

    /// Creates a ranked tensor type from the parts of its text: the sizes, the element type and its position, and the
    /// encoding and its position.
    ///
    /// This is a separate function to keep the stack frame of the recursive reader of nested types small.
    fn ranked_tensor(
        &self,
        dims: Vec<i64>,
        element: Type,
        at: usize,
        encoding: Option<(Attribute, usize)>,
    ) -> Result<Type, Error> {
        let (mut bounds, mut other): (Box<[i64]>, Option<Str>) = Default::default();
        match encoding {
            None => {}
            Some((Attribute::Bounds(values), at)) => {
                let fits = values
                    .iter()
                    .zip(&dims)
                    .all(|(&bound, &size)| bound == DYNAMIC || (size == DYNAMIC && bound >= 0));
                if values.len() != dims.len() || !fits {
                    let message = "expected a bound or '?' for each dynamic dimension and '?' for the others";
                    return Err(self.error_at(at, message));
                }
                bounds = (*values).into();
            }
            Some((encoding, _)) => other = Some(encoding.to_string().into()),
        }
        let (element, quantization) = self.element(element, at)?;
        Ok(Type::Tensor(TensorType::from_parts(dims.into(), bounds, element, quantization, other)))
    }

    /// Reads `memref<2xf32>` after its keyword.
    fn buffer(&mut self) -> Result<Type, Error> {
        let start = self.token.end;
        self.expect("<")?;
        let Shape { dims, element } = self.shape()?;
        let Some(dims) = dims else {
            return Err(self.unsupported_at(start, "unranked buffers are not supported"));
        };
        if !self.at(">") {
            return Err(self.unsupported_at(
                self.token.start,
                "buffers with a layout or memory space are not supported",
            ));
        }
        self.advance();
        let (element, quantization) = self.element(element, start)?;
        Ok(Type::Buffer(TensorType::from_parts(dims.into(), Box::default(), element, quantization, None)))
    }

    /// Returns the element type of a tensor.
    fn element(&self, ty: Type, at: usize) -> Result<(ElementType, Option<Arc<QuantizedType>>), Error> {
        match ty {
            Type::Scalar(ElementType::Tf32) | Type::None => {}
            Type::Scalar(ty) => return Ok((ty, None)),
            Type::Quantized(quantization) => return Ok((ElementType::Quantized, Some(quantization))),
            _ => {}
        }
        Err(self.error_at(at, format!("expected an element type, found {ty}")))
    }

    /// Reads `2x?xf32`: the sizes, which do not correspond to tokens, and the element type.
    fn shape(&mut self) -> Result<Shape, Error> {
        if self.eat("*") {
            let at = self.token.start;
            if !self.found().starts_with('x') {
                return Err(self.expected("'x'"));
            }
            self.seek(at + 1);
            return Ok(Shape { dims: None, element: self.ty()? });
        }
        let start = self.token.start;
        let mut dims = Vec::new();
        let bytes = self.text.as_bytes();
        while self.at("?") || self.token.kind == Kind::Integer || self.token.kind == Kind::Float {
            // The check is made for each size rather than after the loop, because each step scans the rest of the word
            // with the sizes.
            if dims.len() == MAX_RANK {
                let message = format!("a tensor has more than {MAX_RANK} dimensions");
                return Err(self.other_error_at(ErrorKind::TooLarge, start, message));
            }
            let mut at = self.token.start;
            let digits = bytes[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
            if digits == 0 {
                dims.push(DYNAMIC);
                at += 1;
            } else {
                let size = self.text[at..at + digits].parse::<i64>();
                dims.push(size.map_err(|_| {
                    self.error_at(
                        at,
                        format!(
                            "expected a size that fits in 64 bits, found {}",
                            &self.text[at..at + digits]
                        ),
                    )
                })?);
                at += digits;
            }
            self.seek(at);
            if !self.found().starts_with('x') {
                return Err(self.expected("'x' after a size"));
            }
            self.seek(self.token.start + 1);
        }
        Ok(Shape { dims: Some(dims), element: self.ty()? })
    }

    fn dialect_type(&mut self) -> Result<Type, Error> {
        let name = self.found();
        match name {
            "!stablehlo.token" | "!mhlo.token" => {
                self.advance();
                Ok(Type::Token)
            }
            "!shape.witness" => {
                self.advance();
                Ok(Type::Witness)
            }
            "!stablehlo.future" => {
                self.advance();
                self.nested(|parser| Ok(Type::Future(parser.list("<", ">", Self::ty)?.into())))
            }
            "!quant.uniform" => {
                self.advance();
                self.nested(|parser| Ok(Type::Quantized(parser.quantized()?.into())))
            }
            _ if ["!builtin.", "!chlo.", "!func.", "!sdy.", "!stablehlo.", "!vhlo."]
                .iter()
                .any(|dialect| name.starts_with(dialect)) =>
            {
                Err(self.unsupported_at(self.token.start, format!("unknown type '{}'", shortened(name))))
            }
            _ if name.contains('.') || self.is_bracket_next() => {
                let start = self.token.start + 1;
                self.advance();
                if self.at("<") && self.token.start == self.previous_end {
                    self.balanced()?;
                }
                Ok(Type::Opaque(self.text[start..self.previous_end].into()))
            }
            _ => self.type_alias(),
        }
    }

    /// Returns `true` if `<` follows the current token without whitespace.
    pub(super) fn is_bracket_next(&self) -> bool {
        self.text[self.token.end..].starts_with('<')
    }
}

/// Returns a message for a type of MLIR that programs cannot use; `None` if MLIR has no such type.
fn unsupported(name: &str) -> Option<String> {
    let is_integer = |prefix: &str| {
        let digits = name.strip_prefix(prefix);
        digits.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
    };
    if is_integer("si") {
        let plain = shortened(&name[1..]);
        return Some(format!(
            "type '{}' is not supported: StableHLO's signed integers are '{plain}'",
            shortened(name)
        ));
    }
    let is_known = ["i", "ui"].into_iter().any(is_integer) || ["vector", "f80", "f128"].contains(&name);
    is_known.then(|| format!("type '{}' is not supported", shortened(name)))
}

/// Returns the end of a `<...>` that begins at a byte and contains neither quotes nor line breaks.
fn simple_end(bytes: &[u8], start: usize) -> Option<usize> {
    const MAX_LEN: usize = 128;
    let mut depth = 0;
    for (at, byte) in bytes.iter().enumerate().skip(start).take(MAX_LEN) {
        match byte {
            b'<' => depth += 1,
            b'>' if depth == 1 => return Some(at + 1),
            b'>' => depth -= 1,
            b'"' | b'\n' => return None,
            // Aliases are read each time, so that their tokens are counted.
            b'#' => return None,
            _ if depth == 0 => return None,
            _ => {}
        }
    }
    None
}
