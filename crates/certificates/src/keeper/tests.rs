//! Tests of the keeper with scripted issuers and a clock that the test moves.

mod on_demand;
mod revoke;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};

use tokio::sync::Semaphore;

use super::*;
use crate::error::StoreError;
use crate::file_store::FileStore;
use crate::issuer::{CertificateOrder, IssueError, Issuing, Pem, RenewalWindow, RevocationReason};
use crate::loaded::tests::valid_for;
use crate::local::LocalAuthority;
use crate::schedule::RENEWAL_RATIO;
use crate::store::{Lock, load_certificate, save_certificate};

const DAY: u64 = 86_400;
const START: u64 = 20_000 * DAY;
const LIFE: Duration = Duration::from_secs(90 * DAY);
/// Far longer than anything here takes; a test that fails ends.
const WAIT_MAX: Duration = Duration::from_secs(20);

/// A store that fails as a full disk does.
struct Disk {
    files: FileStore,
    is_full: AtomicBool,
}

impl Storage for Disk {
    fn read(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.files.read(key)
    }
    fn write_together(&self, entries: &[(&str, &[u8])]) -> Result<(), StoreError> {
        if self.is_full.load(Ordering::SeqCst) {
            let source = std::io::ErrorKind::StorageFull.into();
            return Err(StoreError::Io { action: "write", path: "disk".into(), source });
        }
        self.files.write_together(entries)
    }
    fn remove(&self, key: &str) -> Result<(), StoreError> {
        self.files.remove(key)
    }
    fn list(&self, prefix: &str) -> Result<Vec<String>, StoreError> {
        self.files.list(prefix)
    }
    fn try_lock(&self, name: &str) -> Result<Option<Lock>, StoreError> {
        self.files.try_lock(name)
    }
}

/// An issuer that does what the test says: fails as scripted, otherwise issues.
struct Fake {
    folder: &'static str,
    clock: Clock,
    failures: Mutex<VecDeque<IssueError>>,
    orders: Mutex<Vec<CertificateOrder>>,
    window: Mutex<Option<RenewalWindow>>,
    /// Fetching the window needs one of these.
    window_gate: Semaphore,
    windows_asked: AtomicUsize,
    /// An order needs one of these.
    gate: Semaphore,
    running: AtomicUsize,
    most_running: AtomicUsize,
    panics: AtomicBool,
    removals: AtomicUsize,
    /// Certificates that were revoked, and why.
    revoked: Mutex<Vec<(String, RevocationReason)>>,
}

impl Fake {
    fn fail(&self, message: &str, retry_after: Option<u64>) {
        let retry_after = retry_after.map(Duration::from_secs);
        lock(&self.failures).push_back(IssueError { message: message.to_owned(), retry_after });
    }

    fn orders(&self) -> usize {
        lock(&self.orders).len()
    }
}

impl Issuer for Fake {
    fn folder(&self) -> &'static str {
        self.folder
    }

    fn issue<'a>(&'a self, order: &'a CertificateOrder) -> Issuing<'a, Pem> {
        Box::pin(async move {
            lock(&self.orders).push(order.clone());
            let running = self.running.fetch_add(1, Ordering::SeqCst) + 1;
            self.most_running.fetch_max(running, Ordering::SeqCst);
            let pass = self.gate.acquire().await.unwrap();
            drop(pass);
            self.running.fetch_sub(1, Ordering::SeqCst);
            assert!(!self.panics.swap(false, Ordering::SeqCst), "as the test wants");
            match lock(&self.failures).pop_front() {
                Some(error) => Err(error),
                None => Ok(valid_for(&order.name, (self.clock)(), LIFE)),
            }
        })
    }

    fn renewal_window<'a>(&'a self, _: &'a str) -> Issuing<'a, Option<RenewalWindow>> {
        Box::pin(async {
            self.windows_asked.fetch_add(1, Ordering::SeqCst);
            drop(self.window_gate.acquire().await.unwrap());
            Ok(*lock(&self.window))
        })
    }

    fn revoke<'a>(&'a self, chain: &'a str, reason: RevocationReason) -> Issuing<'a, ()> {
        Box::pin(async move {
            if let Some(error) = lock(&self.failures).pop_front() {
                return Err(error);
            }
            lock(&self.revoked).push((chain.to_owned(), reason));
            Ok(())
        })
    }

    fn remove_leftovers<'a>(&'a self) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        self.removals.fetch_add(1, Ordering::SeqCst);
        Box::pin(async {})
    }
}

