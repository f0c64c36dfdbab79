//! Clients that live when the process ends: some hosts never destroy theirs.

use std::sync::{Arc, Mutex, Once, Weak};

use crate::abi::client_state::ClientState;
use crate::client::PjrtClient;
use crate::core::sync::lock;
use crate::core::{fork, panic_guard};

/// A client that is told of the end, whatever its type.
trait Told: Send {
    fn is_alive(&self) -> bool;
    fn tell(&self);
}

impl<C: PjrtClient> Told for Weak<ClientState<C>> {
    fn is_alive(&self) -> bool {
        self.strong_count() > 0
    }

    fn tell(&self) {
        if let Some(state) = self.upgrade() {
            // There is nobody left to tell of a panic; the hook has reported it.
            let _ = panic_guard::catch(|| {
                state.client.process_exit();
                Ok(())
            });
        }
    }
}

static CLIENTS: Mutex<Vec<Box<dyn Told>>> = Mutex::new(Vec::new());

/// Has a client told when the process ends, unless it is gone by then.
pub(crate) fn tell_at_exit<C: PjrtClient>(client: &Arc<ClientState<C>>) {
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| {
        // SAFETY: the function takes nothing and returns nothing; the library that it is in stays in memory.
        unsafe { libc::atexit(tell_all) };
    });
    let mut clients = lock(&CLIENTS);
    clients.retain(|client| client.is_alive());
    clients.push(Box::new(Arc::downgrade(client)));
}

extern "C" fn tell_all() {
    // What outlives the process is still its parent's.
    if fork::is_child() {
        return;
    }
    // A thread that the end of the process has stopped may hold the lock; then nobody is told.
    let Ok(mut clients) = CLIENTS.try_lock() else { return };
    let clients = std::mem::take(&mut *clients);
    clients.iter().for_each(|client| client.tell());
}
