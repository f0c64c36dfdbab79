//! Threads that use a plugin concurrently.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use super::arrays::{self, Numbers, compile};
use super::message::{Message, Stop, Verdict, send};
use super::options::ChildOptions;
use crate::array::random::Random;
use pjrt_testing::host::{Buffer, Client, LoadedExecutable, Semantics, eventually};

/// The lengths of the arrays.
const LENGTHS: [usize; 3] = [4, 1000, 20_000];

/// The number of arrays that threads share, after which they destroy some.
const SHARED: usize = 48;

/// The time after the last operation in which a plugin frees what the host destroyed.
const TO_FREE: Duration = Duration::from_secs(2);

/// An array that threads share.
struct Item {
    buffer: Buffer,
    numbers: Numbers,
    /// `true` if the array is where programs expect their arguments.
    is_home: bool,
    /// `true` from before the deletion, after which every use may fail.
    is_deleted: AtomicBool,
}

/// The programs of one length: the one that adds, and the one that also donates its first argument, unless the
/// plugin does not compile it.
struct Programs {
    add: LoadedExecutable,
    donate: Option<LoadedExecutable>,
}

/// The operations, with their relative frequencies.
const OPERATIONS: &[(&str, usize, Operation)] = &[
    ("transferring an array", 20, |worker| worker.upload()),
    ("reading an array", 20, |worker| worker.read()),
    ("executing a program", 25, |worker| worker.execute()),
    ("donating an argument", 10, |worker| worker.donate()),
    ("copying an array", 10, |worker| worker.copy()),
    ("deleting an array", 3, |worker| worker.delete()),
    ("destroying an array", 10, |worker| worker.destroy()),
    ("asking for attributes", 10, |worker| worker.query()),
    ("compiling a program", 1, |worker| worker.recompile()),
];

type Operation = fn(&mut Worker<'_>) -> Verdict<()>;

/// The state that the threads share.
struct Shared<'c> {
    client: &'c Client,
    items: Mutex<Vec<Arc<Item>>>,
    programs: [RwLock<Arc<Programs>>; LENGTHS.len()],
    is_over: AtomicBool,
    /// The number of operations that each thread has begun.
    begun: Vec<AtomicU64>,
    /// The current operation of each thread, as an index into [`OPERATIONS`].
    current: Vec<AtomicUsize>,
    failure: Mutex<Option<String>>,
}

/// One thread.
struct Worker<'s> {
    shared: &'s Shared<'s>,
    random: Random,
}

/// Runs the threads for the given time, and checks all results.
pub(super) fn run(client: &Client, options: &ChildOptions) -> Verdict {
    let threads = options.threads as usize;
    let before = client.device()?.memory_stats().ok();
    let programs = |len: usize| -> Verdict<_> { Ok(RwLock::new(Arc::new(Programs::new(client, len)?))) };
    let [small, medium, large] = LENGTHS;
    let shared = Shared {
        client,
        items: Mutex::default(),
        programs: [programs(small)?, programs(medium)?, programs(large)?],
        is_over: AtomicBool::new(false),
        begun: (0..threads).map(|_| AtomicU64::new(0)).collect(),
        current: (0..threads).map(|_| AtomicUsize::new(0)).collect(),
        failure: Mutex::default(),
    };
    send(&Message::At("running threads".to_owned()));
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (shared, random) = (&shared, Random::new(options.seed, thread as u64));
            scope.spawn(move || Worker { shared, random }.work(thread));
        }
        shared.watch(options);
    });
    if let Some(failure) = shared.failure.lock().unwrap_or_else(PoisonError::into_inner).take() {
        return Err(Stop::Failed(failure));
    }
    let operations: u64 = shared.begun.iter().map(|begun| begun.load(Ordering::Relaxed)).sum();
    drop(shared);
    if let Some(before) = before {
        let in_use = || client.device().and_then(|device| device.memory_stats()).map(|now| now.bytes_in_use);
        if !eventually(TO_FREE, || in_use().is_ok_and(|bytes| bytes <= before.bytes_in_use)) {
            return Err(Stop::Failed(format!(
                "all arrays and programs are destroyed, but bytes_in_use is {}; expected {}, as at the beginning",
                in_use()?,
                before.bytes_in_use
            )));
        }
    }
    Ok(format!("{threads} threads, {operations} operations"))
}

