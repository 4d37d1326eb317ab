//! The limiter with real wakers and real threads: never more than its bound in flight, and no waiting request is forgotten.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};

use onehop_config::checked::limit::{Bound, Limit, Priority};
use onehop_limits::ConcurrencyLimiter;
use onehop_limits::concurrency::{Acquire, Queued};
use onehop_message::error::{HttpError, LimitCause};

fn limit(bound: Bound, queue: u32, wait: Duration) -> Arc<Limit> {
    Arc::new(Limit { label: "test".to_owned(), bound, queue, wait, lag: None, shed_status: 503 })
}

fn limiter(bound: u32, queue: u32) -> Arc<ConcurrencyLimiter> {
    ConcurrencyLimiter::new(limit(Bound::Fixed(bound), queue, Duration::from_secs(20)))
}

fn acquire(limiter: &ConcurrencyLimiter, priority: Priority) -> Acquire<'_> {
    limiter.acquire(priority, Instant::now(), || None)
}

fn wait(limiter: &ConcurrencyLimiter, priority: Priority) -> Queued<'_> {
    match acquire(limiter, priority) {
        Acquire::Queued(waiting) => waiting,
        Acquire::Admitted => panic!("there was room"),
        Acquire::Rejected(cause) => panic!("{cause:?}"),
    }
}

fn is_admitted(limiter: &ConcurrencyLimiter) -> bool {
    matches!(acquire(limiter, Priority::Normal), Acquire::Admitted)
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future)
}

/// The decision that has been made, if any.
fn decision(queued: &mut Queued<'_>) -> Option<Result<(), LimitCause>> {
    let mut decided = pin!(queued.decided(|_| None));
    block_on(std::future::poll_fn(|context| {
        Poll::Ready(match decided.as_mut().poll(context) {
            Poll::Ready(decision) => Some(decision),
            Poll::Pending => None,
        })
    }))
}

#[test]
fn as_many_are_in_flight_as_the_bound_says() {
    let limiter = limiter(2, 0);
    assert!(is_admitted(&limiter) && is_admitted(&limiter));
    assert!(matches!(acquire(&limiter, Priority::High), Acquire::Rejected(LimitCause::InFlight)));
    limiter.release();
    assert!(is_admitted(&limiter));
    assert_eq!((limiter.in_flight(), limiter.admitted(), limiter.queued()), (2, 3, 0));
}

#[test]
fn a_released_permit_admits_the_next_request() {
    let limiter = limiter(1, 4);
    assert!(is_admitted(&limiter));
    let (mut one, mut two) = (wait(&limiter, Priority::Normal), wait(&limiter, Priority::Normal));
    assert_eq!((decision(&mut one), decision(&mut two)), (None, None));
    limiter.release();
    assert_eq!((decision(&mut one), decision(&mut two)), (Some(Ok(())), None));
    // A new request does not overtake one that waits.
    let mut three = wait(&limiter, Priority::Normal);
    limiter.release();
    assert_eq!((decision(&mut two), decision(&mut three)), (Some(Ok(())), None));
    limiter.release();
    assert_eq!(decision(&mut three), Some(Ok(())));
    limiter.release();
    assert_eq!((limiter.in_flight(), limiter.queued(), limiter.admitted()), (0, 0, 4));
}

#[test]
fn a_high_priority_is_let_in_first_and_takes_the_place_of_a_low_one_in_a_full_queue() {
    let limiter = limiter(1, 2);
    assert!(is_admitted(&limiter));
    let (mut low, mut normal) = (wait(&limiter, Priority::Low), wait(&limiter, Priority::Normal));
    assert!(matches!(acquire(&limiter, Priority::Low), Acquire::Rejected(LimitCause::QueueFull)));
    let mut high = wait(&limiter, Priority::High);
    assert_eq!(decision(&mut low), Some(Err(LimitCause::Outranked)));
    limiter.release();
    assert_eq!((decision(&mut high), decision(&mut normal)), (Some(Ok(())), None));
    limiter.release();
    assert_eq!(decision(&mut normal), Some(Ok(())));
}

#[test]
fn a_request_that_waits_for_too_long_is_rejected_and_leaves_the_queue() {
    let limiter = ConcurrencyLimiter::new(limit(Bound::Fixed(1), 4, Duration::from_millis(5)));
    assert!(is_admitted(&limiter));
    let mut waiting = wait(&limiter, Priority::Normal);
    assert_eq!(block_on(waiting.decided(|_| None)), Err(LimitCause::WaitedOut));
    assert_eq!(limiter.queued(), 0);
    drop(waiting);
    limiter.release();
    assert_eq!((limiter.in_flight(), limiter.admitted()), (0, 1));
}

