//! The errors that functions returned, by which the error of an earlier call is recognized.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};

use super::error::Error;

/// The number of the current period.
static PERIOD: AtomicUsize = AtomicUsize::new(0);

/// For each message of an error, the function that returned it last, and the period.
static RETURNED: LazyLock<Mutex<HashMap<String, (&'static str, usize)>>> = LazyLock::new(Mutex::default);

/// Shorter messages may be the same by accident.
const LEAST_LEN: usize = 16;

/// The functions that return the error of an event, which is not the error of the call.
const OF_EVENTS: &str = "PJRT_Event_";

/// Notes an error that a function of the plugin returned.
pub(super) fn note(error: &Error) {
    if error.message.len() >= LEAST_LEN && !error.function.starts_with(OF_EVENTS) {
        let returned = (error.function, PERIOD.load(Ordering::Relaxed));
        RETURNED.lock().unwrap_or_else(PoisonError::into_inner).insert(error.message.clone(), returned);
    }
}

/// Begins a new period: the errors that functions returned before are those of earlier calls.
pub fn begin_period() {
    PERIOD.fetch_add(1, Ordering::Relaxed);
}

/// Returns the function that returned the error which the text quotes as that of an event, if it returned this error in earlier
/// periods only.
#[must_use]
pub fn returned_earlier(text: &str) -> Option<&'static str> {
    let (_, of_event) = text.split_once(OF_EVENTS)?;
    let period = PERIOD.load(Ordering::Relaxed);
    let returned = RETURNED.lock().unwrap_or_else(PoisonError::into_inner);
    let quoted = returned.iter().filter(|(message, _)| of_event.contains(*message));
    let (_, (function, last)) = quoted.max_by_key(|(message, _)| message.len())?;
    (*last < period).then_some(*function)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Code;

    #[test]
    fn an_error_that_a_function_returned_before_is_recognized_in_an_event() {
        let message = "the program expects two arguments; found one".to_owned();
        let of = |function| Error { code: Code::INTERNAL, ..Error::broken(function, message.clone()) };
        let text = format!("it fails: {}", of("PJRT_Event_Await"));
        note(&of("PJRT_Event_Await"));
        note(&of("PJRT_Buffer_Delete"));
        assert_eq!(returned_earlier(&text), None);
        begin_period();
        assert_eq!(returned_earlier(&text), Some("PJRT_Buffer_Delete"));
        assert_eq!(returned_earlier(&of("PJRT_Buffer_Delete").to_string()), None);
    }
}