impl Shared<'_> {
    /// Waits until the time is over, and reports a thread that makes no progress.
    fn watch(&self, options: &ChildOptions) {
        let end = Instant::now() + options.seconds;
        let mut last: Vec<(u64, Instant)> = vec![(0, Instant::now()); self.begun.len()];
        let is_failed = || self.failure.lock().unwrap_or_else(PoisonError::into_inner).is_some();
        // Threads end after the operation that they are in.
        let mut running = self.begun.len();
        while running > 0 {
            if Instant::now() >= end || is_failed() {
                self.is_over.store(true, Ordering::Relaxed);
            }
            std::thread::sleep(Duration::from_millis(50));
            running = 0;
            for (thread, (seen, since)) in last.iter_mut().enumerate() {
                let begun = self.begun[thread].load(Ordering::Relaxed);
                if self.current[thread].load(Ordering::Relaxed) == OPERATIONS.len() {
                    continue;
                }
                running += 1;
                if begun != *seen {
                    (*seen, *since) = (begun, Instant::now());
                } else if since.elapsed() > options.timeout {
                    let how = self.located(thread, "it made no progress");
                    let seconds = options.timeout.as_secs();
                    send(&Message::Failed(format!("{how} for {seconds} s")));
                    // The thread cannot be joined. The parent ends this process.
                    std::thread::park();
                }
            }
            send(&Message::At("running threads".to_owned()));
        }
    }

    /// Prefixes a message with the thread's number and operation.
    fn located(&self, thread: usize, how: &str) -> String {
        let name = OPERATIONS[self.current[thread].load(Ordering::Relaxed)].0;
        let number = self.begun[thread].load(Ordering::Relaxed);
        format!("thread {thread}, operation {number}, {name}: {how}")
    }
}

impl Programs {
    fn new(client: &Client, len: usize) -> Verdict<Self> {
        Ok(Self { add: compile(client, len, false)?, donate: compile(client, len, true).ok() })
    }
}

