//! The memories of devices, in which buffers are allocated.

/// A memory of a device (`PJRT_Memory`). Hosts select the memories of a device by kind.
///
/// A device has at most one memory of a kind. Memories of several devices with the same kind and id are one shared memory.
///
/// ```
/// use pjrt_plugin::Memory;
///
/// let memories = [Memory::new(0, Memory::DEVICE), Memory::new(0, Memory::PINNED_HOST).with_host_access()];
/// assert!(memories[1].is_host_accessible() && memories[0].kind_id() != memories[1].kind_id());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Memory {
    id: i32,
    kind: String,
    kind_id: i32,
    host_accessible: bool,
}

impl Memory {
    /// The kind of a device's main memory, which JAX uses by default.
    pub const DEVICE: &'static str = "device";
    /// The kind of host memory that is locked in physical memory for fast transfers.
    pub const PINNED_HOST: &'static str = "pinned_host";
    /// The kind of ordinary host memory.
    pub const UNPINNED_HOST: &'static str = "unpinned_host";

    /// Creates a memory. The id must be unique among the memories of the same kind.
    #[must_use]
    pub fn new(id: i32, kind: impl Into<String>) -> Self {
        let kind = kind.into();
        // FNV-1a. The number must be the same in every process, must not be zero, and should differ between kinds.
        let hash = kind
            .bytes()
            .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
        Self { id, kind_id: ((hash & 0x7fff_ffff) | 1) as i32, kind, host_accessible: false }
    }

    /// Makes the memory host-accessible: the host may read and write its buffers in place. Buffers in it must then return
    /// their [`host_bytes`](crate::buffer::PjrtBuffer::host_bytes), and JAX converts them to NumPy arrays without a copy.
    #[must_use]
    pub fn with_host_access(mut self) -> Self {
        self.host_accessible = true;
        self
    }

    /// Sets the id of the kind, which is a hash of the kind's name by default.
    #[must_use]
    pub fn with_kind_id(mut self, kind_id: i32) -> Self {
        self.kind_id = kind_id;
        self
    }

    /// Returns the id, which is unique among the memories of the same kind.
    #[must_use]
    pub fn id(&self) -> i32 {
        self.id
    }

    /// Returns the kind.
    #[must_use]
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// Returns the id of the kind (`PJRT_Memory_Kind_Id`).
    #[must_use]
    pub fn kind_id(&self) -> i32 {
        self.kind_id
    }

    /// Returns whether the host may read and write buffers of this memory in place.
    #[must_use]
    pub fn is_host_accessible(&self) -> bool {
        self.host_accessible
    }
}
