//! Executions of random programs.

use std::cell::RefCell;
use std::fmt::Display;

use super::plan::Theme;
use super::programs::{Argument, Case, case};
use super::promise::{ERROR, Promise};
use super::values::{Strided, Value};
use super::world::{World, outcome};
use crate::array::random::Random;
use crate::conform::harness::{
    Finding, NOT_THE_DEFAULT, Verdict, ensure, equal, if_supported, is_in_memory, is_on_device, lost_error,
};
use pjrt_testing::CompileOptions;
use pjrt_testing::host::{
    Buffer, Code, Error, ExecuteOptions, HostArray, Launched, LoadedExecutable, Program, Semantics,
};

/// Executions on one device, or on several.
pub(super) struct Executions<'w, 'c> {
    pub(super) world: &'w World<'c>,
    pub(super) on_several: bool,
}

impl Theme for Executions<'_, '_> {
    type Plan = Case;

    fn plan(&self, random: &mut Random) -> Case {
        let most = self.world.devices.len().min(8);
        let devices = if self.on_several { 2 + random.below(most - 1) } else { 1 };
        case(self.world, random, devices)
    }

    fn run(&self, case: &Case) -> Verdict {
        self.world.performing(case, || Run::new(self.world, case)?.launches())
    }

    fn simpler(&self, case: &Case) -> Vec<Case> {
        let mut all = case.simpler();
        all.retain(|simpler| !self.on_several || simpler.devices.len() > 1);
        all
    }
}

/// A compiled case.
struct Run<'w, 'c> {
    world: &'w World<'c>,
    case: &'w Case,
    loaded: LoadedExecutable,
    /// The numbers of the devices, in the order of the lists of arguments, and their places in the case.
    devices: Vec<(usize, usize)>,
    advice: RefCell<Option<String>>,
}

/// The arguments of a device. `None` is the array of another argument.
type Arguments = Vec<Option<Buffer>>;

impl<'w, 'c> Run<'w, 'c> {
    fn new(world: &'w World<'c>, case: &'w Case) -> Result<Self, Finding> {
        let id = |device: &usize| Ok(i64::from(world.devices[*device].description()?.id()?));
        let ids: Vec<i64> = case.devices.iter().map(id).collect::<Result<_, Error>>()?;
        let options = CompileOptions {
            replicas: case.replicas as i64,
            partitions: case.partitions as i64,
            portable: case.is_portable,
            devices: if case.is_portable { Vec::new() } else { ids },
            ..CompileOptions::default()
        };
        let loaded = world
            .client
            .compile(&Program::mlir(&case.text()), &options.encode())
            .map_err(|error| Finding::Unsupported(format!("the program cannot be compiled: {error}")))?;
        let mut run = Self { world, case, loaded, devices: Vec::new(), advice: RefCell::default() };
        run.devices = run.devices()?;
        run.describe()?;
        Ok(run)
    }

    /// Returns the devices of the program, which are in the order of the lists of arguments.
    fn devices(&self) -> Result<Vec<(usize, usize)>, Finding> {
        let Case { replicas, partitions, devices, .. } = self.case;
        if self.case.is_portable {
            return Ok(vec![(devices[0], 0)]);
        }
        let (listed, logical) = (self.loaded.devices()?, self.loaded.logical_ids()?);
        equal("the number of devices of the program", listed.len(), devices.len())?;
        equal("the number of logical ids of the program", logical.len(), devices.len())?;
        let mut all = Vec::new();
        for (at, (device, (replica, partition))) in listed.iter().zip(&logical).enumerate() {
            let place = *replica as usize * partitions + *partition as usize;
            let assigned = devices.get(place).map(|number| self.world.devices[*number]);
            ensure!(
                (*replica as usize) < *replicas && assigned == Some(*device),
                "element {at} of PJRT_LoadedExecutable_AddressableDevices is not the device that the assignment names for its \
                 logical id, replica {replica} and partition {partition}"
            );
            all.push((devices[place], place));
        }
        Ok(all)
    }

