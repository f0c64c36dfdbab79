//! The functions of `shim/gloo.h`, which are loaded at run time.

#![allow(unsafe_code, reason = "calls a foreign library")]

use std::ffi::{CStr, CString, OsStr, c_char, c_int};
use std::mem::ManuallyDrop;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr::{self, NonNull};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::{Bytes, Error, Transfer};

/// The version of the interface that this crate uses.
const VERSION: i32 = 2;

/// The name of the library's file.
const FILE_NAME: &str = "librefcpu_gloo.so";

/// Returns the path of the shared library or program that contains this code.
fn own_file() -> Option<PathBuf> {
    // SAFETY: zero in all bytes is a valid `Dl_info`. `dladdr` fills it in for an address of this code, with a name that lives as
    // long as the code is loaded.
    let name = unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        if libc::dladdr(own_file as *const std::ffi::c_void, &raw mut info) == 0 || info.dli_fname.is_null() {
            return None;
        }
        CStr::from_ptr(info.dli_fname)
    };
    Some(PathBuf::from(OsStr::from_bytes(name.to_bytes())))
}

/// `refcpu_gloo_mesh`.
#[repr(C)]
struct OpaqueMesh([u8; 0]);

/// `refcpu_gloo_transfers`.
#[repr(C)]
struct OpaqueTransfers([u8; 0]);

/// `refcpu_gloo_transfer`.
#[repr(C)]
struct RawTransfer {
    bytes: *mut u8,
    size: usize,
    tag: u64,
    peer: i32,
    is_send: i32,
}

/// The outcomes of `refcpu_gloo_wait`; others are lost connections.
const COMPLETE: i32 = 0;
const ABORTED: i32 = 1;

macro_rules! functions {
    ($($name:ident: fn($($argument:ty),*) $(-> $result:ty)?;)*) => {
        struct Functions {
            $($name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }

        impl Functions {
            /// # Safety
            ///
            /// The library has the functions of `shim/gloo.h`.
            unsafe fn load(library: &libloading::Library) -> Result<Self, libloading::Error> {
                Ok(Self {
                    // SAFETY: this function's contract.
                    $($name: unsafe {
                        *library.get(concat!("refcpu_gloo_", stringify!($name), "\0").as_bytes())?
                    },)*
                })
            }
        }
    };
}

functions! {
    version: fn() -> i32;
    free_message: fn(*mut c_char);
    open: fn(i32, i32, *const c_char, i32, *mut *mut OpaqueMesh) -> *mut c_char;
    address: fn(*const OpaqueMesh, i32, *mut *const u8, *mut usize);
    connect: fn(*mut OpaqueMesh, i32, *const u8, usize) -> *mut c_char;
    disconnect: fn(*mut OpaqueMesh);
    close: fn(*mut OpaqueMesh);
    start: fn(*mut OpaqueMesh, *const RawTransfer, usize, *mut i32, *mut *mut OpaqueTransfers) -> *mut c_char;
    wait: fn(*mut OpaqueTransfers, i64, *mut i32, *mut i32) -> *mut c_char;
    abort: fn(*mut OpaqueTransfers);
    free: fn(*mut OpaqueTransfers);
    set_at_host_end: fn(unsafe extern "C" fn(*const c_char));
}

type AtHostEnd = Box<dyn FnOnce(&str) + Send>;

/// The functions that are called when the host ends.
static AT_HOST_END: Mutex<Vec<AtHostEnd>> = Mutex::new(Vec::new());

/// Calls the functions that wait for the end of the host.
///
/// # Safety
///
/// `error` is a string that ends with zero.
unsafe extern "C" fn host_ends(error: *const c_char) {
    // SAFETY: this function's contract.
    let error = unsafe { CStr::from_ptr(error) }.to_string_lossy();
    let listeners = std::mem::take(&mut *AT_HOST_END.lock().unwrap_or_else(PoisonError::into_inner));
    for run in listeners {
        // A panic must not cross the boundary, and the host that ends has no use for it.
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(&error)));
    }
}

/// The library of `shim/gloo.cc`.
pub struct Library {
    functions: Functions,
    /// The functions are code of this library. It stays loaded, because threads of Gloo may run when the process exits.
    _library: ManuallyDrop<libloading::Library>,
}

impl std::fmt::Debug for Library {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Library")
    }
}

impl Library {
    /// Loads the library from the file that `REFCPU_GLOO` names; without this variable, from the folder of the shared library or
    /// program that contains this code; and if there is none, from the folders of the system's loader.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`open`](Self::open).
    pub fn find() -> Result<Arc<Self>, Error> {
        if let Some(path) = std::env::var_os("REFCPU_GLOO").filter(|path| !path.is_empty()) {
            return Self::open(Path::new(&path));
        }
        let beside = own_file().and_then(|file| Some(file.parent()?.join(FILE_NAME)));
        let path = beside.filter(|path| path.exists());
        Self::open(path.as_deref().unwrap_or(Path::new(FILE_NAME)))
    }

