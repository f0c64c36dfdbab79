//! Transfer managers whose arrays are filled in random pieces.

use std::fmt;
use std::rc::Rc;

use super::plan::Theme;
use super::promise::ERROR;
use super::values::{Value, layout};
use super::world::{World, completes, is_refusal, outcome};
use crate::array::random::Random;
use crate::conform::harness::{Finding, Verdict, count_of, ensure, equal, if_supported, is_in_memory};
use pjrt_testing::host::{Buffer, ElementType, HostMemory, TransferManager};

/// Transfer managers of random arrays.
pub(super) struct Transfers<'w, 'c>(pub(super) &'w World<'c>);

/// A piece of an array: its first byte, and the byte after its last one.
type Piece = (usize, usize);

/// The way in which an array is filled.
#[derive(Clone)]
enum Filling {
    /// By pieces, in this order.
    Pieces(Vec<Piece>),
    /// By a literal whose dimensions are in this order, from major to minor.
    Literal(Vec<usize>),
    /// By this number of the pieces, and then by an error.
    Fails(Vec<Piece>),
}

#[derive(Clone)]
struct Array {
    value: Rc<Value>,
    filling: Filling,
    /// `true` if the array is retrieved before it is filled.
    is_early: bool,
}

/// The arrays of a manager.
#[derive(Clone)]
pub(super) struct Plan {
    arrays: Vec<Array>,
    memory: usize,
    /// The order of the calls, as numbers of arrays: each one is the next call for this array.
    order: Vec<usize>,
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "a transfer manager of {} in memory {}",
            count_of(self.arrays.len(), "array"),
            self.memory
        )?;
        for (number, Array { value, filling, is_early }) in self.arrays.iter().enumerate().take(8) {
            let when = if *is_early { "before" } else { "after" };
            write!(f, "; array {number} is {value}, retrieved {when} it is filled ")?;
            match filling {
                Filling::Pieces(pieces) => write!(f, "by the bytes {pieces:?}")?,
                Filling::Literal(order) => {
                    write!(f, "by a literal with the dimensions in the order {order:?}")?
                }
                Filling::Fails(pieces) => write!(f, "by the bytes {pieces:?} and an error")?,
            }
        }
        let more = if self.order.len() > 24 { ", and so on" } else { "" };
        let order = &self.order[..self.order.len().min(24)];
        write!(f, "; the order of the calls by array is {order:?}{more}")
    }
}

impl Filling {
    fn calls(&self) -> usize {
        match self {
            Self::Pieces(pieces) => pieces.len(),
            Self::Literal(_) => 1,
            Self::Fails(pieces) => pieces.len() + 1,
        }
    }
}

/// Divides this many bytes into random pieces in random order.
fn pieces(random: &mut Random, len: usize) -> Vec<Piece> {
    let mut ends: Vec<usize> = (0..random.below(6)).map(|_| random.below(len + 1)).chain([0, len]).collect();
    ends.sort_unstable();
    ends.dedup();
    let mut all: Vec<Piece> = ends.windows(2).map(|pair| (pair[0], pair[1])).collect();
    random.shuffle(&mut all);
    // An array without elements is complete after one call, too.
    if all.is_empty() { vec![(0, 0)] } else { all }
}

impl Theme for Transfers<'_, '_> {
    type Plan = Plan;

    fn plan(&self, random: &mut Random) -> Plan {
        let count = if random.one_in(4) { 1 + random.below(40) } else { 1 + random.below(4) };
        let array = |random: &mut Random| {
            let value = Rc::new(self.0.value(random));
            let is_whole = !value.element_type.fills_bytes();
            let mut pieces = pieces(random, value.bytes.len());
            let filling = match random.below(6) {
                0 => {
                    pieces.truncate(random.below(pieces.len()));
                    Filling::Fails(if is_whole { Vec::new() } else { pieces })
                }
                1 | 2 => Filling::Literal(self.0.order(random, value.dims.len())),
                // The bytes of such arrays on the device are not known.
                _ if is_whole => Filling::Literal((0..value.dims.len()).collect()),
                _ => Filling::Pieces(pieces),
            };
            Array { value, filling, is_early: random.one_in(2) }
        };
        let arrays: Vec<Array> = (0..count).map(|_| array(random)).collect();
        let calls = |(number, array): (usize, &Array)| vec![number; array.filling.calls()];
        let mut order: Vec<usize> = arrays.iter().enumerate().flat_map(calls).collect();
        random.shuffle(&mut order);
        Plan { arrays, memory: random.below(self.0.memories.len()), order }
    }

    fn run(&self, plan: &Plan) -> Verdict {
        self.0.performing(plan, || Run::new(self.0, plan)?.fill())
    }

    fn simpler(&self, plan: &Plan) -> Vec<Plan> {
        let without = |left_out: std::ops::Range<usize>| {
            let mut arrays = plan.arrays.clone();
            arrays.drain(left_out.clone());
            let renamed = |number: &usize| match *number {
                number if left_out.contains(&number) => None,
                number if number >= left_out.end => Some(number - left_out.len()),
                number => Some(number),
            };
            Plan { arrays, order: plan.order.iter().filter_map(renamed).collect(), ..plan.clone() }
        };
        let count = plan.arrays.len();
        let halves = [0..count / 2, count / 2..count]
            .into_iter()
            .filter(|part| !part.is_empty() && part.len() < count);
        let single = (0..if count > 1 { count } else { 0 }).map(|at| at..at + 1);
        halves.chain(single).map(without).collect()
    }
}