    /// Compares what the functions that describe the program return.
    fn describe(&self) -> Verdict {
        let (case, executable) = (self.case, self.loaded.executable()?);
        let outputs = case.outputs.iter().map(|output| &case.parameters[output.like()]);
        equal("PJRT_Executable_NumOutputs", executable.num_outputs()?, case.outputs.len())?;
        let types: Vec<_> = outputs.clone().map(|(element_type, _)| *element_type).collect();
        equal("PJRT_Executable_OutputElementTypes", executable.output_types()?, types)?;
        let dims: Vec<_> = outputs.map(|(_, dims)| dims.clone()).collect();
        equal("PJRT_Executable_OutputDimensions", executable.output_dims()?, dims)?;
        equal("PJRT_Executable_NumReplicas", executable.num_replicas()?, case.replicas)?;
        equal("PJRT_Executable_NumPartitions", executable.num_partitions()?, case.partitions)?;
        let counts: [(&str, Result<usize, Error>, usize); 4] = [
            (
                "kinds of PJRT_Executable_OutputMemoryKinds",
                executable.output_memory_kinds().map(|all| all.len()),
                case.outputs.len(),
            ),
            (
                "kinds of PJRT_Executable_ParameterMemoryKinds",
                executable.parameter_memory_kinds().map(|all| all.len()),
                case.parameters.len(),
            ),
            (
                "layouts of PJRT_Layouts_PJRT_Executable_GetOutputLayouts",
                executable.output_layouts().map(|all| all.len()),
                case.outputs.len(),
            ),
            (
                "layouts of PJRT_Layouts_PJRT_Executable_GetParameterLayouts",
                executable.parameter_layouts().map(|all| all.len()),
                case.parameters.len(),
            ),
        ];
        for (what, count, expected) in counts {
            match count {
                Err(error) if error.code == Code::UNIMPLEMENTED => {}
                count => equal(&format!("the number of {what}"), count?, expected)?,
            }
        }
        Ok(())
    }

    fn launches(&self) -> Verdict {
        for launch in &self.case.launches {
            // The lists are in the order of the program's devices.
            let lists: Vec<&[Argument]> = self.devices.iter().map(|(_, place)| &launch[*place][..]).collect();
            self.launch(&lists)?;
        }
        self.advice.take().map_or(Ok(()), |advice| Err(Finding::Advice(advice)))
    }

    /// Creates the arguments of a device.
    fn arguments(
        &self,
        device: usize,
        list: &[Argument],
        promises: &mut Vec<Promised>,
    ) -> Result<Arguments, Finding> {
        let mut all = Vec::new();
        for (index, argument) in list.iter().enumerate() {
            all.push(match argument {
                Argument::Same(_) => None,
                Argument::Ready(value) => Some(self.uploaded(device, value, index)?),
                Argument::Later(value, fails) => match self.promised(device, value)? {
                    Some((promise, array)) => {
                        promises.push(Promised { promise, value: Value::clone(value), fails: *fails });
                        Some(array)
                    }
                    None => return Err(no_promise()),
                },
                Argument::Failed(value) => {
                    let (promise, array) = self.promised(device, value)?.ok_or_else(no_promise)?;
                    promise.keep(self.world, value, true)?;
                    Some(array)
                }
            });
        }
        Ok(all)
    }

    /// Uploads an argument, every third one with strides.
    fn uploaded(&self, device: usize, value: &Value, index: usize) -> Result<Buffer, Finding> {
        let mut random = Random::new(value.bytes.len() as u64, index as u64);
        let strided = Strided::random(&mut random, value.clone(), false);
        let is_same = index.is_multiple_of(3) && strided.value == *value;
        let strided = if is_same { strided } else { Strided::dense(value.clone()) };
        let array = HostArray {
            strides: strided.strides.as_deref(),
            first: strided.first,
            semantics: Semantics::ImmutableOnlyDuringCall,
            ..HostArray::new(&strided.bytes, value.element_type, &value.dims)
        };
        let uploaded = self.world.client.upload(&array, Some(self.world.devices[device]), None);
        let uploaded =
            uploaded.map_err(|error| Finding::Unsupported(format!("{value} cannot be uploaded: {error}")))?;
        uploaded.memory.overwrite();
        Ok(uploaded.buffer)
    }

    fn promised(&self, device: usize, value: &Value) -> Result<Option<(Promise, Buffer)>, Finding> {
        let Some(memory) = self.world.default_memory(device) else { return Ok(None) };
        Promise::new(self.world, value, memory, value.bytes.len().is_multiple_of(2))
    }

