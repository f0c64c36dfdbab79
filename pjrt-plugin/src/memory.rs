//! Memories: the places where buffers live.

/// A memory of a device (`PJRT_Memory`): an identity, with a kind that hosts select it by.
///
/// A device has at most one memory of a kind. Devices that list a memory of the same kind and id share it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Memory {
    id: i32,
    kind: String,
    kind_id: i32,
    host_accessible: bool,
}

impl Memory {
    /// The kind of a device's own memory, which JAX assumes where a program names none.
    pub const DEVICE: &'static str = "device";
    /// The kind of host memory that a device reads fast.
    pub const PINNED_HOST: &'static str = "pinned_host";
    /// The kind of ordinary host memory.
    pub const UNPINNED_HOST: &'static str = "unpinned_host";

    /// A memory. The id is unique among the memories of this kind.
    #[must_use]
    pub fn new(id: i32, kind: impl Into<String>) -> Self {
        let kind = kind.into();
        // FNV-1a: the number must be the same in every process, not zero, and differ between kinds.
        let hash = kind
            .bytes()
            .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
        Self { id, kind_id: ((hash & 0x7fff_ffff) | 1) as i32, kind, host_accessible: false }
    }

    /// Says that the host may read and write buffers of this memory in place. Buffers in it must then have
    /// [`host_bytes`](crate::buffer::PjrtBuffer::host_bytes); JAX makes NumPy arrays of them without a copy.
    #[must_use]
    pub fn host_accessible(mut self) -> Self {
        self.host_accessible = true;
        self
    }

    /// The number of the kind, where the SDK's own (a hash of the name) is not wanted.
    #[must_use]
    pub fn with_kind_id(mut self, kind_id: i32) -> Self {
        self.kind_id = kind_id;
        self
    }

    /// The id, unique among the memories of this kind.
    #[must_use]
    pub fn id(&self) -> i32 {
        self.id
    }

    /// The kind.
    #[must_use]
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// The number of the kind.
    #[must_use]
    pub fn kind_id(&self) -> i32 {
        self.kind_id
    }

    /// Whether the host may read and write buffers of this memory in place.
    #[must_use]
    pub fn is_host_accessible(&self) -> bool {
        self.host_accessible
    }
}
