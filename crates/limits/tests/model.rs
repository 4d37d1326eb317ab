//! A model of the wait queue: the limiter's own source over the primitives of shuttle, which runs it under many
//! interleavings of its threads. A request that is forgotten is a deadlock, which shuttle reports; too many at once are a
//! failed assertion.
//!
//! Shuttle explores sequentially consistent executions, which is what the protocol relies on: all its accesses are
//! `SeqCst`. Each schedule that fails is printed and can be replayed (`shuttle::replay`).
#![expect(dead_code, unreachable_pub, reason = "the model uses a part of the modules that it includes")]

#[path = "../src/concurrency.rs"]
mod concurrency;
#[path = "../src/limits.rs"]
mod limits;
#[path = "../src/queue.rs"]
mod queue;
#[path = "../src/retry_after.rs"]
mod retry_after;
#[path = "../src/wait_queue.rs"]
mod wait_queue;

use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use onehop_config::checked::limit::{Bound, Limit, Priority};
use onehop_message::error::LimitCause;
use shuttle::rand::Rng;
use shuttle::sync::atomic::{AtomicUsize, Ordering};

use concurrency::{Acquire, ConcurrencyLimiter, Queued};

/// Schedules per case: together some seconds in an unoptimised build.
const SCHEDULES: usize = 500;

thread_local! {
    /// Whether a request that waits may find that its time is over.
    static MAY_TIME_OUT: Cell<bool> = const { Cell::new(false) };
}

/// What `src/sync.rs` is otherwise: the primitives of the model, and a clock that runs out at any time.
mod sync {
    use std::pin::pin;
    use std::sync::PoisonError as Poison;
    use std::task::Poll;

    pub(crate) use shuttle::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
    pub(crate) use shuttle::sync::{Mutex, MutexGuard};

    pub(crate) type PoisonError<T> = Poison<T>;

    pub(crate) async fn timeout_at<F: Future>(_: tokio::time::Instant, future: F) -> Result<F::Output, ()> {
        use shuttle::rand::Rng;
        let mut future = pin!(future);
        std::future::poll_fn(|context| match future.as_mut().poll(context) {
            Poll::Ready(output) => Poll::Ready(Ok(output)),
            Poll::Pending if super::MAY_TIME_OUT.get() && shuttle::rand::thread_rng().r#gen() => {
                // The other threads continue between the end of the time and what the request makes of it.
                shuttle::thread::yield_now();
                Poll::Ready(Err(()))
            }
            Poll::Pending => Poll::Pending,
        })
        .await
    }
}

/// A bound that never changes: how it is found is pure, and tested elsewhere.
mod adaptive {
    use std::time::{Duration, Instant};

    pub(crate) struct Adaptive(u32);

    pub(crate) struct InFlight {
        pub(crate) at_start: u32,
        pub(crate) now: u32,
    }

    impl Adaptive {
        pub(crate) fn new(min: u32, _: u32) -> Self {
            Self(min)
        }

        pub(crate) fn bound(&self) -> u32 {
            self.0
        }

        pub(crate) fn look_by(&self, _: usize) -> Instant {
            Instant::now()
        }

        pub(crate) fn is_met(&self, _: Instant, _: u32, _: impl FnOnce() -> Option<Duration>) {}

        pub(crate) fn sample(
            &self,
            _: Instant,
            _: usize,
            _: Duration,
            _: InFlight,
            _: bool,
            _: impl FnOnce() -> Option<Duration>,
        ) {
        }
    }
}

/// What the requests of a case do.
#[derive(Clone, Copy)]
struct Case {
    bound: u32,
    queue: u32,
    threads: usize,
    /// Requests of each thread, one after the other.
    requests: usize,
    /// Some clients leave while they wait, or have waited for too long.
    some_leave: bool,
}

fn limiter(case: Case) -> Arc<ConcurrencyLimiter> {
    ConcurrencyLimiter::new(Arc::new(Limit {
        label: "model".to_owned(),
        bound: Bound::Fixed(case.bound),
        queue: case.queue,
        wait: Duration::from_secs(3_600),
        lag: None,
        shed_status: 503,
    }))
}

/// Waits for the decision, or leaves before there is one. Whether the request is in flight.
fn is_admitted(mut queued: Queued<'_>, case: Case) -> bool {
    let mut random = shuttle::rand::thread_rng();
    if random.r#gen() {
        queued.position().half_closed();
    }
    if case.some_leave && random.r#gen() {
        shuttle::thread::yield_now();
        return false;
    }
    let decision = shuttle::future::block_on(queued.decided(|_| None));
    let has_room = case.queue as usize >= case.threads;
    assert!(!has_room || case.some_leave || decision.is_ok(), "{decision:?} although the queue has room");
    assert!(case.some_leave || decision != Err(LimitCause::WaitedOut));
    decision.is_ok()
}

fn request(limiter: &ConcurrencyLimiter, inside: &AtomicUsize, case: Case) {
    let priorities = [Priority::Low, Priority::Normal, Priority::High];
    let priority = priorities[shuttle::rand::thread_rng().gen_range(0..priorities.len())];
    let is_admitted = match limiter.acquire(priority, Instant::now(), || None) {
        Acquire::Admitted => true,
        Acquire::Queued(queued) => is_admitted(queued, case),
        Acquire::Rejected(cause) => {
            assert!((case.queue as usize) < case.threads, "{cause:?} although the queue has room");
            false
        }
    };
    if is_admitted {
        let others = inside.fetch_add(1, Ordering::SeqCst);
        assert!(others < case.bound as usize, "{others} were in flight already");
        inside.fetch_sub(1, Ordering::SeqCst);
        limiter.release();
    }
}

fn explore(case: Case) {
    let run = move || {
        MAY_TIME_OUT.set(case.some_leave);
        let limiter = limiter(case);
        let inside = Arc::new(AtomicUsize::new(0));
        let threads: Vec<_> = (0..case.threads)
            .map(|_| {
                let (limiter, inside) = (Arc::clone(&limiter), Arc::clone(&inside));
                shuttle::thread::spawn(move || {
                    (0..case.requests).for_each(|_| request(&limiter, &inside, case));
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().expect("a thread of the model"));
        assert_eq!((limiter.in_flight(), limiter.queued()), (0, 0), "a permit or a place was lost");
    };
    shuttle::check_random(run, SCHEDULES);
    // Few switches at the worst moments, which random schedules seldom have.
    shuttle::check_pct(run, SCHEDULES, 3);
}

#[test]
fn no_waiting_request_is_forgotten_and_none_is_admitted_beyond_the_bound() {
    for (bound, threads, requests) in [(1, 2, 2), (1, 3, 1), (2, 3, 2)] {
        explore(Case { bound, queue: 8, threads, requests, some_leave: false });
    }
}

#[test]
fn a_request_that_leaves_passes_on_its_permit_whenever_it_leaves() {
    for (bound, threads, requests) in [(1, 3, 1), (1, 3, 2), (2, 4, 1)] {
        explore(Case { bound, queue: 8, threads, requests, some_leave: true });
    }
}

#[test]
fn a_full_queue_makes_room_and_forgets_no_request() {
    for (bound, threads, some_leave) in [(1, 3, false), (1, 4, true)] {
        explore(Case { bound, queue: 1, threads, requests: 2, some_leave });
    }
}
