//! External references to arrays that the host reads in place.

use std::collections::BTreeMap;
use std::fmt;

use super::plan::{Theme, without_parts, write_steps};
use super::values::Value;
use super::world::{World, completes};
use crate::array::random::Random;
use crate::conform::harness::{Finding, Verdict, ensure};
use pjrt_testing::host::{Buffer, Code, HeldBytes, HostArray};

/// Sequences of holds, releases and deletions.
pub(super) struct References<'w, 'c>(pub(super) &'w World<'c>);

#[derive(Clone)]
enum Step {
    /// Uploads an array to a device.
    Upload(usize, Box<Value>, usize),
    Hold(usize),
    Release(usize),
    /// Compares the bytes at the address of the array.
    Look(usize),
    Delete(usize),
    /// Uploads other arrays of the same size, which get the memory if it is free.
    Reuse(usize),
    Destroy(usize),
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Upload(array, value, device) => {
                write!(f, "upload {value} to device {device} as array {array}")
            }
            Self::Hold(array) => write!(f, "increase the reference count of array {array}"),
            Self::Release(array) => write!(f, "decrease the reference count of array {array}"),
            Self::Look(array) => write!(f, "read array {array} in place"),
            Self::Delete(array) => write!(f, "delete array {array}"),
            Self::Reuse(array) => write!(f, "upload other arrays of the size of array {array}"),
            Self::Destroy(array) => write!(f, "destroy array {array}"),
        }
    }
}

#[derive(Clone)]
pub(super) struct Plan(Vec<Step>);

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_steps(f, &self.0)
    }
}

impl Theme for References<'_, '_> {
    type Plan = Plan;

    fn plan(&self, random: &mut Random) -> Plan {
        let arrays = 1 + random.below(4);
        let upload = |random: &mut Random, array: usize| {
            let value = self.0.value(random);
            Step::Upload(array, Box::new(value), random.below(self.0.devices.len()))
        };
        let mut steps: Vec<Step> = (0..arrays).map(|array| upload(random, array)).collect();
        for _ in 0..10 + random.below(40) {
            let array = random.below(arrays);
            steps.push(match random.below(16) {
                0..=4 => Step::Hold(array),
                5..=7 => Step::Release(array),
                8..=11 => Step::Look(array),
                12 => Step::Delete(array),
                13 => Step::Reuse(array),
                14 => Step::Destroy(array),
                _ => upload(random, array),
            });
        }
        Plan(steps)
    }

    fn run(&self, Plan(steps): &Plan) -> Verdict {
        let mut run = Run { world: self.0, arrays: BTreeMap::new(), others: Vec::new(), are_held: false };
        for step in steps {
            self.0.performing(step, || run.step(step))?;
        }
        for number in run.arrays.keys().copied().collect::<Vec<_>>() {
            run.end(number)?;
        }
        match run.are_held {
            true => Ok(()),
            false => Err(Finding::NotApplicable("the host cannot read arrays in place".to_owned())),
        }
    }

    fn simpler(&self, Plan(steps): &Plan) -> Vec<Plan> {
        without_parts(steps).into_iter().map(Plan).collect()
    }
}

struct Object {
    buffer: Buffer,
    value: Value,
    device: usize,
    references: usize,
    /// The most references so far.
    most: usize,
    is_deleted: bool,
    /// The bytes at the address that the plugin returned, if the host can read them.
    held: Option<HeldBytes>,
}

struct Run<'w, 'c> {
    world: &'w World<'c>,
    arrays: BTreeMap<usize, Object>,
    others: Vec<Buffer>,
    /// `true` if an array was read in place.
    are_held: bool,
}

