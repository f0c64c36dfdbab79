//! Checks of a device whose memory is full: what a refused request had allocated is free again.

use std::time::Instant;

use super::entry::{ALL, Entry, check};
use super::program_text::{compiled, launch, with_main};
use crate::conform::harness::{
    Context, Finding, KEPT_ERROR, Verdict, compile_add, ensure, f32_bytes, numbers, patience, upload_four,
};
use crate::process::usage::available_bytes;
use pjrt_testing::CompileOptions;
use pjrt_testing::host::{
    Buffer, Client, Code, ElementType, Error, HostArray, LoadedExecutable, Memory, eventually,
};

pub(super) const CHECKS: &[Entry] = &[
    check(
        "exhaustion/outputs_that_do_not_fit",
        "If the memory of a device does not suffice for all outputs of an execution, the execution or its outputs fail with RESOURCE_EXHAUSTED, and the memory of the other outputs is free again.",
        outputs,
        "PJRT_Device_MemoryStats failed PJRT_LoadedExecutable_Execute set bytes_in_use+67108864",
    )
    .header("PJRT_Device_MemoryStats_Args::bytes_in_use", "Number of bytes in use.")
    .used_by(ALL)
    .also(&["memory/*", "exhaustion/*"]),
    check(
        "exhaustion/temporary_memory",
        "If the memory of a device does not suffice for the intermediate results of an execution, the execution or its output fails with RESOURCE_EXHAUSTED; otherwise, the output is right.",
        temporaries,
        "PJRT_LoadedExecutable_Execute when options>launch_id=992 zeroed_output 0",
    )
    .header("PJRT_LoadedExecutable_Execute", "Executes on devices addressable by the client: an execution that cannot compute its outputs fails."),
    check(
        "exhaustion/client_works_after_refusals",
        "After a request for too much memory was refused, transfers and executions do not fail with the error of the request.",
        works_after_refusals,
        "PJRT_Buffer_ToHostBuffer failed PJRT_Client_BufferFromHostBuffer fail RESOURCE_EXHAUSTED",
    )
    .host(
        "DeePMD-kit on JAX, deepmd/jax/utils/auto_batch_size.py, AutoBatchSize",
        "Tries a smaller batch after one that did not fit into the memory.",
    )
    .needed_by(ALL)
    .also(&["memory/too_large_*", "memory/overflowing_sizes"]),
    check(
        "exhaustion/accepted_arrays_keep_their_elements",
        "All arrays that a device accepts, also if they need more memory than bytes_limit, keep their elements.",
        accepted,
        "PJRT_Client_BufferFromHostBuffer when num_dims=2 dims.1=929 give data=zeros",
    )
    .header("PJRT_Client_BufferFromHostBuffer", "Asynchronously copies a buffer stored on host to device memory.")
    .used_by(ALL),
    check(
        "exhaustion/memory_can_be_filled_again",
        "A device whose memory was filled with arrays until one was refused takes as many arrays again after these were destroyed.",
        filled_again,
        "PJRT_Device_MemoryStats failed PJRT_Client_CreateUninitializedBuffer set bytes_in_use+67108864",
    )
    .header("PJRT_Buffer_Destroy", "Deletes the underlying runtime objects as if 'PJRT_Buffer_Delete' were called and frees `buffer`.")
    .also(&["memory/*", "exhaustion/*"]),
];

/// The default memory of a client's first device, which is so small that it can be filled.
struct LimitedMemory<'c> {
    client: &'c Client,
    memory: Memory<'c>,
    limit: i64,
}

/// The smallest part of the memory that [`LimitedMemory::fill`] allocates.
const PARTS: i64 = 1024;

