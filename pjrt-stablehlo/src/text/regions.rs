//! Regions and blocks. A stack of the operations with open regions takes the place of recursion.

use super::lexer::Kind;
use super::parser::Parser;
use super::pending::{BlockArgument, Frame, Pending};
use crate::ir::{BlockId, Body, OpId, RegionId};
use crate::limits::MAX_REGION_DEPTH;
use crate::{Error, ErrorKind};

impl<'a> Parser<'a> {
    /// Reads the function's body after its opening brace. `entry` is its entry block if it has been created.
    pub(super) fn function_regions(&mut self, entry: Option<BlockId>) -> Result<(), Error> {
        let mut stack = vec![Frame { pending: None, region: Body::ROOT, block: entry }];
        while let Some(frame) = stack.last_mut() {
            if self.eat("}") {
                self.scopes.leave();
                let ended = stack.pop().and_then(|frame| frame.pending);
                if let Some(pending) = ended
                    && let Some(next) = self.after_region(pending)?
                {
                    stack.push(next);
                }
                continue;
            }
            if self.token.kind == Kind::Caret {
                let region = frame.region;
                frame.block = Some(self.label(region)?);
                continue;
            }
            let block = match frame.block {
                Some(block) => block,
                None => {
                    let block = self.function.body.add_block(frame.region);
                    *frame.block.insert(block)
                }
            };
            if let Some(next) = self.operation(block)? {
                if stack.len() > MAX_REGION_DEPTH {
                    let message = format!("regions are nested more than {MAX_REGION_DEPTH} deep");
                    return Err(self.other_error_at(ErrorKind::TooLarge, self.token.start, message));
                }
                stack.push(next);
            }
        }
        Ok(())
    }

    /// Begins a region in the generic form. Its block follows, with or without a label.
    pub(super) fn generic_region(&mut self, pending: Pending<'a>) -> Result<Frame<'a>, Error> {
        self.expect("{")?;
        self.scopes.enter();
        let region = self.function.body.add_region(Some(pending.op));
        Ok(Frame { pending: Some(pending), region, block: None })
    }

    /// Begins a region with one block, whose arguments are named outside the region.
    pub(super) fn block_region(
        &mut self,
        pending: Pending<'a>,
        arguments: Vec<BlockArgument<'a>>,
    ) -> Result<Frame<'a>, Error> {
        self.scopes.enter();
        let (region, block) = self.add_region(pending.op);
        for argument in arguments {
            self.add_argument(block, argument)?;
        }
        self.expect("{")?;
        Ok(Frame { pending: Some(pending), region, block: Some(block) })
    }

    /// Adds a region with one block.
    pub(super) fn add_region(&mut self, op: OpId) -> (RegionId, BlockId) {
        let region = self.function.body.add_region(Some(op));
        (region, self.function.body.add_block(region))
    }

    /// Reads `^bb0(%a: tensor<f32> loc("x"), ...):`.
    fn label(&mut self, region: RegionId) -> Result<BlockId, Error> {
        self.advance();
        let block = self.function.body.add_block(region);
        if self.at("(") {
            self.list("(", ")", |parser| {
                let argument = parser.block_argument()?;
                parser.add_argument(block, argument)
            })?;
        }
        self.expect(":")?;
        Ok(block)
    }

    /// Reads `%a: tensor<f32> loc("x")`.
    pub(super) fn block_argument(&mut self) -> Result<BlockArgument<'a>, Error> {
        let at = self.token.start;
        let name = self.expect_kind(Kind::Value, "an argument such as %a")?;
        self.expect(":")?;
        let ty = self.ty()?;
        let location = self.optional_location()?.unwrap_or_default();
        Ok(BlockArgument { name, at, ty, location })
    }

    pub(super) fn add_argument(&mut self, block: BlockId, argument: BlockArgument<'a>) -> Result<(), Error> {
        let value = self.function.body.add_argument(block, argument.ty);
        self.function.body.set_argument_location(value, argument.location);
        self.define(argument.name, value, 1, argument.at)
    }
}