    /// Loads the library from a file. If the path is only a name, the system's loader looks for it.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Library`] if the file cannot be loaded, or is another library or another version.
    pub fn open(path: &Path) -> Result<Arc<Self>, Error> {
        let failed = |error: libloading::Error| {
            let reason =
                std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
            Error::Library(format!("the library {} cannot be loaded: {reason}", path.display()))
        };
        let name: &OsStr = path.as_os_str();
        // SAFETY: the library is built from `shim/gloo.cc`. It and Gloo have no initializers besides those of C++'s streams and
        // of their constants.
        let library = unsafe { libloading::Library::new(name) }.map_err(failed)?;
        // SAFETY: a library with these names has the functions of `shim/gloo.h`; the version is checked before they are called.
        let functions = unsafe { Functions::load(&library) }.map_err(failed)?;
        // SAFETY: all versions have this function.
        let version = unsafe { (functions.version)() };
        if version != VERSION {
            return Err(Error::Library(format!(
                "the library {} has version {version}; expected version {VERSION}",
                path.display()
            )));
        }
        Ok(Arc::new(Self { functions, _library: ManuallyDrop::new(library) }))
    }

    /// Calls a function when the host ends, with the error that ends it, or an empty text. A host that ends may keep its
    /// connections for minutes: JAX waits at its end for the other processes. The function is called only if the host calls
    /// `refcpu_gloo_host_ends`, as the Python package of refcpu does.
    pub fn when_host_ends(&self, run: impl FnOnce(&str) + Send + 'static) {
        AT_HOST_END.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(run));
        // SAFETY: the function accepts the strings with which the library calls it, and exists as long as the process: the
        // library that contains this code is a plugin, which hosts do not unload.
        unsafe { (self.functions.set_at_host_end)(host_ends) };
    }

    /// Converts a message of the library, which is null if there was no error.
    ///
    /// # Safety
    ///
    /// The message is null or was returned by a function of this library, and is not used again.
    unsafe fn message(&self, message: *mut c_char) -> Option<String> {
        if message.is_null() {
            return None;
        }
        // SAFETY: the library returns strings that end with zero.
        let text = unsafe { CStr::from_ptr(message) }.to_string_lossy().into_owned();
        // SAFETY: the message is freed once.
        unsafe { (self.functions.free_message)(message) };
        Some(text)
    }
}

/// The connections of this process.
pub(crate) struct Connections {
    library: Arc<Library>,
    mesh: *mut OpaqueMesh,
    count: usize,
}

// SAFETY: the functions of the library may be called from any thread, and `Drop` is the last call.
unsafe impl Send for Connections {}
// SAFETY: as above.
unsafe impl Sync for Connections {}

impl Connections {
    /// Listens for connections. See [`Listener::new`](crate::Listener::new).
    pub(crate) fn open(
        library: Arc<Library>,
        index: usize,
        count: usize,
        host: Option<&str>,
        limit: Duration,
    ) -> Result<Self, String> {
        let host = host.map(CString::new).transpose().map_err(|error| error.to_string())?;
        let host = host.as_ref().map_or(ptr::null(), |host| host.as_ptr());
        let number = |value: usize| c_int::try_from(value).map_err(|error| error.to_string());
        let seconds =
            c_int::try_from(limit.as_secs()).unwrap_or(c_int::MAX / 1000).clamp(1, c_int::MAX / 1000);
        let mut mesh = ptr::null_mut();
        // SAFETY: the host is null or a string, and the other pointer is valid for a write.
        let message =
            unsafe { (library.functions.open)(number(index)?, number(count)?, host, seconds, &raw mut mesh) };
        // SAFETY: the library returned the message.
        match unsafe { library.message(message) } {
            Some(message) => Err(message),
            None => Ok(Self { library, mesh, count }),
        }
    }

    /// Returns the number of processes.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Returns the address to which a process connects; empty for this process.
    ///
    /// # Panics
    ///
    /// Panics if there is no such process.
    pub(crate) fn address(&self, peer: usize) -> &[u8] {
        assert!(peer < self.count, "there is no process {peer}");
        let (mut bytes, mut size) = (ptr::null(), 0);
        // SAFETY: the process exists, and the pointers are valid for writes.
        unsafe { (self.library.functions.address)(self.mesh, peer as i32, &raw mut bytes, &raw mut size) };
        if size == 0 {
            return &[];
        }
        // SAFETY: the bytes live as long as the mesh, and do not change.
        unsafe { std::slice::from_raw_parts(bytes, size) }
    }

