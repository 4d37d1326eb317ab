//! The bounds of this crate, each with its unit and its reason.

use std::time::Duration;

/// Bytes of one file of the store or of a certificate. A chain with RSA keys has about 8 KiB.
pub const FILE_BYTES_MAX: u64 = 1 << 20;

/// Bytes of one component of a key: what file systems take (255), less the longest ending (`.json`).
pub const COMPONENT_BYTES_MAX: usize = 250;

/// Components of one key. The deepest that is written has 6.
pub const COMPONENTS_MAX: usize = 8;

/// Entries of one folder of the store that are listed: far more than one server has names.
pub const LIST_ENTRIES_MAX: usize = 1_000_000;

/// Longest wait for a lock that is held only while files are written.
pub const LOCK_WAIT_MAX: Duration = Duration::from_secs(10);

/// Orders that are under way at the same time. ACME servers bound new orders per account; each order holds a few
/// KiB and one connection.
pub const ORDERS_AT_ONCE_MAX: usize = 16;

/// Orders for handshakes that are under way at the same time: the rest of [`ORDERS_AT_ONCE_MAX`] is for renewals.
pub const ON_DEMAND_ORDERS_AT_ONCE_MAX: usize = 8;

/// Orders for handshakes in a minute. Let's Encrypt takes 300 in three hours for one account; a start with some new
/// customers gets its certificates at once.
pub const ON_DEMAND_ORDERS_PER_MINUTE_MAX: usize = 20;

/// Unknown names of handshakes in a minute for which permission is asked; the handshakes of others fail. Ten a second
/// are no load for an endpoint, and names that clients make up cost no more.
pub const ASKED_PER_MINUTE_MAX: usize = 600;

/// Names for which permission is asked at the same time. An endpoint that hangs holds each for [`PERMISSION_TIME_MAX`].
pub const ASKED_AT_ONCE_MAX: usize = 64;

/// Longest time for one answer of the endpoint that permits certificates; a handshake waits for it (Caddy: 10 s).
pub const PERMISSION_TIME_MAX: Duration = Duration::from_secs(10);

/// How long a name stays refused. A name that is permitted a moment after its first request waits at most this long.
pub const REFUSAL_TIME: Duration = Duration::from_secs(60);

/// How long a name is refused after the endpoint did not answer.
pub const UNANSWERED_TIME: Duration = Duration::from_secs(5);

/// Handshakes that wait for certificates, of all cores. Half of those that one core may have on their way.
pub const ON_DEMAND_WAITING_MAX: usize = 512;

/// Handshakes that wait for the certificate of one name: an eighth of [`ON_DEMAND_WAITING_MAX`], so that one name whose order
/// takes long leaves room for others.
pub const ON_DEMAND_WAITING_PER_NAME_MAX: usize = 64;

/// Names that handshakes asked for. Each holds a certificate in memory, about 10 KiB.
pub const ON_DEMAND_NAMES_MAX: usize = 10_000;

/// Longest sleep of the keeper: the wall clock may be set, and the machine suspended, while it sleeps.
pub const KEEPER_SLEEP_MAX: Duration = Duration::from_secs(60);

/// Time until the store is read again for a name that another process has locked.
pub const LOCKED_RETRY: Duration = Duration::from_secs(10);

/// Time until an issuer is asked for its renewal window again, where it named none (RFC 9773 section 4.3.3).
pub const WINDOW_RETRY: Duration = Duration::from_secs(6 * 60 * 60);

/// Bounds of what an issuer may ask for as the time until its renewal window is fetched again (RFC 9773 section 4.3.2).
pub const WINDOW_RETRY_RANGE: (Duration, Duration) =
    (Duration::from_secs(60), Duration::from_secs(24 * 60 * 60));

/// Longest pause that an issuer can ask for (`Retry-After`). One that asks for a year is asked again after a week.
pub const RETRY_AFTER_MAX: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Longest time for one order. A DNS challenge waits minutes for name servers; a hanging one frees its slot.
pub const ORDER_TIME_MAX: Duration = Duration::from_secs(15 * 60);

/// Longest time for asking an issuer for its renewal window.
pub const WINDOW_TIME_MAX: Duration = Duration::from_secs(60);

/// Longest time for the revocation of a certificate, for which an operator waits.
pub const REVOCATION_TIME_MAX: Duration = Duration::from_secs(60);

/// Bounds of the time between a certificate and its renewal, which is otherwise half of its life: an issuer whose window
/// lies in the past, or whose certificates end at once, is not asked without a pause.
pub const RENEWAL_PAUSE_RANGE: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(60 * 60));

/// How long the keeper's end waits until the challenges of running orders are removed: a DNS server answers faster.
pub const STOP_REMOVAL_MAX: Duration = Duration::from_secs(3);

/// Longest time that the keeper's end waits for its thread. A disk that hangs holds the thread, not the stop.
pub const STOP_TIME_MAX: Duration = Duration::from_secs(5);
