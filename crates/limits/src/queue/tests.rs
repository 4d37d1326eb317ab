//! The queue against a list: nobody is lost, nobody comes before whom he should not, and it is never longer than it may.

use proptest::prelude::*;

use super::*;

const WAIT: Duration = Duration::from_millis(800);

type Receiver = oneshot::Receiver<Decision>;

const PRIORITIES: [Priority; 3] = [Priority::Low, Priority::Normal, Priority::High];

/// One more, and where he listens.
fn join(queue: &mut Queue, priority: Priority, now: Instant) -> (Ticket, Receiver) {
    let (to, from) = oneshot::channel();
    assert!(matches!(queue.make_room(priority, now), Room::Free));
    (queue.push(priority, now, to), from)
}

/// Whether this one was just sent.
fn is_sent(receiver: &mut Receiver, sender: Sender) -> bool {
    let _ = sender.send(Decision::Admitted);
    receiver.try_recv().is_ok()
}

#[test]
fn the_first_who_came_is_the_first() {
    let (mut queue, now) = (Queue::new(8, WAIT), Instant::now());
    let (mut one, mut two) =
        (join(&mut queue, Priority::Normal, now), join(&mut queue, Priority::Normal, now));
    assert!(is_sent(&mut one.1, queue.take_next(now).expect("one")));
    assert!(is_sent(&mut two.1, queue.take_next(now).expect("two")));
    assert!(queue.take_next(now).is_none());
}

#[test]
fn a_higher_priority_comes_first_however_late_it_came() {
    let (mut queue, now) = (Queue::new(8, WAIT), Instant::now());
    let mut low = join(&mut queue, Priority::Low, now);
    let mut normal = join(&mut queue, Priority::Normal, now);
    let mut high = join(&mut queue, Priority::High, now);
    assert!(queue.is_ahead_of(Priority::High) && queue.is_ahead_of(Priority::Low));
    assert!(is_sent(&mut high.1, queue.take_next(now).expect("high")));
    assert!(!queue.is_ahead_of(Priority::High) && queue.is_ahead_of(Priority::Normal));
    assert!(is_sent(&mut normal.1, queue.take_next(now).expect("normal")));
    assert!(is_sent(&mut low.1, queue.take_next(now).expect("low")));
}

#[test]
fn in_a_full_queue_the_newest_of_the_lowest_priority_makes_room() {
    let (mut queue, now) = (Queue::new(3, WAIT), Instant::now());
    let _normal = join(&mut queue, Priority::Normal, now);
    let _older = join(&mut queue, Priority::Low, now);
    let mut newer = join(&mut queue, Priority::Low, now);
    assert!(matches!(queue.make_room(Priority::Low, now), Room::None));
    let Room::InsteadOf(outranked) = queue.make_room(Priority::Normal, now) else { panic!("no room") };
    assert!(is_sent(&mut newer.1, outranked));
    assert_eq!(queue.length(), 2);
    let _high = join(&mut queue, Priority::High, now);
    assert!(matches!(queue.make_room(Priority::High, now), Room::InsteadOf(_)));
    assert!(matches!(queue.make_room(Priority::High, now), Room::Free));
}

#[test]
fn one_whose_client_has_half_closed_makes_room_for_its_like_and_for_no_lower_one() {
    let (mut queue, now) = (Queue::new(3, WAIT), Instant::now());
    let mut half = join(&mut queue, Priority::Normal, now);
    let _normal = join(&mut queue, Priority::Normal, now);
    let _low = join(&mut queue, Priority::Low, now);
    queue.half_closed(half.0);
    assert!(matches!(queue.make_room(Priority::Low, now), Room::None));
    let Room::InsteadOfHalfClosed(waiter) = queue.make_room(Priority::Normal, now) else { panic!("no room") };
    assert!(is_sent(&mut half.1, waiter));
    let again = join(&mut queue, Priority::Normal, now);
    queue.half_closed(again.0);
    assert!(queue.remove(again.0), "it goes");
    let _other = join(&mut queue, Priority::Normal, now);
    assert!(matches!(queue.make_room(Priority::Low, now), Room::None), "it is forgotten");
}

#[test]
fn in_a_queue_that_stands_those_whose_clients_have_half_closed_are_refused_first() {
    let (mut queue, begun) = (Queue::new(8, WAIT), Instant::now());
    let _old = join(&mut queue, Priority::Normal, begun);
    queue.take_stale(begun + WAIT / 2);
    let late = begun + WAIT;
    queue.take_stale(late);
    let mut half = join(&mut queue, Priority::Normal, late);
    let _new = join(&mut queue, Priority::Normal, late);
    queue.half_closed(half.0);
    assert_eq!(queue.classes[Priority::Normal as usize].health, Health::Standing);
    let mut stale = queue.take_stale(late);
    assert!(is_sent(&mut half.1, stale.swap_remove(0)));
}

