//! Sequences that create, copy, read, describe and end arrays.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::rc::Rc;

use super::facts::Facts;
use super::plan::{Theme, without_parts, write_steps};
use super::promise::{ERROR, Promise};
use super::steps::{Step, Upload, steps};
use super::values::{Value, layout};
use super::world::{Place, World, completes, is_refusal, outcome};
use crate::array::random::Random;
use crate::conform::harness::{Finding, Verdict, dense_strides, ensure};
use pjrt_testing::host::{
    Buffer, Code, CopyLayout, Error, Event, FutureCopy, HostArray, HostMemory, Layout, Semantics,
};

/// Sequences of steps.
pub(super) struct Arrays<'w, 'c>(pub(super) &'w World<'c>);

/// A sequence of steps.
#[derive(Clone)]
pub(super) struct Plan(pub(super) Vec<Step>);

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_steps(f, &self.0)
    }
}

impl Theme for Arrays<'_, '_> {
    type Plan = Plan;

    fn plan(&self, random: &mut Random) -> Plan {
        let count = 10 + random.below(50);
        Plan(steps(self.0, random, count))
    }

    fn run(&self, plan: &Plan) -> Verdict {
        let mut run = Run { world: self.0, arrays: BTreeMap::new(), lent: RefCell::default() };
        for step in &plan.0 {
            self.0.performing(step, || run.step(step)).map_err(|finding| at(step, finding))?;
        }
        run.end()
    }

    fn simpler(&self, plan: &Plan) -> Vec<Plan> {
        let last = plan.0.last().map(Step::arrays).unwrap_or_default();
        let related: Vec<Step> = plan
            .0
            .iter()
            .filter(|step| step.arrays().iter().any(|array| last.contains(array)))
            .cloned()
            .collect();
        let first = if related.len() < plan.0.len() { vec![related] } else { Vec::new() };
        first.into_iter().chain(without_parts(&plan.0)).map(Plan).collect()
    }
}

/// Adds the step to a finding.
fn at(step: &Step, finding: Finding) -> Finding {
    match finding {
        Finding::Wrong(why) => Finding::Wrong(format!("{why} (in the step: {step})")),
        other => other,
    }
}

/// The state of the elements of an array and of its copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The host has not provided them.
    Promised,
    There,
    Failed,
}

/// The elements that an array and its copies have, or will have.
struct Origin {
    value: Rc<Value>,
    state: Cell<State>,
}

/// An array, and what the model knows about it.
struct Object {
    buffer: Buffer,
    origin: Rc<Origin>,
    place: Place,
    /// How the array was created.
    made: String,
    /// `true` if the host chose a layout for the device, for this array or for the one that it is a copy of.
    is_laid_out: bool,
    is_deleted: bool,
    facts: Facts,
    promise: Option<Promise>,
    reads: VecDeque<Read>,
}

/// A readback that was started.
enum Read {
    Whole { memory: HostMemory, event: Event, order: Option<Vec<usize>>, what: String },
    Raw { memory: HostMemory, event: Event, start: usize, what: String },
    Later { copy: FutureCopy, start: usize, len: usize, what: String },
}

/// Memory that the host must not change before the event is complete.
type Lent = (HostMemory, Event);

struct Run<'w, 'c> {
    world: &'w World<'c>,
    arrays: BTreeMap<usize, Object>,
    lent: RefCell<Vec<Lent>>,
}

impl Run<'_, '_> {
    fn step(&mut self, step: &Step) -> Verdict {
        self.overwrite()?;
        if let Step::Upload(number, upload) = step {
            return self.upload(*number, upload);
        }
        if let Step::Promise(number, value, memory, by_transfer) = step {
            return self.promise(*number, value, *memory, *by_transfer);
        }
        if let Step::Copy(from, to, place) = step {
            return self.copy(*from, *to, *place);
        }
        let [number] = step.arrays()[..] else { return Ok(()) };
        if matches!(step, Step::Destroy(_)) {
            return self.destroy(number);
        }
        let world = self.world;
        let Some(array) = self.arrays.get_mut(&number) else { return Ok(()) };
        match step {
            Step::Provide(_, fails) => array.provide(world, *fails),
            Step::Read { order, by_strides, skew, .. } => {
                array.read(world, order.as_deref(), *by_strides, *skew, step)
            }
            Step::ReadRaw { part, later, .. } => array.read_raw(*part, *later, step),
            Step::Finish(_) => array.finish(),
            Step::Describe(_) => array.describe(world),
            Step::Delete(_) => array.delete(),
            _ => Ok(()),
        }
    }

    /// Overwrites host memory that the plugin no longer needs.
    fn overwrite(&self) -> Verdict {
        let mut left = Vec::new();
        for (memory, event) in self.lent.take() {
            if event.is_ready()? {
                memory.overwrite();
            } else {
                left.push((memory, event));
            }
        }
        self.lent.replace(left);
        Ok(())
    }

