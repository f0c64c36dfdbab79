//! The steps of sequences that create, copy, read and end arrays, and the random choice of them.

use std::fmt;
use std::rc::Rc;

use super::values::{Strided, Value};
use super::world::{Place, World};
use crate::array::random::Random;
use pjrt_testing::host::Semantics;

/// An upload from memory with strides.
#[derive(Clone)]
pub(super) struct Upload {
    pub(super) source: Rc<Strided>,
    pub(super) semantics: Semantics,
    /// The number of bytes by which the host's memory is misaligned.
    pub(super) skew: usize,
    /// The order of dimensions on the device, from major to minor.
    pub(super) order: Option<Vec<usize>>,
    pub(super) place: Place,
}

/// A step. Arrays have numbers; a step whose array does not exist does nothing, so that steps can be left out.
#[derive(Clone)]
pub(super) enum Step {
    Upload(usize, Upload),
    /// Creates an array in a memory, whose elements the host provides later. The flag chooses a transfer manager instead of an
    /// alias.
    Promise(usize, Rc<Value>, usize, bool),
    /// Provides the elements, or an error.
    Provide(usize, bool),
    /// Copies the first array to a place, as the second one.
    Copy(usize, usize, Place),
    /// Starts a readback in an order of dimensions, or by strides, into memory that is misaligned by some bytes.
    Read {
        array: usize,
        order: Option<Vec<usize>>,
        by_strides: bool,
        skew: usize,
    },
    /// Copies raw bytes: which part in units of 1/1000 of the array, and whether the destination is passed later.
    ReadRaw {
        array: usize,
        part: (usize, usize),
        later: bool,
    },
    /// Waits for the oldest readback of an array.
    Finish(usize),
    /// Compares all functions that describe an array.
    Describe(usize),
    Delete(usize),
    Destroy(usize),
}

impl Step {
    /// Returns the numbers of the arrays that the step uses or creates.
    pub(super) fn arrays(&self) -> Vec<usize> {
        match self {
            Self::Copy(from, to, _) => vec![*from, *to],
            Self::Upload(array, _)
            | Self::Promise(array, ..)
            | Self::Provide(array, _)
            | Self::Read { array, .. }
            | Self::ReadRaw { array, .. }
            | Self::Finish(array)
            | Self::Describe(array)
            | Self::Delete(array)
            | Self::Destroy(array) => vec![*array],
        }
    }
}

impl fmt::Display for Upload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the upload of {} to {} with {:?}", self.source.value, self.place, self.semantics)?;
        if let Some(strides) = &self.source.strides {
            write!(f, ", byte_strides {strides:?}")?;
        }
        if let Some(order) = &self.order {
            let order: Vec<&usize> = order.iter().rev().collect();
            write!(f, ", a device_layout with minor_to_major {order:?}")?;
        }
        if self.skew > 0 {
            write!(f, ", from an address {} bytes after a multiple of 64", self.skew)?;
        }
        Ok(())
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Upload(array, upload) => write!(f, "array {array} is {upload}"),
            Self::Promise(array, value, memory, by_transfer) => {
                let how = if *by_transfer { "a transfer manager" } else { "an alias" };
                write!(f, "array {array} is {value} of {how} in memory {memory}, without its elements yet")
            }
            Self::Provide(array, false) => write!(f, "provide the elements of array {array}"),
            Self::Provide(array, true) => write!(f, "set array {array} to an error"),
            Self::Copy(from, to, place) => write!(f, "array {to} is a copy of array {from} to {place}"),
            Self::Read { array, order, by_strides, skew } => {
                write!(f, "read array {array}")?;
                if let Some(order) = order {
                    let how = if *by_strides { "strides" } else { "minor_to_major" };
                    let order: Vec<&usize> = order.iter().rev().collect();
                    write!(f, " with a host_layout of {how} in the order {order:?} from minor to major")?;
                }
                write!(f, " to an address {skew} bytes after a multiple of 64")
            }
            Self::ReadRaw { array, part: (start, end), later } => {
                let how = if *later { ", passing the destination later" } else { "" };
                write!(f, "copy raw bytes of array {array} from {start}/1000 to {end}/1000{how}")
            }
            Self::Finish(array) => write!(f, "wait for a readback of array {array}"),
            Self::Describe(array) => write!(f, "describe array {array}"),
            Self::Delete(array) => write!(f, "delete array {array}"),
            Self::Destroy(array) => write!(f, "destroy array {array}"),
        }
    }
}

impl World<'_> {
    /// Returns a random order of dimensions.
    pub(super) fn order(&self, random: &mut Random, rank: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..rank).collect();
        random.shuffle(&mut order);
        order
    }

    /// Returns a random upload.
    pub(super) fn upload_step(&self, random: &mut Random) -> Upload {
        let value = self.value(random);
        let rank = value.dims.len();
        let source = match random.below(3) {
            0 => Strided::dense(value),
            way => Strided::random(random, value, way == 1),
        };
        let order = random.one_in(4).then(|| self.order(random, rank));
        let skew = if random.one_in(2) { random.below(64) } else { 0 };
        let semantics = *random.of(&Semantics::ALL);
        Upload { source: Rc::new(source), semantics, skew, order, place: self.place(random) }
    }

    /// Returns a random readback of an array.
    pub(super) fn read_step(&self, random: &mut Random, array: usize, rank: usize) -> Step {
        let order = random.one_in(2).then(|| self.order(random, rank));
        let skew = if random.one_in(2) { random.below(64) } else { 0 };
        Step::Read { array, order, by_strides: random.one_in(3), skew }
    }
}

/// Returns a random part of an array in thousandths.
pub(super) fn part(random: &mut Random) -> (usize, usize) {
    let ends = [random.below(1001), random.below(1001)];
    match random.below(4) {
        0 => (0, 1000),
        1 => (ends[0], 1000),
        _ => (ends[0].min(ends[1]), ends[0].max(ends[1])),
    }
}

/// An array that exists at some time of a sequence.
struct Known {
    number: usize,
    rank: usize,
    /// `true` if the host has not provided the elements.
    is_promise: bool,
}

/// Returns a random sequence of this many steps.
pub(super) fn steps(world: &World<'_>, random: &mut Random, count: usize) -> Vec<Step> {
    let mut all = Vec::new();
    let mut known: Vec<Known> = Vec::new();
    for number in 0..count {
        if known.is_empty() || random.one_in(6) {
            let upload = world.upload_step(random);
            known.push(Known { number, rank: upload.source.value.dims.len(), is_promise: false });
            all.push(Step::Upload(number, upload));
            continue;
        }
        let at = random.below(known.len());
        let Known { number: array, rank, is_promise } = known[at];
        all.push(match random.below(20) {
            0..=1 if !world.memories.is_empty() => {
                let value = Rc::new(world.value(random));
                known.push(Known { number, rank: value.dims.len(), is_promise: true });
                Step::Promise(number, value, random.below(world.memories.len()), random.one_in(2))
            }
            2..=3 if is_promise => {
                known[at].is_promise = false;
                Step::Provide(array, random.one_in(4))
            }
            0..=5 => {
                known.push(Known { number, rank, is_promise: false });
                Step::Copy(array, number, world.place(random))
            }
            6..=9 => world.read_step(random, array, rank),
            10..=12 => Step::ReadRaw { array, part: part(random), later: random.one_in(3) },
            13..=14 => Step::Finish(array),
            15..=17 => Step::Describe(array),
            // The host keeps what it promised to fill.
            _ if is_promise => Step::Describe(array),
            18 => Step::Delete(array),
            _ => {
                known.remove(at);
                Step::Destroy(array)
            }
        });
    }
    all
}
