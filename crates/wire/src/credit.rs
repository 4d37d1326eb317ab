//! How many bytes of bodies may be on their way, in one direction of a stream or a lane.
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
    /// Consumed and not credited yet.
    pending: u32,
}

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

    /// Takes from this window and from `other` (a stream's and its lane's) what both allow of `wanted` bytes.
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
    /// A window of so many bytes, all of which may come.
    pub const fn new(window: u32) -> Meter {
        Meter { window, left: window, pending: 0 }
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
    /// a frame: half of the window. The other half lets the sender go on in the meantime.
    pub fn consumed(&mut self, bytes: usize) -> Option<u32> {
        let unread = self.unread();
        debug_assert!(bytes <= unread as usize, "more bytes were consumed than came");
        self.pending += u32::try_from(bytes).unwrap_or(u32::MAX).min(unread);
        if self.pending == 0 || self.pending < self.window.div_ceil(2) {
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
