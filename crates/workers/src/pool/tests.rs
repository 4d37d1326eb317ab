//! The pool without workers: slots, the queue, and threads that are quick.

use std::sync::atomic::AtomicUsize;

use onehop_config::checked::{AppEnvironment, AppProtocol, AppResources, AppRun, Recycle, WorkerCount};

use super::*;
use crate::Transport;
use onehop_connection::YieldSlot as _;

fn app(queue: u32) -> Arc<App> {
    use std::time::Duration;
    Arc::new(App {
        name: "api".into(),
        run: AppRun::Command { line: vec!["true".into()] },
        workers: WorkerCount::Auto,
        directory: "/".into(),
        environment: AppEnvironment::default(),
        user: None,
        resources: AppResources::default(),
        recycle: Recycle::default(),
        concurrency: None,
        queue,
        queue_wait: Duration::from_secs(1),
        request_buffers: None,
        limit: None,
        timeout: Duration::from_secs(1),
        start_timeout: Duration::from_secs(1),
        stop_timeout: Duration::from_secs(1),
        stuck_after: Duration::from_secs(1),
        retry: false,
        files: None,
        platform_response: false,
        protocol: AppProtocol::Frames,
        port: None,
        sticky: None,
        trusted_proxies: Vec::new(),
        data: None,
    })
}

/// A worker that is handed one request at a time.
fn worker(number: u64) -> Arc<Worker> {
    seated(number, 0)
}

fn seated(number: u64, index: usize) -> Arc<Worker> {
    bounded(number, index, 1)
}

fn bounded(number: u64, index: usize, concurrency: usize) -> Arc<Worker> {
    Worker::new(WorkerId(number), WorkerIndex(index), Transport::Frames, concurrency, Arc::new(|_| {}))
}

fn now(choice: Choice) -> Arc<Worker> {
    match choice {
        Choice::Now(worker) => worker,
        _ => panic!("no place"),
    }
}

fn later(choice: Choice) -> oneshot::Receiver<Grant> {
    match choice {
        Choice::Later(receiver, _) => receiver,
        _ => panic!("no waiting"),
    }
}

#[test]
fn the_lag_that_counts_is_that_of_the_preferred_worker_or_else_the_least() {
    let pool = Pool::new(app(4));
    let (late, quick) = (seated(1, 0), seated(2, 1));
    pool.admit(Arc::clone(&late));
    pool.admit(Arc::clone(&quick));
    late.measured_lag(Duration::from_secs(3));
    let lag = |affinity| pool.lag(Instant::now(), affinity);
    assert_eq!((lag(Affinity::Any), lag(Affinity::Worker(WorkerIndex(1)))), (Duration::ZERO, Duration::ZERO));
    assert!(lag(Affinity::Worker(WorkerIndex(0))) >= Duration::from_secs(1));
    // A worker that is on time differs from one whose lag is not known.
    quick.measured_lag(Duration::ZERO);
    assert!(!lag(Affinity::Any).is_zero());
    // Nobody serves there: it goes to another.
    assert!(lag(Affinity::Worker(WorkerIndex(7))) < Duration::from_millis(1));
}

#[test]
fn the_worker_with_the_fewest_requests_is_chosen() {
    let pool = Pool::new(app(4));
    let (one, two) = (bounded(1, 0, 4), bounded(2, 0, 4));
    pool.admit(Arc::clone(&one));
    pool.admit(Arc::clone(&two));
    for turn in 0..6 {
        now(pool.choose(turn, None, Affinity::Any));
    }
    assert_eq!((one.in_flight(), two.in_flight()), (3, 3));
    pool.give_back(&two);
    assert_eq!(now(pool.choose(0, None, Affinity::Any)).id, two.id);
}

#[test]
fn each_worker_has_a_bound_of_its_own() {
    let pool = Pool::new(app(4));
    let (one, many) = (bounded(1, 0, 1), bounded(2, 0, 5));
    pool.admit(Arc::clone(&one));
    pool.admit(Arc::clone(&many));
    for turn in 0..6 {
        now(pool.choose(turn, None, Affinity::Any));
    }
    assert_eq!((one.in_flight(), many.in_flight()), (1, 5));
    let mut waiting = later(pool.choose(0, None, Affinity::Any));
    assert!(waiting.try_recv().is_err());
    pool.give_back(&many);
    assert_eq!(waiting.try_recv().expect("a place").into_worker().map(|worker| worker.id), Some(many.id));
}

