//! The inputs of executions.

use std::fmt;
use std::sync::Arc;

/// An input of an execution: a share of the storage, or, if it is donated, the storage itself. See the examples of
/// [`Execution`](crate::Execution) and [`ReadyExecution`](crate::ReadyExecution).
pub struct Input<B> {
    pub(crate) storage: Arc<B>,
    pub(crate) donated: bool,
}

impl<B> Input<B> {
    /// Creates an input that is not donated.
    #[inline]
    pub(crate) fn shared(storage: Arc<B>) -> Self {
        Self { storage, donated: false }
    }

    /// Returns the storage.
    #[must_use]
    pub fn get(&self) -> &B {
        &self.storage
    }

    /// Returns whether [`into_donated`](Self::into_donated) returns the storage: the host has donated it, and there is no
    /// other share. Once the result is `true`, it stays `true`.
    #[must_use]
    pub fn is_donated(&self) -> bool {
        // The buffer no longer has a share, so the number of shares can only decrease.
        self.donated && Arc::strong_count(&self.storage) == 1
    }

    /// Returns the storage itself, if it is donated and there is no other share. Results may be written to it.
    ///
    /// # Errors
    ///
    /// Returns the input if it is not donated, or if there are other shares of its storage.
    pub fn into_donated(self) -> Result<B, Self> {
        let Self { storage, donated } = self;
        if !donated {
            return Err(Self { storage, donated });
        }
        Arc::try_unwrap(storage).map_err(|storage| Self { storage, donated })
    }

    /// Removes the first donated input whose storage `fits` from a list of inputs, and returns the storage, to which a result
    /// can be written. Returns `None` if there is none: the result needs memory of its own.
    ///
    /// The inputs behind it move forward, so take the addresses of all arguments first. The program still reads the argument: it
    /// must not write to an element before its last read.
    ///
    /// ```
    /// use pjrt_plugin::Input;
    ///
    /// /// Returns the memory of an output of `size` bytes.
    /// fn memory(inputs: &mut Vec<Input<Vec<u8>>>, size: usize) -> Vec<u8> {
    ///     Input::take_donated(inputs, |bytes| bytes.len() == size).unwrap_or_else(|| vec![0; size])
    /// }
    ///
    /// assert_eq!(memory(&mut Vec::new(), 2), [0, 0]);
    /// ```
    pub fn take_donated(inputs: &mut Vec<Self>, fits: impl Fn(&B) -> bool) -> Option<B> {
        // An input that is donated has the only share.
        let position = inputs.iter().position(|input| input.is_donated() && fits(input.get()))?;
        inputs.remove(position).into_donated().ok()
    }

    /// Returns the share of the storage, for reading.
    #[must_use]
    pub fn into_shared(self) -> Arc<B> {
        self.storage
    }
}

impl<B> std::ops::Deref for Input<B> {
    type Target = B;

    fn deref(&self) -> &B {
        self.get()
    }
}

impl<B> fmt::Debug for Input<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Input({})", if self.donated { "donated" } else { "shared" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_donated_input_that_fits_and_has_no_other_share_is_taken() {
        let donated = |number: i32| Input { storage: Arc::new(number), donated: true };
        let held = donated(5);
        let share = Arc::clone(&held.storage);
        let mut inputs = vec![Input::shared(Arc::new(4)), held, donated(1), donated(6), donated(7)];
        assert_eq!(Input::take_donated(&mut inputs, |number| *number > 3), Some(6));
        assert_eq!(inputs.iter().map(|input| **input).collect::<Vec<_>>(), [4, 5, 1, 7]);
        drop(share);
        assert_eq!(Input::take_donated(&mut inputs, |number| *number > 3), Some(5));
        assert_eq!(Input::take_donated(&mut inputs, |number| *number > 7), None);
        assert_eq!(inputs.len(), 3);
    }
}
