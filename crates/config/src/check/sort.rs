//! The stable sort of Go's library, step for step: insertion into runs of twenty, then SymMerge
//! (Kim and Kutzner, "Stable Minimum Storage Merging by Symmetric Comparisons", 2004).
//!
//! Why not the sort of our own library: by Caddy's comparison a route without a single path equals
//! every route that has one, though those differ among one another. What comes out depends on which
//! pairs are compared, so the same order takes the same comparisons. Knows nothing of routes.

/// Items of a run that is sorted by insertion. Another number would be another order.
const RUN: usize = 20;

/// Sorts as Go's `sort.SliceStable` does, also where `less` contradicts itself.
pub(super) fn sort_like_go<T>(items: &mut [T], less: &impl Fn(&T, &T) -> bool) {
    for run in items.chunks_mut(RUN) {
        insert_each(run, less);
    }
    let mut run = RUN;
    while run < items.len() {
        for pair in items.chunks_mut(2 * run) {
            if pair.len() > run {
                merge(pair, run, less);
            }
        }
        run *= 2;
    }
}

fn insert_each<T>(run: &mut [T], less: &impl Fn(&T, &T) -> bool) {
    for end in 1..run.len() {
        let mut at = end;
        while at > 0 && less(&run[at], &run[at - 1]) {
            run.swap(at, at - 1);
            at -= 1;
        }
    }
}

/// Merges `items[..middle]` and `items[middle..]`, both sorted and neither empty.
fn merge<T>(items: &mut [T], middle: usize, less: &impl Fn(&T, &T) -> bool) {
    let length = items.len();
    if middle == 1 {
        let place = first_where(1, length, |at| !less(&items[at], &items[0]));
        items[..place].rotate_left(1);
        return;
    }
    if length - middle == 1 {
        let place = first_where(0, middle, |at| less(&items[middle], &items[at]));
        items[place..].rotate_right(1);
        return;
    }
    let half = length / 2;
    let sum = half + middle;
    let (from, to) = if middle > half { (sum - length, half) } else { (0, middle) };
    let start = first_where(from, to, |at| less(&items[sum - 1 - at], &items[at]));
    let end = sum - start;
    if start < middle && middle < end {
        items[start..end].rotate_left(middle - start);
    }
    let (left, right) = items.split_at_mut(half);
    if 0 < start && start < half {
        merge(left, start, less);
    }
    if half < end && end < length {
        merge(right, end - half, less);
    }
}

/// By halving: the first of `from..to` that fits, or `to`.
fn first_where(mut from: usize, mut to: usize, fits: impl Fn(usize) -> bool) -> usize {
    while from < to {
        let middle = usize::midpoint(from, to);
        if fits(middle) {
            to = middle;
        } else {
            from = middle + 1;
        }
    }
    from
}

#[cfg(test)]
mod tests {
    use super::sort_like_go;

    #[test]
    fn equal_items_keep_their_order() {
        let mut state = 7_u32;
        for length in [0, 1, 2, 19, 20, 21, 40, 41, 100, 1_000] {
            let mut items: Vec<(u32, usize)> = (0..length)
                .map(|index| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    (state >> 28, index)
                })
                .collect();
            let mut expected = items.clone();
            expected.sort_by_key(|item| item.0);
            sort_like_go(&mut items, &|left, right| left.0 < right.0);
            assert_eq!(items, expected, "{length} items");
        }
    }
}