    fn upload(&mut self, number: usize, upload: &Upload) -> Verdict {
        let Some((array, lent)) = Object::uploaded(self.world, upload)? else { return Ok(()) };
        self.arrays.insert(number, array);
        self.lent.borrow_mut().extend(lent);
        Ok(())
    }

    fn promise(&mut self, number: usize, value: &Rc<Value>, memory: usize, by_transfer: bool) -> Verdict {
        let Some((promise, buffer)) = Promise::new(self.world, value, memory, by_transfer)? else {
            return Ok(());
        };
        let origin = Rc::new(Origin { value: Rc::clone(value), state: Cell::new(State::Promised) });
        let made = format!("an array {value} of {promise}");
        let array =
            Object { promise: Some(promise), ..Object::new(buffer, origin, Place::Memory(memory), made) };
        self.arrays.insert(number, array);
        Ok(())
    }

    fn copy(&mut self, from: usize, to: usize, place: Place) -> Verdict {
        let Some(source) = self.arrays.get(&from) else { return Ok(()) };
        let Some(copy) = source.copied(self.world, place)? else { return Ok(()) };
        self.arrays.insert(to, copy);
        Ok(())
    }

    /// Destroys an array. Its readbacks go on.
    fn destroy(&mut self, number: usize) -> Verdict {
        // In a shortened sequence, the host may not have provided the elements, which copies wait for.
        if self.arrays.get(&number).is_none_or(|array| array.promise.is_some()) {
            return Ok(());
        }
        let Some(array) = self.arrays.remove(&number) else { return Ok(()) };
        let Object { buffer, origin, reads, .. } = array;
        drop(buffer);
        match origin.state.get() {
            State::Promised => Ok(()),
            _ => reads.into_iter().try_for_each(|read| read.finish(&origin)),
        }
    }

    /// Provides all promised elements, and compares all arrays that are left.
    fn end(mut self) -> Verdict {
        for array in self.arrays.values_mut() {
            array.provide(self.world, false)?;
        }
        for array in self.arrays.values_mut() {
            array.describe(self.world)?;
            while !array.reads.is_empty() {
                array.finish()?;
            }
            array.compare()?;
        }
        Ok(())
    }
}

impl Object {
    fn new(buffer: Buffer, origin: Rc<Origin>, place: Place, made: String) -> Self {
        let (facts, reads) = (Facts::default(), VecDeque::new());
        Self {
            buffer,
            origin,
            place,
            made,
            is_laid_out: false,
            is_deleted: false,
            facts,
            promise: None,
            reads,
        }
    }

    /// Transfers an array. Returns `None` if the plugin lacks a feature that the transfer needs.
    pub(super) fn uploaded(
        world: &World<'_>,
        upload: &Upload,
    ) -> Result<Option<(Self, Option<Lent>)>, Finding> {
        let value = &upload.source.value;
        let array = HostArray {
            strides: upload.source.strides.as_deref(),
            first: upload.source.first,
            semantics: upload.semantics,
            skew: upload.skew,
            device_layout: upload.order.as_deref().map(layout),
            ..HostArray::new(&upload.source.bytes, value.element_type, &value.dims)
        };
        let outcome = match upload.place {
            Place::Device(device) => world.client.upload(&array, Some(world.devices[device]), None),
            Place::Memory(memory) => world.client.upload(&array, None, Some(world.memories[memory].1)),
        };
        let feature = match (&upload.source.strides, &upload.order) {
            // The header does not say which layouts a device has.
            (_, Some(_)) if outcome.as_ref().is_err_and(is_refusal) => return Ok(None),
            (_, Some(_)) => "uploads with a device layout",
            (Some(strides), None) => feature_of(strides, value),
            (None, None) => "uploads",
        };
        let what = format!("array of {upload}");
        let Some(uploaded) = world.try_feature(feature, value.element_type, &what, outcome)? else {
            return Ok(None);
        };
        let origin = Rc::new(Origin { value: Rc::new(value.clone()), state: Cell::new(State::There) });
        let made = format!("the array of {upload}");
        let array = Self {
            is_laid_out: upload.order.is_some(),
            ..Self::new(uploaded.buffer, origin, upload.place, made)
        };
        if upload.semantics == Semantics::ImmutableOnlyDuringCall {
            uploaded.memory.overwrite();
            return Ok(Some((array, None)));
        }
        Ok(Some((array, Some((uploaded.memory, uploaded.done)))))
    }