#[test]
fn a_burst_that_is_served_in_time_is_served_in_its_order() {
    let (mut queue, begun) = (Queue::new(128, WAIT), Instant::now());
    let mut all: Vec<_> = (0..100).map(|_| join(&mut queue, Priority::Normal, begun)).collect();
    // One each four milliseconds: the last one has waited for half of what he may.
    for (number, (_, receiver)) in all.iter_mut().enumerate() {
        let now = begun + Duration::from_millis(4) * u32::try_from(number).unwrap();
        assert!(queue.take_stale(now).is_empty());
        assert!(is_sent(receiver, queue.take_next(now).expect("one")), "{number}");
    }
}

/// A queue in which one comes each so many milliseconds and one is let in each twenty, until so long after the beginning.
fn loaded(each: u64, milliseconds: u64) -> (Queue, Vec<(Ticket, Receiver)>, Instant) {
    let (mut queue, begun) = (Queue::new(4_096, WAIT), Instant::now());
    let (mut all, mut now) = (Vec::new(), begun);
    for milli in (0..milliseconds).step_by(usize::try_from(each).expect("few")) {
        now = begun + Duration::from_millis(milli);
        queue.take_stale(now);
        if let Room::Free = queue.make_room(Priority::Normal, now) {
            all.push(join(&mut queue, Priority::Normal, now));
        }
        if milli % 20 == 0 {
            queue.take_next(now);
        }
    }
    (queue, all, now)
}

#[test]
fn a_queue_that_stands_lets_in_the_newest_and_sends_away_the_old() {
    let (mut queue, mut all, now) = loaded(10, 1_500);
    // Who has waited for more than an eighth of the longest wait is gone.
    let (ages, length) = (queue.ages, queue.length());
    assert_eq!(ages.target, WAIT / 8);
    assert!(length <= 10, "{length} are left of {}", all.len());
    queue.take_next(now);
    let newest = join(&mut queue, Priority::Normal, now);
    all.push(newest);
    let next = queue.take_next(now).expect("the newest");
    assert!(is_sent(&mut all.last_mut().expect("the newest").1, next));
}

#[test]
fn in_a_queue_that_stands_no_more_wait_than_are_let_in_in_time() {
    let (mut queue, _all, now) = loaded(10, 3_000);
    // One each twenty milliseconds, and no more wait than eight.
    assert!(queue.length() <= 8, "{} wait", queue.length());
    let mut more = Vec::new();
    while let Room::Free = queue.make_room(Priority::Normal, now) {
        more.push(join(&mut queue, Priority::Normal, now));
    }
    assert_eq!(queue.length(), 8, "the next one is sent at once");
    assert!(matches!(queue.make_room(Priority::High, now), Room::Free), "that is nothing to a higher one");
    queue.take_next(now);
    assert!(matches!(queue.make_room(Priority::Normal, now), Room::Free));
}

#[test]
fn of_a_flood_nearly_all_are_refused_at_once() {
    let (mut queue, begun) = (Queue::new(128, WAIT), Instant::now());
    let (mut all, mut at_once, mut late) = (Vec::new(), 0, 0);
    for milli in 0..5_000 {
        let now = begun + Duration::from_millis(milli);
        late += queue.take_stale(now).len();
        match queue.make_room(Priority::Normal, now) {
            Room::Free => all.push(join(&mut queue, Priority::Normal, now)),
            Room::InsteadOf(_) | Room::InsteadOfHalfClosed(_) => panic!("all are equal"),
            Room::None => at_once += 1,
        }
        if milli % 20 == 0 {
            queue.take_next(now);
        }
    }
    assert!(at_once > 4_000 && late < 500, "{at_once} at once, {late} late");
}

#[test]
fn a_flood_is_known_by_the_pace_at_which_some_are_let_in() {
    // Four hundred come at once, and then one for each that is let in: the queue does not grow.
    let after = |milliseconds: u64| {
        let (mut queue, begun) = (Queue::new(4_096, WAIT), Instant::now());
        let mut all: Vec<_> = (0..400).map(|_| join(&mut queue, Priority::Normal, begun)).collect();
        for milli in (0..milliseconds).step_by(20) {
            let now = begun + Duration::from_millis(milli);
            queue.take_stale(now);
            queue.take_next(now);
            if let Room::Free = queue.make_room(Priority::Normal, now) {
                all.push(join(&mut queue, Priority::Normal, now));
            }
        }
        queue
    };
    // Seventeen were let in: who comes now would wait for eight seconds.
    assert_eq!(after(345).classes[1].health, Health::Draining);
    // A tenth of a second later it stands, and soon only those wait who will be let in.
    assert_eq!(after(445).classes[1].health, Health::Standing);
    assert!(after(3_000).length() <= 8, "{} wait", after(3_000).length());
}

