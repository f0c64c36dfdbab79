//! Events: exactly one callback, no matter who destroys what when.

use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pjrt_plugin::ErrorCode;
use pjrt_sys::*;

use crate::host::*;

fn create() -> *mut PJRT_Event {
    call!(PJRT_Event_Create(PJRT_Event_Create_Args {})).unwrap().event
}

fn set(event: *mut PJRT_Event, code: PJRT_Error_Code, message: &str) -> Result<()> {
    call!(PJRT_Event_Set(PJRT_Event_Set_Args {
        event,
        error_code: code,
        error_message: message.as_ptr().cast(),
        error_message_size: message.len(),
    }))
    .map(drop)
}

#[test]
fn an_event_of_the_host_is_pending_until_it_is_set() {
    let event = create();
    assert!(!is_ready(event));
    set(event, PJRT_Error_Code_OK, "").unwrap();
    assert!(is_ready(event));
    await_event(event).unwrap();
    assert_eq!(set(event, PJRT_Error_Code_OK, "").unwrap_err().code, ErrorCode::FailedPrecondition as u32);
    destroy_event(event);
}

#[test]
fn error_after_await_is_an_equal_but_separate_error() {
    let event = create();
    set(event, PJRT_Error_Code_DATA_LOSS, "the tape broke").unwrap();
    assert!(is_ready(event));
    let awaited = await_event(event).unwrap_err();
    let error = call!(PJRT_Event_Error(PJRT_Event_Error_Args { event })).err().unwrap();
    assert_eq!(awaited, error);
    assert_eq!((error.code, error.message.as_str()), (ErrorCode::DataLoss as u32, "the tape broke"));
    destroy_event(event);
}

#[test]
fn the_error_of_a_pending_event_is_not_known() {
    let event = create();
    assert!(call!(PJRT_Event_Error(PJRT_Event_Error_Args { event })).is_err());
    destroy_event(event);
}

#[test]
fn a_callback_fires_once_with_the_error_that_it_owns() {
    let event = create();
    let (before, also_before) = (on_ready(event), on_ready(event));
    assert!(before.try_recv().is_err());
    set(event, PJRT_Error_Code_CANCELLED, "stop").unwrap();
    assert_eq!(before.recv().unwrap().unwrap_err().message, "stop");
    assert_eq!(also_before.recv().unwrap().unwrap_err().message, "stop");
    let after = on_ready(event);
    assert_eq!(after.try_recv().unwrap().unwrap_err().code, ErrorCode::Cancelled as u32);
    assert!(before.recv().is_err(), "called back twice");
    destroy_event(event);
}

#[test]
fn destroying_an_event_early_keeps_its_callbacks() {
    let (client, queue) = (Client::new(&[option("uploads", 101)]), 101);
    let buffer = client.upload(0, &[1.0; 4]);
    let event = buffer.ready();
    let outcome = on_ready(event);
    destroy_event(event);
    assert!(outcome.try_recv().is_err());
    assert_eq!(crate::dummy::run_queue(queue), 1);
    outcome.recv().unwrap().unwrap();
}

#[test]
fn an_event_can_be_destroyed_in_its_own_callback() {
    let event = create();
    let address = event.expose_provenance();
    let (sender, receiver) = std::sync::mpsc::channel();
    on_ready_call(
        event,
        Box::new(move |outcome| {
            destroy_event(ptr::with_exposed_provenance_mut(address));
            sender.send(outcome).unwrap();
        }),
    );
    set(event, PJRT_Error_Code_OK, "").unwrap();
    receiver.recv().unwrap().unwrap();
}

#[test]
fn a_callback_can_register_another_on_the_same_event() {
    let event = create();
    let address = event.expose_provenance();
    let (sender, receiver) = std::sync::mpsc::channel();
    on_ready_call(
        event,
        Box::new(move |_| {
            let inner = on_ready(ptr::with_exposed_provenance_mut(address));
            sender.send(inner.try_recv().is_ok()).unwrap();
        }),
    );
    set(event, PJRT_Error_Code_OK, "").unwrap();
    assert!(receiver.recv().unwrap());
    destroy_event(event);
}

#[test]
fn threads_that_wait_register_and_set_at_once_all_hear_of_it_once() {
    for _ in 0..50 {
        let event = create().expose_provenance();
        let calls = Arc::new(AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..3 {
                let calls = Arc::clone(&calls);
                scope.spawn(move || {
                    let event = ptr::with_exposed_provenance_mut(event);
                    on_ready_call(
                        event,
                        Box::new(move |_| {
                            calls.fetch_add(1, Ordering::Relaxed);
                        }),
                    );
                    await_event(event).unwrap();
                });
            }
            scope.spawn(move || {
                set(ptr::with_exposed_provenance_mut(event), PJRT_Error_Code_OK, "").unwrap();
            });
        });
        assert_eq!(calls.load(Ordering::Relaxed), 3);
        destroy_event(ptr::with_exposed_provenance_mut(event));
    }
}
