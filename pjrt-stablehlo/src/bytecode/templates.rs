//! Operations that were made before: files write the same properties once, however many operations have them.

use crate::ir::{DictionaryAttribute, Op};

/// What an operation's attributes follow from. Two operations with the same key have the same.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Key {
    /// Index of the operation's name.
    pub(super) name: usize,
    /// Index of its properties.
    pub(super) properties: usize,
    /// Index of the dictionary of its other attributes.
    pub(super) dictionary: Option<u64>,
}

/// An operation as it is before anything is known about its operands.
pub(super) struct Template {
    pub(super) op: Op,
    /// The attributes that are not the operation's own.
    pub(super) discardable: DictionaryAttribute,
    /// Numbers and entries that copying the operation's attributes takes.
    pub(super) numbers: usize,
}

/// The last operation that had them, for each properties of the file.
pub(super) struct Templates(Vec<Option<Box<(Key, Template)>>>);

impl Templates {
    /// No template, for a file with so many properties.
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