#[test]
fn the_oldest_request_gets_the_first_slot_that_is_free() {
    let pool = Pool::new(app(4));
    let only = worker(1);
    pool.admit(Arc::clone(&only));
    let first = now(pool.choose(0, None, Affinity::Any));
    let (mut second, mut third) =
        (later(pool.choose(0, None, Affinity::Any)), later(pool.choose(0, None, Affinity::Any)));
    assert!(second.try_recv().is_err());
    pool.give_back(&first);
    // A new request does not overtake one that waits.
    let mut fourth = later(pool.choose(0, None, Affinity::Any));
    let grant = second.try_recv().expect("the request that waited first");
    assert!(third.try_recv().is_err());
    drop(grant);
    let grant = third.try_recv().expect("the next");
    assert!(fourth.try_recv().is_err());
    assert_eq!(grant.into_worker().map(|worker| worker.id), Some(only.id));
    assert_eq!((only.in_flight(), pool.queued()), (1, 1));
}

#[test]
fn a_request_whose_client_has_gone_is_skipped_and_makes_room() {
    let pool = Pool::new(app(2));
    let only = worker(1);
    pool.admit(Arc::clone(&only));
    let first = now(pool.choose(0, None, Affinity::Any));
    let gone = later(pool.choose(0, None, Affinity::Any));
    let mut stays = later(pool.choose(0, None, Affinity::Any));
    assert!(matches!(pool.choose(0, None, Affinity::Any), Choice::QueueFull));
    drop(gone);
    let mut newcomer = later(pool.choose(0, None, Affinity::Any));
    pool.give_back(&first);
    let grant = stays.try_recv().expect("a place");
    drop(stays.try_recv());
    assert!(newcomer.try_recv().is_err());
    drop(grant);
    assert!(newcomer.try_recv().is_ok());
    assert_eq!((only.in_flight(), pool.queued()), (0, 0));
}

#[test]
fn requests_wait_for_the_first_worker_and_for_the_next_one_after_a_death() {
    let pool = Pool::new(app(8));
    let mut waiting = later(pool.choose(0, None, Affinity::Any));
    assert!(waiting.try_recv().is_err());
    pool.admit(worker(1));
    let one = waiting.try_recv().expect("a place").into_worker().expect("a worker");
    let mut waiting = later(pool.choose(0, None, Affinity::Any));
    pool.withdraw(one.id);
    pool.give_back(&one);
    assert!(waiting.try_recv().is_err());
    pool.admit(worker(2));
    assert_eq!(waiting.try_recv().expect("a place").into_worker().map(|worker| worker.id), Some(WorkerId(2)));
}

#[test]
fn an_application_that_fails_refuses_those_who_wait_and_those_who_come() {
    let pool = Pool::new(app(8));
    let mut waiting = later(pool.choose(0, None, Affinity::Any));
    pool.set_failing(7, None);
    assert!(matches!(waiting.try_recv(), Err(oneshot::error::TryRecvError::Closed)));
    assert!(matches!(pool.choose(0, None, Affinity::Any), Choice::Failing(7)));
    pool.admit(worker(1));
    assert_eq!(now(pool.choose(0, None, Affinity::Any)).id, WorkerId(1));
}

#[test]
fn a_request_bound_to_a_full_worker_waits_for_it_and_holds_up_no_other() {
    let pool = Pool::new(app(8));
    let (one, two) = (seated(1, 0), seated(2, 1));
    pool.admit(Arc::clone(&one));
    pool.admit(Arc::clone(&two));
    let affinity = Affinity::Worker(WorkerIndex(1));
    assert_eq!(now(pool.choose(0, None, affinity)).id, two.id);
    let mut bound = later(pool.choose(0, None, affinity));
    assert!(bound.try_recv().is_err(), "the other worker has room, and is not the preferred one");
    let mut next = later(pool.choose(0, None, affinity));
    assert_eq!(now(pool.choose(0, None, Affinity::Any)).id, one.id);
    pool.give_back(&one);
    assert!(bound.try_recv().is_err());
    pool.give_back(&two);
    let grant = bound.try_recv().expect("the place that it waited for");
    assert!(next.try_recv().is_err());
    drop(grant);
    assert_eq!(next.try_recv().expect("a place").into_worker().map(|worker| worker.id), Some(two.id));
    assert_eq!((one.in_flight(), two.in_flight(), pool.queued()), (0, 1, 0));
}