struct World {
    seconds: Arc<AtomicU64>,
    clock: Clock,
    disk: Arc<Disk>,
    published: Arc<Mutex<Vec<Arc<Loaded>>>>,
    events: Receiver<Event>,
    keeper: Keeper,
    folder: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let files = FileStore::open(&folder.path().join("store")).unwrap();
        let disk = Arc::new(Disk { files, is_full: AtomicBool::new(false) });
        let seconds = Arc::new(AtomicU64::new(START));
        let time = Arc::clone(&seconds);
        let clock: Clock = Arc::new(move || at(time.load(Ordering::SeqCst)));
        let published = Arc::new(Mutex::new(Vec::new()));
        let theirs = Arc::clone(&published);
        let (sender, events) = channel();
        let publish: Publish = Arc::new(move |all| *lock(&theirs) = all);
        let report: Events = Arc::new(move |event| drop(sender.send(event)));
        let keeper = Keeper::new(disk.clone(), Arc::clone(&clock), publish, report).unwrap();
        Self { seconds, clock, disk, published, events, keeper, folder }
    }

    fn issuer(&self, folder: &'static str) -> Arc<Fake> {
        Arc::new(Fake {
            folder,
            clock: Arc::clone(&self.clock),
            failures: Mutex::default(),
            orders: Mutex::default(),
            window: Mutex::default(),
            window_gate: Semaphore::new(Semaphore::MAX_PERMITS),
            windows_asked: AtomicUsize::new(0),
            gate: Semaphore::new(Semaphore::MAX_PERMITS),
            running: AtomicUsize::new(0),
            most_running: AtomicUsize::new(0),
            panics: AtomicBool::new(false),
            removals: AtomicUsize::new(0),
            revoked: Mutex::default(),
        })
    }

    fn travel_to(&self, seconds: u64) {
        self.seconds.store(START + seconds, Ordering::SeqCst);
        self.keeper.shared.wake.notify_one();
    }

    fn obtain(&self, wanted: Wanted) -> Obtaining {
        let name = wanted.name.clone();
        self.keeper.on_demand(wanted).obtain(&name).expect("room")
    }

    fn event(&self) -> Event {
        self.events.recv_timeout(WAIT_MAX).unwrap()
    }

    /// The next event is a failure: its issuer, reason and the seconds until the next attempt.
    fn failure(&self) -> (String, String, u64) {
        match self.event() {
            Event::Failed { issuer, reason, next_try_in, .. } => (issuer, reason, next_try_in.as_secs()),
            other => panic!("{other:?}"),
        }
    }

    /// The next event is a certificate: its issuer, and whether it is a renewal.
    fn obtained(&self) -> (String, bool) {
        match self.event() {
            Event::Obtained { issuer, is_renewal, .. } => (issuer, is_renewal),
            other => panic!("{other:?}"),
        }
    }

    fn published(&self) -> Vec<String> {
        lock(&self.published).iter().map(|loaded| loaded.names.join(",")).collect()
    }

    fn status(&self) -> CertificateStatus {
        self.keeper.status().remove(0)
    }
}

fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

fn wanted(name: &str, issuers: &[&Arc<Fake>]) -> Wanted {
    let issuers = issuers.iter().map(|issuer| Arc::clone(*issuer) as Arc<dyn Issuer>).collect();
    let name = name.to_owned();
    Wanted { name, issuers, key_type: KeyType::P256, renewal_ratio: RENEWAL_RATIO, permission: None }
}

fn wait(receiver: Obtaining) -> Result<Arc<Loaded>, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(WAIT_MAX, receiver).await }).unwrap()
}

