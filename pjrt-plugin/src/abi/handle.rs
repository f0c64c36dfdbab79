//! Handles: the pointers by which a host refers to the plugin's objects.
//!
//! In debug builds every live handle is registered with its kind, and every pointer is looked up before it is dereferenced.
//! A host that uses a handle after destroying it, destroys it twice, or passes one of another kind gets an INVALID_ARGUMENT
//! error instead of undefined behavior.

use std::sync::Arc;

use crate::abi::call_trace;
use crate::error::{Error, Result};

/// An object that a host refers to by a pointer.
pub(crate) trait Handle {
    /// The opaque type of the C API.
    type Opaque;
    /// The name of that type.
    const KIND: &'static str;
}

/// Borrows the object behind a handle. `name` names the handle in errors.
///
/// # Safety
///
/// `pointer` is null or a handle to an `H` that lives for `'a`.
#[inline]
pub(crate) unsafe fn borrow<'a, H: Handle>(pointer: *const H::Opaque, name: &str) -> Result<&'a H> {
    if pointer.is_null() {
        return Err(null(name));
    }
    registry::check::<H>(pointer, name)?;
    // SAFETY: the pointer is not null, and the caller's contract makes it point to an `H` that lives for `'a`.
    Ok(unsafe { &*pointer.cast::<H>() })
}

/// Passes ownership of an object to the host.
#[inline]
pub(crate) fn into_raw<H: Handle>(object: H) -> *mut H::Opaque {
    make_raw(|| object)
}

/// Creates an object in its allocation and passes ownership of it to the host. A move into the allocation would cost more
/// than the rest of this function.
#[inline(always)]
pub(crate) fn make_raw<H: Handle>(make: impl FnOnce() -> H) -> *mut H::Opaque {
    let pointer = Box::into_raw(Box::write(Box::new_uninit(), make())).cast();
    registry::add::<H>(pointer);
    call_trace::handle_made(pointer.addr(), H::KIND);
    pointer
}

/// Takes an object back from the host. Returns `None` if the handle is null, which every destroy function allows.
///
/// # Safety
///
/// `pointer` is null or came from [`into_raw`] for the same type, and the host does not use it afterwards.
#[inline]
pub(crate) unsafe fn from_raw<H: Handle>(pointer: *mut H::Opaque, name: &str) -> Result<Option<Box<H>>> {
    if pointer.is_null() {
        return Ok(None);
    }
    registry::remove::<H>(pointer, name)?;
    call_trace::handle_taken(pointer.addr(), H::KIND);
    // SAFETY: the pointer came from `Box::into_raw` of a `Box<H>`, and the host passes its ownership.
    Ok(Some(unsafe { Box::from_raw(pointer.cast::<H>()) }))
}

/// Lends a static object to the host.
#[inline]
pub(crate) fn lend_into_raw<H: Handle>(object: &'static H) -> *mut H::Opaque {
    let pointer: *mut H::Opaque = (&raw const *object).cast_mut().cast();
    registry::add::<H>(pointer);
    call_trace::handle_made(pointer.addr(), H::KIND);
    pointer
}

/// Takes back an object of [`lend_into_raw`].
#[inline]
pub(crate) fn take_lent<H: Handle>(object: &'static H, name: &str) -> Result<()> {
    let pointer: *mut H::Opaque = (&raw const *object).cast_mut().cast();
    registry::remove::<H>(pointer, name)?;
    call_trace::handle_taken(pointer.addr(), H::KIND);
    Ok(())
}

/// Passes ownership of a share of an object to the host.
#[inline]
pub(crate) fn share_into_raw<H: Handle>(object: Arc<H>) -> *mut H::Opaque {
    let pointer = Arc::into_raw(object).cast_mut().cast();
    registry::add::<H>(pointer);
    call_trace::handle_made(pointer.addr(), H::KIND);
    pointer
}