    /// Connects to another process.
    ///
    /// # Panics
    ///
    /// Panics if there is no such process.
    pub(crate) fn connect(&self, peer: usize, address: &[u8]) -> Result<(), String> {
        assert!(!self.address(peer).is_empty(), "{peer} is this process");
        // SAFETY: the process exists and is not this one, and the bytes are valid during the call.
        let message = unsafe {
            (self.library.functions.connect)(self.mesh, peer as i32, address.as_ptr(), address.len())
        };
        // SAFETY: the library returned the message.
        unsafe { self.library.message(message) }.map_or(Ok(()), Err)
    }

    /// Closes the connections. Transfers then fail.
    pub(crate) fn disconnect(&self) {
        // SAFETY: the mesh lives.
        unsafe { (self.library.functions.disconnect)(self.mesh) };
    }

    /// Starts transfers, and calls a function that waits for them, with a waiter for each other process. When the function
    /// returns, the memory of the transfers is no longer used, whether or not they are complete. If the transfers cannot be
    /// started, the result contains the process whose connection is broken, and Gloo's message.
    ///
    /// # Panics
    ///
    /// Panics if a transfer is with this process or one that does not exist.
    pub(crate) fn with_transfers<R>(
        &self,
        transfers: &mut [Transfer<'_>],
        run: impl FnOnce(Vec<Waiter<'_>>) -> R,
    ) -> Result<R, (usize, String)> {
        let raw = |transfer: &mut Transfer<'_>| {
            let (bytes, size, is_send) = match &mut transfer.bytes {
                Bytes::Send(bytes) => (bytes.as_ptr().cast_mut(), bytes.len(), 1),
                Bytes::Receive(bytes) => (bytes.as_mut_ptr(), bytes.len(), 0),
            };
            RawTransfer { bytes, size, tag: transfer.tag, peer: transfer.peer as i32, is_send }
        };
        let mut list: Vec<RawTransfer> = transfers.iter_mut().map(raw).collect();
        list.sort_by_key(|transfer| transfer.peer);
        let mut guards = Vec::new();
        for of_peer in list.chunk_by(|a, b| a.peer == b.peer) {
            // SAFETY: the library only reads memory that is sent. All memory is borrowed until this function returns, and
            // `guards` frees the transfers before that.
            guards.push(FreeOnDrop(unsafe { self.start(of_peer) }?));
        }
        let peers = list.chunk_by(|a, b| a.peer == b.peer).map(|of_peer| of_peer[0].peer as usize);
        let waiters = guards.iter().zip(peers).map(|(guard, peer)| Waiter { started: &guard.0, peer });
        let result = run(waiters.collect());
        drop(guards);
        Ok(result)
    }

    /// Starts to receive a message of a size from another process. If this is not possible, the error contains the process, and
    /// Gloo's message.
    ///
    /// # Panics
    ///
    /// Panics if the process is this one or does not exist.
    pub(crate) fn post(
        self: &Arc<Self>,
        peer: usize,
        tag: u64,
        size: usize,
    ) -> Result<Posted, (usize, String)> {
        let bytes = NonNull::from(Box::leak(vec![0; size].into_boxed_slice()));
        let raw = RawTransfer { bytes: bytes.as_ptr().cast(), size, tag, peer: peer as i32, is_send: 0 };
        // SAFETY: the memory belongs to `Posted`, which frees the transfer first. If the transfer cannot be started, the memory
        // is not used.
        match unsafe { self.start(&[raw]) } {
            Ok(started) => Ok(Posted { _connections: Arc::clone(self), started, bytes }),
            Err(error) => {
                // SAFETY: the memory comes from a box, and nothing else has its address.
                drop(unsafe { Box::from_raw(bytes.as_ptr()) });
                Err(error)
            }
        }
    }

    /// Starts transfers.
    ///
    /// # Safety
    ///
    /// The memory of the transfers is valid until they are freed. Nothing else writes memory that is sent, or uses memory that
    /// receives.
    unsafe fn start(&self, list: &[RawTransfer]) -> Result<Arc<Started>, (usize, String)> {
        for transfer in list {
            assert!(!self.address(transfer.peer as usize).is_empty(), "{} is this process", transfer.peer);
        }
        let (mut peer, mut started) = (-1, ptr::null_mut());
        // SAFETY: the other processes exist; this function's contract.
        let message = unsafe {
            let start = self.library.functions.start;
            start(self.mesh, list.as_ptr(), list.len(), &raw mut peer, &raw mut started)
        };
        // SAFETY: the library returned the message.
        match unsafe { self.library.message(message) } {
            Some(message) => Err((usize::try_from(peer).unwrap_or_default(), message)),
            None => Ok(Arc::new(Started { library: Arc::clone(&self.library), raw: Mutex::new(started) })),
        }
    }
}

/// The receive of a message, which has been started, with the memory that it fills.
pub(crate) struct Posted {
    /// The connections are closed after the receive has been freed.
    _connections: Arc<Connections>,
    started: Arc<Started>,
    /// From a box.
    bytes: NonNull<[u8]>,
}

// SAFETY: the functions of the library may be called from any thread, and the memory belongs to the receive.
unsafe impl Send for Posted {}

impl Posted {
    /// Returns the receive.
    pub(crate) fn started(&self) -> Arc<Started> {
        Arc::clone(&self.started)
    }

