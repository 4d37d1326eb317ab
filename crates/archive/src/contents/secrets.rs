//! Which files look like secrets, and what is said of them.
//!
//! Owns the names that give a secret away; `content.rs` owns what contents do. Never repeats a value: of environment files the names of variables
//! are told, of everything else the path.

mod content;

use std::collections::BTreeSet;

pub(super) use content::variables;

/// Larger files are no keys, and are not looked into. Bytes.
pub(super) const LOOKED_AT_BYTES_MAX: u64 = 64 * 1024;

/// A file that must not be packed.
#[derive(Debug)]
pub struct Secret {
    /// Below the base.
    pub path: String,
    /// What it looks like.
    pub kind: Kind,
}

/// What a secret looks like.
#[derive(Debug, PartialEq, Eq)]
pub enum Kind {
    /// Variables, with these names.
    Environment(BTreeSet<String>),
    /// A private key, or a store of some.
    Key,
    /// Names and passwords, or tokens.
    Credentials,
}

/// Names of files that hold names and passwords, or tokens.
const CREDENTIALS: [&str; 8] = [
    ".netrc",
    "_netrc",
    ".pgpass",
    ".git-credentials",
    ".htpasswd",
    ".pypirc",
    ".vault-token",
    "terraform.tfstate",
];

/// The same in folders of these names: programs keep them in a home folder.
const CREDENTIALS_IN: [(&str, &str); 3] =
    [(".aws", "credentials"), (".docker", "config.json"), (".kube", "config")];

/// Settings that may hold a token, and mostly hold none.
const SETTINGS: [&str; 4] = [".npmrc", ".yarnrc", ".yarnrc.yml", ".yarnrc.yaml"];

/// Endings of private keys and stores of them. The first five may be of certificates and public keys.
const KEY_ENDINGS: [&str; 11] =
    ["pem", "key", "der", "p8", "pk8", "p12", "pfx", "jks", "keystore", "kdbx", "ppk"];

/// What a file looks like; `content` is there where it is small. Upper and lower case do not differ.
pub(super) fn kind_of(path: &str, content: Option<&[u8]>) -> Option<Kind> {
    let lower = path.to_ascii_lowercase();
    let (folder, name) = folder_and_name(&lower);
    if is_environment(name) {
        let names = content.map(variables).unwrap_or_default();
        // Other things have this ending, too.
        if name.starts_with('.') || !names.is_empty() {
            return Some(Kind::Environment(names));
        }
    }
    let is_credentials = CREDENTIALS.contains(&name)
        || CREDENTIALS_IN.contains(&(folder, name))
        || (name.starts_with('.') && name.ends_with("_history"))
        || (SETTINGS.contains(&name) && content.is_none_or(content::holds_token))
        || name.ends_with(".tfstate")
        || name.ends_with(".tfstate.backup");
    if is_credentials {
        return Some(Kind::Credentials);
    }
    let is_key = match ending(name) {
        Some("pem" | "key") => !content.is_some_and(content::is_public),
        Some("der" | "p8" | "pk8") => content.is_none_or(content::is_private_der),
        Some(ending) if KEY_ENDINGS.contains(&ending) => true,
        _ => {
            matches!(name, "id_rsa" | "id_dsa" | "id_ecdsa" | "id_ed25519" | "id_ecdsa_sk" | "id_ed25519_sk")
        }
    };
    (is_key || content.is_some_and(|content| content::holds_key(content, 1))).then_some(Kind::Key)
}

/// A dependency's own keys, of its tests and examples. Code that brings one along needs it, and stays.
pub(super) fn is_fixture(path: &str, content: Option<&[u8]>) -> bool {
    let lower = path.to_ascii_lowercase();
    let (_, name) = folder_and_name(&lower);
    let ending = ending(name);
    if matches!(ending, Some("js" | "mjs" | "cjs" | "ts" | "json" | "node" | "wasm")) {
        return false;
    }
    // So many characters of a key are no example in a text.
    const KEY_CHARACTERS: usize = 64;
    match kind_of(path, content) {
        Some(Kind::Key) if ending == Some("md") => false,
        Some(Kind::Key) if ending.is_none_or(|ending| KEY_ENDINGS.contains(&ending)) => true,
        Some(Kind::Key) => content.is_some_and(|content| content::holds_key(content, KEY_CHARACTERS)),
        Some(Kind::Environment(_) | Kind::Credentials) => true,
        None => false,
    }
}