#[test]
fn twice_what_is_let_in_is_known_before_anybody_waits_for_long() {
    // Four come in the time in which two are let in, so the oldest has waited for half of the time since the beginning.
    let health = |milliseconds| {
        let (mut queue, begun) = (Queue::new(4_096, WAIT), Instant::now());
        let mut all = Vec::new();
        for milli in 0..milliseconds {
            let now = begun + Duration::from_millis(milli);
            queue.take_stale(now);
            if let Room::Free = queue.make_room(Priority::Normal, now) {
                all.push(join(&mut queue, Priority::Normal, now));
            }
            if milli % 2 == 0 {
                queue.take_next(now);
            }
        }
        queue.classes[1].health
    };
    // At 200 ms the oldest is as old as the target, and 200 ms later it has grown for long enough.
    assert_eq!((health(395), health(410)), (Health::Draining, Health::Standing));
}

#[test]
fn requests_that_come_within_a_moment_are_served_in_their_order() {
    let (mut queue, begun) = (Queue::new(4_096, WAIT), Instant::now());
    let mut all = Vec::new();
    // Four hundred in 250 ms, and one is let in each millisecond from the first on: the last waits for 150 ms.
    for milli in 0..400_u32 {
        let now = begun + Duration::from_millis(u64::from(milli));
        queue.take_stale(now);
        if milli < 250 {
            for _ in 0..if milli % 5 < 3 { 2 } else { 1 } {
                all.push(join(&mut queue, Priority::Normal, now));
            }
        }
        let next = queue.take_next(now).expect("one waits");
        let number = usize::try_from(milli).expect("few");
        assert!(is_sent(&mut all[number].1, next), "{milli}");
    }
    assert_eq!((all.len(), queue.length()), (400, 0));
}

#[test]
fn a_burst_that_is_answered_in_time_is_no_flood() {
    let (mut queue, begun) = (Queue::new(4_096, WAIT), Instant::now());
    let mut all = Vec::new();
    // Eight hundred come within a tenth of a second, ten are let in each ten milliseconds, in one go.
    for milli in 0..780 {
        let now = begun + Duration::from_millis(milli);
        queue.take_stale(now);
        for _ in 0..if milli < 100 { 8 } else { 0 } {
            all.push(join(&mut queue, Priority::Normal, now));
        }
        if milli % 10 == 9 {
            (0..10).for_each(|_| drop(queue.take_next(now)));
        }
    }
    assert_eq!((all.len(), queue.length()), (800, 20));
}

#[test]
fn a_queue_that_was_empty_is_in_order_again_when_nobody_was_refused_for_a_while() {
    let (mut queue, _all, now) = loaded(10, 1_500);
    while queue.take_next(now).is_some() {}
    let _older = join(&mut queue, Priority::Normal, now);
    let mut newer = join(&mut queue, Priority::Normal, now);
    assert!(is_sent(&mut newer.1, queue.take_next(now).expect("the newest, as before")));
    while queue.take_next(now).is_some() {}
    let now = now + WAIT / 2;
    let mut one = join(&mut queue, Priority::Normal, now);
    let _two = join(&mut queue, Priority::Normal, now);
    assert!(is_sent(&mut one.1, queue.take_next(now).expect("one")));
}

#[test]
fn the_last_one_is_not_sent_away_however_old() {
    let (mut queue, _all, now) = loaded(10, 1_500);
    let much_later = now + WAIT;
    while !queue.take_stale(much_later).is_empty() {}
    assert_eq!(queue.length(), 1);
    assert!(queue.take_next(much_later).is_some());
}

#[test]
fn that_the_low_ones_stand_is_nothing_to_the_high_ones() {
    let (mut queue, begun) = (Queue::new(8, WAIT), Instant::now());
    let _low = join(&mut queue, Priority::Low, begun);
    for milliseconds in [200, 700] {
        queue.take_stale(begun + Duration::from_millis(milliseconds));
    }
    let now = begun + Duration::from_millis(700);
    let mut one = join(&mut queue, Priority::High, now);
    let mut two = join(&mut queue, Priority::High, now);
    assert!(is_sent(&mut one.1, queue.take_next(now).expect("one")));
    assert!(is_sent(&mut two.1, queue.take_next(now).expect("two")));
}