#[test]
fn a_request_that_leaves_the_queue_passes_on_its_permit() {
    let limiter = limiter(1, 4);
    assert!(is_admitted(&limiter));
    let (one, two) = (wait(&limiter, Priority::Normal), wait(&limiter, Priority::Normal));
    let mut three = wait(&limiter, Priority::Normal);
    drop(one);
    assert_eq!(limiter.queued(), 2);
    limiter.release();
    // It was admitted and does not know it yet.
    drop(two);
    assert_eq!(decision(&mut three), Some(Ok(())));
    assert_eq!((limiter.in_flight(), limiter.queued()), (1, 0));
}

#[test]
fn a_limiter_without_a_bound_counts_and_admits() {
    let limiter = ConcurrencyLimiter::new(limit(Bound::Unbounded, 0, Duration::ZERO));
    assert!((0..10_000).all(|_| is_admitted(&limiter)));
    assert_eq!(limiter.in_flight(), 10_000);
}

#[test]
fn a_rejection_is_counted_by_its_cause_and_says_when_to_come_back() {
    let limiter = limiter(1, 0);
    let fault = limiter.reject(LimitCause::QueueFull, Instant::now());
    assert_eq!(fault, HttpError::Shed { cause: LimitCause::QueueFull, status: 503, retry_after: 1 });
    let counts: Vec<_> = limiter.rejected().filter(|(_, count)| *count > 0).collect();
    assert_eq!(counts, [(LimitCause::QueueFull, 1)]);
}

/// What the threads of a test do with a limiter: they go in, wait, leave, and go away while they wait.
fn rush(bound: u32, queue: u32, threads: usize, turns: usize) -> Arc<ConcurrencyLimiter> {
    let limiter = limiter(bound, queue);
    let (inside, answered) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let stay = || {
        let now = inside.fetch_add(1, Ordering::SeqCst);
        assert!(now < bound as usize, "{now} were in already");
        answered.fetch_add(1, Ordering::SeqCst);
        std::thread::yield_now();
        inside.fetch_sub(1, Ordering::SeqCst);
        limiter.release();
    };
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (limiter, stay) = (&limiter, &stay);
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(thread as u64);
                let priorities = [Priority::Low, Priority::Normal, Priority::High];
                for _ in 0..turns {
                    match acquire(limiter, priorities[random.usize(..3)]) {
                        Acquire::Admitted => stay(),
                        Acquire::Rejected(_) => {}
                        Acquire::Queued(waiting) if random.u8(..4) == 0 => drop(waiting),
                        // A forgotten request would wait for twenty seconds, and be told so.
                        Acquire::Queued(mut waiting) => match block_on(waiting.decided(|_| None)) {
                            Ok(()) => stay(),
                            Err(cause) => assert_ne!(cause, LimitCause::WaitedOut),
                        },
                    }
                }
            });
        }
    });
    assert!(answered.load(Ordering::SeqCst) > 0);
    limiter
}

#[test]
fn threads_that_come_and_go_are_never_too_many_and_none_is_forgotten() {
    for (bound, queue) in [(1, 1), (1, 8), (2, 3), (3, 64)] {
        let limiter = rush(bound, queue, 6, 400);
        assert_eq!((limiter.in_flight(), limiter.queued()), (0, 0), "bound {bound}, queue {queue}");
        assert!(is_admitted(&limiter), "it is open as at the beginning");
    }
}

#[test]
fn those_who_wait_at_a_limiter_that_answers_nobody_are_let_in_though_nobody_comes() {
    let bound = Bound::Adaptive { min: 1, max: 4096 };
    let limiter = ConcurrencyLimiter::new(limit(bound, 128, Duration::from_secs(20)));
    let first = limiter.bound();
    assert!((0..first).all(|_| is_admitted(&limiter)));
    let mut waiting: Vec<_> = (0..100).map(|_| wait(&limiter, Priority::Normal)).collect();
    // All of them look now and then, whoever it is that sees that nothing is answered.
    let mut all: Vec<_> = waiting.iter_mut().map(|one| Some(Box::pin(one.decided(|_| None)))).collect();
    block_on(std::future::poll_fn(|context| {
        for one in &mut all {
            if let Some(future) = one
                && let Poll::Ready(word) = future.as_mut().poll(context)
            {
                assert_eq!(word, Ok(()));
                *one = None;
            }
        }
        if all.iter().all(Option::is_none) { Poll::Ready(()) } else { Poll::Pending }
    }));
    drop(all);
    assert_eq!(limiter.in_flight(), first + 100);
    assert_eq!(limiter.queued(), 0);
}