/// Takes a share of an object back from the host. Returns `None` if the handle is null.
///
/// # Safety
///
/// `pointer` is null or came from [`share_into_raw`] for the same type, and the host passes ownership of one share.
#[inline]
pub(crate) unsafe fn share_from_raw<H: Handle>(
    pointer: *mut H::Opaque,
    name: &str,
) -> Result<Option<Arc<H>>> {
    if pointer.is_null() {
        return Ok(None);
    }
    registry::remove::<H>(pointer, name)?;
    call_trace::handle_taken(pointer.addr(), H::KIND);
    // SAFETY: the pointer came from `Arc::into_raw` of an `Arc<H>`, and the host passes ownership of that share.
    Ok(Some(unsafe { Arc::from_raw(pointer.cast::<H>()) }))
}

/// Returns another share of an object of which the host owns one.
///
/// # Safety
///
/// `pointer` is null or came from [`share_into_raw`] for the same type, and the host keeps its share until this returns.
pub(crate) unsafe fn share_of<H: Handle>(pointer: *mut H::Opaque, name: &str) -> Result<Arc<H>> {
    // SAFETY: this function's contract.
    unsafe { borrow::<H>(pointer, name) }?;
    let object = pointer.cast::<H>().cast_const();
    // SAFETY: the pointer came from `Arc::into_raw` of an `Arc<H>`, and the host's share keeps the object alive.
    unsafe {
        Arc::increment_strong_count(object);
        Ok(Arc::from_raw(object))
    }
}

/// Returns the error for a pointer that must not be null.
#[cold]
pub(crate) fn null(name: &str) -> Error {
    Error::invalid_argument(format!("'{name}' is null"))
}

#[cfg(debug_assertions)]
pub(crate) mod registry {
    use std::collections::HashMap;
    use std::sync::{LazyLock, Mutex};

    use super::Handle;
    use crate::core::fork::is_child;
    use crate::core::sync::lock;
    use crate::error::{Error, Result};

    /// The number of shares by address and kind. The kind is part of the key because an object may be at the start of
    /// another one. A forked child does not use the registry, because a thread that does not exist there may hold the lock.
    static LIVE: LazyLock<Mutex<HashMap<(usize, &'static str), usize>>> = LazyLock::new(Mutex::default);

    fn wrong(
        live: &HashMap<(usize, &'static str), usize>,
        address: usize,
        name: &str,
        wanted: &str,
    ) -> Error {
        let found = live.keys().find(|(other, _)| *other == address);
        Error::invalid_argument(match found {
            Some((_, kind)) => format!("'{name}' is a handle to a {kind}, not to a {wanted}"),
            None => format!(
                "'{name}' is not a live handle to a {wanted}: it has been destroyed, or this plugin did not create it"
            ),
        })
    }

    pub(crate) fn add<H: Handle>(pointer: *const H::Opaque) {
        if is_child() {
            return;
        }
        *lock(&LIVE).entry((pointer.addr(), H::KIND)).or_insert(0) += 1;
    }

    pub(crate) fn check<H: Handle>(pointer: *const H::Opaque, name: &str) -> Result<()> {
        if is_child() {
            return Ok(());
        }
        let live = lock(&LIVE);
        if live.contains_key(&(pointer.addr(), H::KIND)) {
            return Ok(());
        }
        Err(wrong(&live, pointer.addr(), name, H::KIND))
    }

    pub(crate) fn remove<H: Handle>(pointer: *const H::Opaque, name: &str) -> Result<()> {
        if is_child() {
            return Ok(());
        }
        let mut live = lock(&LIVE);
        let key = (pointer.addr(), H::KIND);
        match live.get_mut(&key) {
            None => return Err(wrong(&live, key.0, name, H::KIND)),
            Some(1) => drop(live.remove(&key)),
            Some(shares) => *shares -= 1,
        }
        Ok(())
    }
}

#[cfg(not(debug_assertions))]
pub(crate) mod registry {
    use super::Handle;
    use crate::error::Result;

    pub(crate) fn add<H: Handle>(_: *const H::Opaque) {}

    pub(crate) fn check<H: Handle>(_: *const H::Opaque, _: &str) -> Result<()> {
        Ok(())
    }

    pub(crate) fn remove<H: Handle>(_: *const H::Opaque, _: &str) -> Result<()> {
        Ok(())
    }
}
