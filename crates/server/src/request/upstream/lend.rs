//! Connections between cores: a core without an idle one asks another for its own before it dials.
//!
//! Each core has a door with a bounded mailbox. Whoever asks waits a moment and no longer; what comes too late is kept
//! by the core where it is then, not closed.

use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

use super::connection::{Connection, Travelling};
use super::peer::Peer;
use super::pool::{self, Wish};
use crate::limits::{UPSTREAM_ASKS_MAX, UPSTREAM_BORROW_WAIT, UPSTREAM_BORROW_WORTH};
use crate::request::core::Core;

/// The doors of all cores.
pub(crate) struct Doors(Box<[Door]>);

struct Door {
    knock: mpsc::Sender<Ask>,
    /// Until the core has come to answer it.
    asks: Mutex<Option<mpsc::Receiver<Ask>>>,
}

/// What one core asks another.
enum Ask {
    /// An idle connection.
    Lend { peer: Arc<Peer>, wish: Wish, to: oneshot::Sender<Option<Travelling>> },
    /// To hand what it has to those who wait.
    Serve { peer: Arc<Peer> },
}

impl Doors {
    /// One for each core.
    pub(crate) fn new(cores: usize) -> Self {
        let door = |_| {
            let (knock, asks) = mpsc::channel(UPSTREAM_ASKS_MAX);
            Door { knock, asks: Mutex::new(Some(asks)) }
        };
        Self((0..cores.max(1)).map(door).collect())
    }
}

/// Answers the others for as long as this core runs.
pub(crate) async fn answer(core: Rc<Core>) {
    let door = core.shared.doors.0.get(core.number);
    let asks = door.and_then(|door| door.asks.lock().unwrap_or_else(PoisonError::into_inner).take());
    let Some(mut asks) = asks else { return };
    while let Some(ask) = asks.recv().await {
        match ask {
            Ask::Lend { peer, wish, to } => lend(&core, &peer, wish, to),
            Ask::Serve { peer } => pool::serve_waiting(&core, &peer),
        }
    }
}

fn lend(core: &Rc<Core>, peer: &Arc<Peer>, wish: Wish, to: oneshot::Sender<Option<Travelling>>) {
    // Whoever asked has dialled meanwhile.
    if to.is_closed() {
        return;
    }
    let lent = core.upstreams.take(core, peer, wish).and_then(|connection| connection.leave().ok());
    if let Err(Some(travelling)) = to.send(lent) {
        pool::adopt(core, peer, travelling);
    }
}

/// Whether another core is asked before one is dialled. Where a dial costs less than the question, cores under load
/// make what they need instead of sending the same few connections to and fro.
pub(super) fn is_worthwhile(core: &Core, peer: &Peer) -> bool {
    let is_at_rest = || {
        // What was opened beforehand is to be used.
        let open = peer.open();
        open <= peer.floor() || open.saturating_sub(peer.idle()) <= core.connection.cores()
    };
    peer.is_borrowed() && (peer.dial_took() >= UPSTREAM_BORROW_WORTH || is_at_rest())
}

/// A connection that rests on another core.
pub(super) async fn borrow(core: &Rc<Core>, peer: &Arc<Peer>, wish: Wish) -> Option<Connection> {
    let mut deadline = None;
    for (number, door) in others(core) {
        if peer.idle_of(number) == 0 {
            continue;
        }
        let deadline = *deadline.get_or_insert_with(|| Instant::now() + UPSTREAM_BORROW_WAIT);
        match ask(core, peer, wish, door, deadline).await {
            Ok(Some(connection)) => return Some(connection),
            Ok(None) => {}
            Err(Late) => return None,
        }
    }
    None
}

/// The newest of those that rest on one other core.
pub(super) async fn borrow_from(
    core: &Rc<Core>,
    peer: &Arc<Peer>,
    wish: Wish,
    number: usize,
) -> Option<Connection> {
    let door = core.shared.doors.0.get(number)?;
    ask(core, peer, wish, door, Instant::now() + UPSTREAM_BORROW_WAIT).await.ok().flatten()
}

/// There was no answer to a question in time.
struct Late;

async fn ask(
    core: &Rc<Core>,
    peer: &Arc<Peer>,
    wish: Wish,
    door: &Door,
    deadline: Instant,
) -> Result<Option<Connection>, Late> {
    let (to, from) = oneshot::channel();
    if door.knock.try_send(Ask::Lend { peer: Arc::clone(peer), wish, to }).is_err() {
        return Ok(None);
    }
    let mut asked = Asked { core, peer, from };
    match timeout_at(deadline, &mut asked.from).await {
        Ok(Ok(Some(travelling))) => Ok(travelling.arrive().ok()),
        Ok(Ok(None) | Err(_)) => Ok(None),
        Err(_) => Err(Late),
    }
}

/// Tells the others that somebody waits, where they have what is waited for.
pub(super) fn rouse(core: &Rc<Core>, peer: &Arc<Peer>) {
    for (number, door) in others(core) {
        if peer.idle_of(number) > 0 {
            // One whose mailbox is full sees it at its next tick.
            let _ = door.knock.try_send(Ask::Serve { peer: Arc::clone(peer) });
        }
    }
}

/// The others, each core beginning with its neighbour.
fn others(core: &Core) -> impl Iterator<Item = (usize, &Door)> {
    let doors = &core.shared.doors.0;
    let after = (1..doors.len()).map(|step| (core.number + step) % doors.len());
    after.filter_map(|number| doors.get(number).map(|door| (number, door)))
}

/// A question that was asked. Dropped, what is answered all the same is kept here.
struct Asked<'a> {
    core: &'a Rc<Core>,
    peer: &'a Arc<Peer>,
    from: oneshot::Receiver<Option<Travelling>>,
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        self.from.close();
        if let Ok(Some(travelling)) = self.from.try_recv() {
            pool::adopt(self.core, self.peer, travelling);
        }
    }
}