#[test]
fn what_is_stored_and_valid_is_published_before_set_returns() {
    let world = World::new();
    let issuer = world.issuer("ca");
    save_certificate(&*world.disk, "ca", "a.example", &valid_for("a.example", at(START), LIFE)).unwrap();
    let expired = valid_for("b.example", at(START - 100 * DAY), LIFE);
    save_certificate(&*world.disk, "ca", "b.example", &expired).unwrap();
    issuer.gate.forget_permits(Semaphore::MAX_PERMITS);
    world.keeper.set(vec![wanted("A.example", &[&issuer]), wanted("b.example", &[&issuer])]);
    assert_eq!(world.published(), ["a.example"]);
    issuer.gate.add_permits(1);
    assert_eq!(world.obtained(), ("ca".to_owned(), false));
    assert_eq!(world.published(), ["a.example", "b.example"]);
    assert_eq!(lock(&issuer.orders)[0].name, "b.example");
    assert_eq!(issuer.orders(), 1);
    world.keeper.set(vec![wanted("b.example", &[&issuer])]);
    assert_eq!(world.published(), ["b.example"]);
}

#[test]
fn the_local_authority_issues_before_set_returns() {
    let world = World::new();
    let local = Arc::new(LocalAuthority::new(world.disk.clone(), Arc::clone(&world.clock)));
    let names =
        ["localhost", "127.0.0.1"].map(|name| Wanted { issuers: vec![local.clone()], ..wanted(name, &[]) });
    world.keeper.set(names.to_vec());
    assert_eq!(world.published(), ["127.0.0.1", "localhost"]);
    for _ in names {
        assert_eq!(world.obtained(), ("local".to_owned(), false));
    }
    world.travel_to(9 * 3_600);
    assert_eq!(world.obtained(), ("local".to_owned(), true));
}

#[test]
fn a_certificate_is_renewed_when_a_third_of_its_life_is_left() {
    let world = World::new();
    let issuer = world.issuer("ca");
    world.keeper.set(vec![wanted("a.example", &[&issuer])]);
    assert_eq!(world.obtained(), ("ca".to_owned(), false));
    let first = lock(&world.published)[0].clone();
    let next = world.status().next_renewal.duration_since(at(START)).unwrap();
    assert!(next.abs_diff(LIFE * 2 / 3) < Duration::from_secs(1), "{next:?}");
    world.travel_to(60 * DAY + 1);
    assert_eq!(world.obtained(), ("ca".to_owned(), true));
    let second = lock(&world.published)[0].clone();
    assert_ne!(first.fingerprint, second.fingerprint);
    assert_eq!(lock(&issuer.orders)[1].replaces.as_deref(), Some(first.chain_pem()));
    let stored = load_certificate(&*world.disk, "ca", "a.example").unwrap().unwrap();
    assert_eq!(stored.fingerprint, second.fingerprint);
    let status = world.status();
    assert_eq!((status.issuer.as_deref(), status.not_after), (Some("ca"), Some(second.not_after)));
}

#[test]
fn the_next_issuer_is_asked_when_one_fails() {
    let world = World::new();
    let (first, second) = (world.issuer("first"), world.issuer("second"));
    first.fail("no", Some(3_600));
    world.keeper.set(vec![wanted("a.example", &[&first, &second])]);
    assert_eq!(world.failure(), ("first".to_owned(), "no".to_owned(), 0));
    assert_eq!(world.obtained(), ("second".to_owned(), false));
    assert_eq!(world.status().last_error, None);
}

#[test]
fn failures_back_off_and_the_old_certificate_stays() {
    let world = World::new();
    let issuer = world.issuer("ca");
    world.keeper.set(vec![wanted("a.example", &[&issuer])]);
    world.obtained();
    let first = lock(&world.published)[0].fingerprint;
    let mut now = 60 * DAY + 1;
    for (retry_after, expected) in [(None, 60), (None, 120), (Some(7_200), 7_200), (Some(1), 600)] {
        issuer.fail("no", retry_after);
        world.travel_to(now);
        assert_eq!(world.failure(), ("ca".to_owned(), "no".to_owned(), expected));
        let status = world.status();
        assert_eq!(status.next_renewal, at(START + now + expected));
        assert_eq!(status.last_error, Some(("no".to_owned(), at(START + now))));
        assert_eq!(lock(&world.published)[0].fingerprint, first);
        // A reload does not ask again.
        world.keeper.set(vec![wanted("a.example", &[&issuer])]);
        assert_eq!(world.status().next_renewal, at(START + now + expected));
        now += expected;
    }
    world.travel_to(now);
    assert_eq!(world.obtained(), ("ca".to_owned(), true));
    assert_eq!(issuer.orders(), 6);
}

