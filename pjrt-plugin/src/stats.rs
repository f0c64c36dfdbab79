//! Memory statistics.

use crate::signature::{ArraySpec, Signature};

/// The memory statistics of a device (`PJRT_Device_MemoryStats`), which JAX returns from `device.memory_stats()`. All values
/// except the number of allocations are in bytes. Unknown values are `None`. See the example of
/// [`PjrtDevice`](crate::PjrtDevice).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MemoryStats {
    /// The bytes in use.
    pub bytes_in_use: i64,
    /// The maximum of `bytes_in_use` so far.
    pub peak_bytes_in_use: Option<i64>,
    /// The number of allocations so far.
    pub num_allocs: Option<i64>,
    /// The size of the largest allocation so far.
    pub largest_alloc_size: Option<i64>,
    /// The bytes that can be allocated in total.
    pub bytes_limit: Option<i64>,
    /// The reserved bytes.
    pub bytes_reserved: Option<i64>,
    /// The maximum of `bytes_reserved` so far.
    pub peak_bytes_reserved: Option<i64>,
    /// The bytes that can be reserved in total.
    pub bytes_reservable_limit: Option<i64>,
    /// The size of the largest free block.
    pub largest_free_block_bytes: Option<i64>,
    /// The bytes in the allocator's pool.
    pub pool_bytes: Option<i64>,
    /// The maximum of `pool_bytes` so far.
    pub peak_pool_bytes: Option<i64>,
    /// The maximum of the allocated bytes so far.
    pub peak_allocated_bytes: Option<i64>,
}

/// The memory that a program needs on each device (`PJRT_Executable_GetCompiledMemoryStats`), in bytes. JAX returns it from
/// `compiled.memory_analysis()`. Sizes in device memory include the padding of arrays, as
/// [`PjrtBuffer::size_in_bytes`](crate::PjrtBuffer::size_in_bytes) does. See the example of
/// [`PjrtExecutable`](crate::PjrtExecutable).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CompiledMemoryStats {
    /// The size of the code in device memory.
    pub generated_code_size: i64,
    /// The size of the arguments in device memory.
    pub argument_size: i64,
    /// The size of the outputs in device memory, including those that share the memory of an argument.
    pub output_size: i64,
    /// The size of the outputs in device memory that share the memory of an argument.
    pub alias_size: i64,
    /// The size of temporary device memory.
    pub temp_size: i64,
    /// The size of the code in host memory.
    pub host_generated_code_size: i64,
    /// The size of the arguments in host memory.
    pub host_argument_size: i64,
    /// The size of the outputs in host memory, including those that share the memory of an argument.
    pub host_output_size: i64,
    /// The size of the outputs in host memory that share the memory of an argument.
    pub host_alias_size: i64,
    /// The size of temporary host memory.
    pub host_temp_size: i64,
    /// The maximum of the device memory in use during an execution.
    pub peak_memory: i64,
    /// The total size of the device memory that the program needs.
    pub total_size: i64,
}

impl CompiledMemoryStats {
    /// Returns the memory of a program whose arrays have the sizes that `size_of` returns, each in the memory of its kind, with
    /// `temp_size` bytes of temporary device memory.
    ///
    /// For a device that does not pad arrays, `size_of` is [`ArraySpec::dense_size`]. Each output shares the memory of the first
    /// donated argument of the same size, as with [`Input::take_donated`](crate::Input::take_donated).
    ///
    /// ```
    /// use pjrt_plugin::{ArraySpec, CompiledMemoryStats, ElementType, Memory, Signature};
    ///
    /// let array = ArraySpec::new(ElementType::F32, [2, 3]);
    /// let on_host = array.clone().with_memory_kind(Memory::PINNED_HOST);
    /// let mut signature = Signature::new("main", [array.clone(), on_host], [array]);
    /// let stats = CompiledMemoryStats::of_arrays(&signature, 100, ArraySpec::dense_size);
    /// assert_eq!((stats.argument_size, stats.host_argument_size, stats.peak_memory), (24, 24, 148));
    ///
    /// // The device stores rows of eight elements, and the output takes the place of the donated argument.
    /// let padded = |spec: &ArraySpec| spec.dims()[0] as usize * 32;
    /// signature.donated.push(0);
    /// let stats = CompiledMemoryStats::of_arrays(&signature, 0, padded);
    /// assert_eq!((stats.output_size, stats.alias_size, stats.peak_memory), (64, 64, 64));
    /// ```
    #[must_use]
    pub fn of_arrays(signature: &Signature, temp_size: usize, size_of: impl Fn(&ArraySpec) -> usize) -> Self {
        let (device, host) = (sizes(signature, false, &size_of), sizes(signature, true, &size_of));
        let temp_size = i64::try_from(temp_size).unwrap_or(i64::MAX);
        let new_outputs = device.outputs - device.alias;
        let total = device.arguments.saturating_add(new_outputs).saturating_add(temp_size);
        Self {
            argument_size: device.arguments,
            output_size: device.outputs,
            alias_size: device.alias,
            temp_size,
            host_argument_size: host.arguments,
            host_output_size: host.outputs,
            host_alias_size: host.alias,
            peak_memory: total,
            total_size: total,
            ..Self::default()
        }
    }
}

/// The sizes of a program's arrays in one kind of memory.
struct Sizes {
    arguments: i64,
    outputs: i64,
    /// The size of the outputs that share the memory of an argument.
    alias: i64,
}

/// Returns the sizes of the arrays that are in host memory, or of those that are not.
fn sizes(signature: &Signature, on_host: bool, size_of: impl Fn(&ArraySpec) -> usize) -> Sizes {
    let size = |spec: &ArraySpec| {
        (spec.is_on_host() == on_host).then(|| i64::try_from(size_of(spec)).unwrap_or(i64::MAX))
    };
    let arguments: Vec<Option<i64>> = signature.parameters.iter().map(size).collect();
    let outputs: Vec<i64> = signature.outputs.iter().filter_map(size).collect();
    let mut donated: Vec<i64> =
        signature.donated.iter().filter_map(|index| *arguments.get(*index)?).collect();
    let mut alias = 0_i64;
    for output in &outputs {
        if let Some(position) = donated.iter().position(|size| size == output) {
            alias = alias.saturating_add(donated.remove(position));
        }
    }
    Sizes { arguments: sum(arguments.into_iter().flatten()), outputs: sum(outputs), alias }
}

fn sum(sizes: impl IntoIterator<Item = i64>) -> i64 {
    sizes.into_iter().fold(0, i64::saturating_add)
}