impl<'c> LimitedMemory<'c> {
    fn new(client: &'c Client) -> Result<Self, Finding> {
        let not = |why: &str| Err(Finding::NotApplicable(why.to_owned()));
        let device = client.device()?;
        let Some(limit) = device.memory_stats()?.bytes_limit.filter(|limit| *limit > 1 << 16) else {
            return not("the device reports no limit");
        };
        // The memory may be that of the host, which other processes use too.
        if limit > available_bytes().map_err(Finding::NotApplicable)? / 2 {
            return not("the memory of the device is more than half of that of the host");
        }
        drop(upload_four(client, &[1.0; 4])?);
        Ok(Self { client, memory: device.default_memory()?, limit })
    }

    /// Allocates an array of about this number of bytes.
    fn array(&self, bytes: i64) -> Result<Buffer, Error> {
        let dims = [bytes / 4];
        let array = match self.client.uninitialized(ElementType::F32, &dims, self.memory) {
            Err(error) if error.code == Code::UNIMPLEMENTED => {
                let zeros = vec![0; 4 * dims[0] as usize];
                let zeros = HostArray::new(&zeros, ElementType::F32, &dims);
                self.client.upload(&zeros, None, Some(self.memory))?.buffer
            }
            other => other?,
        };
        array.ready()?.wait()?;
        Ok(array)
    }

    /// Fills the memory with arrays, the largest ones first, until the smallest one is refused.
    fn fill(&self) -> Result<Vec<Buffer>, Finding> {
        let start = Instant::now();
        let (mut arrays, mut bytes, mut sum) = (Vec::new(), self.limit / 8, 0);
        while bytes >= self.limit / PARTS {
            match self.array(bytes) {
                Ok(array) => arrays.push(array),
                Err(error) if error.code == Code::RESOURCE_EXHAUSTED => bytes /= 2,
                Err(error) => return Err(error.into()),
            }
            sum += bytes;
            if start.elapsed() > patience() || sum > 2 * self.limit {
                return Err(Finding::NotApplicable("the memory of the device cannot be filled".to_owned()));
            }
        }
        Ok(arrays)
    }

    fn in_use(&self) -> i64 {
        let stats = self.client.device().and_then(|device| device.memory_stats());
        stats.map_or(0, |stats| stats.bytes_in_use)
    }
}

/// Returns a program that spreads a scalar over several outputs of this length.
fn spreading(outputs: usize, len: i64) -> String {
    let ty = format!("tensor<{len}xf32>");
    let line = |index: usize| {
        format!(
            "    %r{index} = \"stablehlo.broadcast_in_dim\"(%p{index}) {{broadcast_dimensions = array<i64>}} : (tensor<f32>) -> {ty}\n"
        )
    };
    let list = |text: &dyn Fn(usize) -> String| (0..outputs).map(text).collect::<Vec<_>>().join(", ");
    let lines: String = (0..outputs).map(line).collect();
    with_main(
        &list(&|index| format!("%p{index}: tensor<f32>")),
        &lines,
        &list(&|index| format!("%r{index}")),
        &list(&|_| ty.clone()),
    )
}

/// The number of outputs, of which two or three fit into the memory that is left.
const OUTPUTS: usize = 5;

fn outputs(context: &Context) -> Verdict {
    const ROUNDS: usize = 4;
    let client = context.client()?;
    let device = LimitedMemory::new(&client)?;
    let part = device.limit / PARTS;
    let program = compiled(&client, &spreading(OUTPUTS, part / 8), &CompileOptions::default())?;
    let one = 1_f32.to_le_bytes();
    let scalar = |_| {
        let array = HostArray::new(&one, ElementType::F32, &[]);
        client.upload(&array, Some(client.device()?), None).map(|uploaded| uploaded.buffer)
    };
    let scalars = (0..OUTPUTS).map(scalar).collect::<Result<Vec<_>, _>>()?;
    // The first execution may allocate memory that the program keeps.
    drop(run(&program, &scalars));
    let mut arrays = device.fill()?;
    drop(arrays.pop());
    let before = device.in_use();
    for _ in 0..ROUNDS {
        match run(&program, &scalars) {
            Err(error) if error.code == Code::RESOURCE_EXHAUSTED => {}
            Err(error) => {
                return Err(Finding::Wrong(format!(
                    "an execution whose outputs do not all fit into the memory failed with {error}; hosts recognize exhausted memory \
                     by the code RESOURCE_EXHAUSTED"
                )));
            }
            Ok(()) => {
                return Err(Finding::NotApplicable("more than bytes_limit fits into the memory".to_owned()));
            }
        }
    }
    let grown = || device.in_use() - before;
    eventually(patience() / 4, || grown() < part / 8);
    let grown = grown();
    ensure!(
        grown < part / 8,
        "bytes_in_use of PJRT_Device_MemoryStats is {grown} bytes more than before {ROUNDS} executions that failed because only some \
         of their {OUTPUTS} outputs of {} bytes fit into the memory: the plugin probably does not free the outputs that it had allocated \
         when the memory of another one was refused",
        part / 8 * 4
    );
    Ok(())
}