struct Run<'w, 'c> {
    world: &'w World<'c>,
    plan: &'w Plan,
    manager: TransferManager,
    retrieved: Vec<Option<Buffer>>,
    /// The number of calls for each array.
    calls: Vec<usize>,
}

impl<'w, 'c> Run<'w, 'c> {
    fn new(world: &'w World<'c>, plan: &'w Plan) -> Result<Self, Finding> {
        let shapes: Vec<(ElementType, Vec<i64>)> =
            plan.arrays.iter().map(|array| (array.value.element_type, array.value.dims.clone())).collect();
        let manager = world.client.transfer_manager(&shapes, world.memories[plan.memory].1);
        let manager = manager.map_err(|error| match is_refusal(&error) {
            true => Finding::Unsupported(format!("a transfer manager is refused: {error}")),
            false => error.into(),
        })?;
        equal("PJRT_AsyncHostToDeviceTransferManager_BufferCount", manager.buffer_count()?, shapes.len())?;
        let device = world.devices[world.memories[plan.memory].0];
        ensure!(
            manager.device()? == device,
            "PJRT_AsyncHostToDeviceTransferManager_Device is another device"
        );
        let mut run = Self {
            world,
            plan,
            manager,
            retrieved: (0..shapes.len()).map(|_| None).collect(),
            calls: vec![0; shapes.len()],
        };
        for (number, array) in plan.arrays.iter().enumerate() {
            if array.value.element_type.fills_bytes() {
                let size = run.manager.buffer_size(number)?;
                let least = array.value.bytes.len();
                ensure!(size >= least, "the size of array {number} is {size}; expected at least {least}");
            }
            if array.is_early {
                run.retrieved[number] = Some(run.manager.retrieve(number)?);
            }
        }
        Ok(run)
    }

    fn fill(mut self) -> Verdict {
        for number in &self.plan.order {
            if let Some(array) = &self.retrieved[*number] {
                let is_ready = array.ready()?.is_ready()?;
                let done = self.calls[*number];
                ensure!(
                    !is_ready,
                    "array {number} is ready after {done} of {} calls",
                    self.plan.arrays[*number].filling.calls()
                );
            }
            self.call(*number)?;
            self.calls[*number] += 1;
        }
        (0..self.plan.arrays.len()).try_for_each(|number| self.compare(number))
    }

    /// Performs the next call for an array, and overwrites the host's memory as soon as the event permits it.
    fn call(&mut self, number: usize) -> Verdict {
        let (array, at) = (&self.plan.arrays[number], self.calls[number]);
        let Value { element_type, dims, bytes } = &*array.value;
        let (memory, event) = match &array.filling {
            Filling::Pieces(pieces) | Filling::Fails(pieces) if at < pieces.len() => {
                let (start, end) = pieces[at];
                let memory = HostMemory::new(&bytes[start..end], 0);
                let is_last = at + 1 == array.filling.calls();
                let event = self.manager.write_from(number, &memory, start as i64, is_last)?;
                (memory, event)
            }
            Filling::Literal(order) => {
                let memory = HostMemory::new(&array.value.ordered(order), 0);
                let event =
                    self.manager.write_array_from(number, &memory, *element_type, dims, &layout(order));
                match event {
                    Err(error) if is_refusal(&error) => {
                        return Err(Finding::Unsupported(format!(
                            "a literal with a layout is refused: {error}"
                        )));
                    }
                    event => (memory, event?),
                }
            }
            _ => return Ok(self.manager.fail(number, ERROR.0, ERROR.1)?),
        };
        completes(&event, &format!("call {at} for array {number} of the manager"))?;
        memory.overwrite();
        Ok(())
    }

    fn compare(&mut self, number: usize) -> Verdict {
        let array = &self.plan.arrays[number];
        let buffer = match self.retrieved[number].take() {
            Some(buffer) => buffer,
            None => self.manager.retrieve(number)?,
        };
        let of = self.plan.arrays.len();
        let what = format!("array {number} of {of} of a transfer manager");
        equal(&format!("the dimensions of {what}"), buffer.dims()?, array.value.dims.clone())?;
        equal(&format!("the type of {what}"), buffer.element_type()?, array.value.element_type)?;
        let memory = self.world.memories[self.plan.memory].1;
        if_supported(is_in_memory(&what, &buffer, memory, "The plugin probably ignores `memory`"))?;
        let ready = outcome(&buffer.ready()?, &what)?;
        match (&array.filling, ready) {
            (Filling::Fails(_), Ok(())) => {
                Err(Finding::Wrong(format!("{what} was set to an error, but its ready event has none")))
            }
            (Filling::Fails(_), Err(error)) => {
                ensure!(
                    error.message.contains(ERROR.1),
                    "{what} has the error {error}; expected {:?}",
                    ERROR.1
                );
                Ok(())
            }
            (_, Err(error)) => Err(Finding::Wrong(format!("{what} has the error {error}; expected none"))),
            (_, Ok(())) => array.value.check(&what, &buffer.read()?),
        }
    }
}
