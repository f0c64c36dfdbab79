//! Memory statistics.

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
