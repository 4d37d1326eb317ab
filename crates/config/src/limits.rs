//! Every bound of reading a configuration, with its unit and its reason.
//!
//! A configuration is written by the machine's owner, but it may be generated, and a mistake in it
//! (an import of itself, a log file named as an import) must end in a message, not in swap space.

use std::time::Duration;

/// Bytes of one configuration file. A thousand sites fit in a tenth of it; what is larger is
/// almost certainly not a configuration.
pub const FILE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Tokens of a whole configuration after all imports. Bounds memory where snippets import
/// snippets, which grows exponentially.
pub const TOKENS_MAX: usize = 400_000;

/// Levels of imports within imports. Real configurations use two or three.
pub const IMPORT_DEPTH_MAX: usize = 32;

/// Bytes that imports may take in memory. Each import copies what it names, so that snippets within
/// snippets grow exponentially; a thousand sites with a shared snippet stay below a tenth of it.
pub const IMPORTED_BYTES_MAX: usize = 128 * 1024 * 1024;

/// Imports of one load, each of which reads and copies what it names. A thousand sites with ten
/// snippets each stay at the half.
pub const IMPORTS_MAX: usize = 20_000;

/// Files read for one configuration. A glob over a folder of sites stays far below it.
pub const FILES_MAX: usize = 4096;

/// Levels of blocks within blocks; reading them recurses, so this bounds the stack.
pub const BLOCK_DEPTH_MAX: usize = 64;

/// Directives side by side in one block. Sorting compares neighbours pairwise, so this bounds the
/// time of a load; large redirect lists have a few thousand entries.
pub const DIRECTIVES_PER_BLOCK_MAX: usize = 20_000;

/// Groups of mutually exclusive routes in one block. A request keeps one bit for each; `handle`,
/// `rewrite` and `root` take one a kind, and only `try_files` with queries take more.
pub const GROUPS_PER_BLOCK_MAX: usize = 64;

/// Problems kept of one load. Nobody reads more, and one slip can cause thousands.
pub const PROBLEMS_MAX: usize = 100;

/// Bytes of memory of one compiled expression, of a matcher or a replacement. A search takes time for each of its states and each
/// byte of a path or field, so this bounds what one request costs; a list of a thousand words takes a fifth of it.
pub const EXPRESSION_BYTES_MAX: usize = 1024 * 1024;

/// Characters of a word that are compared when looking for the nearest known word. Longer words
/// are no slips of known ones, and the comparison is quadratic.
pub const NEAREST_WORD_CHARACTERS_MAX: usize = 40;

/// Processes of one application. Each has a lane, and so a descriptor, for every core.
pub const APP_WORKERS_MAX: u64 = 256;

/// Requests that one process of an application is handed at a time. Each takes a slot in the tables of
/// both sides, of which a lane has some more than this.
pub const APP_CONCURRENCY_MAX: u64 = 4096;

/// Builds whose hashed assets are kept beside the latest one. Bytes and age bound them further.
pub const KEEP_RELEASES_MAX: u64 = 100;

/// Bytes of the name of a data folder. A name of a file system has at most 255.
pub const APP_DATA_NAME_BYTES_MAX: usize = 64;

/// Requests that wait for an application. Each holds a client's connection open.
pub const APP_QUEUE_MAX: u64 = 100_000;

/// Shortest time that an application can be given for anything: below it, the operating system's own delays
/// would fail what is well.
pub const APP_TIME_MIN: Duration = Duration::from_millis(1);

/// Longest time that a request may wait for a place, or that an application may take to start or to stop.
pub const APP_WAIT_MAX: Duration = Duration::from_secs(60 * 60);

/// Longest time that an answer's head may take. Whatever takes longer than a day is no request.
pub const APP_TIMEOUT_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// Shortest time after which an event loop can count as stuck. Collecting garbage alone can take a part of it.
pub const APP_STUCK_MIN: Duration = Duration::from_millis(100);

/// Least resident bytes at which a process can be replaced, and least memory that it can be limited to: no
/// runtime starts within less, and it would be replaced for ever.
pub const APP_MEMORY_BYTES_MIN: u64 = 16 * 1024 * 1024;

/// Address space below which Node.js fails at its first `fetch`, or before: it reserves 10 GiB for each
/// WebAssembly memory, and some more for its heap (measured with Node.js 20, 22 and 24).
pub const APP_NODE_ADDRESS_BYTES_MIN: u64 = 16 * 1024 * 1024 * 1024;

