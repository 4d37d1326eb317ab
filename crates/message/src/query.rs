//! Changes of a query's parameters.
//!
//! Names and values are read as matchers and placeholders read them. What does not change stays as it was sent, in its
//! order. What two readers could take for different parameters goes, as in Caddy: a pair with a semicolon, which
//! separates pairs for some, and one with a broken escape.

use std::borrow::Cow;

use crate::uri::{decode_query, escape_query, percent_decode};

/// The parameters of a query, in their order.
#[derive(Debug, Default)]
pub struct Parameters<'q> {
    pairs: Vec<Pair<'q>>,
}

#[derive(Debug)]
struct Pair<'q> {
    /// Without escapes.
    name: Cow<'q, [u8]>,
    /// The name as it is sent.
    sent_name: Cow<'q, [u8]>,
    /// The value as it is sent; `None` without an equals sign.
    sent_value: Option<Cow<'q, [u8]>>,
}

impl<'q> Parameters<'q> {
    /// Reads a query.
    pub fn read(query: &'q [u8]) -> Self {
        let has_one_reading =
            |pair: &&[u8]| !pair.is_empty() && !pair.contains(&b';') && percent_decode(pair).is_some();
        let pairs = query.split(|byte| *byte == b'&').filter(has_one_reading).map(|pair| {
            let mut halves = pair.splitn(2, |byte| *byte == b'=');
            let name = halves.next().unwrap_or_default();
            Pair {
                name: decode_query(name),
                sent_name: Cow::Borrowed(name),
                sent_value: halves.next().map(Cow::Borrowed),
            }
        });
        Self { pairs: pairs.collect() }
    }

    /// Gives the values of `from` to `to`, which loses its own. Without `from` nothing changes.
    pub fn rename(&mut self, from: &[u8], to: &[u8]) {
        if from == to || !self.pairs.iter().any(|pair| *pair.name == *from) {
            return;
        }
        self.remove(to);
        for pair in self.pairs.iter_mut().filter(|pair| *pair.name == *from) {
            pair.name = Cow::Owned(to.to_vec());
            pair.sent_name = Cow::Owned(escape_query(to));
        }
    }

    /// Replaces every value of a parameter by one, in the place of the first.
    pub fn set(&mut self, name: &[u8], value: &[u8]) {
        let Some(first) = self.pairs.iter().position(|pair| *pair.name == *name) else {
            return self.add(name, value);
        };
        let mut index = 0;
        self.pairs.retain(|pair| {
            index += 1;
            *pair.name != *name || index == first + 1
        });
        if let Some(pair) = self.pairs.get_mut(first) {
            pair.sent_value = Some(Cow::Owned(escape_query(value)));
        }
    }

    /// Adds a value behind all others.
    pub fn add(&mut self, name: &[u8], value: &[u8]) {
        self.pairs.push(Pair {
            name: Cow::Owned(name.to_vec()),
            sent_name: Cow::Owned(escape_query(name)),
            sent_value: Some(Cow::Owned(escape_query(value))),
        });
    }

    /// Changes the values of one parameter, or of all. What `change` makes of a value without escapes replaces it; `None`
    /// leaves it as it was sent.
    ///
    /// # Errors
    /// The first one of `change`.
    pub fn change_values<E>(
        &mut self,
        name: Option<&[u8]>,
        mut change: impl FnMut(&[u8]) -> Result<Option<Vec<u8>>, E>,
    ) -> Result<(), E> {
        for pair in self.pairs.iter_mut().filter(|pair| name.is_none_or(|name| *pair.name == *name)) {
            let value = pair.sent_value.as_deref().unwrap_or_default();
            if let Some(changed) = change(&decode_query(value))? {
                pair.sent_value = Some(Cow::Owned(escape_query(&changed)));
            }
        }
        Ok(())
    }

    /// Removes a parameter with all its values.
    pub fn remove(&mut self, name: &[u8]) {
        self.pairs.retain(|pair| *pair.name != *name);
    }

