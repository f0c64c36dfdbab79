//! Threads that use the same arrays and programs at once.

use std::fmt;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Barrier, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::plan::{Theme, run_plans};
use super::world::{IN_VAIN, World};
use crate::array::random::Random;
use crate::conform::harness::{
    Context, Finding, LOST_BY_CALLBACK, Verdict, add_program, described, ensure, f32_bytes,
};
use pjrt_testing::CompileOptions;
use pjrt_testing::host::{
    Buffer, Client, Code, CopyLayout, Device, ElementType, Error, Event, ExecuteOptions, HostArray, Layout,
    LoadedExecutable, Plugin, Program,
};

/// Runs random work on random numbers of threads.
pub(super) fn check(context: &Context, usual: u64) -> Verdict {
    let client = context.client()?;
    let world = World::new(context, &client)?;
    let shared = Arc::new(Shared::new(context.client()?, context.plugin)?);
    run_plans(&world, context.sequences, usual, &Threads { world: &world, shared })
}

struct Threads<'w, 'c> {
    world: &'w World<'c>,
    shared: Arc<Shared>,
}

/// The number of shared arrays on each device.
const ARRAYS: usize = 4;

/// The number of elements of each array, which are in rows.
const DIMS: [i64; 2] = [5, 7];
const LEN: usize = 35;

/// The time that the threads have.
const DEADLINE: Duration = Duration::from_secs(10);

/// The probable cause of a failure that needs several threads.
const RACE: &str = "The calls of each thread pass if no other thread runs: the plugin probably has a data race, such as \
                    arguments in memory that all calls use";

/// What the threads share.
struct Shared {
    devices: Vec<OnDevice>,
    plugin: Plugin,
    client: Client,
}

/// The shared objects of a device.
struct OnDevice {
    number: usize,
    adds: LoadedExecutable,
    /// A program that donates its first argument, if the plugin compiles it.
    donates: Option<LoadedExecutable>,
}

#[derive(Debug, Clone, Copy)]
enum Step {
    /// Adds two shared arrays.
    Add(usize, usize),
    /// Adds a shared array to one of the thread, which is donated.
    Donate(usize),
    /// Reads a shared array; in the other order of dimensions if the flag is set.
    Read(usize, bool),
    /// Copies a shared array to the default memory of a device, and reads the copy.
    Copy(usize, usize),
    /// Uploads, reads and deletes an array of the thread.
    Own,
    /// Describes a shared array.
    Describe(usize),
    /// Creates, observes and completes an event.
    Event,
}

/// For each thread, the device that it uses and its steps.
#[derive(Clone)]
struct Plan(Vec<(usize, Vec<Step>)>);

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (thread, (device, steps)) in self.0.iter().enumerate() {
            let more = if steps.len() > 12 { ", ..." } else { "" };
            let steps = &steps[..steps.len().min(12)];
            write!(
                f,
                "{}thread {thread} on device {device}: {steps:?}{more}",
                if thread > 0 { "; " } else { "" }
            )?;
        }
        Ok(())
    }
}

impl Theme for Threads<'_, '_> {
    type Plan = Plan;

    fn plan(&self, random: &mut Random) -> Plan {
        let devices = self.shared.devices.len();
        let step = |random: &mut Random| {
            let array = random.below(ARRAYS);
            match random.below(16) {
                0..=6 => Step::Add(array, random.below(ARRAYS)),
                7..=8 => Step::Donate(array),
                9..=10 => Step::Read(array, random.one_in(2)),
                11..=12 => Step::Copy(array, random.below(devices)),
                13 => Step::Own,
                14 => Step::Describe(array),
                _ => Step::Event,
            }
        };
        let steps = 8 + random.below(16);
        let thread =
            |random: &mut Random| (random.below(devices), (0..steps).map(|_| step(random)).collect());
        Plan((0..2 + random.below(7)).map(|_| thread(random)).collect())
    }