    /// Executes the program, and compares everything.
    fn launch(&self, lists: &[&[Argument]]) -> Verdict {
        let mut promises = Vec::new();
        let arrays: Vec<Arguments> = self
            .devices
            .iter()
            .zip(lists)
            .map(|((device, _), list)| self.arguments(*device, list, &mut promises))
            .collect::<Result<_, _>>()?;
        let options = ExecuteOptions {
            launch_id: LAUNCH_ID,
            non_donatable: self.case.protected.iter().map(|index| *index as i64).collect(),
            ..ExecuteOptions::default()
        };
        let on = self.case.is_portable.then(|| self.world.devices[self.devices[0].0]);
        let passed: Vec<Vec<&Buffer>> = arrays
            .iter()
            .zip(lists)
            .map(|(arrays, list)| (0..list.len()).map(|at| resolved(arrays, list, at)).collect())
            .collect();
        let launched = match self.loaded.launch(&passed, &options, on, true) {
            Ok(launched) => launched,
            Err(refused) => return self.refused(refused.error, lists, &arrays),
        };
        // An execution may fail as soon as one of its arguments does, on any device.
        let is_failed = lists.iter().any(has_failed);
        for (at, event) in launched.done.iter().enumerate().filter(|_| !is_failed) {
            let waits = |index: usize| matches!(lists[at][index], Argument::Later(..)) && self.is_used(index);
            let is_early = (0..self.case.parameters.len()).any(waits) && event.is_ready()?;
            ensure!(
                !is_early,
                "the event of {} is complete although an argument is not ready",
                self.name(at)
            );
        }
        let arrays = if self.case.is_hasty && promises.is_empty() { Vec::new() } else { arrays };
        for promised in promises {
            promised.promise.keep(self.world, &promised.value, promised.fails)?;
        }
        self.outputs(&launched, lists)?;
        for (at, arrays) in arrays.iter().enumerate() {
            self.arguments_afterwards(at, arrays, lists[at])?;
        }
        Ok(())
    }

    /// Returns the error of a launch, unless the plugin may refuse the arguments.
    fn refused(&self, error: Error, lists: &[&[Argument]], arrays: &[Arguments]) -> Verdict {
        ensure!(lists.iter().any(has_failed), "PJRT_LoadedExecutable_Execute fails: {error}");
        for (at, arrays) in arrays.iter().enumerate() {
            for (index, array) in arrays.iter().enumerate() {
                let is_deleted = array.as_ref().map(Buffer::is_deleted).transpose()?.unwrap_or(false);
                ensure!(
                    !is_deleted,
                    "argument {index} of {} is deleted although the launch was refused",
                    self.name(at)
                );
            }
        }
        Ok(())
    }

    /// Returns `true` if an output depends on the parameter.
    fn is_used(&self, index: usize) -> bool {
        self.case.outputs.iter().any(|output| output.inputs().contains(&index))
    }

    fn name(&self, at: usize) -> String {
        format!("device {} (number {at} of the launch)", self.devices[at].0)
    }

    /// Compares the events and the outputs of all devices.
    fn outputs(&self, launched: &Launched, lists: &[&[Argument]]) -> Verdict {
        let fails =
            |at: usize| (0..self.case.parameters.len()).any(|index| self.case.fails(lists[at], index));
        let any_fails = (0..lists.len()).any(fails);
        equal("the number of lists of outputs", launched.outputs.len(), lists.len())?;
        for (at, list) in lists.iter().enumerate() {
            let name = self.name(at);
            let must_fail = (0..self.case.parameters.len())
                .any(|index| self.case.fails(list, index) && self.is_used(index));
            let what = format!("the execution on {name}");
            let done = outcome(&launched.done[at], &what)?;
            ended(&format!("the event in `device_complete_events` of {name}"), done, must_fail, any_fails)?;
            equal(
                &format!("the number of outputs of {name}"),
                launched.outputs[at].len(),
                self.case.outputs.len(),
            )?;
            for (number, array) in launched.outputs[at].iter().enumerate() {
                let of = self.case.outputs.len();
                let what =
                    format!("output {number} of {of} on {name}, which is {:?},", self.case.outputs[number]);
                self.output(at, number, array, &what, list, any_fails)?;
            }
        }
        Ok(())
    }