    /// Copies the array. Returns `None` if that is impossible.
    fn copied(&self, world: &World<'_>, place: Place) -> Result<Option<Self>, Finding> {
        let is_promised = self.origin.state.get() == State::Promised;
        let (feature, outcome) = match place {
            Place::Device(device) if world.devices[device] == world.devices[world.device_of(self.place)] => {
                // The header does not say whether this is a copy.
                return Ok(None);
            }
            Place::Device(device) => ("copies to devices", self.buffer.copy_to_device(world.devices[device])),
            Place::Memory(memory) => {
                ("copies to memories", self.buffer.copy_to_memory(world.memories[memory].1))
            }
        };
        if self.is_deleted {
            ensure!(outcome.is_err(), "a copy of {}, which is deleted, succeeds", self.made);
            return Ok(None);
        }
        if outcome.is_err() && (is_promised || self.origin.state.get() == State::Failed) {
            return Ok(None);
        }
        let made = format!("a copy to {place} of {}", self.made);
        let copy = world.try_feature(feature, self.origin.value.element_type, &made, outcome)?;
        let copied = |copy: Buffer| {
            // A copy can keep the layout of its source.
            let is_laid_out = self.is_laid_out;
            Self { is_laid_out, ..Self::new(copy, Rc::clone(&self.origin), place, made) }
        };
        Ok(copy.map(copied))
    }

    fn provide(&mut self, world: &World<'_>, fails: bool) -> Verdict {
        let Some(promise) = self.promise.take() else { return Ok(()) };
        let is_early = self.buffer.ready()?.is_ready()?;
        ensure!(!is_early, "{} is ready before the host provides its elements", self.made);
        promise.keep(world, &self.origin.value, fails)?;
        self.origin.state.set(if fails { State::Failed } else { State::There });
        Ok(())
    }

    fn delete(&mut self) -> Verdict {
        if self.promise.is_some() {
            return Ok(());
        }
        self.buffer.delete()?;
        self.is_deleted = true;
        Ok(())
    }

    fn describe(&mut self, world: &World<'_>) -> Verdict {
        let Self { buffer, origin, place, made, is_deleted, facts, .. } = self;
        facts.compare(world, buffer, &origin.value, *place, *is_deleted, made)
    }

    /// Starts a readback.
    fn read(
        &mut self,
        world: &World<'_>,
        order: Option<&[usize]>,
        by_strides: bool,
        skew: usize,
        step: &Step,
    ) -> Verdict {
        let value = &self.origin.value;
        let rank = value.dims.len();
        let row_major: Vec<usize> = (0..rank).collect();
        // Without a layout, the elements are in the order that they have on the device.
        let order = order.or(self.is_laid_out.then_some(&row_major));
        let host_layout = match order {
            None => CopyLayout::Unsaid,
            Some(order) if by_strides => CopyLayout::Layout(strides_of(value, order)),
            Some(order) => CopyLayout::Layout(layout(order)),
        };
        let feature = match (order, by_strides) {
            (None, _) => "readbacks",
            (Some(_), false) => "readbacks with a layout",
            (Some(_), true) => "readbacks with strides",
        };
        let outcome = self.buffer.start_read_at(skew, value.bytes.len(), &host_layout);
        if order.is_some() && outcome.as_ref().is_err_and(is_refusal) && !self.is_deleted {
            // Whether the plugin has the feature is known from arrays that are there.
            let is_there = self.origin.state.get() == State::There;
            let known = if is_there { outcome.map(drop) } else { return Ok(()) };
            return world.try_feature(feature, value.element_type, step, known).map(drop);
        }
        if self.is_deleted || self.origin.state.get() == State::Failed {
            return self.cannot_be_read(outcome.and_then(|(_, event)| event.wait()), step);
        }
        let what = format!("{step}, {}", self.made);
        let started = world.try_feature(feature, value.element_type, &what, outcome)?;
        if let Some((memory, event)) = started {
            let what = format!("{} that was read with {host_layout:?},", self.made);
            self.reads.push_back(Read::Whole { memory, event, order: order.map(<[usize]>::to_vec), what });
        }
        Ok(())
    }

    /// Fails if something without elements was read.
    fn cannot_be_read(&self, outcome: Result<(), Error>, step: &Step) -> Verdict {
        let why = if self.is_deleted { "is deleted" } else { "is in error" };
        match outcome {
            Ok(()) => Err(Finding::Wrong(format!("{}, which {why}, can be read ({step})", self.made))),
            Err(error) if self.is_deleted => {
                ensure!(!error.is_of_success, "{}, which {why}: {error}", self.made);
                Ok(())
            }
            Err(error) => has_error(&self.made, &error),
        }
    }