#[test]
fn an_issuer_that_wants_to_be_left_alone_is_passed_over() {
    let world = World::new();
    let (first, second) = (world.issuer("first"), world.issuer("second"));
    first.fail("no", Some(DAY));
    second.fail("no", None);
    world.keeper.set(vec![wanted("a.example", &[&first, &second])]);
    assert_eq!([world.failure().2, world.failure().2], [0, 60]);
    world.travel_to(60);
    assert_eq!(world.obtained(), ("second".to_owned(), false));
    assert_eq!(first.orders(), 1);
}

#[test]
fn an_hour_without_an_issuer_costs_six_attempts_for_each_name_and_loses_none() {
    let world = World::new();
    let issuer = world.issuer("ca");
    let names = ["a.example", "b.example"];
    // After 0, 1, 3, 8, 18 and 38 minutes; the next one would come after 68.
    for _ in 0..6 * names.len() {
        issuer.fail("unreachable", None);
    }
    world.keeper.set(names.map(|name| wanted(name, &[&issuer])).to_vec());
    let mut failures = 0;
    for minute in 0..60 {
        world.travel_to(60 * minute);
        let attempts = if [0, 1, 3, 8, 18, 38].contains(&minute) { names.len() } else { 0 };
        for _ in 0..attempts {
            assert_eq!(world.failure().1, "unreachable");
            failures += 1;
        }
        assert_eq!(issuer.orders(), failures, "minute {minute}");
    }
    world.travel_to(68 * 60);
    for _ in names {
        assert_eq!(world.obtained(), ("ca".to_owned(), false));
    }
    assert_eq!(world.published(), names);
    assert_eq!(issuer.orders(), failures + names.len());
}

#[test]
fn the_issuers_window_brings_the_renewal_forward() {
    let world = World::new();
    let issuer = world.issuer("ca");
    let window = |from, until| {
        let look_again_in = Duration::from_secs(3_600);
        Some(RenewalWindow { from: at(START + from), until: at(START + until), look_again_in })
    };
    *lock(&issuer.window) = window(40 * DAY, 41 * DAY);
    world.keeper.set(vec![wanted("a.example", &[&issuer])]);
    world.obtained();
    while world.status().next_renewal > at(START + 41 * DAY) {
        std::thread::yield_now();
    }
    // The issuer revokes: the window lies in the past when it is fetched next.
    *lock(&issuer.window) = window(0, 1);
    world.travel_to(DAY);
    assert_eq!(world.obtained(), ("ca".to_owned(), true));
    // That of the new one does, too: it is not renewed at once.
    assert!(world.status().next_renewal >= at(START + DAY + 3_600));
}

#[test]
fn a_certificate_that_is_read_anew_keeps_its_moment_in_the_issuers_window() {
    let world = World::new();
    let issuer = world.issuer("ca");
    let (from, until) = (at(START + 40 * DAY), at(START + 41 * DAY));
    *lock(&issuer.window) = Some(RenewalWindow { from, until, look_again_in: Duration::from_secs(3_600) });
    let renewal = || loop {
        let renewal = world.status().next_renewal;
        if (from..=until).contains(&renewal) {
            return renewal;
        }
        std::thread::yield_now();
    };
    world.keeper.set(vec![wanted("a.example", &[&issuer])]);
    world.obtained();
    let first = renewal();
    world.keeper.set(Vec::new());
    world.keeper.set(vec![wanted("a.example", &[&issuer])]);
    assert_eq!(renewal(), first);
    assert_eq!(issuer.orders(), 1);
}

#[test]
fn handshakes_for_one_name_share_one_order() {
    let world = World::new();
    let issuer = world.issuer("ca");
    issuer.gate.forget_permits(Semaphore::MAX_PERMITS);
    let receivers: Vec<_> = (0..5).map(|_| world.obtain(wanted("a.example", &[&issuer]))).collect();
    issuer.gate.add_permits(1);
    for receiver in receivers {
        assert_eq!(wait(receiver).unwrap().names, ["a.example"]);
    }
    assert_eq!(world.published(), ["a.example"]);
    wait(world.obtain(wanted("a.example", &[&issuer]))).unwrap();
    assert_eq!(issuer.orders(), 1);
    // After a reload, the next handshake finds it in the store.
    world.keeper.set(Vec::new());
    assert!(world.published().is_empty());
    wait(world.obtain(wanted("a.example", &[&issuer]))).unwrap();
    assert_eq!(issuer.orders(), 1);
}

