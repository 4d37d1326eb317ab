//! Which files look like secrets, and what is said of them.
//!
//! Owns names and contents that give a secret away. Never repeats a value: of environment files the names of variables
//! are told, of everything else the path.

use std::collections::BTreeSet;

use crate::failure::Failure;
use crate::units::counted;

/// Larger files are no keys, and are not looked into. Bytes.
pub(super) const LOOKED_AT_BYTES_MAX: u64 = 64 * 1024;

/// Secrets that are listed; whoever has more begins with these.
const LISTED_MAX: usize = 50;

/// A file that must not be packed.
#[derive(Debug)]
pub(super) struct Secret {
    /// Below the base.
    pub(super) path: String,
    /// What it looks like.
    pub(super) kind: Kind,
}

/// What a secret looks like.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Variables, with these names.
    Environment(BTreeSet<String>),
    /// A private key, or a store of some.
    Key,
    /// Names and passwords, or tokens.
    Credentials,
}

/// What a file looks like; `content` is there where it is small.
pub(super) fn kind_of(name: &str, content: Option<&[u8]>) -> Option<Kind> {
    if is_environment(name) {
        return Some(Kind::Environment(content.map(variables).unwrap_or_default()));
    }
    if matches!(name, ".npmrc" | ".netrc" | ".pgpass" | ".yarnrc" | ".git-credentials" | ".htpasswd") {
        return Some(Kind::Credentials);
    }
    let is_key = match name.rsplit_once('.').map(|(_, ending)| ending) {
        Some("pem" | "key") => !content.is_some_and(is_public),
        Some("p12" | "pfx") => true,
        _ => {
            matches!(name, "id_rsa" | "id_dsa" | "id_ecdsa" | "id_ed25519" | "id_ecdsa_sk" | "id_ed25519_sk")
        }
    };
    (is_key || content.is_some_and(|content| holds_key(content, 1))).then_some(Kind::Key)
}

/// A dependency's own keys, of its tests and examples. Code that brings one along needs it, and stays.
pub(super) fn is_fixture(name: &str, content: Option<&[u8]>) -> bool {
    let ending = name.rsplit_once('.').map(|(_, ending)| ending);
    if matches!(ending, Some("js" | "mjs" | "cjs" | "ts" | "json" | "node" | "wasm")) {
        return false;
    }
    // So many characters of a key are no example in a text.
    const KEY_CHARACTERS: usize = 64;
    match kind_of(name, content) {
        Some(Kind::Key) if ending == Some("md") => false,
        Some(Kind::Key) if matches!(ending, Some("pem" | "key" | "p12" | "pfx")) || !name.contains('.') => {
            true
        }
        Some(Kind::Key) => content.is_some_and(|content| holds_key(content, KEY_CHARACTERS)),
        Some(Kind::Environment(_) | Kind::Credentials) => true,
        None => false,
    }
}

/// `.env`, `.env.production`, `.envrc`; not `.env.example`.
pub(super) fn is_environment(name: &str) -> bool {
    let Some(rest) = name.strip_prefix(".env") else { return false };
    match rest.strip_prefix('.') {
        _ if rest.is_empty() || rest == "rc" => true,
        Some(which) => {
            let last = which.rsplit('.').next().unwrap_or(which);
            !matches!(last, "example" | "sample" | "template" | "dist" | "defaults")
        }
        None => false,
    }
}

/// The names that an environment file sets, as far as its lines can be read.
pub(super) fn variables(content: &[u8]) -> BTreeSet<String> {
    let text = String::from_utf8_lossy(content);
    let names = text.lines().filter_map(|line| {
        let line = line.trim_start_matches('\u{feff}').trim_start();
        let line = line.strip_prefix("export ").unwrap_or(line);
        let name = line.split_once('=')?.0.trim();
        let is_name = !name.is_empty()
            && !name.starts_with(|first: char| first.is_ascii_digit())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        is_name.then(|| name.to_owned())
    });
    names.collect()
}

/// Holds certificates or public keys and nothing else; or is no text of keys at all, but an archive (`.key` is a
/// presentation's ending, too).
fn is_public(content: &[u8]) -> bool {
    let has = |what: &str| memchr::memmem::find(content, what.as_bytes()).is_some();
    if content.starts_with(b"PK\x03\x04") {
        return true;
    }
    let blocks =
        ["-----BEGIN CERTIFICATE-----", "-----BEGIN PUBLIC KEY-----", "-----BEGIN RSA PUBLIC KEY-----"];
    blocks.into_iter().any(has) && !has("PRIVATE KEY")
}

