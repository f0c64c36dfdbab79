//! The objects that the host holds.
//!
//! Each object that a function returns belongs to the host, which destroys it once. A plugin that returns an object which the
//! host holds already makes the host destroy it twice. The wrappers of this module therefore refuse such an object before they
//! use it.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use super::error::{Error, Result};

/// The functions that returned the objects which the host holds, by the kind and the address of the object.
type Held = HashMap<(&'static str, usize), &'static str>;

static HELD: LazyLock<Mutex<Held>> = LazyLock::new(Mutex::default);

fn held() -> MutexGuard<'static, Held> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Notes that `function` returned an object, which is not a null pointer.
///
/// # Errors
///
/// Returns INTERNAL if the host holds the object already.
pub(super) fn take<T>(raw: *mut T, function: &'static str) -> Result<()> {
    let kind = kind::<T>();
    match held().insert((kind, raw.addr()), function) {
        None => Ok(()),
        Some(before) => Err(Error::broken(
            function,
            format!(
                "it succeeded, but its `{kind}` is the object that {before} returned before, and that the host has not destroyed: the \
                 host would destroy it twice. Each call, and each device, returns an object of its own"
            ),
        )),
    }
}

/// Notes that `function` returned an object, which may be one that the host holds already.
pub(super) fn note<T>(raw: *mut T, function: &'static str) {
    held().insert((kind::<T>(), raw.addr()), function);
}

/// Notes that the host is about to destroy an object.
pub(super) fn give_back<T>(raw: *mut T) {
    held().remove(&(kind::<T>(), raw.addr()));
}

/// Returns the function that returned an object of a kind, such as `PJRT_Event`, if the host holds it.
pub(super) fn origin(kind: &'static str, address: usize) -> Option<&'static str> {
    held().get(&(kind, address)).copied()
}

/// Returns the name of the type of an object, such as `PJRT_Buffer`.
fn kind<T>() -> &'static str {
    std::any::type_name::<T>().rsplit("::").next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_that_the_host_holds_is_refused() {
        let object = std::ptr::without_provenance_mut::<u8>(64);
        take(object, "PJRT_First").unwrap();
        take(object.cast::<u16>(), "PJRT_First").unwrap();
        let error = take(object, "PJRT_Second").unwrap_err();
        assert!(error.message.contains("PJRT_First returned before"), "{error}");
        give_back(object);
        take(object, "PJRT_Second").unwrap();
    }
}