    /// The query, without a question mark.
    pub fn write(&self) -> Vec<u8> {
        let mut query = Vec::new();
        for pair in &self.pairs {
            if !query.is_empty() {
                query.push(b'&');
            }
            query.extend_from_slice(&pair.sent_name);
            if let Some(value) = &pair.sent_value {
                query.push(b'=');
                query.extend_from_slice(value);
            }
        }
        query
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::uri::query_values;

    proptest! {
        #[test]
        fn a_changed_query_is_read_alike_by_matchers_and_placeholders(
            query in "[abA%=&;+16]{0,24}",
            name in "[abA%=&;+]{0,3}",
            value in "[ab%=&;+ \n]{0,4}",
        ) {
            let (name, value) = (name.as_bytes(), value.as_bytes());
            let mut parameters = Parameters::read(query.as_bytes());
            parameters.set(name, value);
            parameters.add(name, value);
            let written = parameters.write();
            prop_assert_eq!(query_values(&written, name).collect::<Vec<_>>(), [value, value]);
            prop_assert_eq!(Parameters::read(&written).write(), written);
            parameters.remove(name);
            prop_assert_eq!(query_values(&parameters.write(), name).count(), 0);
        }
    }

    #[track_caller]
    fn check(query: &str, change: impl FnOnce(&mut Parameters<'_>), expected: &str) {
        let mut parameters = Parameters::read(query.as_bytes());
        change(&mut parameters);
        assert_eq!(String::from_utf8(parameters.write()).unwrap(), expected, "{query}");
    }

    #[test]
    fn what_does_not_change_stays_as_it_was_sent() {
        check("b=%41+c&a&b=&=x&c=1=2", |_| {}, "b=%41+c&a&b=&=x&c=1=2");
        check("&&a=1&&", |_| {}, "a=1");
        check("", |_| {}, "");
    }

    #[test]
    fn parameters_with_two_readings_go() {
        check("a=1;b=2&c=3&d=%zz&%4=1&e=%3b", |_| {}, "c=3&e=%3b");
        check("x=1;a=2&%61=3", |parameters| parameters.remove(b"a"), "");
    }

    #[test]
    fn a_parameter_is_found_however_its_name_is_spelled() {
        check("%61=1&b=2&a=3", |parameters| parameters.remove(b"a"), "b=2");
        check("b=0&%61=1&c=2&a=3", |parameters| parameters.set(b"a", b"x y&z"), "b=0&%61=x+y%26z&c=2");
        check("c+d=1", |parameters| parameters.set(b"c d", b""), "c+d=");
        check("a", |parameters| parameters.set(b"a", b"1"), "a=1");
        check("b=1", |parameters| parameters.set(b"a", b"\xff\r\n#"), "b=1&a=%FF%0D%0A%23");
        check("a=1", |parameters| parameters.add(b"a", b"2"), "a=1&a=2");
    }

    #[test]
    fn a_renamed_parameter_keeps_its_values_and_replaces_the_other() {
        check("a=%31&b=2&a=3", |parameters| parameters.rename(b"a", b"b"), "b=%31&b=3");
        check("b=2", |parameters| parameters.rename(b"a", b"b"), "b=2");
        check("a=1", |parameters| parameters.rename(b"a", b"a"), "a=1");
        check("a=1", |parameters| parameters.rename(b"a", b"x=y&z"), "x%3Dy%26z=1");
    }

    #[test]
    fn values_are_changed_without_their_escapes() {
        let double = |value: &[u8]| Ok::<_, ()>((value == b"a&").then(|| value.repeat(2)));
        let one = |parameters: &mut Parameters<'_>| parameters.change_values(Some(b"x"), double).unwrap();
        check("x=a%26&y=a%26&x=%61", one, "x=a%26a%26&y=a%26&x=%61");
        let all = |parameters: &mut Parameters<'_>| parameters.change_values(None, double).unwrap();
        check("x=a%26&y=a%26", all, "x=a%26a%26&y=a%26a%26");
    }
}
