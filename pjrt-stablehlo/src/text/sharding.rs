//! Attributes of Shardy in text form, which occur in program text and in bytecode of older writers.

use super::lexer::{string_end, unquoted};
use crate::ir::{
    Attribute, AxisRef, DimensionSharding, Mesh, MeshAxis, MeshReference, Reduction, Str, SubAxis,
    TensorSharding,
};

/// Parses an attribute from its text without `#`, such as `sdy.sharding<@mesh, [{"x"}, {}]>`. Returns `None` if it is
/// not a supported attribute of Shardy.
pub(crate) fn parse(text: &str) -> Option<Attribute> {
    let (name, _) = text.split_at(text.find(['<', '{', ' '])?);
    let mut scanner = Scanner { rest: &text[name.len()..] };
    let attribute = match name {
        "sdy.sharding" => Attribute::Sharding(scanner.sharding()?.into()),
        "sdy.mesh" => Attribute::Mesh(scanner.mesh()?.into()),
        "sdy.sharding_per_value" => {
            scanner.expect("<")?;
            let shardings = scanner.list("[", "]", Scanner::sharding)?;
            scanner.expect(">")?;
            Attribute::ShardingPerValue(shardings.into())
        }
        "sdy.manual_axes" => Attribute::ManualAxes(scanner.list("{", "}", Scanner::string)?.into()),
        "sdy" => {
            scanner.expect("<")?;
            scanner.expect("manual_axes")?;
            let axes = scanner.list("{", "}", Scanner::string)?;
            scanner.expect(">")?;
            Attribute::ManualAxes(axes.into())
        }
        _ => return None,
    };
    scanner.rest.trim_start().is_empty().then_some(attribute)
}

struct Scanner<'a> {
    rest: &'a str,
}