/// Holds a private key in PEM (RFC 7468), also within a string of JSON: its first line, and behind the line's end at
/// least so many characters of its content. Code that only knows the first line is none.
fn holds_key(content: &[u8], characters: usize) -> bool {
    const BEGIN: &[u8] = b"-----BEGIN ";
    const END: &[u8] = b"PRIVATE KEY-----";
    // Words that stand between the two: `ENCRYPTED`, `OPENSSH`.
    const WORDS_BYTES_MAX: usize = 32;
    let mut rest = content;
    while let Some(at) = memchr::memmem::find(rest, BEGIN) {
        rest = rest.get(at + BEGIN.len()..).unwrap_or_default();
        let head = rest.get(..(WORDS_BYTES_MAX + END.len()).min(rest.len())).unwrap_or_default();
        let Some(end) = memchr::memmem::find(head, END) else { continue };
        let mut behind = rest.get(end + END.len()..).unwrap_or_default();
        let mut line_ended = false;
        while let Some(next) = ["\\r", "\\n", "\r", "\n", " ", "\t"].iter().find_map(|space| {
            let next = behind.strip_prefix(space.as_bytes())?;
            line_ended |= space.contains(['n', '\n', '\r']);
            Some(next)
        }) {
            behind = next;
        }
        let is_content = |byte: &&u8| byte.is_ascii_alphanumeric() || b"+/=:,-\r\n\\".contains(byte);
        let first = behind.first().is_some_and(u8::is_ascii_alphanumeric);
        if line_ended && first && behind.iter().take_while(is_content).count() >= characters {
            return true;
        }
    }
    false
}

/// All of them at once, each with what to do.
pub(super) fn refuse(secrets: &mut [Secret]) -> Result<(), Failure> {
    if secrets.is_empty() {
        return Ok(());
    }
    secrets.sort_by(|one, other| one.path.cmp(&other.path));
    let width = secrets.iter().take(LISTED_MAX).map(|secret| secret.path.chars().count()).max().unwrap_or(0);
    let many = match secrets.len() {
        1 => "a file looks like one".to_owned(),
        many => format!("{} look like some", counted(many as u64, "file")),
    };
    let mut text = format!("a pack holds no secrets, and {many}:\n");
    for Secret { path, kind } in secrets.iter().take(LISTED_MAX) {
        let what = match kind {
            Kind::Environment(names) if names.is_empty() => {
                "variables: leave it out, and set them where it runs".to_owned()
            }
            Kind::Environment(names) => {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                format!("variables: leave it out, and set {} where it runs", names.join(", "))
            }
            Kind::Key => "a private key: leave it out, and put it on the machine where it runs".to_owned(),
            Kind::Credentials => "credentials: leave it out".to_owned(),
        };
        text.push_str(&format!("  {path:<width$}  {what}\n"));
    }
    if secrets.len() > LISTED_MAX {
        text.push_str(&format!("  and {} more\n", secrets.len() - LISTED_MAX));
    }
    let options = secrets.iter().take(LISTED_MAX).map(|secret| format!("--exclude {}", quoted(&secret.path)));
    let options: Vec<String> = options.collect();
    text.push_str(&format!("to leave them out:  onehop pack {}", options.join(" ")));
    Err(Failure::wrong(text))
}

/// As a shell wants it.
fn quoted(path: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+@".contains(c);
    if path.chars().all(is_plain) { path.to_owned() } else { format!("'{}'", path.replace('\'', "'\\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQDJ\n\
                       MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSj\n-----END PRIVATE KEY-----\n";

    #[test]
    fn secrets_are_known_by_name_or_content() {
        let none = || Some(Kind::Environment(BTreeSet::new()));
        for (name, content, expected) in [
            (".env", "", none()),
            (".env.production", "", none()),
            (".env.example", "A=1", None),
            (".env.local.template", "A=1", None),
            (".environment", "A=1", None),
            (".npmrc", "", Some(Kind::Credentials)),
            ("site.pem", KEY, Some(Kind::Key)),
            ("site.pem", "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n", None),
            ("site.pem", "who knows", Some(Kind::Key)),
            ("talk.key", "PK\x03\x04…", None),
            ("id_ed25519", "", Some(Kind::Key)),
            ("id_ed25519.pub", "ssh-ed25519 AAAA", None),
            ("store.p12", "", Some(Kind::Key)),
            ("account.json", r#"{"private_key": "-----BEGIN PRIVATE KEY-----\nMIIE"}"#, Some(Kind::Key)),
            ("deploy.txt", KEY, Some(Kind::Key)),
            ("pem.js", "const begin = '-----BEGIN PRIVATE KEY-----'\n", None),
            ("pem.js", "`-----BEGIN PRIVATE KEY-----\\n${body}`", None),
            ("page.html", "<p>hello", None),
        ] {
            assert_eq!(kind_of(name, Some(content.as_bytes())), expected, "{name}: {content}");
        }
    }

    #[test]
    fn keys_in_dependencies_are_fixtures_but_code_stays() {
        for (name, content, expected) in [
            ("key.pem", KEY, true),
            ("agent1-key", KEY, true),
            ("README.md", KEY, false),
            ("dev-cert.js", KEY, false),
            (".npmrc", "", true),
            ("index.d.mts", "", false),
        ] {
            assert_eq!(is_fixture(name, Some(content.as_bytes())), expected, "{name}");
        }
    }

    #[test]
    fn names_of_variables_are_read_and_values_are_not() {
        let text = "# db\nDATABASE_URL=postgres://u:p@h/d\nexport API_KEY='x=y'\n\nnothing\n 2A=1\n-----x=\n";
        let names: Vec<String> = variables(text.as_bytes()).into_iter().collect();
        assert_eq!(names, ["API_KEY", "DATABASE_URL"]);
    }
}