/// `.env`, `.env.production`, `.env-prod`, `.envrc`, `prod.env`, `.dev.vars`; not `.env.example`, not `example.env`.
pub(super) fn is_environment(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let which = match (name.strip_prefix(".env").or_else(|| name.strip_prefix(".dev.vars")), &*name) {
        (_, ".envrc") => return true,
        (Some(""), _) => return true,
        (Some(rest), _) if rest.starts_with(['.', '-', '_', '~']) => rest,
        _ => match name.strip_suffix(".env") {
            Some(stem) => stem,
            None => return false,
        },
    };
    let last = which.rsplit(['.', '-', '_']).next().unwrap_or(which);
    !matches!(last, "example" | "sample" | "template" | "dist" | "defaults")
}

fn folder_and_name(path: &str) -> (&str, &str) {
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
    (folders.rsplit('/').next().unwrap_or(folders), name)
}

fn ending(name: &str) -> Option<&str> {
    name.rsplit_once('.').map(|(_, ending)| ending)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQDJ\n\
                       MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSj\n-----END PRIVATE KEY-----\n";

    #[test]
    fn secrets_are_known_by_name_or_content() {
        let none = || Some(Kind::Environment(BTreeSet::new()));
        let pgp = KEY.replace("PRIVATE KEY", "PGP PRIVATE KEY BLOCK");
        let wide: String = KEY.chars().flat_map(|character| [character, '\0']).collect();
        for (name, content, expected) in [
            (".env", "", none()),
            (".env.production", "", none()),
            (".env.example", "A=1", None),
            (".env.local.template", "A=1", None),
            (".environment", "A=1", None),
            (".npmrc", "", None),
            (".npmrc", "_authToken=hush", Some(Kind::Credentials)),
            (".yarnrc.yml", "npmAuthToken: hush", Some(Kind::Credentials)),
            (".yarnrc.yml", "nodeLinker: node-modules", None),
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
            (".ENV", "", none()),
            (".env-prod", "", none()),
            (".env-example", "", None),
            ("prod.env", "A=1", Some(Kind::Environment(BTreeSet::from(["A".to_owned()])))),
            ("dist/db.ENV", "A=1", Some(Kind::Environment(BTreeSet::from(["A".to_owned()])))),
            ("example.env", "A=1", None),
            ("room.env", "\x00A=1\n", None),
            (".dev.vars", "", none()),
            (".dev.vars.example", "", None),
            (".pypirc", "", Some(Kind::Credentials)),
            (".vault-token", "", Some(Kind::Credentials)),
            (".bash_history", "", Some(Kind::Credentials)),
            ("infra/terraform.tfstate", "{}", Some(Kind::Credentials)),
            ("home/.aws/credentials", "", Some(Kind::Credentials)),
            ("src/credentials", "", None),
            (".docker/config.json", "{}", Some(Kind::Credentials)),
            ("config.json", "{}", None),
            (".kube/config", "", Some(Kind::Credentials)),
            ("store.jks", "", Some(Kind::Key)),
            ("debug.keystore", "", Some(Kind::Key)),
            ("passwords.kdbx", "", Some(Kind::Key)),
            ("key.der", "\x30\x05\x02\x01\x00\x30\x00", Some(Kind::Key)),
            ("cert.der", "\x30\x04\x30\x02\x02\x00", None),
            ("TLS.PEM", KEY, Some(Kind::Key)),
            ("deploy.asc", pgp.as_str(), Some(Kind::Key)),
            ("deploy.txt", wide.as_str(), Some(Kind::Key)),
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
            (".npmrc", "", false),
            (".npmrc", "_auth=hush", true),
            ("KEY.PEM", KEY, true),
            ("store.jks", "", true),
            ("index.d.mts", "", false),
        ] {
            assert_eq!(is_fixture(name, Some(content.as_bytes())), expected, "{name}");
        }
    }
}
