//! The bounds of this crate, each with its unit and its reason.

use std::time::Duration;

/// Bytes of one file of the store or of a certificate. A chain with RSA keys has about 8 KiB.
pub const FILE_BYTES_MAX: u64 = 1 << 20;

/// Bytes of one component of a key: what file systems take (255), less the longest ending (`.json`).
pub const COMPONENT_BYTES_MAX: usize = 250;

/// Components of one key. The deepest that is written has 5.
pub const COMPONENTS_MAX: usize = 8;

/// Entries of one folder of the store that are listed: far more than one server has names.
pub const LIST_ENTRIES_MAX: usize = 1_000_000;

/// How long a lock is waited for that is held only while files are written.
pub const LOCK_WAIT_MAX: Duration = Duration::from_secs(10);

/// Orders that are under way at the same time. ACME servers bound new orders per account; each order holds a few
/// KiB and one connection.
pub const ORDERS_AT_ONCE_MAX: usize = 16;

/// Names that handshakes asked for. Each holds a certificate in memory, about 10 KiB.
pub const ON_DEMAND_NAMES_MAX: usize = 10_000;

/// Handshakes that wait for the certificate of one name; more are refused at once.
pub const WAITERS_PER_NAME_MAX: usize = 1_000;

/// Longest sleep of the keeper: the wall clock may be set, and the machine suspended, while it sleeps.
pub const KEEPER_SLEEP_MAX: Duration = Duration::from_secs(60);

/// Time until the store is read again for a name that another process has locked.
pub const LOCKED_RETRY: Duration = Duration::from_secs(10);

/// Time until an issuer is asked for its renewal window again, where it named none (RFC 9773 section 4.3.3).
pub const WINDOW_RETRY: Duration = Duration::from_secs(6 * 60 * 60);

/// Bounds of what an issuer may ask for as the time until its renewal window is fetched again (RFC 9773 section 4.3.2).
pub const WINDOW_RETRY_RANGE: (Duration, Duration) =
    (Duration::from_secs(60), Duration::from_secs(24 * 60 * 60));

/// Longest time for which an issuer that failed is left alone, whatever it asks for: one that asks for a year is asked
/// again the next week.
pub const RETRY_AFTER_MAX: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Longest time for one order. A DNS challenge waits minutes for name servers; a hanging one frees its slot.
pub const ORDER_TIME_MAX: Duration = Duration::from_secs(15 * 60);

/// Longest time for asking an issuer for its renewal window.
pub const WINDOW_TIME_MAX: Duration = Duration::from_secs(60);

/// Bounds of the time between a certificate and its renewal, which is otherwise half of its life: an issuer whose window
/// lies in the past, or whose certificates end at once, is not asked without a pause.
pub const RENEWAL_PAUSE_RANGE: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(60 * 60));