    fn run(&self, Plan(threads): &Plan) -> Verdict {
        self.world.performing(&format!("{} threads", threads.len()), || {
            let verdict = on_threads(&self.shared, threads);
            let passes_alone = |thread| on_threads(&self.shared, std::slice::from_ref(thread)).is_ok();
            match verdict {
                Err(Finding::Wrong(why)) if !why.contains(IN_VAIN) && threads.iter().all(passes_alone) => {
                    Err(Finding::Wrong(format!("{why}. {RACE}")))
                }
                verdict => verdict,
            }
        })
    }

    fn simpler(&self, Plan(threads): &Plan) -> Vec<Plan> {
        let without = |left_out: usize| {
            let mut fewer = threads.clone();
            fewer.remove(left_out);
            Plan(fewer)
        };
        let mut all: Vec<Plan> =
            (0..if threads.len() > 2 { threads.len() } else { 0 }).map(without).collect();
        for keep_first in [true, false] {
            let half = |steps: &Vec<Step>| match keep_first {
                true => steps[..steps.len().div_ceil(2)].to_vec(),
                false => steps[steps.len() / 2..].to_vec(),
            };
            if threads.iter().all(|(_, steps)| steps.len() > 1) {
                all.push(Plan(threads.iter().map(|(device, steps)| (*device, half(steps))).collect()));
            }
        }
        all
    }
}

/// What a thread does at the moment, and what it returned.
struct Working {
    thread: usize,
    now: Arc<Mutex<Vec<String>>>,
    done: Sender<(usize, Verdict)>,
}

/// Runs the steps of all threads at once. Threads that hang remain.
fn on_threads(shared: &Arc<Shared>, threads: &[(usize, Vec<Step>)]) -> Verdict {
    let start = Arc::new(Barrier::new(threads.len()));
    let arrays = Arc::new(shared.upload()?);
    let now = Arc::new(Mutex::new(vec!["begins".to_owned(); threads.len()]));
    let (done, outcomes) = channel();
    for (thread, (device, steps)) in threads.iter().enumerate() {
        let (shared, arrays, start) = (Arc::clone(shared), Arc::clone(&arrays), Arc::clone(&start));
        let (steps, device) = (steps.clone(), *device);
        let working = Working { thread, now: Arc::clone(&now), done: done.clone() };
        std::thread::spawn(move || {
            start.wait();
            let (arrays, on) = (&arrays[device][..], &shared.devices[device]);
            let worker = Worker { shared: &shared, arrays, device: on, working: &working };
            let verdict = steps.iter().try_for_each(|step| worker.step(*step));
            worker.note("is done");
            let _ = working.done.send((thread, verdict));
        });
    }
    drop(done);
    let end = Instant::now() + DEADLINE;
    let mut wrong = None;
    for _ in 0..threads.len() {
        match outcomes.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok((_, Ok(()))) => {}
            Ok((thread, Err(finding))) => drop(wrong.get_or_insert((thread, finding))),
            Err(_) => return Err(hangs(&now, threads.len())),
        }
    }
    match wrong {
        None => Ok(()),
        Some((thread, Finding::Wrong(why))) => {
            let count = threads.len();
            Err(Finding::Wrong(format!(
                "while {count} threads use the same arrays, thread {thread} finds: {why}"
            )))
        }
        Some((_, finding)) => Err(finding),
    }
}

/// Describes threads of which some hang.
fn hangs(now: &Mutex<Vec<String>>, threads: usize) -> Finding {
    let now = now.lock().unwrap_or_else(PoisonError::into_inner);
    let hanging: Vec<String> = now
        .iter()
        .enumerate()
        .filter(|(_, what)| *what != "is done")
        .map(|(thread, what)| format!("thread {thread} {what}"))
        .collect();
    Finding::Wrong(format!(
        "{} of {threads} threads {IN_VAIN} {DEADLINE:?}: {}. They probably wait for each other's locks: two calls lock the same objects \
         in different orders, or a call waits while it holds a lock",
        hanging.len(),
        hanging.join(", ")
    ))
}

/// Returns the elements of an array; those of each number differ.
fn values(number: usize) -> Vec<f32> {
    (0..LEN).map(|at| (1000 * number + at) as f32).collect()
}

