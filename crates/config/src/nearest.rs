//! The nearest known word to one that is not known. Knows letters only, never what words mean.

use crate::limits::NEAREST_WORD_CHARACTERS_MAX;

/// The known word that most likely was meant, if one is near enough.
pub(crate) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let length = word.chars().count();
    if length > NEAREST_WORD_CHARACTERS_MAX {
        return None;
    }
    // A third of the word may be wrong: one slip in a short word, three in a long one.
    let allowed = (length / 3).clamp(1, 3);
    known
        .into_iter()
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(slips, _)| *slips <= allowed)
        .min_by_key(|(slips, _)| *slips)
        .map(|(_, candidate)| candidate)
}

/// Letters inserted, left out, replaced or swapped with their neighbour
/// (Damerau-Levenshtein, each stretch edited once).
fn distance(left: &str, right: &str) -> usize {
    let left: Vec<char> = left.to_lowercase().chars().collect();
    let right: Vec<char> = right.to_lowercase().chars().collect();
    let width = right.len() + 1;
    let mut table = vec![0_usize; (left.len() + 1) * width];
    let cell = |row: usize, column: usize| row * width + column;
    for row in 0..=left.len() {
        for column in 0..=right.len() {
            if row == 0 || column == 0 {
                table[cell(row, column)] = row + column;
                continue;
            }
            let same = left[row - 1] == right[column - 1];
            let mut best = (table[cell(row - 1, column)] + 1)
                .min(table[cell(row, column - 1)] + 1)
                .min(table[cell(row - 1, column - 1)] + usize::from(!same));
            let swapped = row > 1
                && column > 1
                && left[row - 1] == right[column - 2]
                && left[row - 2] == right[column - 1];
            if swapped {
                best = best.min(table[cell(row - 2, column - 2)] + 1);
            }
            table[cell(row, column)] = best;
        }
    }
    table[cell(left.len(), right.len())]
}

#[cfg(test)]
mod tests {
    use super::{distance, nearest};

    #[test]
    fn a_slip_of_the_fingers_finds_its_word() {
        let known = ["file_server", "root", "redir", "respond", "header"];
        for (word, expected) in [
            ("file_sever", Some("file_server")),
            ("fileserver", Some("file_server")),
            ("orot", Some("root")),
            ("rdir", Some("redir")),
            ("headers", Some("header")),
            ("banana", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, known), expected, "{word}");
        }
    }

    #[test]
    fn neighbours_that_changed_places_count_once() {
        assert_eq!(distance("ab", "ba"), 1);
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
