//! Whether a file's name holds a hash of its content, so that the file never changes under that name.
//!
//! A wrong yes makes browsers keep a stale file for a year, a wrong no costs a revalidation: whatever
//! could be a word, a date, a version or a size is not a hash. Pure.

/// Folders into which builders put nothing but versioned files: Next.js, SvelteKit, Astro, Nuxt.
const VERSIONED_FOLDERS: [&[u8]; 4] = [b"_next/static/", b"_app/immutable/", b"_astro/", b"_nuxt/"];

/// The exception: Nuxt names its newest build there.
const UNVERSIONED_FOLDER: &[u8] = b"_nuxt/builds/";

/// Where Vite puts its scripts and style sheets, all of them with a hash.
const VITE_FOLDER: &[u8] = b"assets/";

/// Endings that stand behind the hash (`main.8e0d62a3.chunk.js.map`).
const AFTER_HASH: [&[u8]; 8] =
    [b"min", b"chunk", b"bundle", b"module", b"legacy", b"map", b"LICENSE", b"worker"];

/// Names that Angular's builder gives; their hash is eight capitals and digits, often without digits.
const ANGULAR_NAMES: [&[u8]; 5] = [b"chunk", b"main", b"polyfills", b"styles", b"scripts"];

/// The length of the hashes of Vite, Rollup, esbuild and Parcel.
const SHORT: usize = 8;

/// The longest hash that is looked for, SHA-512 in hexadecimal.
const LONG: usize = 128;

/// Whether the name of this file, relative to its root, holds a content hash.
pub fn is_hashed_name(path: &[u8]) -> bool {
    let name = path.rsplit(|b| *b == b'/').next().unwrap_or(path);
    let Some(dot) = name.iter().rposition(|b| *b == b'.') else { return false };
    let extension = &name[dot + 1..];
    // Pages are what leads to everything else: they are asked for again whatever they are called.
    if dot == 0 || extension.eq_ignore_ascii_case(b"html") || extension.eq_ignore_ascii_case(b"htm") {
        return false;
    }
    if VERSIONED_FOLDERS.iter().any(|folder| in_folder(path, folder)) {
        return !in_folder(path, UNVERSIONED_FOLDER);
    }
    let code = matches!(extension, b"js" | b"mjs" | b"css" | b"map");
    let place = Position { code, vite: code && in_folder(path, VITE_FOLDER) };
    let mut stem = &name[..dot];
    // Bounded by the length of the stem: every turn shortens it.
    loop {
        if ends_in_hash(stem, place) {
            return true;
        }
        let Some(dot) = stem.iter().rposition(|b| *b == b'.') else { return false };
        let last = &stem[dot + 1..];
        let is_extension = matches!(last, b"js" | b"mjs" | b"css" | b"wasm");
        if !is_extension && !AFTER_HASH.contains(&last) {
            return false;
        }
        stem = &stem[..dot];
    }
}

/// Whether the name of this file may hold a hash where [`is_hashed_name`] is not sure: `index-6buev5ak.css`, and where
/// other files of its folder have hashes (`among_hashed`), `index-deployed.css`. For what costs little if it is wrong.
pub fn may_be_hashed_name(path: &[u8], among_hashed: bool) -> bool {
    let name = path.rsplit(|b| *b == b'/').next().unwrap_or(path);
    let Some(dot) = name.iter().rposition(|b| *b == b'.') else { return false };
    let (stem, extension) = (&name[..dot], &name[dot + 1..]);
    if extension.eq_ignore_ascii_case(b"html")
        || extension.eq_ignore_ascii_case(b"htm")
        || in_folder(path, UNVERSIONED_FOLDER)
    {
        return false;
    }
    let Some((before, last)) = stem.len().checked_sub(SHORT).map(|at| stem.split_at(at)) else {
        return false;
    };
    let is_token = last.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'));
    let has = |of_kind: fn(&u8) -> bool| last.iter().any(of_kind);
    let is_mixed = has(u8::is_ascii_lowercase) && (has(u8::is_ascii_digit) || has(u8::is_ascii_uppercase))
        || has(u8::is_ascii_uppercase) && has(u8::is_ascii_digit);
    matches!(before, [_, .., b'-' | b'.'] | [b'-' | b'.']) && is_token && (is_mixed || among_hashed)
}