impl Worker<'_> {
    /// Performs random operations until the time is over.
    fn work(&mut self, thread: usize) {
        let all: usize = OPERATIONS.iter().map(|(_, frequency, _)| frequency).sum();
        while !self.shared.is_over.load(Ordering::Relaxed) {
            let mut chosen = self.random.below(all);
            let index = OPERATIONS.iter().position(|(_, frequency, _)| {
                let is_it = chosen < *frequency;
                chosen = chosen.saturating_sub(*frequency);
                is_it
            });
            let index = index.unwrap_or(0);
            self.shared.current[thread].store(index, Ordering::Relaxed);
            self.shared.begun[thread].fetch_add(1, Ordering::Relaxed);
            // What the plugin does not support is not tested.
            if let Err(Stop::Failed(how)) = (OPERATIONS[index].2)(self) {
                let how = self.shared.located(thread, &how);
                let mut failure = self.shared.failure.lock().unwrap_or_else(PoisonError::into_inner);
                failure.get_or_insert(how);
                break;
            }
        }
        self.shared.current[thread].store(OPERATIONS.len(), Ordering::Relaxed);
    }

    /// Shares an array, and destroys another one if there are many.
    fn share(&mut self, buffer: Buffer, numbers: Numbers, is_home: bool) {
        let item = Arc::new(Item { buffer, numbers, is_home, is_deleted: AtomicBool::new(false) });
        let mut items = self.shared.items.lock().unwrap_or_else(PoisonError::into_inner);
        items.push(item);
        let surplus = if items.len() > SHARED {
            let index = self.random.below(items.len());
            Some(items.swap_remove(index))
        } else {
            None
        };
        drop(items);
        drop(surplus);
    }

    /// Returns an array that other threads may use at the same time.
    fn pick(&mut self) -> Option<Arc<Item>> {
        let items = self.shared.items.lock().unwrap_or_else(PoisonError::into_inner);
        if items.is_empty() { None } else { Some(Arc::clone(&items[self.random.below(items.len())])) }
    }

    /// Takes an array out of the shared ones. Other threads may still use it.
    fn take(&mut self) -> Option<Arc<Item>> {
        let mut items = self.shared.items.lock().unwrap_or_else(PoisonError::into_inner);
        if items.is_empty() {
            return None;
        }
        let index = self.random.below(items.len());
        Some(items.swap_remove(index))
    }

    fn upload(&mut self) -> Verdict<()> {
        let len = LENGTHS[self.random.below(LENGTHS.len())];
        let numbers = Numbers { len, start: self.random.below(1000), step: self.random.below(8) };
        let semantics = match self.random.below(2) {
            0 => Semantics::ImmutableOnlyDuringCall,
            _ => Semantics::ImmutableUntilTransferCompletes,
        };
        let client = self.shared.client;
        let buffer = arrays::upload(client, numbers, client.device()?, semantics)?;
        self.share(buffer, numbers, true);
        Ok(())
    }

    fn read(&mut self) -> Verdict<()> {
        let Some(item) = self.pick() else { return self.upload() };
        item.check("an array")
    }

    fn execute(&mut self) -> Verdict<()> {
        let (Some(x), Some(y)) = (self.pick(), self.pick()) else { return self.upload() };
        let y = if x.numbers.len == y.numbers.len { y } else { Arc::clone(&x) };
        if !x.is_argument() || !y.is_argument() {
            return Ok(());
        }
        let programs = self.programs(x.numbers.len);
        let launched = match programs.add.run(&[&x.buffer, &y.buffer]) {
            Err(_) if x.was_deleted() || y.was_deleted() => return Ok(()),
            other => other?,
        };
        let numbers = x.numbers.plus(y.numbers);
        let (event, output) =
            (launched.done.into_iter().next(), launched.outputs.into_iter().flatten().next());
        let Some(buffer) = output else {
            return Err(Stop::Failed("an execution has no result".to_owned()));
        };
        let item = Item { buffer, numbers, is_home: true, is_deleted: AtomicBool::new(false) };
        if self.random.below(2) == 0 {
            let outcome = event.map_or(Ok(()), |event| event.wait());
            match outcome.map_err(Stop::from).and_then(|()| item.check("the result of an execution")) {
                Err(_) if x.was_deleted() || y.was_deleted() => return Ok(()),
                other => other?,
            }
            self.share(item.buffer, numbers, true);
        } else if !x.was_deleted() && !y.was_deleted() {
            // The arguments may be destroyed before the program reads them.
            drop((x, y));
            item.check("the result of an execution whose arguments were destroyed")?;
        }
        Ok(())
    }

    fn donate(&mut self) -> Verdict<()> {
        let len = LENGTHS[self.random.below(LENGTHS.len())];
        let numbers = Numbers { len, start: self.random.below(1000), step: self.random.below(8) };
        let programs = self.programs(len);
        let Some(program) = &programs.donate else { return Ok(()) };
        let client = self.shared.client;
        let new = || arrays::upload(client, numbers, client.device()?, Semantics::ImmutableOnlyDuringCall);
        let (x, y) = (new()?, new()?);
        let launched = program.run(&[&x, &y])?;
        drop(x);
        let result = launched.output(0, 0)?;
        arrays::read_and_check(result, numbers.plus(numbers), "the result in a donated argument")?;
        arrays::read_and_check(&y, numbers, "the argument that was not donated")
    }

    fn copy(&mut self) -> Verdict<()> {
        let Some(item) = self.pick() else { return self.upload() };
        let client = self.shared.client;
        let memories = client.memories()?;
        if memories.is_empty() {
            return Ok(());
        }
        let copied = item.buffer.copy_to_memory(memories[self.random.below(memories.len())]);
        let copy = match copied {
            Err(_) if item.was_deleted() => return Ok(()),
            other => other?,
        };
        let numbers = item.numbers;
        let checked = arrays::read_and_check(&copy, numbers, "a copy");
        if checked.is_err() && item.was_deleted() {
            return Ok(());
        }
        checked?;
        self.share(copy, numbers, false);
        Ok(())
    }

    fn delete(&mut self) -> Verdict<()> {
        let Some(item) = self.take() else { return Ok(()) };
        item.is_deleted.store(true, Ordering::SeqCst);
        item.buffer.delete()?;
        if item.buffer.is_deleted()? {
            return Ok(());
        }
        Err(Stop::Failed("an array was deleted, but PJRT_Buffer_IsDeleted returns false".to_owned()))
    }

    fn destroy(&mut self) -> Verdict<()> {
        drop(self.take());
        Ok(())
    }

    fn query(&mut self) -> Verdict<()> {
        let Some(item) = self.pick() else { return Ok(()) };
        let dims = match item.buffer.dims() {
            Err(_) if item.was_deleted() => return Ok(()),
            other => other?,
        };
        if dims != [item.numbers.len as i64] {
            let expected = item.numbers.len;
            return Err(Stop::Failed(format!("the dimensions are {dims:?}; expected [{expected}]")));
        }
        match item.buffer.ready().and_then(|ready| ready.wait()) {
            Err(_) if item.was_deleted() => Ok(()),
            other => Ok(other?),
        }
    }

    fn recompile(&mut self) -> Verdict<()> {
        let index = self.random.below(LENGTHS.len());
        let new = Arc::new(Programs::new(self.shared.client, LENGTHS[index])?);
        let mut programs = self.shared.programs[index].write().unwrap_or_else(PoisonError::into_inner);
        let old = std::mem::replace(&mut *programs, new);
        drop(programs);
        // Other threads may still execute the old programs; the last one destroys them.
        drop(old);
        Ok(())
    }

    fn programs(&self, len: usize) -> Arc<Programs> {
        let index = LENGTHS.iter().position(|known| *known == len).unwrap_or(0);
        Arc::clone(&self.shared.programs[index].read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Item {
    fn was_deleted(&self) -> bool {
        self.is_deleted.load(Ordering::SeqCst)
    }

    fn is_argument(&self) -> bool {
        self.is_home && self.numbers.is_small()
    }

    /// Reads and checks the array. An array that another thread deletes at the same time may be an error, but
    /// its elements are never wrong.
    fn check(&self, what: &str) -> Verdict<()> {
        match arrays::read(&self.buffer, self.numbers) {
            Err(_) if self.was_deleted() => Ok(()),
            Err(error) => Err(error.into()),
            Ok(bytes) => self.numbers.check(&bytes).map_err(|how| Stop::Failed(format!("{what}: {how}"))),
        }
    }
}