#[test]
fn a_failed_handshake_is_not_ordered_again_until_its_back_off_ends() {
    let world = World::new();
    let issuer = world.issuer("ca");
    issuer.fail("no", None);
    for _ in 0..3 {
        let answer = wait(world.obtain(wanted("a.example", &[&issuer])));
        assert_eq!(answer.unwrap_err(), "no");
    }
    assert_eq!(issuer.orders(), 1);
    world.travel_to(60);
    assert!(wait(world.obtain(wanted("a.example", &[&issuer]))).is_ok());
}

#[test]
fn orders_at_the_same_time_are_bounded() {
    let world = World::new();
    let issuer = world.issuer("ca");
    issuer.gate.forget_permits(Semaphore::MAX_PERMITS);
    let count = 2 * ORDERS_AT_ONCE_MAX;
    world.keeper.set((0..count).map(|at| wanted(&format!("{at}.example"), &[&issuer])).collect());
    while issuer.running.load(Ordering::SeqCst) < ORDERS_AT_ONCE_MAX {
        std::thread::yield_now();
    }
    issuer.gate.add_permits(1);
    for _ in 0..count {
        world.obtained();
    }
    assert_eq!(issuer.most_running.load(Ordering::SeqCst), ORDERS_AT_ONCE_MAX);
    assert_eq!(world.published().len(), count);
}

#[test]
fn what_cannot_be_stored_is_stored_later_and_not_ordered_twice() {
    let world = World::new();
    let issuer = world.issuer("ca");
    world.disk.is_full.store(true, Ordering::SeqCst);
    world.keeper.set(vec![wanted("a.example", &[&issuer])]);
    let (_, reason, _) = world.failure();
    assert!(reason.contains("cannot be stored") && reason.contains("disk"), "{reason}");
    assert!(world.published().is_empty());
    world.disk.is_full.store(false, Ordering::SeqCst);
    world.travel_to(60);
    assert_eq!(world.obtained(), ("ca".to_owned(), false));
    assert_eq!((issuer.orders(), world.published().len()), (1, 1));
}

#[test]
fn a_full_disk_leaves_the_old_certificate_and_costs_one_order() {
    let world = World::new();
    let issuer = world.issuer("ca");
    world.keeper.set(vec![wanted("a.example", &[&issuer])]);
    world.obtained();
    let first = lock(&world.published)[0].fingerprint;
    let stored = || load_certificate(&*world.disk, "ca", "a.example").unwrap().unwrap().fingerprint;
    world.disk.is_full.store(true, Ordering::SeqCst);
    let mut now = 60 * DAY + 1;
    for expected in [60, 120, 300] {
        world.travel_to(now);
        let (folder, reason, next_try_in) = world.failure();
        assert_eq!((folder.as_str(), next_try_in), ("ca", expected));
        assert!(
            reason.contains("cannot write disk: ") && reason.ends_with("; free some space on this disk"),
            "{reason}"
        );
        assert_eq!(world.status().last_error, Some((reason, at(START + now))));
        assert_eq!((lock(&world.published)[0].fingerprint, stored()), (first, first));
        assert_eq!(issuer.orders(), 2, "the issued certificate is kept in memory");
        now += expected;
    }
    assert!(world.events.try_recv().is_err(), "one event for each attempt");
    world.disk.is_full.store(false, Ordering::SeqCst);
    world.travel_to(now);
    assert_eq!(world.obtained(), ("ca".to_owned(), true));
    let second = lock(&world.published)[0].fingerprint;
    assert_ne!(second, first);
    assert_eq!((issuer.orders(), stored()), (2, second));
    assert_eq!(world.status().last_error, None);
}

