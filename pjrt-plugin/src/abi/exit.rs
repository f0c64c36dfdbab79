//! Notifies live clients when the process exits, because some hosts never destroy theirs.

use std::sync::{Arc, Mutex, Once, Weak};

use crate::abi::client_state::ClientState;
use crate::client::PjrtClient;
use crate::core::sync::lock;
use crate::core::{fork, panic_guard};

/// A client of any type that is notified of the exit.
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
            // A panic cannot be returned to the host; the panic hook has printed it.
            let _ = panic_guard::catch(|| {
                state.client.process_exit();
                Ok(())
            });
        }
    }
}

static CLIENTS: Mutex<Vec<Box<dyn Told>>> = Mutex::new(Vec::new());

/// Registers a client to be notified when the process exits, if it still lives.
pub(crate) fn tell_at_exit<C: PjrtClient>(client: &Arc<ClientState<C>>) {
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| {
        // SAFETY: the function takes no argument and returns nothing, and its library stays loaded.
        unsafe { libc::atexit(tell_all) };
    });
    let mut clients = lock(&CLIENTS);
    clients.retain(|client| client.is_alive());
    clients.push(Box::new(Arc::downgrade(client)));
}

extern "C" fn tell_all() {
    // The clients of a forked child belong to its parent.
    if fork::is_child() {
        return;
    }
    // A thread that was stopped by the exit of the process may hold the lock. Waiting for it would hang the exit.
    let Ok(mut clients) = CLIENTS.try_lock() else { return };
    let clients = std::mem::take(&mut *clients);
    clients.iter().for_each(|client| client.tell());
}
