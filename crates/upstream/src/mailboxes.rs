//! Where cores ask each other for connections: each has a bounded mailbox that the others write and it alone reads.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use crate::connection::Detached;
use crate::limits::{STEAL_REQUESTS_MAX, STEAL_TIMEOUT};
use crate::peer::Peer;
use crate::slots::Reuse;

/// The mailboxes of all cores.
pub struct Mailboxes {
    of_cores: Box<[Mailbox]>,
    /// How long a core waits for another one's idle connection.
    pub(crate) steal_timeout: Duration,
}

struct Mailbox {
    sender: mpsc::Sender<Message>,
    /// Until the core takes it.
    receiver: Mutex<Option<mpsc::Receiver<Message>>>,
}

/// What one core asks of another.
pub(crate) enum Message {
    /// To hand over an idle connection.
    Steal { peer: Arc<Peer>, reuse: Reuse, to: oneshot::Sender<Option<Detached>> },
    /// To hand what it has to the requests that wait.
    Serve { peer: Arc<Peer> },
}

impl Mailboxes {
    /// One for each core.
    pub fn new(cores: usize) -> Self {
        let mailbox = |_| {
            let (sender, receiver) = mpsc::channel(STEAL_REQUESTS_MAX);
            Mailbox { sender, receiver: Mutex::new(Some(receiver)) }
        };
        Self { of_cores: (0..cores.max(1)).map(mailbox).collect(), steal_timeout: STEAL_TIMEOUT }
    }

    /// The same, waiting for so long for another core: a test machine is busy for longer than a server may wait.
    #[cfg(test)]
    pub(crate) fn with_steal_timeout(self, steal_timeout: Duration) -> Self {
        Self { steal_timeout, ..self }
    }

    /// Takes a core's end; `None` where it is taken already.
    pub(crate) fn take_receiver(&self, core: usize) -> Option<mpsc::Receiver<Message>> {
        self.of_cores.get(core)?.receiver.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Sends without waiting; `false` where the mailbox is full or its core has ended.
    pub(crate) fn send(&self, core: usize, message: Message) -> bool {
        self.of_cores.get(core).is_some_and(|mailbox| mailbox.sender.try_send(message).is_ok())
    }

    /// The numbers of the other cores, each core beginning with its neighbour.
    pub(crate) fn others(&self, core: usize) -> impl Iterator<Item = usize> + use<> {
        let count = self.of_cores.len();
        (1..count).map(move |step| (core + step) % count)
    }
}
