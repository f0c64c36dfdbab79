//! Attributes of Shardy in program text.

use super::parser::{Parser, shortened};
use crate::Error;
use crate::ir::{Attribute, Mesh, Str, TensorSharding};

impl Parser<'_> {
    /// Reads an attribute of Shardy, given as its text without `#`.
    pub(super) fn shardy_attribute(&self, text: &str, at: usize) -> Result<Attribute, Error> {
        match super::sharding::parse(text) {
            Some(attribute) => Ok(attribute),
            None => {
                Err(self
                    .error_at(at, format!("expected an attribute of Shardy, found '{}'", shortened(text))))
            }
        }
    }

    /// Reads `<@mesh, [{"x"}]>`.
    pub(super) fn sharding(&mut self) -> Result<TensorSharding, Error> {
        let at = self.token.start;
        let text = format!("sdy.sharding{}", self.balanced()?);
        match self.shardy_attribute(&text, at)? {
            Attribute::Sharding(sharding) => Ok((*sharding).clone()),
            other => Err(self.error_at(at, format!("expected a sharding, found {}", other.kind()))),
        }
    }

    /// Reads `[<@mesh, [{"x"}]>, ...]`.
    pub(super) fn shardings(&mut self) -> Result<Attribute, Error> {
        let shardings = self.list("[", "]", Self::sharding)?;
        Ok(Attribute::ShardingPerValue(shardings.into()))
    }

    /// Reads `{"x", "y"}`.
    pub(super) fn manual_axes(&mut self) -> Result<Attribute, Error> {
        let axes: Vec<Str> = self.list("{", "}", Self::string)?;
        Ok(Attribute::ManualAxes(axes.into()))
    }

    /// Reads `<["x"=2], device_ids=[1, 0]>`.
    pub(super) fn mesh(&mut self) -> Result<Mesh, Error> {
        let at = self.token.start;
        let text = format!("sdy.mesh{}", self.balanced()?);
        match self.shardy_attribute(&text, at)? {
            Attribute::Mesh(mesh) => Ok((*mesh).clone()),
            other => Err(self.error_at(at, format!("expected a mesh, found {}", other.kind()))),
        }
    }
}