/// Executes a program, and waits for its outputs.
fn run(program: &LoadedExecutable, scalars: &[Buffer]) -> Result<(), Error> {
    let launched = launch(program, &scalars.iter().collect::<Vec<_>>(), 989)?;
    for output in launched.outputs_of(0, OUTPUTS)? {
        output.ready()?.wait()?;
    }
    launched.done[0].wait()
}

/// Returns the forms of a program that returns the number of elements of a large intermediate result, which a device may compute
/// without storing it. The operations are those of matrix products, of reductions and of sorting.
fn with_temporaries(len: i64) -> [String; 3] {
    let ty = format!("tensor<{len}xf32>");
    let (scalar, flag) = ("tensor<f32>", "tensor<i1>");
    let spread = format!(
        "    %x = \"stablehlo.broadcast_in_dim\"(%p0) {{broadcast_dimensions = array<i64>}} : ({scalar}) -> {ty}\n"
    );
    let sum = |of: &str| {
        format!(
            "    %z = stablehlo.constant dense<0.0> : {scalar}\n    %r = stablehlo.reduce({of} init: %z) applies stablehlo.add across \
             dimensions = [0] : ({ty}, {scalar}) -> {scalar}\n"
        )
    };
    let product = format!(
        "    %r = stablehlo.dot_general %x, %x, contracting_dims = [0] x [0] : ({ty}, {ty}) -> {scalar}\n"
    );
    let sorted = format!(
        "    %y = \"stablehlo.sort\"(%x) ({{\n    ^bb0(%a: {scalar}, %b: {scalar}):\n      %c = stablehlo.compare LT, %a, %b : ({scalar}, \
         {scalar}) -> {flag}\n      stablehlo.return %c : {flag}\n    }}) {{dimension = 0 : i64, is_stable = true}} : ({ty}) -> {ty}\n"
    );
    [product, sum("%x"), sorted + &sum("%y")]
        .map(|lines| with_main(&format!("%p0: {scalar}"), &(spread.clone() + &lines), "%r", scalar))
}

