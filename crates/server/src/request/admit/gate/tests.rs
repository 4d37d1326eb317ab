//! The gate with real wakers and real threads: never more than may be in, and nobody who waits is forgotten.

use std::sync::atomic::AtomicUsize;
use std::task::Poll;

use onehop_message::error::LimitCause;

use super::*;

fn limit(bound: Bound, queue: u32, wait: Duration) -> Arc<Limit> {
    Arc::new(Limit { label: "test".to_owned(), bound, queue, wait, lag: None, shed_status: 503 })
}

fn gate(bound: u32, queue: u32) -> Arc<Gate> {
    Gate::new(limit(Bound::Fixed(bound), queue, Duration::from_secs(20)))
}

fn enter(gate: &Gate, priority: Priority) -> Entry<'_> {
    gate.enter(priority, Instant::now(), || None)
}

fn wait(gate: &Gate, priority: Priority) -> Waiting<'_> {
    match enter(gate, priority) {
        Entry::Wait(waiting) => waiting,
        Entry::In => panic!("there was room"),
        Entry::Shed(cause) => panic!("{cause:?}"),
    }
}

fn is_in(gate: &Gate) -> bool {
    matches!(enter(gate, Priority::Normal), Entry::In)
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future)
}

/// The word that has come, if any.
fn word(waiting: &mut Waiting<'_>) -> Option<Word> {
    let word = waiting.from.try_recv().ok();
    waiting.is_over |= word.is_some();
    word
}

#[test]
fn as_many_are_in_as_may_be() {
    let gate = gate(2, 0);
    assert!(is_in(&gate) && is_in(&gate));
    assert!(matches!(enter(&gate, Priority::High), Entry::Shed(LimitCause::InFlight)));
    gate.leave();
    assert!(is_in(&gate));
    assert_eq!((gate.in_flight(), gate.entered(), gate.queued()), (2, 3, 0));
}

#[test]
fn who_waits_is_let_in_by_who_leaves() {
    let gate = gate(1, 4);
    assert!(is_in(&gate));
    let (mut one, mut two) = (wait(&gate, Priority::Normal), wait(&gate, Priority::Normal));
    assert_eq!((word(&mut one), word(&mut two)), (None, None));
    gate.leave();
    assert_eq!((word(&mut one), word(&mut two)), (Some(Word::In), None));
    // A newcomer does not overtake who waits.
    let mut three = wait(&gate, Priority::Normal);
    gate.leave();
    assert_eq!((word(&mut two), word(&mut three)), (Some(Word::In), None));
    gate.leave();
    assert_eq!(word(&mut three), Some(Word::In));
    gate.leave();
    assert_eq!((gate.in_flight(), gate.queued(), gate.entered()), (0, 0, 4));
}

#[test]
fn a_high_priority_is_let_in_first_and_takes_the_place_of_a_low_one_in_a_full_queue() {
    let gate = gate(1, 2);
    assert!(is_in(&gate));
    let (mut low, mut normal) = (wait(&gate, Priority::Low), wait(&gate, Priority::Normal));
    assert!(matches!(enter(&gate, Priority::Low), Entry::Shed(LimitCause::QueueFull)));
    let mut high = wait(&gate, Priority::High);
    assert_eq!(word(&mut low), Some(Word::Shed(LimitCause::Outranked)));
    gate.leave();
    assert_eq!((word(&mut high), word(&mut normal)), (Some(Word::In), None));
    gate.leave();
    assert_eq!(word(&mut normal), Some(Word::In));
}

#[test]
fn who_waits_for_too_long_is_told_so_and_leaves_the_queue() {
    let gate = Gate::new(limit(Bound::Fixed(1), 4, Duration::from_millis(5)));
    assert!(is_in(&gate));
    let mut waiting = wait(&gate, Priority::Normal);
    assert_eq!(block_on(waiting.over(|_| None)), Err(LimitCause::WaitedOut));
    assert_eq!(gate.queued(), 0);
    drop(waiting);
    gate.leave();
    assert_eq!((gate.in_flight(), gate.entered()), (0, 1));
}

