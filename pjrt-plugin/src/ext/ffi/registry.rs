//! The process-wide registries of handlers by platform and target, and of types by name.

#![deny(unsafe_code)]

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex};

use super::Handler;
use crate::core::sync::lock;
use crate::error::{Error, Result};

static HANDLERS: LazyLock<Mutex<HashMap<(String, String), Handler>>> = LazyLock::new(Mutex::default);

/// Registers a handler. Registering the same handler again succeeds; registering another one for the same target fails.
pub(super) fn register_handler(platform: &str, target: &str, handler: Handler) -> Result<()> {
    let key = (platform.to_lowercase(), target.to_owned());
    let mut handlers = lock(&HANDLERS);
    match handlers.get(&key) {
        Some(existing) if !existing.is_same(&handler) => Err(Error::already_exists(format!(
            "another handler of the custom call '{target}' is registered for the platform '{platform}'"
        ))),
        _ => {
            handlers.insert(key, handler);
            Ok(())
        }
    }
}

pub(super) fn find_handler(platform: &str, target: &str) -> Option<Handler> {
    lock(&HANDLERS).get(&(platform.to_lowercase(), target.to_owned())).copied()
}

/// The ids of types by name, and the id after the largest.
struct Types {
    ids: HashMap<String, i64>,
    next: i64,
}

static TYPES: LazyLock<Mutex<Types>> = LazyLock::new(|| Mutex::new(Types { ids: HashMap::new(), next: 1 }));

/// Registers a type and returns its id. `id` is 0 to assign a new id. A registered type keeps its id.
pub(super) fn register_type(name: &str, id: i64) -> Result<i64> {
    let mut types = lock(&TYPES);
    if let Some(existing) = types.ids.get(name).copied() {
        return if id == 0 || id == existing {
            Ok(existing)
        } else {
            Err(Error::invalid_argument(format!(
                "the type '{name}' is registered with the id {existing}; found {id}"
            )))
        };
    }
    let id = match id {
        0 => types.next,
        id if id < 0 => {
            return Err(Error::invalid_argument(format!(
                "the id {id} of the type '{name}' must not be negative"
            )));
        }
        id => id,
    };
    if let Some((other, _)) = types.ids.iter().find(|(_, taken)| **taken == id) {
        return Err(Error::already_exists(format!(
            "the id {id} of the type '{name}' is already registered for the type '{other}'"
        )));
    }
    types.next = types.next.max(id.saturating_add(1));
    types.ids.insert(name.to_owned(), id);
    Ok(id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorCode;

    #[test]
    fn a_type_keeps_the_number_that_it_got_first() {
        let new = register_type("registry test: new", 0).unwrap();
        assert_eq!(register_type("registry test: new", 0).unwrap(), new);
        assert_eq!(register_type("registry test: new", new).unwrap(), new);
        let error = register_type("registry test: new", new + 1).unwrap_err();
        assert_eq!(error.code(), ErrorCode::InvalidArgument);
        let given = register_type("registry test: given", 1 << 40).unwrap();
        assert_eq!(given, 1 << 40);
        assert_eq!(
            register_type("registry test: other", given).unwrap_err().code(),
            ErrorCode::AlreadyExists
        );
        assert!(register_type("registry test: after", 0).unwrap() > given);
        assert!(register_type("registry test: negative", -1).is_err());
    }
}