impl Scanner<'_> {
    fn eat(&mut self, token: &str) -> bool {
        let rest = self.rest.trim_start();
        let Some(rest) = rest.strip_prefix(token) else { return false };
        self.rest = rest;
        true
    }

    fn expect(&mut self, token: &str) -> Option<()> {
        self.eat(token).then_some(())
    }

    fn list<T>(
        &mut self,
        open: &str,
        close: &str,
        mut element: impl FnMut(&mut Self) -> Option<T>,
    ) -> Option<Vec<T>> {
        self.expect(open)?;
        let mut elements = Vec::new();
        while !self.eat(close) {
            if !elements.is_empty() {
                self.expect(",")?;
            }
            elements.push(element(self)?);
        }
        Some(elements)
    }

    fn string(&mut self) -> Option<Str> {
        let rest = self.rest.trim_start();
        let (quoted, rest) =
            rest.split_at(string_end(rest.as_bytes(), rest.find('"').filter(|&at| at == 0)?)?);
        self.rest = rest;
        String::from_utf8(unquoted(quoted)).ok().map(Str::from)
    }

    /// Reads the name of a symbol, after its `@`.
    fn symbol(&mut self) -> Option<Str> {
        if self.rest.starts_with('"') {
            return self.string();
        }
        let end = self.rest.find(|c: char| !(c.is_alphanumeric() || "_$.-".contains(c)));
        let (name, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        Some(name.into())
    }

    fn integer(&mut self) -> Option<i64> {
        let rest = self.rest.trim_start();
        let sign = usize::from(rest.starts_with('-'));
        let len = rest[sign..].find(|c: char| !c.is_ascii_digit()).map_or(rest.len(), |len| sign + len);
        let (digits, rest) = rest.split_at(len);
        self.rest = rest;
        digits.parse().ok()
    }

    fn mesh(&mut self) -> Option<Mesh> {
        self.expect("<")?;
        let axes = self.list("[", "]", |scanner| {
            let name = scanner.string()?;
            scanner.expect("=")?;
            Some(MeshAxis { name, size: scanner.integer()? })
        })?;
        let mut device_ids = Vec::new();
        if self.eat(",") {
            self.expect("device_ids=")?;
            device_ids = self.list("[", "]", Self::integer)?;
        }
        self.expect(">")?;
        Some(Mesh { axes: axes.into(), device_ids: device_ids.into() })
    }

    fn axis_ref(&mut self) -> Option<AxisRef> {
        let name = self.string()?;
        let mut sub_axis = None;
        if self.eat(":") {
            self.expect("(")?;
            let pre_size = self.integer()?;
            self.expect(")")?;
            sub_axis = Some(SubAxis { pre_size, size: self.integer()? });
        }
        Some(AxisRef { name, sub_axis })
    }

    fn dimension(&mut self) -> Option<DimensionSharding> {
        self.expect("{")?;
        let mut dimension = DimensionSharding { is_closed: true, ..DimensionSharding::default() };
        let mut axes = Vec::new();
        while !self.eat("}") {
            if !axes.is_empty() {
                self.expect(",")?;
            }
            if self.eat("?") {
                dimension.is_closed = false;
                self.expect("}")?;
                break;
            }
            axes.push(self.axis_ref()?);
        }
        dimension.axes = axes.into();
        if self.eat("p") {
            dimension.priority = Some(self.integer().filter(|&priority| priority >= 0)?);
        }
        Some(dimension)
    }

    fn sharding(&mut self) -> Option<TensorSharding> {
        self.expect("<")?;
        let mesh = if self.eat("@") {
            MeshReference::Symbol(self.symbol()?)
        } else {
            self.expect("mesh")?;
            MeshReference::Mesh(self.mesh()?)
        };
        self.expect(",")?;
        let dim_shardings = self.list("[", "]", Self::dimension)?.into();
        let mut sharding = TensorSharding {
            mesh,
            dim_shardings,
            replicated_axes: Box::default(),
            unreduced_axes: Box::default(),
            reduction: Reduction::Sum,
        };
        while self.eat(",") {
            if self.eat("replicated=") {
                sharding.replicated_axes = self.list("{", "}", Self::axis_ref)?.into();
            } else {
                self.expect("unreduced=")?;
                let stated = Reduction::ALL.iter().find(|reduction| self.eat(reduction.name()));
                sharding.reduction = stated.copied().unwrap_or(Reduction::Sum);
                sharding.unreduced_axes = self.list("{", "}", Self::axis_ref)?.into();
            }
        }
        self.expect(">")?;
        Some(sharding)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_what_shardy_prints() {
        for text in [
            r#"sdy.sharding<@mesh, [{"x", "y":(1)2}, {}, {"z", ?}p1], replicated={"w"}>"#,
            r#"sdy.mesh<["x"=2, "y"=4], device_ids=[1, 0]>"#,
            r#"sdy.sharding_per_value<[<@mesh, [{"x"}]>, <@mesh, []>]>"#,
            r#"sdy<manual_axes{"x", "y"}>"#,
            r#"sdy.sharding<@"a mesh", [{"\C3\A9", "\22q\22"}]>"#,
            r#"sdy.sharding<@mesh, [], unreduced={"x"}>"#,
            r#"sdy.sharding<@mesh, [], unreduced=max{"x"}>"#,
            r#"sdy.sharding<@mesh, [{}], replicated={"x"}, unreduced=min{"y"}>"#,
        ] {
            let attribute = parse(text).unwrap();
            assert_eq!(attribute.to_string(), format!("#{text}"));
        }
        let (stated, default) =
            (r#"sdy.sharding<@m, [], unreduced=sum{"x"}>"#, r#"sdy.sharding<@m, [], unreduced={"x"}>"#);
        assert_eq!(parse(stated), parse(default));
        assert_eq!(parse(r#"sdy.sharding<@m, [], unreduced=product{"x"}>"#), None);
        assert_eq!(parse("sdy.sharding<@mesh, [{}"), None);
        assert_eq!(parse("other.thing<1>"), None);
    }
}
