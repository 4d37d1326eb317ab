//! How many bytes of bodies may be on their way, in one direction of a stream or a connection.
//!
//! Owns the two sides of that count. Heads and trailers are not counted (docs/worker-protocol.md, Credits).

use crate::Broken;

/// The sender's side: what may still be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    left: u32,
}

/// The receiver's side: what may still come, and what is to be credited.
///
/// Invariant: what may still come, what has come and was not consumed, and what was consumed and is not
/// credited yet are together the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Meter {
    window: u32,
    /// May still come.
    left: u32,
    /// Consumed and not credited yet: less than `worth_a_frame`.
    pending: u32,
    worth_a_frame: u32,
}

/// A stream's credit is given once half of its window was consumed: the other half lets the sender go on in
/// the meantime, and frames stay few.
const PART_OF_STREAM: u32 = 2;

/// A connection's credit is given after a sixteenth of its window. Bodies that nobody reads hold a part of the
/// window for as long as they like, and the more is held back the fewer of them stop all others of the connection.
const PART_OF_CONNECTION: u32 = 16;

impl Window {
    /// A window of so many bytes.
    pub const fn new(bytes: u32) -> Window {
        Window { left: bytes }
    }

    /// Bytes that may be sent now.
    pub const fn left(&self) -> u32 {
        self.left
    }

    /// Takes what may be sent of `wanted` bytes.
    #[must_use = "these bytes count as sent"]
    pub fn take(&mut self, wanted: usize) -> usize {
        let granted = u32::try_from(wanted).unwrap_or(u32::MAX).min(self.left);
        self.left -= granted;
        granted as usize
    }

    /// Takes from this window and from `other` (a stream's and its connection's) what both allow of `wanted` bytes.
    #[must_use = "these bytes count as sent"]
    pub fn take_with(&mut self, other: &mut Window, wanted: usize) -> usize {
        let granted = u32::try_from(wanted).unwrap_or(u32::MAX).min(self.left).min(other.left);
        self.left -= granted;
        other.left -= granted;
        granted as usize
    }

    /// The other side gave credit.
    ///
    /// # Errors
    /// The window would be more than four bytes can say.
    pub fn add(&mut self, bytes: u32) -> Result<(), Broken> {
        self.left = self.left.checked_add(bytes).ok_or(Broken::CreditOverflow)?;
        Ok(())
    }
}

impl Meter {
    /// A stream's window of so many bytes, all of which may come.
    pub const fn new(window: u32) -> Meter {
        Meter { window, left: window, pending: 0, worth_a_frame: window.div_ceil(PART_OF_STREAM) }
    }

    /// A connection's window of so many bytes, all of which may come.
    pub const fn for_connection(window: u32) -> Meter {
        Meter { window, left: window, pending: 0, worth_a_frame: window.div_ceil(PART_OF_CONNECTION) }
    }

    /// Bytes came.
    ///
    /// # Errors
    /// They are more than was granted.
    pub fn received(&mut self, bytes: usize) -> Result<(), Broken> {
        let bytes = u32::try_from(bytes).map_err(|_| Broken::CreditExceeded)?;
        self.left = self.left.checked_sub(bytes).ok_or(Broken::CreditExceeded)?;
        Ok(())
    }

    /// Bytes that came were passed on, or counted for nothing. Returns the credit to give, once it is worth
    /// a frame: half of a stream's window, a sixteenth of a connection's.
    pub fn consumed(&mut self, bytes: usize) -> Option<u32> {
        let unread = self.unread();
        debug_assert!(bytes <= unread as usize, "more bytes were consumed than came");
        self.pending += u32::try_from(bytes).unwrap_or(u32::MAX).min(unread);
        if self.pending == 0 || self.pending < self.worth_a_frame {
            return None;
        }
        let credit = std::mem::take(&mut self.pending);
        self.left += credit;
        Some(credit)
    }

    /// Bytes that came and were not consumed.
    pub const fn unread(&self) -> u32 {
        self.window - self.left - self.pending
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_window_grants_what_is_left_of_it() {
        let mut window = Window::new(10);
        assert_eq!([window.take(4), window.take(7), window.take(1)], [4, 6, 0]);
        assert_eq!(window.add(3), Ok(()));
        assert_eq!((window.left(), window.take(usize::MAX)), (3, 3));
    }

    #[test]
    fn a_streams_window_and_its_connections_grant_the_same() {
        let (mut stream, mut connection) = (Window::new(10), Window::new(6));
        assert_eq!(stream.take_with(&mut connection, 100), 6);
        assert_eq!((stream.left(), connection.left()), (4, 0));
        assert_eq!(stream.take_with(&mut connection, 1), 0);
    }

    #[test]
    fn credit_beyond_four_bytes_is_refused() {
        let mut window = Window::new(1);
        assert_eq!(window.add(u32::MAX - 1), Ok(()));
        assert_eq!(window.add(1), Err(Broken::CreditOverflow));
        assert_eq!(window.left(), u32::MAX);
    }

    #[test]
    fn more_than_was_granted_is_refused() {
        let mut meter = Meter::new(10);
        assert_eq!(meter.received(10), Ok(()));
        assert_eq!(meter.received(1), Err(Broken::CreditExceeded));
        assert_eq!(meter.received(usize::MAX), Err(Broken::CreditExceeded));
        assert_eq!(meter.received(0), Ok(()));
        assert_eq!(Meter::new(0).received(1), Err(Broken::CreditExceeded));
    }

    #[test]
    fn credit_is_given_once_half_of_the_window_is_consumed() {
        let mut meter = Meter::new(9);
        assert_eq!(meter.received(9), Ok(()));
        assert_eq!([meter.consumed(4), meter.consumed(1), meter.consumed(0)], [None, Some(5), None]);
        assert_eq!((meter.unread(), meter.received(6)), (4, Err(Broken::CreditExceeded)));
        assert_eq!(Meter::new(0).consumed(0), None);
        let mut one = Meter::new(1);
        assert_eq!((one.received(1), one.consumed(1)), (Ok(()), Some(1)));
    }

    #[test]
    fn bodies_that_nobody_reads_leave_the_rest_of_the_connection_in_use() {
        let mut connection = Meter::for_connection(160);
        assert_eq!(connection.received(150), Ok(()));
        for _ in 0..100 {
            assert_eq!((connection.received(10), connection.consumed(10)), (Ok(()), Some(10)));
        }
        assert_eq!(connection.unread(), 150);
    }

    proptest! {
        #[test]
        fn both_sides_agree_and_never_wait_for_each_other(
            size in 1..100_u32,
            is_connection: bool,
            steps in prop::collection::vec((0..60_usize, 0..60_usize), 0..200),
        ) {
            let mut window = Window::new(size);
            let mut meter = if is_connection { Meter::for_connection(size) } else { Meter::new(size) };
            for (wanted, read) in steps {
                let sent = window.take(wanted);
                prop_assert_eq!(meter.received(sent), Ok(()));
                let read = read.min(meter.unread() as usize);
                if let Some(credit) = meter.consumed(read) {
                    prop_assert_eq!(window.add(credit), Ok(()));
                }
                prop_assert!(window.left() <= size);
                // A receiver that has read everything has left the sender something to send.
                prop_assert!(meter.unread() > 0 || window.left() > 0);
            }
        }
    }
}