    fn output(
        &self,
        at: usize,
        number: usize,
        array: &Buffer,
        what: &str,
        list: &[Argument],
        any_fails: bool,
    ) -> Verdict {
        let output = self.case.outputs[number];
        let expected = self.case.expected(list, output);
        let device = self.world.devices[self.devices[at].0];
        is_on_device(what, array, device, "Outputs are on the device that ran the program")?;
        if_supported(is_in_memory(what, array, device.default_memory()?, NOT_THE_DEFAULT))?;
        equal(&format!("the type of {what}"), array.element_type()?, expected.element_type)?;
        equal(&format!("the dimensions of {what}"), array.dims()?, expected.dims.clone())?;
        let must_fail = output.inputs().iter().any(|index| self.case.fails(list, *index));
        let ready = outcome(&array.ready()?, &what)?;
        if ended(&what, ready, must_fail, any_fails)? {
            return expected.check(what, &array.read()?);
        }
        match array.read() {
            Ok(_) => Err(Finding::Wrong(format!("{what} can be read, but its ready event has an error"))),
            Err(_) => Ok(()),
        }
    }

    /// Compares arguments after the execution.
    fn arguments_afterwards(&self, at: usize, arrays: &Arguments, list: &[Argument]) -> Verdict {
        let (name, of) = (self.name(at), list.len());
        let mut kept_and_donated = [None; 2];
        for (index, array) in arrays.iter().enumerate() {
            let Some(array) = array else { continue };
            let is_donated = self.case.donated.iter().any(|(donated, _)| *donated == index);
            let is_protected = self.case.protected.contains(&index);
            let is_deleted = array.is_deleted()?;
            let what = match (is_donated, is_protected) {
                (false, _) => format!("argument {index} of {of} on {name}, which is not donated,"),
                (true, true) => {
                    format!("argument {index} of {of} on {name}, which is in non_donatable_input_indices,")
                }
                (true, false) => format!("argument {index} of {of} on {name}, which is donated,"),
            };
            ensure!(!is_deleted || is_donated && !is_protected, "{what} is deleted after the execution");
            if is_donated && !is_protected {
                kept_and_donated[usize::from(is_deleted)] = Some(index);
            }
            match array.read() {
                _ if self.case.fails(list, index) => {}
                Ok(_) if is_deleted => {
                    return Err(Finding::Wrong(format!("{what} is deleted, but it can be read")));
                }
                Err(_) if is_deleted => {}
                read => {
                    let read =
                        read.map_err(|error| Finding::Wrong(format!("{what} cannot be read: {error}")))?;
                    self.case.value(list, index).check(&what, &read)?;
                }
            }
        }
        if let [Some(kept), Some(donated)] = kept_and_donated {
            self.advice.borrow_mut().get_or_insert_with(|| format!(
                "of the arguments that the program donates, {donated} of {of} is deleted after the execution on {name}, but {kept} is not: \
                 it needs twice the memory"
            ));
        }
        Ok(())
    }
}

/// The id of the launches.
const LAUNCH_ID: i32 = 70_001;

/// Returns `true` if an argument of a device is in error at the time of the launch.
fn has_failed(list: &&[Argument]) -> bool {
    list.iter().any(|argument| matches!(argument, Argument::Failed(_)))
}

/// An argument whose elements come later.
struct Promised {
    promise: Promise,
    value: Value,
    fails: bool,
}

fn no_promise() -> Finding {
    Finding::Unsupported("no function creates an array whose elements come later".to_owned())
}

/// Returns the array of an argument, which can be that of another one.
fn resolved<'a>(arrays: &'a Arguments, list: &[Argument], index: usize) -> &'a Buffer {
    match (&arrays[index], &list[index]) {
        (Some(array), _) => array,
        (None, Argument::Same(other)) => resolved(arrays, list, *other),
        (None, _) => unreachable!("only arguments that are the same as others have no array"),
    }
}

/// Fails unless an event ended as it must. `may_fail` permits the host's error. Returns `true` if there is no error.
fn ended(
    what: &dyn Display,
    done: Result<(), Error>,
    must_fail: bool,
    may_fail: bool,
) -> Result<bool, Finding> {
    match done {
        Ok(()) => {
            ensure!(
                !must_fail,
                "{what} completes without an error, but an argument is in error; {}",
                lost_error(&what.to_string())
            );
            Ok(true)
        }
        Err(error) => {
            ensure!(may_fail, "{what} has the error {error}; expected none");
            ensure!(
                error.message.contains(ERROR.1),
                "{what} has the error {error}; expected the error of the argument, {:?}",
                ERROR.1
            );
            Ok(false)
        }
    }
}