fn in_folder(path: &[u8], folder: &[u8]) -> bool {
    path.starts_with(folder)
        || path
            .windows(folder.len() + 1)
            .any(|window| window.first() == Some(&b'/') && &window[1..] == folder)
}

/// What is known of a file besides its name.
#[derive(Clone, Copy)]
struct Position {
    /// It is a script, a style sheet or a source map.
    code: bool,
    /// And stands where Vite puts those.
    vite: bool,
}

/// Whether a name without its extension is a hash, or ends in one behind `-` or `.`.
fn ends_in_hash(stem: &[u8], place: Position) -> bool {
    // A base64url hash may itself hold a dash, so the last eight bytes are looked at as they stand.
    if let Some(at) = stem.len().checked_sub(SHORT) {
        let (before, last) = stem.split_at(at);
        let name = match before {
            [] => Some(before),
            [name @ .., b'-' | b'.'] => Some(name),
            _ => None,
        };
        if let Some(name) = name
            && (is_short_hash(last, place)
                || (place.code && ANGULAR_NAMES.contains(&name) && is_base32_upper(last)))
        {
            return true;
        }
    }
    let start = stem.iter().rposition(|b| matches!(b, b'-' | b'.' | b'_')).map_or(0, |at| at + 1);
    let last = &stem[start..];
    is_hexadecimal_hash(last) || is_long_hash(last)
}

/// Hexadecimal digits in which digits and letters alternate often enough for no date, number or word.
fn is_hexadecimal_hash(text: &[u8]) -> bool {
    let lower = text.iter().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    let upper = text.iter().all(|b| matches!(b, b'0'..=b'9' | b'A'..=b'F'));
    let changes = text.windows(2).filter(|pair| pair[0].is_ascii_digit() != pair[1].is_ascii_digit()).count();
    (SHORT..=LONG).contains(&text.len()) && (lower || upper) && changes >= 2
}

/// Eight characters of base64url, base62 or base32 that read like no word: digits stand within it, or
/// letters follow each other that hardly do in a language.
fn is_short_hash(text: &[u8], place: Position) -> bool {
    if !text.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_')) {
        return false;
    }
    let shape = Shape::of(text);
    if shape.lower && shape.upper {
        let enough = if place.vite { 1 } else { 2 };
        return shape.inner_digits + shape.odd_pairs >= enough;
    }
    let plain = text.iter().all(u8::is_ascii_alphanumeric);
    plain && (shape.lower || shape.upper) && shape.inner_digits > 0 && shape.consonants >= 4
}

/// Longer mixtures of both cases and digits (base62 digests).
fn is_long_hash(text: &[u8]) -> bool {
    if !(SHORT + 1..=LONG).contains(&text.len()) || !text.iter().all(u8::is_ascii_alphanumeric) {
        return false;
    }
    let shape = Shape::of(text);
    shape.lower && shape.upper && shape.digit_runs >= 2 && shape.digit_runs + shape.case_changes >= 6
}

fn is_base32_upper(text: &[u8]) -> bool {
    text.iter().all(|b| matches!(b, b'A'..=b'Z' | b'2'..=b'7'))
}

/// What tells random characters from words.
#[derive(Default)]
struct Shape {
    lower: bool,
    upper: bool,
    digit_runs: usize,
    /// Runs of digits that have a letter somewhere behind them: numbers stand at the end of names.
    inner_digits: usize,
    /// Neighbouring letters of different case.
    case_changes: usize,
    /// Neighbouring letters that hardly follow each other within a word. Where a small letter is
    /// followed by a capital a word ends, and three capitals are an acronym.
    odd_pairs: usize,
    /// The longest run of consonants.
    consonants: usize,
}

impl Shape {
    fn of(text: &[u8]) -> Self {
        let mut shape = Self::default();
        let (mut before, mut capitals, mut consonants) = (0_u8, 0_usize, 0_usize);
        for byte in text {
            shape.lower |= byte.is_ascii_lowercase();
            shape.upper |= byte.is_ascii_uppercase();
            shape.digit_runs += usize::from(byte.is_ascii_digit() && !before.is_ascii_digit());
            capitals = if byte.is_ascii_uppercase() { capitals + 1 } else { 0 };
            if byte.is_ascii_alphabetic() {
                shape.inner_digits = shape.digit_runs;
                if before.is_ascii_alphabetic() {
                    let word_ends = before.is_ascii_lowercase() && byte.is_ascii_uppercase();
                    let changed = before.is_ascii_lowercase() != byte.is_ascii_lowercase();
                    shape.case_changes += usize::from(changed);
                    shape.odd_pairs += usize::from(!word_ends && capitals < 3 && is_odd_pair(before, *byte));
                }
            }
            let vowel = matches!(byte.to_ascii_lowercase(), b'a' | b'e' | b'i' | b'o' | b'u' | b'y');
            consonants = if byte.is_ascii_alphabetic() && !vowel { consonants + 1 } else { 0 };
            shape.consonants = shape.consonants.max(consonants);
            before = *byte;
        }
        shape
    }
}