#[test]
fn the_oldest_request_comes_first_whatever_it_waits_for() {
    let pool = Pool::new(app(8));
    let only = seated(1, 0);
    pool.admit(Arc::clone(&only));
    let held = now(pool.choose(0, None, Affinity::Any));
    let affinities = [
        Affinity::Worker(WorkerIndex(0)),
        Affinity::Any,
        Affinity::Hash(7),
        Affinity::Worker(WorkerIndex(0)),
        Affinity::Any,
    ];
    let mut waiting: Vec<_> =
        affinities.iter().map(|affinity| later(pool.choose(0, None, *affinity))).collect();
    pool.give_back(&held);
    while !waiting.is_empty() {
        let grant = waiting.remove(0).try_recv().expect("the next");
        assert!(waiting.iter_mut().all(|waiting| waiting.try_recv().is_err()));
        drop(grant);
    }
}

#[test]
fn a_request_bound_to_a_worker_that_is_gone_gets_another_and_then_its_successor() {
    let pool = Pool::new(app(8));
    let (one, two) = (seated(1, 0), seated(2, 1));
    pool.admit(Arc::clone(&one));
    pool.admit(Arc::clone(&two));
    let affinity = Affinity::Worker(WorkerIndex(1));
    let held = now(pool.choose(0, None, affinity));
    let mut waiting = later(pool.choose(0, None, affinity));
    pool.withdraw(held.id);
    assert_eq!(waiting.try_recv().expect("another").into_worker().map(|worker| worker.id), Some(one.id));
    pool.give_back(&one);
    // Two have the index while one replaces the other.
    let (three, four) = (seated(3, 1), seated(4, 1));
    pool.admit(Arc::clone(&three));
    pool.admit(Arc::clone(&four));
    assert_eq!(now(pool.choose(0, None, affinity)).id, four.id);
    pool.withdraw(four.id);
    assert_eq!(now(pool.choose(0, None, affinity)).id, three.id);
}

#[test]
fn a_number_leads_to_the_same_worker_and_few_move_when_one_comes() {
    let pool = Pool::new(app(8));
    for index in 0..4 {
        pool.admit(bounded(index as u64, index, 1_000_000));
    }
    let worker_count = |pool: &Arc<Pool>| -> Vec<WorkerIndex> {
        (0..4_000).map(|hash| now(pool.choose(0, None, Affinity::Hash(hash))).index).collect()
    };
    let before = worker_count(&pool);
    assert_eq!(worker_count(&pool), before);
    for index in 0..4 {
        let count = before.iter().filter(|found| found.0 == index).count();
        assert!((800..1_200).contains(&count), "index {index} has {count} of 4000");
    }
    pool.admit(bounded(9, 4, 1_000_000));
    let moved = worker_count(&pool).iter().zip(&before).filter(|(now, before)| now != before).count();
    assert!((600..1_000).contains(&moved), "{moved} of 4000 moved to one of five");
}

#[test]
fn many_threads_with_affinities_never_exceed_the_bound_while_workers_come_and_go() {
    const TURNS: usize = 5_000;
    let pool = Pool::new(app(10_000));
    let all: Vec<_> = (0..3).map(|index| bounded(index as u64, index, 2)).collect();
    all.iter().for_each(|worker| pool.admit(Arc::clone(worker)));
    let (most, elsewhere, running) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(4));
    std::thread::scope(|scope| {
        for thread in 0..4_usize {
            let (pool, most, elsewhere, running) = (&pool, &most, &elsewhere, &running);
            scope.spawn(move || {
                for turn in 0..TURNS {
                    let affinity = match (thread + turn) % 4 {
                        0 => Affinity::Any,
                        1 => Affinity::Hash(turn as u64),
                        index => Affinity::Worker(WorkerIndex(index - 2)),
                    };
                    let worker = match pool.choose(thread + turn, None, affinity) {
                        Choice::Now(worker) => worker,
                        // Every third client goes away while it waits.
                        Choice::Later(receiver, _) if turn % 3 == 0 => {
                            drop(receiver);
                            continue;
                        }
                        Choice::Later(receiver, _) => {
                            receiver.blocking_recv().expect("a place").into_worker().expect("a worker")
                        }
                        _ => panic!("refused"),
                    };
                    most.fetch_max(worker.in_flight(), Ordering::SeqCst);
                    // WorkerIndex 0 is always there.
                    if affinity == Affinity::Worker(WorkerIndex(0)) && worker.index != WorkerIndex(0) {
                        elsewhere.fetch_add(1, Ordering::SeqCst);
                    }
                    pool.give_back(&worker);
                }
                running.fetch_sub(1, Ordering::SeqCst);
            });
        }
        let mut next = 10;
        let mut successor = Arc::clone(&all[1]);
        while running.load(Ordering::SeqCst) > 0 {
            pool.withdraw(successor.id);
            successor = bounded(next, 1, 2);
            next += 1;
            pool.admit(Arc::clone(&successor));
        }
    });
    assert!(most.into_inner() <= 2);
    assert_eq!(elsewhere.into_inner(), 0);
    assert_eq!(pool.workers().iter().map(|worker| worker.in_flight()).sum::<usize>(), 0);
    assert_eq!(pool.waiting(), 0);
}

