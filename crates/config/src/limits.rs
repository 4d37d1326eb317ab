//! Every bound of reading a configuration, with its unit and its reason.
//!
//! A configuration is written by the machine's owner, but it may be generated, and a mistake in it
//! (an import of itself, a log file named as an import) must end in a message, not in swap space.

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

/// Characters of a word that are compared when looking for the nearest known word. Longer words
/// are no slips of known ones, and the comparison is quadratic.
pub const NEAREST_WORD_CHARACTERS_MAX: usize = 40;