#[test]
fn who_has_gone_leaves_the_queue_and_passes_on_what_he_was_given() {
    let gate = gate(1, 4);
    assert!(is_in(&gate));
    let (one, two) = (wait(&gate, Priority::Normal), wait(&gate, Priority::Normal));
    let mut three = wait(&gate, Priority::Normal);
    drop(one);
    assert_eq!(gate.queued(), 2);
    gate.leave();
    // He was let in and does not know it yet.
    drop(two);
    assert_eq!(word(&mut three), Some(Word::In));
    assert_eq!((gate.in_flight(), gate.queued()), (1, 0));
}

#[test]
fn a_gate_without_a_bound_counts_and_lets_in() {
    let gate = Gate::new(limit(Bound::Unbounded, 0, Duration::ZERO));
    assert!((0..10_000).all(|_| is_in(&gate)));
    assert_eq!(gate.in_flight(), 10_000);
}

#[test]
fn a_refusal_is_counted_by_its_cause_and_says_when_to_come_back() {
    let gate = gate(1, 0);
    let fault = gate.refuse(LimitCause::QueueFull, Instant::now());
    assert_eq!(fault, HttpError::Shed { cause: LimitCause::QueueFull, status: 503, retry_after: 1 });
    let counts: Vec<_> = gate.shed().filter(|(_, count)| *count > 0).collect();
    assert_eq!(counts, [(LimitCause::QueueFull, 1)]);
}

/// What the threads of a test do with a gate: they go in, wait, leave, and go away while they wait.
fn rush(bound: u32, queue: u32, threads: usize, turns: usize) -> Arc<Gate> {
    let gate = gate(bound, queue);
    let (inside, answered) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let stay = || {
        let now = inside.fetch_add(1, Ordering::SeqCst);
        assert!(now < bound as usize, "{now} were in already");
        answered.fetch_add(1, Ordering::SeqCst);
        std::thread::yield_now();
        inside.fetch_sub(1, Ordering::SeqCst);
        gate.leave();
    };
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (gate, stay) = (&gate, &stay);
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(thread as u64);
                let priorities = [Priority::Low, Priority::Normal, Priority::High];
                for _ in 0..turns {
                    match enter(gate, priorities[random.usize(..3)]) {
                        Entry::In => stay(),
                        Entry::Shed(_) => {}
                        Entry::Wait(waiting) if random.u8(..4) == 0 => drop(waiting),
                        // Who is forgotten waits for twenty seconds, and is told so.
                        Entry::Wait(mut waiting) => match block_on(waiting.over(|_| None)) {
                            Ok(()) => stay(),
                            Err(cause) => assert_ne!(cause, LimitCause::WaitedOut),
                        },
                    }
                }
            });
        }
    });
    assert!(answered.load(Ordering::SeqCst) > 0);
    gate
}

#[test]
fn threads_that_come_and_go_are_never_too_many_and_none_is_forgotten() {
    for (bound, queue) in [(1, 1), (1, 8), (2, 3), (3, 64)] {
        let gate = rush(bound, queue, 6, 400);
        assert_eq!((gate.in_flight(), gate.queued()), (0, 0), "bound {bound}, queue {queue}");
        assert!(is_in(&gate), "it is open as at the beginning");
    }
}

#[test]
fn those_who_wait_at_a_gate_that_answers_nobody_are_let_in_though_nobody_comes() {
    let bound = Bound::Adaptive { min: 1, max: 4096 };
    let gate = Gate::new(limit(bound, 128, Duration::from_secs(20)));
    let first = gate.bound();
    assert!((0..first).all(|_| is_in(&gate)));
    let mut waiting: Vec<_> = (0..100).map(|_| wait(&gate, Priority::Normal)).collect();
    // All of them look now and then, whoever it is that sees that nothing is answered.
    let mut all: Vec<_> = waiting.iter_mut().map(|one| Some(Box::pin(one.over(|_| None)))).collect();
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
    assert_eq!(gate.in_flight(), first + 100);
    assert_eq!(gate.queued(), 0);
}