fn temporaries(context: &Context) -> Verdict {
    let client = context.client()?;
    let device = LimitedMemory::new(&client)?;
    // Twice as much as the memory that is left, and a number of elements that a float holds.
    let len = (device.limit / PARTS).min(1 << 23);
    // An execution without memory for its intermediate results may write them to memory of the host's arrays.
    let kept = f32_bytes(&(0..len).map(|index| index as f32 + 0.5).collect::<Vec<_>>());
    let dims = [len];
    let array = HostArray::new(&kept, ElementType::F32, &dims);
    let guard = client.upload(&array, Some(client.device()?), None)?.buffer;
    guard.ready()?.wait()?;
    let programs =
        with_temporaries(len).map(|text| compiled(&client, &text, &CompileOptions::default()).ok());
    let one = 1_f32.to_le_bytes();
    let scalar =
        client.upload(&HostArray::new(&one, ElementType::F32, &[]), Some(client.device()?), None)?.buffer;
    let mut arrays = device.fill()?;
    drop(arrays.pop());
    for program in programs.iter().flatten() {
        let outcome = launch(program, &[&scalar], 992).and_then(|launched| numbers(launched.output(0, 0)?));
        match outcome {
            // A device may add with fewer bits.
            Ok(sum) => ensure!(
                matches!(sum[..], [sum] if (sum / len as f32 - 1.0).abs() < 0.02),
                "the sum of {len} ones is {sum:?} if their {} bytes do not fit into the memory that is left: the plugin probably ignores \
                 that it cannot allocate an intermediate result",
                4 * len
            ),
            Err(error) => {
                ensure!(
                    error.code == Code::RESOURCE_EXHAUSTED,
                    "an execution whose intermediate results do not fit into the memory failed with {error}; hosts recognize exhausted \
                     memory by the code RESOURCE_EXHAUSTED"
                );
            }
        }
    }
    ensure!(
        guard.read()? == kept,
        "an execution whose intermediate results do not fit into the memory changed another array: the plugin probably ignores that it \
         cannot allocate them, and writes them elsewhere"
    );
    match programs.iter().any(Option::is_some) {
        true => Ok(()),
        false => Err(Finding::Unsupported(
            "no program with a large intermediate result can be compiled".to_owned(),
        )),
    }
}

/// The largest memory of which checks write every byte.
const MOST: i64 = 1 << 30;

/// A request for too much memory.
type Attempt<'a> = &'a dyn Fn() -> Result<(), Error>;