#[test]
fn requests_that_wait_for_a_busy_worker_fill_no_queue_for_those_that_find_an_idle_one() {
    for queue in [1, 4] {
        let pool = Pool::new(app(queue));
        let (busy, idle) = (seated(1, 0), seated(2, 1));
        pool.admit(Arc::clone(&busy));
        pool.admit(Arc::clone(&idle));
        let pinned = Affinity::Worker(WorkerIndex(0));
        let held = now(pool.choose(0, None, pinned));
        let mut first = later(pool.choose(0, None, pinned));
        for affinity in [Affinity::Worker(WorkerIndex(1)), Affinity::Any, Affinity::Worker(WorkerIndex(1))] {
            let found = now(pool.choose(0, None, affinity));
            assert_eq!(found.id, idle.id, "{affinity:?} with a queue of {queue}");
            pool.give_back(&found);
        }
        assert!(first.try_recv().is_err());
        pool.give_back(&held);
        assert_eq!(first.try_recv().expect("a place").into_worker().map(|worker| worker.id), Some(busy.id));
    }
}

#[test]
fn a_request_that_waits_for_its_client_makes_room_and_comes_back() {
    let pool = Pool::new(app(2));
    pool.admit(seated(1, 0));
    let first = now(pool.choose(0, None, Affinity::Any));
    let mut second = later(pool.choose(0, None, Affinity::Any));
    pool.give_back(&first);
    let worker = second.try_recv().unwrap().into_worker().unwrap();
    let mut third = later(pool.choose(0, None, Affinity::Any));
    first.reacquire();
    assert_eq!(worker.in_flight(), 2);
    pool.give_back(&worker);
    assert!(third.try_recv().is_err(), "there is one at work");
    pool.give_back(&first);
    assert!(third.try_recv().is_ok());
}

#[test]
fn of_a_full_queue_one_whose_client_has_half_closed_makes_room() {
    let pool = Pool::new(app(2));
    pool.admit(seated(1, 0));
    let first = now(pool.choose(0, None, Affinity::Any));
    let mut half = match pool.choose(0, None, Affinity::Any) {
        Choice::Later(receiver, ticket) => (receiver, ticket),
        _ => panic!("a place"),
    };
    let mut second = later(pool.choose(0, None, Affinity::Any));
    assert!(matches!(pool.choose(0, None, Affinity::Any), Choice::QueueFull));
    pool.half_closed(half.1);
    let _third = later(pool.choose(0, None, Affinity::Any));
    assert!(matches!(half.0.try_recv(), Err(oneshot::error::TryRecvError::Closed)));
    assert!(matches!(pool.choose(0, None, Affinity::Any), Choice::QueueFull), "once only");
    pool.half_closed(half.1);
    assert!(matches!(pool.choose(0, None, Affinity::Any), Choice::QueueFull), "it waits no more");
    pool.give_back(&first);
    assert!(second.try_recv().is_ok());
}

#[test]
fn requests_bound_to_one_worker_leave_half_of_the_queue_to_others() {
    let pool = Pool::new(app(8));
    for index in 0..3 {
        pool.admit(seated(index as u64, index));
        now(pool.choose(0, None, Affinity::Worker(WorkerIndex(index))));
    }
    let waits = |index: usize| match pool.choose(0, None, Affinity::Worker(WorkerIndex(index))) {
        Choice::Later(receiver, _) => Some(receiver),
        Choice::QueueFull => None,
        _ => panic!("a place"),
    };
    let mut pinned: Vec<_> = std::iter::from_fn(|| waits(0)).collect();
    assert_eq!(pinned.len(), 4);
    // Requests bound to other workers share what is left, and leave some of it.
    let others: Vec<_> = std::iter::from_fn(|| waits(1)).collect();
    assert_eq!(others.len(), 2);
    let last = waits(2).expect("a worker without waiting requests has room");
    let any = later(pool.choose(0, None, Affinity::Any));
    assert!(matches!(pool.choose(0, None, Affinity::Any), Choice::QueueFull));
    drop((last, any, others));
    // Those whose client has gone make room here, too.
    pinned.pop();
    assert!(waits(0).is_some());
}