fn upload(client: &Client, device: Device<'_>, values: &[f32]) -> Result<Buffer, Error> {
    let bytes = f32_bytes(values);
    let uploaded = client.upload(&HostArray::new(&bytes, ElementType::F32, &DIMS), Some(device), None)?;
    uploaded.memory.overwrite();
    Ok(uploaded.buffer)
}

impl Shared {
    fn new(client: Client, plugin: Plugin) -> Result<Self, Finding> {
        const MOST: usize = 4;
        let mut devices = Vec::new();
        for (number, device) in client.addressable_devices()?.into_iter().enumerate().take(MOST) {
            let id = i64::from(device.description()?.id()?);
            let options = CompileOptions { devices: vec![id], ..CompileOptions::default() }.encode();
            let text = add_program("5x7x");
            let argument = "%x: tensor<5x7xf32>";
            let donating =
                text.replacen(argument, &format!("{argument} {{tf.aliasing_output = 0 : i32}}"), 1);
            let adds = client.compile(&Program::mlir(&text), &options);
            let adds = adds
                .map_err(|error| Finding::Unsupported(format!("the program cannot be compiled: {error}")))?;
            let donates = client.compile(&Program::mlir(&donating), &options).ok();
            devices.push(OnDevice { number, adds, donates });
        }
        Ok(Self { devices, plugin, client })
    }

    /// Uploads the shared arrays to each device. Each plan has its own, because one that fails may have changed them.
    fn upload(&self) -> Result<Vec<Vec<Buffer>>, Error> {
        let devices = self.client.addressable_devices()?.into_iter().take(self.devices.len());
        let on = |device| (0..ARRAYS).map(|at| upload(&self.client, device, &values(at))).collect();
        devices.map(on).collect()
    }
}

/// A thread.
struct Worker<'a> {
    shared: &'a Shared,
    /// The shared arrays on the device.
    arrays: &'a [Buffer],
    device: &'a OnDevice,
    working: &'a Working,
}