/// Does what the memory does not suffice for, in each way, and then something small.
fn works_after_refusals(context: &Context) -> Verdict {
    // 64 TiB, which no host has; twice the memory, if it is so small that a plugin could really write as much.
    const TOO_MANY: i64 = 1 << 44;
    let client = context.client()?;
    let device = client.device()?;
    let limited = LimitedMemory::new(&client).ok().filter(|limited| limited.limit <= MOST);
    let too_many = limited.map_or(TOO_MANY, |limited| limited.limit / 2);
    let works = || -> Result<Vec<f32>, Error> {
        let array = upload_four(&client, &[1.0; 4])?;
        array.ready()?.wait()?;
        numbers(&array)
    };
    works()?;
    let add = compile_add(&client).ok();
    let large = compiled(&client, &spreading(1, too_many), &CompileOptions::default()).ok();
    let one = 1_f32.to_le_bytes();
    // A stride of 0 repeats one element.
    let [zero, dims] = [[0], [too_many]];
    let upload = || {
        let array = HostArray { strides: Some(&zero), ..HostArray::new(&one, ElementType::F32, &dims) };
        let uploaded = client.upload(&array, Some(device), None)?;
        uploaded.done.wait()?;
        uploaded.buffer.ready()?.wait()
    };
    let create = || client.uninitialized(ElementType::F32, &dims, device.default_memory()?)?.ready()?.wait();
    let execute = || {
        let Some(large) = &large else { return Ok(()) };
        let scalar = client.upload(&HostArray::new(&one, ElementType::F32, &[]), Some(device), None)?;
        launch(large, &[&scalar.buffer], 981)?.output(0, 0)?.ready()?.wait()
    };
    for (what, attempt) in
        [("an upload", &upload as Attempt<'_>), ("an array", &create), ("an output", &execute)]
    {
        let Err(refusal) = attempt() else { continue };
        for (operation, outcome) in [
            ("a transfer", works()),
            ("an execution", add.as_ref().map_or(Ok(Vec::new()), |add| sum(&client, add))),
            ("a transfer", works()),
        ] {
            if let Err(error) = outcome {
                return Err(Finding::Wrong(format!(
                    "after {what} of {} bytes was refused ({refusal}), {operation} of four numbers fails: {error}: {KEPT_ERROR}",
                    4 * too_many
                )));
            }
        }
    }
    Ok(())
}

/// Adds an array to itself.
fn sum(client: &Client, add: &LoadedExecutable) -> Result<Vec<f32>, Error> {
    let array = upload_four(client, &[1.0; 4])?;
    numbers(&launch(add, &[&array, &array], 0)?.take_output()?)
}

/// Fills the memory with arrays that have different elements, and goes on beyond its limit.
fn accepted(context: &Context) -> Verdict {
    const COLUMNS: i64 = 929;
    const LARGEST: i64 = 4 << 20;
    let client = context.client()?;
    let device = LimitedMemory::new(&client)?;
    if device.limit > MOST {
        return Err(Finding::NotApplicable(format!("the memory of the device has more than {MOST} bytes")));
    }
    let rows = (device.limit / 16).min(LARGEST) / (4 * COLUMNS);
    let dims = [rows, COLUMNS];
    let bytes = |number: usize| f32_bytes(&vec![number as f32 + 0.5; (rows * COLUMNS) as usize]);
    let upload = |number: usize| -> Result<Buffer, Error> {
        let bytes = bytes(number);
        let array = HostArray::new(&bytes, ElementType::F32, &dims);
        let uploaded = client.upload(&array, None, Some(device.memory))?;
        uploaded.done.wait()?;
        uploaded.buffer.ready()?.wait()?;
        Ok(uploaded.buffer)
    };
    let count = 2 * device.limit / (4 * rows * COLUMNS);
    let start = Instant::now();
    let (mut arrays, mut refused) = (Vec::new(), String::new());
    while (arrays.len() as i64) < count && start.elapsed() < patience() {
        match upload(arrays.len()) {
            Ok(array) => arrays.push(array),
            Err(error) if error.code == Code::RESOURCE_EXHAUSTED => {
                refused = format!(", after the next one was refused ({error}): {KEPT_ERROR}");
                // A readback may need memory of the device.
                arrays.truncate(arrays.len().saturating_sub(2));
                break;
            }
            Err(error) => return Err(error.into()),
        }
    }
    for (number, array) in arrays.iter().enumerate() {
        let fails = |error: Error| Finding::Wrong(format!("array {number} cannot be read: {error}{refused}"));
        let read = array.read().map_err(fails)?;
        if read == bytes(number) {
            continue;
        }
        let of = (0..arrays.len()).find(|other| read == bytes(*other));
        let whose = of.map_or_else(String::new, |of| {
            format!(
                ", which are those of array {of}: the plugin probably gives an array the memory of another one if no memory \
                 is left, and must fail with RESOURCE_EXHAUSTED"
            )
        });
        return Err(Finding::Wrong(format!(
            "array {number} of {} that the device accepted, each of {} bytes with bytes_limit {}, has other elements than it \
             was uploaded with{whose}",
            arrays.len(),
            4 * rows * COLUMNS,
            device.limit
        )));
    }
    Ok(())
}

fn filled_again(context: &Context) -> Verdict {
    let client = context.client()?;
    let device = LimitedMemory::new(&client)?;
    let before = device.in_use();
    let first = device.fill()?.len();
    eventually(patience() / 4, || device.in_use() <= before);
    let kept = device.in_use() - before;
    let second = device.fill()?.len();
    // Pieces of memory that are in use otherwise may lie elsewhere than before.
    let part = device.limit / PARTS;
    ensure!(
        kept < part && second + 8 >= first,
        "{first} arrays filled the memory of the device; after they were destroyed, bytes_in_use of PJRT_Device_MemoryStats is {kept} \
         bytes more than before, and {second} arrays of the same sizes fit: the plugin probably does not free what it had allocated for \
         an array that it refused, or its free memory is in pieces that it does not join"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_programs_are_stablehlo() {
        for text in with_temporaries(1000).into_iter().chain([spreading(OUTPUTS, 1000)]) {
            pjrt_stablehlo::parse(text.clone()).unwrap_or_else(|error| panic!("{error}: {text}"));
        }
    }
}