/// Least requests after which a process can be replaced. Each replacement costs a start.
pub const APP_RECYCLE_REQUESTS_MIN: u64 = 10;

/// Shortest age at which a process can be replaced, for the same reason.
pub const APP_RECYCLE_AGE_MIN: Duration = Duration::from_secs(10);

/// Longest age at which a process can be replaced: ten years.
pub const APP_RECYCLE_AGE_MAX: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

/// Least open files that a process can be limited to: its three standard streams, its lanes and a few more.
pub const APP_OPEN_FILES_MIN: u64 = 32;

/// Characters of an application's name. It stands in every line of its log.
pub const APP_NAME_CHARACTERS_MAX: usize = 64;

/// Bytes of the name of a cookie or a parameter that `sticky` looks for: it is searched in every request.
pub const APP_STICKY_NAME_BYTES_MAX: usize = 64;

/// Networks that `trusted_proxies` takes: each is compared with the peer of every request.
pub const APP_TRUSTED_PROXIES_MAX: usize = 256;

/// How long a connection may wait for its header of the PROXY protocol, at least and at most: a load balancer sends it first,
/// and no request is answered before it.
pub const PROXY_HEADER_TIME_MIN: Duration = Duration::from_millis(1);
/// See [`PROXY_HEADER_TIME_MIN`].
pub const PROXY_HEADER_TIME_MAX: Duration = Duration::from_secs(60);

/// How long a certificate of an authority of ours may live, at least and at most: it begins an hour in the past and is renewed
/// when a third of its life is left, and it cannot outlive the root.
pub const AUTHORITY_LIFE_MIN: Duration = Duration::from_secs(60 * 60);
/// See [`AUTHORITY_LIFE_MIN`].
pub const AUTHORITY_LIFE_MAX: Duration = Duration::from_secs(3_600 * 24 * 60 * 60);

/// Words of a command, and variables of an environment, of one application each.
pub const APP_WORDS_MAX: usize = 1024;

/// Bytes of one word or variable: what Linux takes as one (MAX_ARG_STRLEN, 32 pages).
pub const APP_WORD_BYTES_MAX: usize = 128 * 1024 - 1;

/// Upstreams of one `reverse_proxy`, a range of ports counted out. Each has its counters on every core.
pub const PROXY_UPSTREAMS_MAX: usize = 1024;

/// Characters of a `reverse_proxy`'s name, which is made of its upstreams: it labels every one of its metrics.
pub const PROXY_NAME_CHARACTERS_MAX: usize = 128;

/// Shortest time that can be asked for where a request or an upstream waits: the server's own clock is no finer.
pub const PROXY_TIME_MIN: Duration = Duration::from_millis(1);

/// Longest time of any kind: a year. More is a slip, and sums of larger ones overflow a clock.
pub const PROXY_TIME_MAX: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Bytes of one body that are held back before they are sent on. It is taken for each request in flight, so that
/// a thousand clients could take a thousand times as much.
pub const PROXY_BUFFER_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Connections to one upstream that are open without a request. Each costs both machines a descriptor, and TLS some
/// 20 KiB, for as long as the server runs.
pub const PROXY_CONNECTIONS_MIN_MAX: u64 = 1024;

/// Connections to one upstream: as many as one address has ports for one destination.
pub const PROXY_CONNECTIONS_MAX: u64 = 65_535;

/// Attempts, failures and answers in a row that can be asked for. Failures are remembered one by one.
pub const PROXY_COUNT_MAX: u64 = 10_000;

/// Weight of one upstream. So large that ratios can be written as they are, so small that sums never overflow.
pub const PROXY_WEIGHT_MAX: u64 = 1_000_000;

/// Statuses, ports, files, resolvers and sets of conditions of one list. Each is compared with every request or answer,
/// or read at every start.
pub const PROXY_LIST_MAX: usize = 256;

/// Bytes of a secret, a method, a body or a cookie's name that a `reverse_proxy` sends or looks for.
pub const PROXY_TEXT_BYTES_MAX: usize = 8 * 1024;

/// Bytes of the path of a Unix socket (unix(7): 108 with the byte that ends it).
pub const UNIX_PATH_BYTES_MAX: usize = 107;

/// Requests in flight that a `limit` can be set to, and that `adaptive` can find. Above it, descriptors and memory are the
/// bound of any machine.
pub const LIMIT_IN_FLIGHT_MAX: u64 = 1_000_000;