#[test]
fn a_queue_full_of_departed_clients_is_an_empty_one() {
    let (mut queue, now) = (Queue::new(10_000, WAIT), Instant::now());
    let all: Vec<_> = (0..10_000).map(|_| join(&mut queue, Priority::Normal, now)).collect();
    assert!(matches!(queue.make_room(Priority::Normal, now), Room::None));
    for (ticket, _) in &all {
        assert!(queue.remove(*ticket));
        assert!(!queue.remove(*ticket));
    }
    assert_eq!(queue.length(), 0);
    assert!(queue.take_next(now).is_none() && queue.take_stale(now).is_empty());
    assert!(matches!(queue.make_room(Priority::Low, now), Room::Free));
}

/// What happens to a queue.
#[derive(Debug, Clone)]
enum Event {
    Joins(Priority),
    /// Who waits as the so manieth goes away.
    Goes(usize),
    OneIsLetIn,
    OldAreSentAway,
    Passes(u64),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => (0..3usize).prop_map(|number| Event::Joins(PRIORITIES[number])),
        1 => any::<usize>().prop_map(Event::Goes),
        3 => Just(Event::OneIsLetIn),
        1 => Just(Event::OldAreSentAway),
        2 => (0..300u64).prop_map(Event::Passes),
    ]
}

/// One who waits, as the test knows him.
struct Known {
    ticket: Ticket,
    priority: Priority,
    since: Instant,
    receiver: Receiver,
}

/// Who was sent, out of all that wait. Nobody else was.
fn sent(all: &mut Vec<Known>, sender: Sender) -> Known {
    sender.send(Decision::Admitted).expect("he listens");
    let place = all.iter_mut().position(|known| known.receiver.try_recv().is_ok());
    all.remove(place.expect("one who waits"))
}

proptest! {
    #[test]
    fn whatever_happens_nobody_is_lost_and_nobody_is_overtaken_by_a_lower_one(
        length_max in 1..12usize,
        events in prop::collection::vec(event(), 1..200),
    ) {
        let (mut queue, mut now) = (Queue::new(length_max, WAIT), Instant::now());
        let mut all: Vec<Known> = Vec::new();
        for event in events {
            match event {
                Event::Joins(priority) => {
                    let room = queue.make_room(priority, now);
                    let is_full = all.len() == length_max;
                    match room {
                        Room::Free => prop_assert!(!is_full),
                        Room::InsteadOfHalfClosed(_) => prop_assert!(false, "all are open"),
                        Room::InsteadOf(outranked) => {
                            prop_assert!(is_full);
                            let lowest = all.iter().map(|known| known.priority).min().expect("some wait");
                            let newest = all.iter().filter(|known| known.priority == lowest).map(|known| known.ticket).max();
                            let gone = sent(&mut all, outranked);
                            prop_assert!(gone.priority == lowest && gone.priority < priority);
                            prop_assert_eq!(Some(gone.ticket), newest);
                        }
                        Room::None => {
                            let is_last = all.iter().all(|known| known.priority >= priority);
                            let stands = queue.classes[priority as usize].health == Health::Standing;
                            prop_assert!((is_full && is_last) || stands);
                            continue;
                        }
                    }
                    let (to, receiver) = oneshot::channel();
                    let ticket = queue.push(priority, now, to);
                    all.push(Known { ticket, priority, since: now, receiver });
                }
                Event::Goes(number) if !all.is_empty() => {
                    let gone = all.remove(number % all.len());
                    prop_assert!(queue.remove(gone.ticket));
                }
                Event::Goes(_) => {}
                Event::OneIsLetIn => match queue.take_next(now) {
                    None => prop_assert!(all.is_empty()),
                    Some(next) => {
                        let highest = all.iter().map(|known| known.priority).max();
                        let next = sent(&mut all, next);
                        prop_assert_eq!(Some(next.priority), highest);
                        let same = || all.iter().filter(|known| known.priority == next.priority);
                        let is_oldest = same().all(|known| known.ticket > next.ticket);
                        let is_newest = same().all(|known| known.ticket < next.ticket);
                        prop_assert!(is_oldest || is_newest);
                    }
                },
                Event::OldAreSentAway => {
                    for sender in queue.take_stale(now) {
                        let gone = sent(&mut all, sender);
                        prop_assert!(now - gone.since > WAIT / 8);
                        prop_assert!(all.iter().any(|known| known.priority == gone.priority), "the last one stays");
                    }
                }
                Event::Passes(milliseconds) => now += Duration::from_millis(milliseconds),
            }
            prop_assert_eq!(queue.length(), all.len());
            prop_assert!(queue.length() <= length_max);
            for priority in PRIORITIES {
                let expected = all.iter().any(|known| known.priority >= priority);
                prop_assert_eq!(queue.is_ahead_of(priority), expected);
            }
        }
        // Whoever is left is let in in the end.
        while let Some(next) = queue.take_next(now) {
            sent(&mut all, next);
        }
        prop_assert!(all.is_empty());
    }
}
