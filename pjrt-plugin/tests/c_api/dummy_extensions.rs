//! The extensions of the dummy client: all of them.

use pjrt_plugin::ext::{
    Callbacks, CrossHostTransfers, CustomPartitioners, ExecutableMetadata, Ffi, HostMemoryAllocator,
    PartialProgram, PhaseCompile, PhaseRequest, PrefatalCallbacks, Profiler, RawBuffers, Sharding, Shardings,
    Timeline, TimelineSpan, VendorExtension, vendor,
};
use pjrt_plugin::{Error, Event, HostBuffer, Result};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::{Duration, Instant};

use crate::dummy::{Dummy, Program, Storage};

impl Ffi for Dummy {}

impl CrossHostTransfers for Dummy {}

impl CustomPartitioners for Dummy {}

impl RawBuffers for Dummy {
    fn write_raw(storage: &Arc<Storage>, offset: usize, data: HostBuffer) -> Result<Event> {
        let Storage::Raw(bytes) = &**storage else {
            return Err(Error::failed_precondition("the storage must not be written"));
        };
        let data = data.dense_bytes().unwrap();
        bytes.lock().unwrap()[offset..offset + data.len()].copy_from_slice(data);
        Ok(Event::ready())
    }
}

/// The outputs of the program "two" have shardings. Those of "donate" have the wrong number of shardings, and "none" has none.
impl Shardings for Dummy {
    fn parameter_shardings(program: &Program) -> Option<Vec<Sharding>> {
        (program.signature.name == "two").then(|| vec![Sharding::Replicated])
    }

    fn output_shardings(program: &Program) -> Option<Vec<Sharding>> {
        match &*program.signature.name {
            "two" => Some(vec![Sharding::Maximal(1), Sharding::Manual]),
            "donate" | "none" => Some(Vec::new()),
            _ => None,
        }
    }
}

/// The time at which tracing started last.
static TRACED_SINCE: Mutex<Option<Instant>> = Mutex::new(None);

impl Profiler for Dummy {
    fn start_tracing() -> Result<()> {
        *TRACED_SINCE.lock().unwrap() = Some(Instant::now());
        Ok(())
    }

    fn stop_tracing() -> Result<Vec<Timeline>> {
        let start = TRACED_SINCE.lock().unwrap().take().ok_or_else(|| Error::internal("never started"))?;
        let span = TimelineSpan {
            name: "negate on the device".to_owned(),
            start,
            duration: Duration::from_nanos(1500),
            attributes: vec![("cycles".to_owned(), 7_i64.into())],
        };
        Ok(vec![Timeline { name: "core 0".to_owned(), spans: vec![span] }])
    }
}

/// Memory whose total size is counted.
pub(crate) struct Counted(Vec<u8>);

/// The number of bytes of all [`Counted`].
pub(crate) static COUNTED: AtomicUsize = AtomicUsize::new(0);

impl AsMut<[u8]> for Counted {
    fn as_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        COUNTED.fetch_sub(self.0.len(), Ordering::Relaxed);
    }
}

impl HostMemoryAllocator for Dummy {
    type HostMemory = Counted;

    /// Allocates less than the requested size on node 7.
    fn allocate_host_memory(&self, size: usize, numa_node: Option<usize>) -> Result<Counted> {
        let size = if numa_node == Some(7) { size - 1 } else { size };
        COUNTED.fetch_add(size, Ordering::Relaxed);
        Ok(Counted(vec![numa_node.map_or(0xff, |node| node as u8); size]))
    }
}

impl ExecutableMetadata for Dummy {
    fn executable_metadata(program: &Program) -> Result<Vec<u8>> {
        match &*program.signature.name {
            "none" => Err(Error::not_found("there is nothing to say about 'none'")),
            word => Ok(word.to_uppercase().into_bytes()),
        }
    }
}

impl PhaseCompile for Dummy {
    fn phase_names() -> Vec<String> {
        vec!["upper".to_owned(), "twice".to_owned()]
    }

    fn run_phases(request: PhaseRequest<'_>) -> Result<Vec<PartialProgram>> {
        assert_eq!(request.topology.platform_name(), "dummy");
        let run = |mut program: PartialProgram| {
            for phase in &request.phases {
                program.program = match &**phase {
                    "upper" => program.program.to_ascii_uppercase(),
                    _ => program.program.repeat(request.options.num_replicas * 2),
                };
                program.producer_phase.clone_from(phase);
            }
            program
        };
        Ok(request.programs.into_iter().map(run).collect())
    }
}

static PREFATAL: LazyLock<PrefatalCallbacks> = LazyLock::new(PrefatalCallbacks::new);

impl Callbacks for Dummy {
    fn prefatal_callbacks(&self) -> &PrefatalCallbacks {
        &PREFATAL
    }
}

/// An extension that only the dummy has: the number of bytes of a buffer.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct DummyFunctions {
    pub(crate) size: unsafe extern "C" fn(*const vendor::PJRT_Buffer, *mut usize) -> *mut vendor::PJRT_Error,
}

impl VendorExtension for Dummy {
    type Functions = DummyFunctions;
    const TYPE: u32 = vendor::FIRST_TYPE + 1;
    const FUNCTIONS: DummyFunctions = DummyFunctions { size };
}

unsafe extern "C" fn size(buffer: *const vendor::PJRT_Buffer, size: *mut usize) -> *mut vendor::PJRT_Error {
    vendor::guarded("Dummy_Size", || {
        // SAFETY: the host passes null or a buffer of the dummy.
        let storage: Arc<Storage> = unsafe { vendor::storage::<Dummy>(buffer) }?;
        assert!(!size.is_null(), "nowhere to put the size");
        // SAFETY: the host passes a place for a number.
        unsafe { size.write(storage.bytes().len()) };
        Ok(())
    })
}
