//! Lists of an index that are bounded while they are read: of a file that nobody vouches for, an index of 256 MiB could
//! otherwise name so many empty things that they take gigabytes before anybody counts them.
//!
//! Owns how many; what the things say is for `sound.rs`.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};

use crate::index::Tree;
use crate::limits::ENTRIES_MAX;

/// Things of a list that are made room for before they are there.
const ROOM: usize = 1024;

/// A list of at most `MAX`.
pub(crate) fn list<'de, D, T, const MAX: usize>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    // Each counts for one.
    deserializer.deserialize_seq(Bounded { max: MAX, weigh: |_| 1, kind: PhantomData })
}

/// Trees whose files and folders together are no more than a pack may hold.
pub(crate) fn trees<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Tree>, D::Error> {
    // A pack may hold so many, and as many trees as have none: nobody counts better than `sound.rs`.
    let weigh = |tree: &Tree| tree.files.len() + tree.folders.len() + 1;
    deserializer.deserialize_seq(Bounded { max: 2 * ENTRIES_MAX, weigh, kind: PhantomData })
}

struct Bounded<T> {
    max: usize,
    weigh: fn(&T) -> usize,
    kind: PhantomData<T>,
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for Bounded<T> {
    type Value = Vec<T>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "a list of at most {}", self.max)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Vec<T>, A::Error> {
        // What the list says of its length is only that: said.
        let mut all = Vec::with_capacity(sequence.size_hint().unwrap_or(0).min(ROOM));
        let mut left = self.max;
        while let Some(next) = sequence.next_element()? {
            left = left
                .checked_sub((self.weigh)(&next))
                .ok_or_else(|| A::Error::custom(format_args!("a list of more than {}", self.max)))?;
            all.push(next);
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use serde::de::value::{Error, SeqDeserializer};

    use super::*;

    #[test]
    fn a_list_that_never_ends_is_given_up_at_its_bound() {
        let mut read = 0;
        let endless = std::iter::repeat_with(|| {
            read += 1;
            0_u8
        });
        let error = list::<_, u8, 5>(SeqDeserializer::<_, Error>::new(endless)).expect_err("too many");
        assert_eq!(error.to_string(), "a list of more than 5");
        assert_eq!(read, 6, "no more than the first that is too many");
        let five = SeqDeserializer::<_, Error>::new([1_u8, 2, 3, 4, 5].into_iter());
        assert_eq!(list::<_, u8, 5>(five).expect("as many as may be"), [1, 2, 3, 4, 5]);
    }
}