impl Run<'_, '_> {
    fn step(&mut self, step: &Step) -> Verdict {
        let (Step::Upload(number, ..)
        | Step::Hold(number)
        | Step::Release(number)
        | Step::Look(number)
        | Step::Delete(number)
        | Step::Reuse(number)
        | Step::Destroy(number)) = step;
        if let Step::Upload(_, value, device) = step {
            self.end(*number)?;
            return self.upload(*number, value, *device);
        }
        if let Step::Destroy(_) = step {
            return self.end(*number);
        }
        let Some(array) = self.arrays.get_mut(number) else { return Ok(()) };
        match step {
            Step::Hold(_) if !array.is_deleted => self.are_held |= array.hold()?,
            // The last reference to a deleted array is released when the array ends.
            Step::Release(_) if array.references > usize::from(array.is_deleted) => array.release()?,
            Step::Look(_) => array.look(*number)?,
            Step::Delete(_) if !array.is_deleted => {
                array.buffer.delete()?;
                array.is_deleted = true;
            }
            Step::Reuse(_) => return self.reuse(*number),
            _ => {}
        }
        Ok(())
    }

    fn upload(&mut self, number: usize, value: &Value, device: usize) -> Verdict {
        let array = HostArray::new(&value.bytes, value.element_type, &value.dims);
        let uploaded = self.world.client.upload(&array, Some(self.world.devices[device]), None);
        let uploaded = self.world.try_feature("uploads", value.element_type, value, uploaded)?;
        let Some(uploaded) = uploaded else { return Ok(()) };
        let buffer = uploaded.buffer;
        completes(&buffer.ready()?, &format!("array {number}, {value},"))?;
        let (value, is_deleted) = (value.clone(), false);
        self.arrays
            .insert(number, Object { buffer, value, device, references: 0, most: 0, is_deleted, held: None });
        Ok(())
    }

    /// Uploads arrays of the same size with other elements.
    fn reuse(&mut self, number: usize) -> Verdict {
        let Some(array) = self.arrays.get(&number) else { return Ok(()) };
        let bytes = vec![1; array.value.bytes.len()];
        for _ in 0..3 {
            let other = HostArray::new(&bytes, array.value.element_type, &array.value.dims);
            let device = self.world.devices[array.device];
            self.others.push(self.world.client.upload(&other, Some(device), None)?.buffer);
        }
        Ok(())
    }

    /// Looks at an array for the last time, releases it and destroys it.
    fn end(&mut self, number: usize) -> Verdict {
        let Some(mut array) = self.arrays.remove(&number) else { return Ok(()) };
        array.look(number)?;
        while array.references > 0 {
            array.release()?;
        }
        Ok(())
    }
}

impl Object {
    /// Increases the reference count. Returns `true` if the host can read the array in place.
    fn hold(&mut self) -> Result<bool, Finding> {
        match self.buffer.hold() {
            Err(error) if error.code == Code::UNIMPLEMENTED => return Ok(false),
            outcome => outcome?,
        }
        self.references += 1;
        self.most = self.most.max(self.references);
        let is_known = self.value.element_type.fills_bytes() && self.buffer.is_on_cpu()?;
        if is_known && self.held.is_none() && self.buffer.on_device_size()? == self.value.bytes.len() {
            self.held = Some(self.buffer.held_bytes()?);
        }
        Ok(self.held.is_some())
    }

    fn release(&mut self) -> Verdict {
        self.buffer.release()?;
        self.references -= 1;
        if self.references == 0 {
            self.held = None;
        }
        Ok(())
    }

    fn look(&self, number: usize) -> Verdict {
        let Self { value, references, most, is_deleted, held, .. } = self;
        let state = if *is_deleted { "is deleted and " } else { "" };
        let what = format!("array {number}, which {state}has {references} references of at most {most},");
        if let Some(held) = held.as_ref().filter(|_| *references > 0) {
            value.check(&format!("the bytes in place of {what}"), &held.read())?;
        }
        match self.buffer.read() {
            Ok(_) if *is_deleted => {
                Err(Finding::Wrong(format!("{what} can be read by PJRT_Buffer_ToHostBuffer")))
            }
            Err(_) if *is_deleted => Ok(()),
            read => {
                let read = read?;
                ensure!(read.len() == value.bytes.len(), "{what} has {} bytes", read.len());
                value.check(&what, &read)
            }
        }
    }
}