impl Worker<'_> {
    fn note(&self, what: &str) {
        let mut now = self.working.now.lock().unwrap_or_else(PoisonError::into_inner);
        now[self.working.thread] = what.to_owned();
    }

    fn device(&self, number: usize) -> Result<Device<'_>, Finding> {
        let devices = self.shared.client.addressable_devices()?;
        devices.get(number).copied().ok_or_else(|| Finding::Wrong(format!("device {number} is gone")))
    }

    fn step(&self, step: Step) -> Verdict {
        let arrays = self.arrays;
        match step {
            Step::Add(x, y) => {
                self.note(&format!(
                    "is in PJRT_LoadedExecutable_Execute with the arrays {x} and {y} of device {}",
                    self.device.number
                ));
                let sum = self.run(&self.device.adds, [&arrays[x], &arrays[y]])?;
                self.is_sum(&format!("the sum of the arrays {x} and {y}"), &sum, values(x), values(y))
            }
            Step::Donate(x) => self.donate(x),
            Step::Read(x, is_reordered) => self.read(x, is_reordered),
            Step::Copy(x, to) => {
                self.note(&format!("copies array {x} of device {} to device {to}", self.device.number));
                match arrays[x].copy_to_memory(self.device(to)?.default_memory()?) {
                    Err(error) if error.code == Code::UNIMPLEMENTED => Ok(()),
                    copy => self.is(&format!("a copy of array {x}"), &copy?.read()?, &values(x)),
                }
            }
            Step::Own => {
                self.note("is in PJRT_Client_BufferFromHostBuffer or PJRT_Buffer_Delete");
                let own = values(100 + self.working.thread);
                let array = upload(&self.shared.client, self.device(self.device.number)?, &own)?;
                self.is("an array of the thread", &array.read()?, &own)?;
                Ok(array.delete()?)
            }
            Step::Describe(x) => {
                self.note(&format!("describes array {x} of device {}", self.device.number));
                ensure!(arrays[x].dims()? == DIMS, "the dimensions of array {x} are {:?}", arrays[x].dims()?);
                ensure!(!arrays[x].is_deleted()?, "array {x}, which nobody deleted, is deleted");
                Ok(arrays[x].ready()?.wait()?)
            }
            Step::Event => self.event(),
        }
    }

    fn run(&self, program: &LoadedExecutable, arguments: [&Buffer; 2]) -> Result<Vec<u8>, Finding> {
        let options = ExecuteOptions { launch_id: LAUNCH_ID, ..ExecuteOptions::default() };
        let launched = program.launch_into(1, &[arguments.to_vec()], &options, None, true);
        let launched = launched.map_err(|refused| refused.error)?;
        self.note(&format!("reads the output of an execution on device {}", self.device.number));
        let read = launched.output(0, 0)?.read()?;
        launched.done[0].wait()?;
        Ok(read)
    }

    /// Adds a shared array to one of this thread, which the program donates.
    fn donate(&self, x: usize) -> Verdict {
        let Some(program) = &self.device.donates else { return Ok(()) };
        let own = values(100 + self.working.thread);
        let array = upload(&self.shared.client, self.device(self.device.number)?, &own)?;
        self.note(&format!(
            "is in PJRT_LoadedExecutable_Execute with a donated array and array {x} of device {}",
            self.device.number
        ));
        let sum = self.run(program, [&array, &self.arrays[x]])?;
        self.is_sum(&format!("the sum of a donated array and array {x}"), &sum, own, values(x))
    }

    fn read(&self, x: usize, is_reordered: bool) -> Verdict {
        self.note(&format!("is in PJRT_Buffer_ToHostBuffer of array {x} of device {}", self.device.number));
        let order = if is_reordered { vec![0, 1] } else { vec![1, 0] };
        let layout = CopyLayout::Layout(Layout::MinorToMajor(order));
        let read = match self.arrays[x].read_into(4 * LEN, &layout) {
            Err(error) if error.code == Code::UNIMPLEMENTED => return Ok(()),
            read => read?,
        };
        let mut expected = values(x);
        if is_reordered {
            let [rows, columns] = DIMS.map(|dim| dim as usize);
            expected = (0..LEN).map(|at| expected[at % rows * columns + at / rows]).collect();
        }
        self.is(&format!("array {x}"), &read, &expected)
    }

    fn event(&self) -> Verdict {
        self.note("is in a function of an event");
        let event = match Event::create(self.shared.plugin) {
            Err(error) if error.code == Code::UNIMPLEMENTED => return Ok(()),
            event => event?,
        };
        let message = format!("the error of thread {}", self.working.thread);
        let told = event.on_ready()?;
        event.set(Code::ABORTED, &message)?;
        let outcome = told.wait(DEADLINE);
        let is_told = |outcome: &Result<(), Error>| {
            outcome.as_ref().is_err_and(|error| error.message.contains(&message))
        };
        let cause = match outcome {
            Some(Ok(())) => LOST_BY_CALLBACK,
            _ => "each event has its own error",
        };
        ensure!(
            outcome.as_ref().is_some_and(is_told),
            "the callback of an event with {message:?} receives {}; {cause}",
            described(outcome.as_ref())
        );
        Ok(())
    }

    fn is(&self, what: &str, read: &[u8], expected: &[f32]) -> Verdict {
        let read: Vec<f32> = read.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
        let differs = read.iter().zip(expected).position(|(got, expected)| got != expected);
        let device = self.device.number;
        let (len, wanted) = (read.len(), expected.len());
        ensure!(len == wanted, "{what} on device {device} has {len} elements; expected {wanted}");
        match differs {
            None => Ok(()),
            Some(at) => Err(Finding::Wrong(format!(
                "element {at} of {what} on device {device} is {:?}; expected {:?}",
                read[at], expected[at]
            ))),
        }
    }

    fn is_sum(&self, what: &str, read: &[u8], x: Vec<f32>, y: Vec<f32>) -> Verdict {
        let expected: Vec<f32> = x.iter().zip(&y).map(|(x, y)| x + y).collect();
        self.is(what, read, &expected)
    }
}

/// The id of the launches.
const LAUNCH_ID: i32 = 70_002;
