//! Numbers about memory.

/// What a device's memory is used for (`PJRT_Device_MemoryStats`); JAX shows it as `device.memory_stats()`. All in
/// bytes, except for the number of allocations. What is not known stays `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MemoryStats {
    /// In use now.
    pub bytes_in_use: i64,
    /// The most that was in use at once.
    pub peak_bytes_in_use: Option<i64>,
    /// How many allocations there were.
    pub num_allocs: Option<i64>,
    /// The largest single allocation.
    pub largest_alloc_size: Option<i64>,
    /// How much there is to use.
    pub bytes_limit: Option<i64>,
    /// Reserved now.
    pub bytes_reserved: Option<i64>,
    /// The most that was reserved at once.
    pub peak_bytes_reserved: Option<i64>,
    /// How much can be reserved.
    pub bytes_reservable_limit: Option<i64>,
    /// The largest block that is free.
    pub largest_free_block_bytes: Option<i64>,
    /// Held in the allocator's pool.
    pub pool_bytes: Option<i64>,
    /// The most that was held in the pool.
    pub peak_pool_bytes: Option<i64>,
    /// The most that was allocated at once.
    pub peak_allocated_bytes: Option<i64>,
}

/// What memory a program needs on each device (`PJRT_Executable_GetCompiledMemoryStats`), in bytes; JAX shows it as
/// `compiled.memory_analysis()`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CompiledMemoryStats {
    /// The program itself.
    pub generated_code_size: i64,
    /// The arguments.
    pub argument_size: i64,
    /// The results, those that share the memory of an argument included.
    pub output_size: i64,
    /// The results that share the memory of an argument.
    pub alias_size: i64,
    /// Everything that lives only during the execution.
    pub temp_size: i64,
    /// The program itself, in host memory.
    pub host_generated_code_size: i64,
    /// The arguments in host memory.
    pub host_argument_size: i64,
    /// The results in host memory.
    pub host_output_size: i64,
    /// The results in host memory that share the memory of an argument.
    pub host_alias_size: i64,
    /// What lives only during the execution, in host memory.
    pub host_temp_size: i64,
    /// The most that is needed at once.
    pub peak_memory: i64,
    /// All of it together.
    pub total_size: i64,
}