/// Bounds of one site, that of the whole server not counted. A request notes in the bits of one word which of them it is
/// to pass.
pub const LIMITS_PER_SITE_MAX: usize = 62;

/// Requests that wait for one bound. Each holds a client's connection open.
pub const LIMIT_QUEUE_MAX: u64 = 100_000;

/// Shortest time for which it is worth waiting: the server's own clock is no finer.
pub const LIMIT_WAIT_MIN: Duration = Duration::from_millis(1);

/// Longest time that a request can wait to be let in.
pub const LIMIT_WAIT_MAX: Duration = Duration::from_secs(60 * 60);

/// Shortest lag of an event loop that can count as too much: timers and pauses of the garbage collector alone take that.
pub const LIMIT_LAG_MIN: Duration = Duration::from_millis(10);

/// Longest lag that can be allowed: whoever is later has long been replaced as stuck.
pub const LIMIT_LAG_MAX: Duration = Duration::from_secs(60);

/// Least time that a `rate_limit` can put between two requests, in nanoseconds: a million a second is as good as no bound.
pub const RATE_INTERVAL_NANOS_MIN: u128 = 1_000;

/// Longest time that a `rate_limit` may take until everything that it allows at once can come again. It is remembered in
/// nanoseconds of 64 bits, and a longer one is a slip.
pub const RATE_MEMORY_MAX: Duration = Duration::from_secs(366 * 24 * 60 * 60);

/// Keys that one zone of a `rate_limit` can be told to remember. Each takes some 26 bytes.
pub const RATE_KEYS_MAX: u64 = 10_000_000;

/// Least keys of a zone: with fewer, a handful of clients would make each other forgotten.
pub const RATE_KEYS_MIN: u64 = 1_000;

/// Characters of the name of a zone. It stands in metrics, and in a field of answers.
pub const RATE_ZONE_CHARACTERS_MAX: usize = 64;

/// Connections that one client address can be allowed: as many as there are ports to come from.
pub const CONNECTIONS_PER_ADDRESS_MAX: u64 = 65_535;

/// `link`s of one `early_hints`. They go out before the response and compete with each other for the connection.
pub const EARLY_HINTS_LINKS_MAX: usize = 32;

/// Access logs of one site. A request notes in the bits of one word which of them have it.
pub const LOGS_PER_SITE_MAX: usize = 63;

/// Shortest and longest time in which `sampling` counts lines: the server's own clock is no finer than the first, and a longer
/// one than the second would hide a day.
pub const LOG_SAMPLING_MIN: Duration = Duration::from_millis(1);
/// See [`LOG_SAMPLING_MIN`].
pub const LOG_SAMPLING_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// Shortest and longest time that a connection to the receiver of a log may take: the clock is no finer than the first, and the
/// log's thread writes nothing meanwhile.
pub const LOG_DIAL_MIN: Duration = Duration::from_millis(1);
/// See [`LOG_DIAL_MIN`].
pub const LOG_DIAL_MAX: Duration = Duration::from_secs(60);

/// Rules of one `format filter`: each is compared with every field of every line.
pub const LOG_RULES_MAX: usize = 256;

/// Pieces of one `format transform`: each is looked up for every line.
pub const LOG_TEMPLATE_PARTS_MAX: usize = 512;
/// How long the history is kept where the file does not say: a quarter, to compare months.
pub const HISTORY_KEEP: Duration = Duration::from_secs(90 * 86_400);

/// The shortest and the longest time for which the history can be kept: below a day it would have only its finest
/// interval, and its files are made for about a year.
pub const HISTORY_KEEP_RANGE: (Duration, Duration) =
    (Duration::from_secs(86_400), Duration::from_secs(400 * 86_400));

/// Bytes of the history where the file does not say: 50 busy sites for 90 days (`crates/history/examples/fill.rs`).
pub const HISTORY_BYTES: u64 = 512 * 1024 * 1024;

/// The fewest bytes that the history can have: a day of a few sites.
pub const HISTORY_BYTES_MIN: u64 = 4 * 1024 * 1024;

/// Attributes that `span_attributes` of one `tracing` adds to each span: a few facts, not the request.
pub const SPAN_ATTRIBUTES_MAX: usize = 32;

/// Users of one `basic_auth`: a file that people write. Who has more of them has an application that knows them.
pub const BASIC_AUTH_ACCOUNTS_MAX: usize = 1000;