#[test]
fn what_another_process_orders_is_left_to_it() {
    let world = World::new();
    let issuer = world.issuer("ca");
    let theirs = FileStore::open(&world.folder.path().join("store")).unwrap();
    let held = theirs.try_lock("issue_cert_a.example").unwrap().unwrap();
    let receiver = world.obtain(wanted("a.example", &[&issuer]));
    while world.keeper.status().first().is_none_or(|one| one.next_renewal == at(START)) {
        std::thread::yield_now();
    }
    save_certificate(&theirs, "ca", "a.example", &valid_for("a.example", at(START), LIFE)).unwrap();
    drop(held);
    world.travel_to(30);
    assert_eq!(wait(receiver).unwrap().names, ["a.example"]);
    assert_eq!(issuer.orders(), 0);
}

#[test]
fn a_certificate_from_an_issuer_of_before_is_served_until_it_is_replaced() {
    let world = World::new();
    let (before, after) = (world.issuer("before"), world.issuer("after"));
    world.keeper.set(vec![wanted("a.example", &[&before])]);
    world.obtained();
    after.gate.forget_permits(Semaphore::MAX_PERMITS);
    world.keeper.set(vec![wanted("a.example", &[&after])]);
    assert_eq!(world.published(), ["a.example"]);
    assert_eq!(world.status().issuer.as_deref(), Some("before"));
    after.gate.add_permits(1);
    assert_eq!(world.obtained(), ("after".to_owned(), true));
    assert_eq!(lock(&after.orders)[0].replaces, None);
    assert_eq!(world.status().issuer.as_deref(), Some("after"));
}

#[test]
fn a_reload_that_changes_the_issuer_while_the_old_one_is_asked_for_its_window_orders_at_once() {
    let world = World::new();
    let (before, after) = (world.issuer("before"), world.issuer("after"));
    before.window_gate.forget_permits(Semaphore::MAX_PERMITS);
    world.keeper.set(vec![wanted("a.example", &[&before])]);
    world.obtained();
    while before.windows_asked.load(Ordering::SeqCst) == 0 {
        std::thread::yield_now();
    }
    world.keeper.set(vec![wanted("a.example", &[&after])]);
    before.window_gate.add_permits(1);
    assert_eq!(world.obtained(), ("after".to_owned(), true));
}

#[test]
fn an_issuer_that_panics_is_a_failure_and_one_that_hangs_does_not_delay_the_end() {
    let world = World::new();
    let issuer = world.issuer("ca");
    issuer.panics.store(true, Ordering::SeqCst);
    world.keeper.set(vec![wanted("a.example", &[&issuer])]);
    assert!(world.failure().1.contains("internal error"));
    issuer.gate.forget_permits(Semaphore::MAX_PERMITS);
    world.travel_to(60);
    drop(world.keeper);
}

#[test]
fn what_a_running_order_has_shown_is_removed_at_the_end() {
    let world = World::new();
    let (running, done) = (world.issuer("running"), world.issuer("done"));
    world.keeper.set(vec![wanted("a.example", &[&done])]);
    world.obtained();
    running.gate.forget_permits(Semaphore::MAX_PERMITS);
    world.keeper.set(vec![wanted("a.example", &[&done]), wanted("b.example", &[&running])]);
    while running.orders() == 0 {
        std::thread::yield_now();
    }
    drop(world.keeper);
    let removals = |issuer: &Fake| issuer.removals.load(Ordering::SeqCst);
    assert_eq!((removals(&running), removals(&done)), (1, 0));
}

/// An issuer that holds the keeper's thread, as a disk that hangs does, until the test ends.
struct Hanging(Mutex<Receiver<()>>, std::sync::mpsc::Sender<()>);

impl Issuer for Hanging {
    fn folder(&self) -> &'static str {
        "hanging"
    }

    fn issue<'a>(&'a self, _: &'a CertificateOrder) -> Issuing<'a, Pem> {
        Box::pin(async {
            let _ = self.1.send(());
            let _ = lock(&self.0).recv();
            Err(IssueError { message: "late".to_owned(), retry_after: None })
        })
    }
}

#[test]
fn a_thread_that_hangs_holds_up_the_end_no_longer_than_its_bound() {
    let world = World::new();
    let ((end, hold), (started, has_started)) = (channel(), channel());
    let issuer: Arc<dyn Issuer> = Arc::new(Hanging(Mutex::new(hold), started));
    world.keeper.set(vec![Wanted { issuers: vec![issuer], ..wanted("a.example", &[]) }]);
    has_started.recv_timeout(WAIT_MAX).unwrap();
    drop(world.keeper);
    drop(end);
}