#[test]
fn many_threads_are_never_refused_because_of_those_who_wait_for_one_busy_worker() {
    let pool = Pool::new(app(16));
    let all: Vec<_> = (0..3).map(|index| bounded(index as u64, index, 2)).collect();
    all.iter().for_each(|worker| pool.admit(Arc::clone(worker)));
    let pinned = Affinity::Worker(WorkerIndex(2));
    let held = [now(pool.choose(0, None, pinned)), now(pool.choose(0, None, pinned))];
    let (most, running) = (AtomicUsize::new(0), AtomicUsize::new(4));
    let mut waiting = std::collections::VecDeque::new();
    std::thread::scope(|scope| {
        for thread in 0..4_usize {
            let (pool, most, running) = (&pool, &most, &running);
            scope.spawn(move || {
                for turn in 0..5_000 {
                    let affinity = match (thread + turn) % 3 {
                        0 => Affinity::Any,
                        index => Affinity::Worker(WorkerIndex(index - 1)),
                    };
                    let worker = match pool.choose(thread + turn, None, affinity) {
                        Choice::Now(worker) => worker,
                        Choice::Later(receiver, _) => {
                            receiver.blocking_recv().expect("a place").into_worker().expect("a worker")
                        }
                        _ => panic!("{affinity:?} is refused"),
                    };
                    assert_ne!(worker.index, WorkerIndex(2));
                    most.fetch_max(worker.in_flight(), Ordering::SeqCst);
                    pool.give_back(&worker);
                }
                running.fetch_sub(1, Ordering::SeqCst);
            });
        }
        // Somebody with one cookie asks for more all the time; now and then the first one gives up.
        for turn in 0_u64.. {
            if running.load(Ordering::SeqCst) == 0 {
                break;
            }
            match pool.choose(0, None, pinned) {
                Choice::Later(receiver, _) => waiting.push_back(receiver),
                Choice::QueueFull if turn % 8 == 0 => drop(waiting.pop_front()),
                Choice::QueueFull => {}
                _ => panic!("its slots are taken"),
            }
            assert!(waiting.len() <= 8);
        }
    });
    assert!(most.into_inner() <= 2);
    assert_eq!((all[0].in_flight(), all[1].in_flight()), (0, 0));
    // The requests that waited for it get it in the order in which they came.
    pool.give_back(&held[0]);
    while let Some(mut first) = waiting.pop_front() {
        let grant = first.try_recv().expect("the next");
        assert!(waiting.iter_mut().all(|waiting| waiting.try_recv().is_err()));
        drop(grant);
    }
    assert_eq!((pool.queued(), all[2].in_flight()), (0, 1));
}

#[test]
fn many_threads_never_exceed_the_bound_and_lose_no_request() {
    let pool = Pool::new(app(10_000));
    let workers = [bounded(1, 0, 3), bounded(2, 0, 3)];
    for worker in &workers {
        pool.admit(Arc::clone(worker));
    }
    let most = AtomicUsize::new(0);
    let done = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (pool, workers, most, done) = (&pool, &workers, &most, &done);
            scope.spawn(move || {
                for turn in 0..5_000 {
                    let worker = match pool.choose(thread + turn, None, Affinity::Any) {
                        Choice::Now(worker) => worker,
                        Choice::Later(receiver, _) => {
                            receiver.blocking_recv().expect("a place").into_worker().expect("a worker")
                        }
                        _ => panic!("refused"),
                    };
                    let highest = workers.iter().map(|worker| worker.in_flight()).max();
                    most.fetch_max(highest.unwrap_or(0), Ordering::SeqCst);
                    pool.give_back(&worker);
                    done.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
    });
    assert_eq!(done.into_inner(), 20_000);
    assert!(most.into_inner() <= 3);
    assert_eq!(workers.iter().map(|worker| worker.in_flight()).sum::<usize>(), 0);
    assert_eq!(pool.queued(), 0);
}
