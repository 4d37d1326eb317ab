//! The table alone: keys are numbers, time is handed over.

use std::collections::HashMap;
use std::time::Duration;

use proptest::prelude::*;

use super::*;

const SECOND: u64 = 1_000_000_000;

/// Spread as a hash is, and no two of them the same.
fn key(number: u64) -> u64 {
    number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn is_admitted(table: &Table, number: u64, now: u64, rate: Rate) -> bool {
    matches!(table.check(key(number), now, rate), Verdict::Admitted { .. })
}

/// Every key is found where it is, and nothing else is.
fn check(table: &Table) {
    for part in &table.parts {
        let mut part = lock(part);
        assert!(part.known.len() <= table.keys_max, "{} of {}", part.known.len(), table.keys_max);
        assert_eq!(part.known.len(), part.places.len());
        let keys: Vec<u64> = part.known.iter().map(|known| known.key).collect();
        assert!(keys.iter().all(|key| part.find(*key).is_some_and(|known| known.key == *key)));
    }
}

#[test]
fn a_table_never_has_more_keys_than_it_may() {
    let rate = Rate::new(1, Duration::from_secs(3_600), 1);
    for keys_max in [0, 1, 2, 3, 255, 256, 257, 511, 512, 1_000, 5_000] {
        let table = Table::new(keys_max);
        for number in 0..u64::from(keys_max) * 3 + 10 {
            assert!(is_admitted(&table, number, SECOND, rate), "a new key is let in");
        }
        let (keys, bound) = (table.counts().keys, u64::from(keys_max.max(1)));
        assert!(keys <= bound && keys >= bound - bound / 8, "{keys} of {keys_max}");
        check(&table);
    }
}

#[test]
fn keys_that_are_full_again_give_way_first_and_nothing_is_lost() {
    let rate = Rate::new(1, Duration::from_secs(1), 2);
    let table = Table::new(1_000);
    let mut now = SECOND;
    for round in 0..20 {
        for number in 0..500 {
            assert!(is_admitted(&table, round * 500 + number, now, rate));
        }
        now += SECOND;
    }
    let counts = table.counts();
    assert_eq!(counts.evicted, 0);
    assert!(counts.keys < 1_000, "it stops growing: {}", counts.keys);
    check(&table);
}

#[test]
fn fifty_thousand_new_keys_a_second_neither_grow_the_table_nor_slow_others_nor_free_who_is_held_back() {
    let rate = Rate::new(1, Duration::from_secs(1), 5);
    let table = Table::new(10_000);
    let (steady, greedy) = (u64::MAX - 10, u64::MAX - 11);
    let (mut rejected, mut greedy_admitted, mut bytes) = (0, 0, 0);
    for number in 0..50_000 * 20 {
        let now = SECOND + number * (SECOND / 50_000);
        rejected += u32::from(!is_admitted(&table, number, now, rate));
        // Once a second, as it may.
        if number % 50_000 == 0 {
            rejected += u32::from(!is_admitted(&table, steady, now, rate));
        }
        // A thousand times a second.
        if number % 50 == 0 {
            greedy_admitted += u32::from(is_admitted(&table, greedy, now, rate));
        }
        match number {
            50_000 => bytes = table.bytes(),
            _ if number % 50_000 == 0 && number > 0 => {
                // Removed keys leave marks, so the index may have doubled once more.
                assert!(table.bytes() <= bytes * 2, "{} bytes, {bytes} before", table.bytes());
            }
            _ => {}
        }
    }
    assert_eq!(rejected, 0);
    assert!((5..=5 + 20).contains(&greedy_admitted), "{greedy_admitted} were let in");
    let counts = table.counts();
    assert!(counts.keys <= 10_000 && counts.evicted > 0, "{counts:?}");
    assert!(bytes < 10_000 * 64, "{bytes} bytes");
    check(&table);
}

#[test]
fn threads_that_ask_under_one_key_are_admitted_as_often_as_one() {
    let rate = Rate::new(1, Duration::from_secs(3_600), 1_000);
    let table = Table::new(100);
    let admitted: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| (0..1_000).filter(|_| is_admitted(&table, 7, SECOND, rate)).count()))
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(admitted, 1_000);
    assert_eq!(table.counts(), Counts { admitted: 1_000, rejected: 3_000, evicted: 0, keys: 1 });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn with_room_for_all_it_decides_as_a_map_would(
        steps in prop::collection::vec((0_u64..40, 0_u64..300_000_000), 1..400),
        burst in 1_u32..4,
    ) {
        let rate = Rate::new(2, Duration::from_secs(1), burst);
        let (table, mut map, mut now) = (Table::new(40), HashMap::new(), SECOND);
        for (number, gap) in steps {
            now += gap;
            let verdict = table.check(key(number), now, rate);
            prop_assert_eq!(verdict, rate.judge(map.get(&number).copied().unwrap_or(0), now));
            if let Verdict::Admitted { full_at } = verdict {
                map.insert(number, full_at);
                prop_assert_eq!(table.full_at(key(number)), full_at);
            }
        }
        check(&table);
    }

    #[test]
    fn whatever_comes_it_stays_whole_and_no_key_is_rejected_that_asks_seldom(
        steps in prop::collection::vec((0_u64..2_000, 0_u64..5_000_000), 1..2_000),
        keys_max in 1_u32..600,
    ) {
        let rate = Rate::new(1, Duration::from_secs(1), 1);
        let (table, mut last, mut now) = (Table::new(keys_max), HashMap::new(), SECOND);
        for (number, gap) in steps {
            now += gap;
            let is_admitted = is_admitted(&table, number, now, rate);
            if last.get(&number).is_none_or(|last| now - last >= SECOND) {
                prop_assert!(is_admitted);
            }
            if is_admitted {
                last.insert(number, now);
            }
        }
        check(&table);
    }
}