/// Letters that follow `a`, `b`, … within words of names that programs are made of.
const FOLLOWERS: [&[u8]; 26] = [
    b"bcdefgiklmnprstuvwxyz",
    b"abeijlorsuy",
    b"acehiklorstuy",
    b"abdegilmorsuvwy",
    b"abcdefgilmnopqrstuvwxy",
    b"aefilorstuy",
    b"aeghilnorsuy",
    b"aeimnorttuy",
    b"abcdefgklmnopqrstvxz",
    b"aeiosu",
    b"aeiklnosy",
    b"abdefiklmnopstuvy",
    b"abeilmnopsuy",
    b"acdefgikmnostuvy",
    b"abcdefgiklmnoprstuvwxy",
    b"adehilnoprstuy",
    b"lru",
    b"abcdefgiklmnoprstuvwy",
    b"acehiklmnopqstuvwy",
    b"acehilmoprstuwyz",
    b"abcdefgilmnoprstxyz",
    b"aegiou",
    b"adehiklnors",
    b"acehimoptuy",
    b"abcdeilmnoprstw",
    b"aeioyz",
];

fn is_odd_pair(first: u8, second: u8) -> bool {
    let at = usize::from(first.to_ascii_lowercase().wrapping_sub(b'a'));
    FOLLOWERS.get(at).is_some_and(|followers| !followers.contains(&second.to_ascii_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_may_hold_a_hash_is_known_by_its_form_and_its_neighbours() {
        for (path, alone, among) in [
            ("assets/index-6buev5ak.css", true, true),
            ("assets/index-deployed.css", false, true),
            ("assets/index-Deployed.css", true, true),
            ("assets/index.css", false, false),
            ("assets/page-20240101.js", false, true),
            ("assets/page-6buev5ak.html", false, false),
            ("robots.txt", false, false),
        ] {
            assert_eq!(may_be_hashed_name(path.as_bytes(), false), alone, "{path}");
            assert_eq!(may_be_hashed_name(path.as_bytes(), true), among, "{path}");
        }
    }

    #[test]
    fn the_hashes_of_builders_are_found() {
        for path in [
            "assets/index-B3xKq9aZ.js",
            "assets/index-C-3xK9aZ.css",
            "assets/index-DiwrgTda.css.map",
            "index-DiwrgTda.css",
            "_nuxt/entry.js",
            "assets/react-CHdo91hT.svg",
            "assets/inter-latin-C5dxW9vm.woff2",
            "_nuxt/CNt3Ktvp.js",
            "_astro/hoisted.B3xKq9aZ.js",
            "static/js/main.8e0d62a3.js",
            "static/js/main.8e0d62a3.chunk.js",
            "static/js/main.8e0d62a3.js.map",
            "static/js/main.8e0d62a3.js.LICENSE.txt",
            "static/css/2.a1b2c3d4.chunk.css",
            "static/media/logo.6ce24c58023cc2f8fd88fe9d219db6c6.svg",
            "main.0123456789abcdef0123.js",
            "8e0d62a3b1c2.js",
            "index.4f2a91bc.css",
            "styles.ef46db3751d8e999.css",
            "main-5AZXFBMZ.js",
            "chunk-VOWELXQK.js",
            "polyfills-FFHMD2TL.js",
            "chunk-c5dxfwvm.js",
            "admin/base.27e20196a850.css",
            "app-9f86d081884c7d659a2feaa0c55ad015.css",
            "app.min-9f86d081884c7d65.css",
            "style.min.9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08.css",
            "_next/static/chunks/main-app.js",
            "_next/static/AbC/_buildManifest.js",
            "docs/_next/static/css/x.css",
            "_app/immutable/entry/start.js",
            "app.Zx81kQp02LmN4rTt.js",
        ] {
            assert!(is_hashed_name(path.as_bytes()), "{path}");
        }
    }

    #[test]
    fn words_versions_dates_and_sizes_are_not_hashes() {
        for path in [
            "index.html",
            "index-B3xKq9aZ.html",
            "main.8e0d62a3.htm",
            "jquery-3.7.1.min.js",
            "bootstrap.bundle.min.js",
            "font-awesome.css",
            "2024-05-12.html",
            "report-20240512.pdf",
            "report-20240512a.pdf",
            "20240512.json",
            "backup-2024-05-12T101500.json",
            "favicon.ico",
            "favicon-96x96.png",
            "android-chrome-512x512.png",
            "logo-1920x1080.png",
            "apple-touch-icon-precomposed.png",
            "robots.txt",
            "sw.js",
            "service-worker.js",
            "workbox-window.prod.mjs",
            "manifest.webmanifest",
            "my-Component.js",
            "lazy-DataGrid.js",
            "lazy-ToDoList.js",
            "lazy-LightBox.js",
            "lazy-HTMLView.js",
            "lazy-TextArea.js",
            "userList.js",
            "hero-iPhone12.png",
            "lesson-Chapter1.pdf",
            "song-Mp3Audio.js",
            "lib-I18nText.js",
            "lib-Base64Js.js",
            "_nuxt/builds/latest.json",
            "assets/lazy-DataGrid.js",
            "assets/lazy-SemiBold.css",
            "assets/fonts/Inter-SemiBold.woff2",
            "assets/song-Mp3Audio.mp3",
            "assets/theme-DarkMode.css",
            "assets/settings.js",
            "assets/my-settings.js",
            "lazy-DropDown.js",
            "lazy-CheckBox.js",
            "lazy-NightSky.js",
            "lazy-MyURLBar.js",
            "lazy-userList.js",
            "lazy-LoginApp.js",
            "lazy-HomePage.js",
            "lazy-AuthForm.js",
            "app-win32x64.zip",
            "app-x86win64.exe",
            "tool-linux-amd64.tar.gz",
            "video-h264main.mp4",
            "phone-5551234567.txt",
            "order.12345678.json",
            "facade-decade20.css",
            "a-deadbeef.js",
            "Inter-Regular.woff2",
            "Inter-SemiBold.woff2",
            "fa-solid-900.woff2",
            "README.md",
            "IMG_20240512.jpg",
            "DSC00042.JPG",
            "README-CHANGELOG.md",
            "docs-STANDARD.txt",
            "page-10.html",
            "chunk.js",
            "main-LICENSES.txt",
            "vendors~main.js",
            "_next/data/x.json",
            "next/static/x.js",
            ".8e0d62a3",
            "",
            "8e0d62a3",
        ] {
            assert!(!is_hashed_name(path.as_bytes()), "{path}");
        }
    }

    /// How many of a thousand random hashes are found.
    fn found(alphabet: &[u8], length: usize, name: &str, extension: &str) -> usize {
        let mut state = 0x2545_f491_4f6c_dd1d_u64;
        let hash = |state: &mut u64| -> String {
            (0..length)
                .map(|_| {
                    *state =
                        state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    let at = usize::try_from(*state >> 33).unwrap_or(0) % alphabet.len();
                    char::from(alphabet[at])
                })
                .collect()
        };
        (0..1000)
            .filter(|_| is_hashed_name(format!("{name}{}{extension}", hash(&mut state)).as_bytes()))
            .count()
    }

    #[test]
    fn most_random_hashes_are_found() {
        const BASE64: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
        const BASE32: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
        const HEX: &[u8] = b"0123456789abcdef";
        const BUN: &[u8] = b"0123456789abcdefghjkmnpqrstvwxyz";
        for (alphabet, length, name, extension, least) in [
            (BASE64, 8, "assets/index-", ".js", 900),
            (BASE64, 8, "assets/inter-", ".woff2", 700),
            (BASE32, 8, "main-", ".js", 990),
            (BASE64, 8, "index-", ".js", 700),
            (BUN, 8, "chunk-", ".js", 150),
            (HEX, 8, "main.", ".js", 850),
            (HEX, 12, "base.", ".css", 950),
            (HEX, 20, "main.", ".js", 990),
            (HEX, 32, "app-", ".js", 990),
        ] {
            let found = found(alphabet, length, name, extension);
            println!("{name}HASH{extension} of {length}: {found} of 1000");
            assert!(found >= least, "{name}{extension}: {found} of 1000");
        }
    }
}
