//! A cache of decoded operations. Files contain equal properties once, however many operations have them.

use crate::ir::{DictionaryAttribute, Op};

/// The parts that determine an operation's attributes. Operations with equal keys have equal attributes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Key {
    /// The index of the operation's name.
    pub(super) name: usize,
    /// The index of its properties.
    pub(super) properties: usize,
    /// The index of the dictionary of its other attributes.
    pub(super) dictionary: Option<u64>,
}

/// A decoded operation without operands.
pub(super) struct Template {
    pub(super) op: Op,
    /// The discardable attributes.
    pub(super) discardable: DictionaryAttribute,
    /// The number of elements and entries that a copy of the operation's attributes takes.
    pub(super) numbers: usize,
}

/// For each properties entry of the file, the last operation that had it.
pub(super) struct Templates(Vec<Option<Box<(Key, Template)>>>);

impl Templates {
    /// Creates an empty cache for a file with this number of properties.
    pub(super) fn new(properties: usize) -> Self {
        Templates(std::iter::repeat_with(|| None).take(properties).collect())
    }

    pub(super) fn get(&self, key: Key) -> Option<&Template> {
        let (found, template) = &**self.0[key.properties].as_ref()?;
        (*found == key).then_some(template)
    }

    pub(super) fn set(&mut self, key: Key, template: Template) {
        self.0[key.properties] = Some(Box::new((key, template)));
    }
}