    /// Starts a raw copy, if the bytes on the device are those of the elements.
    fn read_raw(&mut self, part: (usize, usize), later: bool, step: &Step) -> Verdict {
        let value = &self.origin.value;
        if !value.element_type.fills_bytes() || self.is_laid_out || self.is_deleted {
            return Ok(());
        }
        if self.origin.state.get() == State::Failed || !self.facts.is_dense(&self.buffer, value)? {
            return Ok(());
        }
        let all = value.bytes.len();
        let (start, end) = (all * part.0 / 1000, all * part.1 / 1000);
        let (offset, len) = (start as i64, end - start);
        let what =
            format!("the bytes {start} to {end} of {all} (offset {offset}, size {len}) of {}", self.made);
        let read = if later {
            let copy = self.buffer.read_raw_later(offset, len as i64);
            copy.map(|copy| Read::Later { copy, start, len, what })
        } else {
            let copy = self.buffer.start_read_raw(offset, len);
            copy.map(|(memory, event)| Read::Raw { memory, event, start, what })
        };
        match read {
            Err(error) if error.code == Code::UNIMPLEMENTED => Ok(()),
            Err(error) => Err(Finding::Wrong(format!("{step}, {}, fails: {error}", self.made))),
            Ok(read) => {
                self.reads.push_back(read);
                Ok(())
            }
        }
    }

    /// Waits for the oldest readback, and compares it.
    fn finish(&mut self) -> Verdict {
        if self.origin.state.get() == State::Promised {
            return Ok(());
        }
        let Some(read) = self.reads.pop_front() else { return Ok(()) };
        read.finish(&self.origin)
    }

    /// Reads the array, and compares it.
    fn compare(&self) -> Verdict {
        let value = &self.origin.value;
        let host_layout = CopyLayout::Layout(Layout::dense(value.dims.len()));
        let host_layout = if self.is_laid_out { host_layout } else { CopyLayout::Unsaid };
        let read = self.buffer.read_into(value.bytes.len(), &host_layout);
        match self.origin.state.get() {
            _ if self.is_deleted => Ok(()),
            State::Promised => Ok(()),
            State::Failed => match read {
                Ok(_) => Err(Finding::Wrong(format!("{} can be read, but it is in error", self.made))),
                Err(error) => has_error(&self.made, &error),
            },
            State::There => value.check(&self.made, &read?),
        }
    }
}

/// Fails unless the error is the one that the host set.
fn has_error(what: &str, error: &Error) -> Verdict {
    ensure!(
        error.message.contains(ERROR.1),
        "{what} was set to the error {:?}, but reading it fails with {error}",
        ERROR.1
    );
    Ok(())
}

/// Returns the name of the feature that an upload with strides uses.
fn feature_of(strides: &[i64], value: &Value) -> &'static str {
    let aligned = value.element_type.alignment() as i64;
    match strides.iter().all(|stride| stride % aligned == 0) {
        true => "uploads with strides",
        false => "uploads with strides that are not multiples of the alignment",
    }
}

/// Returns the strides of an array that is stored densely in this order.
fn strides_of(value: &Value, order: &[usize]) -> Layout {
    let dims: Vec<i64> = order.iter().map(|dim| value.dims[*dim]).collect();
    let ordered = dense_strides(&dims, value.element_type.byte_size() as i64);
    let mut strides = vec![0; order.len()];
    for (dim, stride) in order.iter().zip(ordered) {
        strides[*dim] = stride;
    }
    Layout::Strides(strides)
}

impl Read {
    /// Waits for the readback, and compares it with the elements.
    fn finish(self, origin: &Origin) -> Verdict {
        let value = &origin.value;
        let (event, what) = match &self {
            Self::Whole { event, what, .. } | Self::Raw { event, what, .. } => (Some(event), what.clone()),
            Self::Later { what, .. } => (None, what.clone()),
        };
        if origin.state.get() == State::Failed {
            return match event.map(|event| outcome(event, &what)).transpose()? {
                Some(Ok(())) => {
                    Err(Finding::Wrong(format!("the readback of {what} succeeds, but the array is in error")))
                }
                Some(Err(error)) => has_error(&what, &error),
                None => Ok(()),
            };
        }
        if let Some(event) = event {
            completes(event, &format!("the readback of {what}"))?;
        }
        let raw = |start: usize, read: &[u8]| {
            let expected = &value.bytes[start..start + read.len()];
            let dims = vec![expected.len() as i64];
            let bytes =
                Value { element_type: pjrt_testing::host::ElementType::U8, dims, bytes: expected.to_vec() };
            bytes.check(&what, read)
        };
        match self {
            Self::Whole { memory, order, .. } => {
                value.check_ordered(&what, order.as_deref(), &memory.written("PJRT_Buffer_ToHostBuffer")?)
            }
            Self::Raw { memory, start, .. } => raw(start, &memory.written("PJRT_Buffer_CopyRawToHost")?),
            Self::Later { copy, start, len, .. } => {
                let read = copy.finish()?;
                ensure!(read.len() == len, "{what}: {} bytes were copied", read.len());
                raw(start, &read)
            }
        }
    }
}