    /// Waits for the message, and appends it to `to` if it is complete.
    pub(crate) fn wait(self, to: &mut Vec<u8>) -> Outcome {
        let outcome = self.started.wait(None);
        if outcome == Outcome::Complete {
            // SAFETY: the receive is complete, so Gloo does not write the memory any more.
            to.extend_from_slice(unsafe { self.bytes.as_ref() });
        }
        outcome
    }
}

impl Drop for Posted {
    fn drop(&mut self) {
        drop(FreeOnDrop(Arc::clone(&self.started)));
        // SAFETY: the memory comes from a box, and the receive, which used it, has been freed.
        drop(unsafe { Box::from_raw(self.bytes.as_ptr()) });
    }
}

/// Transfers that have been started. They are freed before [`Connections::with_transfers`] returns, or with their [`Posted`];
/// after that, the methods do nothing.
pub(crate) struct Started {
    library: Arc<Library>,
    /// The transfers; null after they have been freed.
    raw: Mutex<*mut OpaqueTransfers>,
}

/// The only value that can wait for transfers. It cannot outlive the function that [`Connections::with_transfers`] calls.
pub(crate) struct Waiter<'a> {
    started: &'a Arc<Started>,
    /// The other process.
    pub(crate) peer: usize,
}

impl Waiter<'_> {
    /// Waits for the transfers. If the time limit passes, all connections break.
    pub(crate) fn wait(self, limit: Option<Duration>) -> Outcome {
        self.started.wait(limit)
    }

    /// Returns the transfers.
    pub(crate) fn started(&self) -> Arc<Started> {
        Arc::clone(self.started)
    }
}

// SAFETY: the functions of the library may be called from any thread. Those that could meet the freeing hold the lock.
unsafe impl Send for Started {}
// SAFETY: as above.
unsafe impl Sync for Started {}

/// The outcome of waiting for transfers.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The transfers are complete.
    Complete,
    /// [`Started::abort`] was called.
    Aborted,
    /// The connection to this process is broken, with Gloo's message.
    Lost(usize, String),
}

struct FreeOnDrop(Arc<Started>);

impl Drop for FreeOnDrop {
    fn drop(&mut self) {
        let raw = std::mem::replace(&mut *self.0.lock(), ptr::null_mut());
        // SAFETY: the transfers are freed once. No call uses them: `abort` holds the lock, and `wait` is called only through a
        // `Waiter`, none of which is left when `with_transfers` drops this, and through a `Posted`, which does not wait when it
        // is dropped.
        unsafe { (self.0.library.functions.free)(raw) };
    }
}

impl Started {
    fn lock(&self) -> MutexGuard<'_, *mut OpaqueTransfers> {
        self.raw.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait(&self, limit: Option<Duration>) -> Outcome {
        let raw = *self.lock();
        let limit = limit.map_or(-1, |limit| i64::try_from(limit.as_millis()).unwrap_or(i64::MAX));
        let (mut outcome, mut peer) = (ABORTED, -1);
        // SAFETY: the callers are `Waiter::wait`, which borrows the transfers, so that `with_transfers` frees them later, and
        // `Posted::wait`, which owns them. The lock is not held, because `abort` ends the waiting.
        let message = unsafe {
            let wait = self.library.functions.wait;
            wait(raw, limit, &raw mut outcome, &raw mut peer)
        };
        // SAFETY: the library returned the message.
        let message = unsafe { self.library.message(message) };
        match outcome {
            COMPLETE => Outcome::Complete,
            ABORTED => Outcome::Aborted,
            _ => Outcome::Lost(usize::try_from(peer).unwrap_or_default(), message.unwrap_or_default()),
        }
    }

    /// Ends the waiting for the transfers.
    pub(crate) fn abort(&self) {
        let raw = self.lock();
        if !raw.is_null() {
            // SAFETY: the transfers have not been freed, and are not while the lock is held.
            unsafe { (self.library.functions.abort)(*raw) };
        }
    }
}

impl Drop for Connections {
    fn drop(&mut self) {
        // SAFETY: transfers borrow or share the connections, so all of them have been freed.
        unsafe { (self.library.functions.close)(self.mesh) };
    }
}
