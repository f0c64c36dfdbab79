//! The client, its devices and memories, and the features that the plugin has.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt::Display;

use super::values::Value;
use crate::array::random::Random;
use crate::conform::harness::{Context, Finding, accepts, element_types, patience, performing};
use pjrt_testing::host::{Client, Code, Device, ElementType, Error, Event, HostArray, Memory};

/// The place of an array: a device, or one of the client's memories, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Device(usize),
    Memory(usize),
}

impl Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Device(device) => write!(f, "device {device}"),
            Self::Memory(memory) => write!(f, "memory {memory}"),
        }
    }
}

/// What random calls are made with.
pub(super) struct World<'c> {
    pub(super) client: &'c Client,
    pub(super) devices: Vec<Device<'c>>,
    /// The memories that belong to one device, with the number of the device.
    pub(super) memories: Vec<(usize, Memory<'c>)>,
    /// The element types that the plugin accepts.
    pub(super) types: Vec<ElementType>,
    /// The numbers of dimensions that the plugin accepts.
    ranks: Vec<usize>,
    /// The features that the plugin has for an element type.
    accepted: RefCell<HashMap<(&'static str, ElementType), bool>>,
    /// The description of the sequence that is being performed.
    sequence: RefCell<String>,
}

/// The words in messages about events that do not complete.
pub(super) const IN_VAIN: &str = "did not complete in";

/// The largest number of dimensions that is tried.
const MOST_DIMS: usize = 12;

impl<'c> World<'c> {
    pub(super) fn new(context: &Context, client: &'c Client) -> Result<Self, Finding> {
        let devices = client.addressable_devices()?;
        let mut types = Vec::new();
        for element_type in element_types(context.minor()) {
            if accepts(client, element_type)? {
                types.push(element_type);
            }
        }
        if types.is_empty() {
            return Err(Finding::Unsupported("the plugin accepts no array".to_owned()));
        }
        let mut world = Self {
            client,
            devices,
            memories: Vec::new(),
            types,
            ranks: Vec::new(),
            accepted: RefCell::default(),
            sequence: RefCell::default(),
        };
        world.find_ranks()?;
        world.find_memories()?;
        Ok(world)
    }

    /// Finds the numbers of dimensions that arrays can have.
    fn find_ranks(&mut self) -> Result<(), Finding> {
        let element_type = self.types[0];
        let bytes = vec![1; element_type.byte_size()];
        for rank in 0..=MOST_DIMS {
            let dims = vec![1; rank];
            let array = HostArray::new(&bytes, element_type, &dims);
            match self.client.upload(&array, Some(self.devices[0]), None) {
                Err(error) if is_refusal(&error) => {}
                uploaded => {
                    uploaded?;
                    self.ranks.push(rank);
                }
            }
        }
        Ok(())
    }

    /// Finds the memories to which arrays can be uploaded.
    fn find_memories(&mut self) -> Result<(), Finding> {
        let element_type = self.types[0];
        let bytes = vec![1; element_type.byte_size()];
        let places = match self.client.places() {
            Err(error) if error.code == Code::UNIMPLEMENTED => return Ok(()),
            places => places?,
        };
        for (device, memory) in places {
            let array = HostArray::new(&bytes, element_type, &[1]);
            let refused =
                self.client.upload(&array, None, Some(memory)).is_err_and(|error| is_refusal(&error));
            let number = self.devices.iter().position(|own| *own == device);
            if let Some(number) = number.filter(|_| !refused) {
                self.memories.push((number, memory));
            }
        }
        Ok(())
    }

    /// Notes which sequence of calls begins.
    pub(super) fn begin(&self, sequence: String) {
        self.sequence.replace(sequence);
    }

    /// Performs a step, which the report names if the plugin crashes or hangs in it.
    pub(super) fn performing<T>(&self, step: &impl Display, work: impl FnOnce() -> T) -> T {
        performing(format!("{step} (in {})", self.sequence.borrow()), work)
    }

    /// Returns a random place.
    pub(super) fn place(&self, random: &mut Random) -> Place {
        if self.memories.is_empty() || random.one_in(2) {
            Place::Device(random.below(self.devices.len()))
        } else {
            Place::Memory(random.below(self.memories.len()))
        }
    }

    /// Returns the number of the device of a place.
    pub(super) fn device_of(&self, place: Place) -> usize {
        match place {
            Place::Device(device) => device,
            Place::Memory(memory) => self.memories[memory].0,
        }
    }

    /// Returns the number of the default memory of a device, if hosts can use it.
    pub(super) fn default_memory(&self, device: usize) -> Option<usize> {
        let memory = self.devices[device].default_memory().ok()?;
        self.memories.iter().position(|(_, own)| *own == memory)
    }

    /// Returns random dimensions that the plugin accepts.
    pub(super) fn dims(&self, random: &mut Random) -> Vec<i64> {
        let rank = *random.of(&self.ranks);
        super::values::random_dims(random, rank)
    }

    /// Returns a random array.
    pub(super) fn value(&self, random: &mut Random) -> Value {
        let element_type = *random.of(&self.types);
        let dims = self.dims(random);
        Value::random(random, element_type, &dims)
    }

    /// Returns the result of a call that uses a feature, or `None` if the plugin does not have the feature for this type. A
    /// plugin that has accepted the feature for the type must not refuse it as an invalid argument.
    pub(super) fn try_feature<T>(
        &self,
        feature: &'static str,
        element_type: ElementType,
        what: &dyn Display,
        outcome: Result<T, Error>,
    ) -> Result<Option<T>, Finding> {
        let key = (feature, element_type);
        match outcome {
            Ok(result) => {
                self.accepted.borrow_mut().insert(key, true);
                Ok(Some(result))
            }
            Err(error) if error.code == Code::UNIMPLEMENTED => Ok(None),
            Err(error)
                if error.code == Code::INVALID_ARGUMENT && !self.accepted.borrow().contains_key(&key) =>
            {
                Ok(None)
            }
            Err(error) => Err(Finding::Wrong(format!("{what} fails: {error}"))),
        }
    }
}

/// Returns `true` if a plugin says that it does not support something.
pub(super) fn is_refusal(error: &Error) -> bool {
    [Code::UNIMPLEMENTED, Code::INVALID_ARGUMENT].contains(&error.code)
}

/// Waits for an event by a callback, and returns its outcome.
pub(super) fn outcome(event: &Event, what: &dyn Display) -> Result<Result<(), Error>, Finding> {
    if event.is_ready()? {
        return Ok(event.wait());
    }
    event
        .on_ready()?
        .wait(patience())
        .ok_or_else(|| Finding::Wrong(format!("the event of {what} {IN_VAIN} {limit:?}", limit = patience())))
}

/// Waits for an event that completes without an error.
pub(super) fn completes(event: &Event, what: &dyn Display) -> Result<(), Finding> {
    outcome(event, what)?
        .map_err(|error| Finding::Wrong(format!("the event of {what} has the error {error}")))
}
