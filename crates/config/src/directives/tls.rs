//! `tls`: how a site's connections are encrypted, and where its certificates come from.

use std::path::PathBuf;

use base64::Engine as _;

mod dns;
mod internal;

use self::dns::{propagation_timeout, resolvers, ttl};
use crate::arguments::{no_arguments, one_argument, set_twice, wrong_arguments};
use crate::check::Context;
use crate::check::template::fixed;
use crate::check::value::duration;
use crate::checked::tls::{
    AcmeIssuer, CertificateFiles, CertificateIssuer, ClientAuth, ClientAuthMode, KeyType, TlsPolicy,
    TlsVersion, TrustedCertificate,
};
use crate::nearest::nearest;
use crate::option_table::{OptionTable, flag, line, not_yet, repeated, value, values};
use crate::problem::{Location, Problem};
use crate::source::Entry;
use crate::syntax::{Directive, Token};

pub(crate) use self::dns::{RFC2136, dns};
pub(crate) use self::internal::{CA, FILES, INTERNAL, PKI, local_issuer, pki};

const USAGE: &str = "tls internal | <email> | <certificate> <key> [{ … }]";

/// What `tls` says, before it is known for which names.
#[derive(Debug, Clone, Default)]
pub(crate) struct TlsSettings {
    /// An error in it was reported: what is missing because of it is no other error.
    pub(crate) is_broken: bool,
    /// Where the directive stands; `None`: nowhere.
    pub(crate) place: Option<Location>,
    pub(crate) files: Vec<CertificateFiles>,
    pub(crate) issuers: Vec<CertificateIssuer>,
    /// What `ca`, `eab` and others say of the issuer where none is written out.
    pub(crate) acme: AcmeIssuer,
    pub(crate) key_type: Option<KeyType>,
    pub(crate) renewal_ratio: Option<f64>,
    /// Where `on_demand` stands.
    pub(crate) on_demand: Option<Location>,
    pub(crate) policy: TlsPolicy,
}

pub(super) const OPTIONS: OptionTable<TlsSettings> = OptionTable {
    once: true,
    too_many: Some("docs/https.md lists them"),
    ..OptionTable::new(
        "tls",
        &[
            line("protocols", "tls1.2 tls1.3", |cx, tls, option| protocols(cx, &mut tls.policy, option)),
            values("ciphers", "TLS_AES_128_GCM_SHA256…", |cx, tls, names| {
                known_words(cx, names, &CIPHERS, "cipher suite", &mut tls.policy.ciphers)
            }),
            values("curves", "x25519mlkem768 x25519…", |cx, tls, names| {
                known_words(cx, names, &CURVES, "curve", &mut tls.policy.curves)
            }),
            values("alpn", "h2 http/1.1", |cx, tls, names| alpn(cx, &mut tls.policy, names)),
            repeated(values("load", "<folder>…", |cx, tls, folders| load(cx, tls, folders))),
            value("ca", "https://ca.internal/acme/directory", |cx, tls, value| {
                tls.acme.directory = Some(fixed(cx.source, value.token, "the URL of a directory")?);
                Ok(())
            }),
            value("ca_root", "./root.pem", |cx, tls, value| {
                tls.acme.trusted_root = Some(file(cx, value.token)?);
                Ok(())
            }),
            line("eab", "<key id> <mac key>", |cx, tls, option| {
                tls.acme.external_account = Some(external_account(cx, option)?);
                Ok(())
            }),
            value("key_type", "p256", |cx, tls, value| {
                key_type(cx, value.token).map(|kind| tls.key_type = Some(kind))
            }),
            line("dns", "exec <program>…|rfc2136 { … }", |cx, tls, option| {
                tls.acme.dns = Some(dns(cx, option)?);
                Ok(())
            }),
            values("resolvers", "1.1.1.1", |cx, tls, names| resolvers(cx, &mut tls.acme, names)),
            value("propagation_delay", "30s", |_, tls, value| {
                tls.acme.records.delay = Some(duration(value.token)?);
                Ok(())
            }),
            value("propagation_timeout", "5m", |_, tls, value| {
                tls.acme.records.timeout = Some(propagation_timeout(value.token)?);
                Ok(())
            }),
            value("dns_ttl", "60s", |_, tls, value| {
                tls.acme.records.ttl_seconds = Some(ttl(value.token)?);
                Ok(())
            }),
            value("dns_challenge_override_domain", "_acme-challenge.b.example", |cx, tls, value| {
                tls.acme.records.name = Some(fixed(cx.source, value.token, "the name of a record")?);
                Ok(())
            }),
            repeated(line("issuer", "acme|internal [{ … }]", |cx, tls, option| {
                tls.issuers.push(issuer(cx, option)?);
                Ok(())
            })),
            line("on_demand", "", |_, tls, option| {
                no_arguments(option)?;
                tls.on_demand = Some(option.name.place.clone());
                Ok(())
            }),
            line("client_auth", "{ … }", |cx, tls, option| {
                tls.policy.client_auth = client_auth(cx, option)?;
                Ok(())
            }),
            value("renewal_window_ratio", "0.33", |_, tls, value| {
                ratio(value.token).map(|ratio| tls.renewal_ratio = Some(ratio))
            }),
            not_yet("get_certificate"),
            not_yet("insecure_secrets_log"),
            not_yet("reuse_private_keys"),
            // Each host of a site has a certificate of its own, also where a wildcard of another site would do.
            flag("force_automate", |_| ()),
            not_yet("ca_roots"),
        ],
    )
};

/// Options of `issuer acme`.
pub(super) const ACME: OptionTable<AcmeIssuer> = OptionTable {
    once: true,
    ..OptionTable::new(
        "issuer acme",
        &[
            value("dir", "https://ca.internal/acme/directory", |cx, acme, value| {
                acme.directory = Some(fixed(cx.source, value.token, "the URL of a directory")?);
                Ok(())
            }),
            value("email", "me@example.com", |cx, acme, value| {
                acme.email = Some(fixed(cx.source, value.token, "an email address")?);
                Ok(())
            }),
            value("profile", "shortlived", |cx, acme, value| {
                acme.profile = Some(fixed(cx.source, value.token, "the name of a profile")?);
                Ok(())
            }),
            line("eab", "<key id> <mac key>", |cx, acme, option| {
                acme.external_account = Some(external_account(cx, option)?);
                Ok(())
            }),
            value("trusted_roots", "./root.pem", |cx, acme, value| {
                acme.trusted_root = Some(file(cx, value.token)?);
                Ok(())
            }),
            flag("disable_http_challenge", |acme| acme.disable_http = true),
            flag("disable_tlsalpn_challenge", |acme| acme.disable_tls_alpn = true),
            line("dns", "exec <program>…|rfc2136 { … }", |cx, acme, option| {
                acme.dns = Some(dns(cx, option)?);
                Ok(())
            }),
            values("resolvers", "1.1.1.1", |cx, acme, names| resolvers(cx, acme, names)),
            value("propagation_delay", "30s", |_, acme, value| {
                acme.records.delay = Some(duration(value.token)?);
                Ok(())
            }),
            value("propagation_timeout", "5m", |_, acme, value| {
                acme.records.timeout = Some(propagation_timeout(value.token)?);
                Ok(())
            }),
            value("dns_ttl", "60s", |_, acme, value| {
                acme.records.ttl_seconds = Some(ttl(value.token)?);
                Ok(())
            }),
            value("dns_challenge_override_domain", "_acme-challenge.b.example", |cx, acme, value| {
                acme.records.name = Some(fixed(cx.source, value.token, "the name of a record")?);
                Ok(())
            }),
            not_yet("test_dir"),
            not_yet("timeout"),
            not_yet("alt_http_port"),
            not_yet("alt_tlsalpn_port"),
            not_yet("preferred_chains"),
        ],
    )
};

/// Options of the global `on_demand_tls`; the draft is the URL that is asked.
pub(super) const ON_DEMAND: OptionTable<Option<String>> = OptionTable {
    once: true,
    others: &[("interval", NO_RATE), ("burst", NO_RATE)],
    ..OptionTable::new(
        "on_demand_tls",
        &[
            value("ask", "http://localhost:5555/check", |cx, ask, value| {
                *ask = Some(ask_url(cx, value.token)?);
                Ok(())
            }),
            line("permission", "http <url>", |cx, ask, option| {
                *ask = Some(permission(cx, option)?);
                Ok(())
            }),
        ],
    )
};

/// Caddy has removed them, too.
const NO_RATE: &str = "remove it: `ask` bounds what is ordered, and onehop has a bound of its own";

/// Options of `client_auth`.
pub(super) const CLIENT_AUTH: OptionTable<ClientAuthDraft> = OptionTable {
    once: true,
    ..OptionTable::new(
        "client_auth",
        &[
            value("mode", "require_and_verify", |cx, draft, value| {
                draft.mode = Some(mode(cx, value.token)?);
                Ok(())
            }),
            line("trust_pool", "file <file>…|inline { … }|combined { source … }", trust_pool),
            repeated(values("trusted_ca_cert_file", "<file>…", |cx, draft, files| {
                trusted(cx, files, trusted_file, &mut draft.issuers)
            })),
            repeated(values("trusted_leaf_cert_file", "<file>…", |cx, draft, files| {
                trusted(cx, files, trusted_file, &mut draft.leaves)
            })),
            repeated(values("trusted_ca_cert", "<base64>…", |cx, draft, certificates| {
                trusted(cx, certificates, trusted_der, &mut draft.issuers)
            })),
            repeated(values("trusted_leaf_cert", "<base64>…", |cx, draft, certificates| {
                trusted(cx, certificates, trusted_der, &mut draft.leaves)
            })),
            repeated(line("verifier", "leaf { file <file>… folder <folder>… }", verifier)),
        ],
    )
};

#[derive(Debug, Default)]
pub(super) struct ClientAuthDraft {
    mode: Option<ClientAuthMode>,
    issuers: Vec<TrustedCertificate>,
    leaves: Vec<TrustedCertificate>,
}

/// IANA's names of what rustls has; those of TLS 1.2 first.
const CIPHERS: [&str; 9] = [
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
    "TLS_AES_128_GCM_SHA256",
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
];

/// Caddy's names of key exchange groups, of those that rustls has.
const CURVES: [&str; 4] = ["x25519mlkem768", "x25519", "secp256r1", "secp384r1"];

const KEY_TYPES: [(&str, KeyType); 5] = [
    ("p256", KeyType::P256),
    ("p384", KeyType::P384),
    ("ed25519", KeyType::Ed25519),
    ("rsa2048", KeyType::Rsa2048),
    ("rsa4096", KeyType::Rsa4096),
];

const MODES: [(&str, ClientAuthMode); 4] = [
    ("request", ClientAuthMode::Request),
    ("require", ClientAuthMode::Require),
    ("verify_if_given", ClientAuthMode::VerifyIfGiven),
    ("require_and_verify", ClientAuthMode::RequireAndVerify),
];

pub(super) fn tls(cx: &mut Context<'_>, line: &Directive, tls: &mut TlsSettings) -> Result<(), Box<Problem>> {
    let read = read(cx, line, tls);
    tls.is_broken |= read.is_err();
    read
}

fn read(cx: &mut Context<'_>, line: &Directive, tls: &mut TlsSettings) -> Result<(), Box<Problem>> {
    if let Some(earlier) = tls.place.replace(line.name.place.clone()) {
        return Err(Problem::error("duplicate-option", &line.name.place, "`tls` stands there twice")
            .label(format!("line {} has it already", earlier.line()))
            .help("put both into one"));
    }
    match line.args.as_slice() {
        [] if line.block.is_some() => {}
        [word] if word.text == "internal" => tls.issuers.push(local_issuer(cx)),
        [word] if word.text == "force_automate" => {}
        [word] if word.text.contains('@') => {
            tls.acme.email = Some(fixed(cx.source, word, "an email address")?);
        }
        [word] => {
            return Err(Problem::error(
                "arguments",
                &word.place,
                format!("`tls {}` says too little", word.text),
            )
            .help("write `tls CERTIFICATE KEY` for two files, `tls internal`, or `tls me@example.com`"));
        }
        [certificate, key] => {
            let (certificate, key) = (file(cx, certificate)?, file(cx, key)?);
            tls.files.push(CertificateFiles { certificate, key });
        }
        _ => return Err(wrong_arguments(line, USAGE)),
    }
    let seen = OPTIONS.read(cx, tls, line.block.as_deref());
    tls.is_broken |= seen.is_broken;
    let of_records = seen.token_where(|name| OF_RECORDS.contains(&name));
    let has_provider = tls.acme.dns.is_some() || cx.certificates.acme.dns.is_some();
    match of_records.filter(|_| !has_provider && !seen.is_broken) {
        None => Ok(()),
        Some(option) => {
            let message = format!("`{}` has no effect: nothing sets DNS records for this site", option.text);
            Err(Problem::error("contradiction", &option.place, message).help(
                "add `dns rfc2136 { … }` or `dns exec PROGRAM` here, or `acme_dns` to the global block",
            ))
        }
    }
}

/// Options that only matter where DNS records are set.
const OF_RECORDS: [&str; 3] = ["propagation_delay", "propagation_timeout", "dns_ttl"];

/// A file that is there.
pub(crate) fn file(cx: &Context<'_>, token: &Token) -> Result<PathBuf, Box<Problem>> {
    let path = cx.absolute(&fixed(cx.source, token, "the path of a file")?);
    match cx.source.entry(&path) {
        Some(Entry::File | Entry::Special) => Ok(path),
        Some(Entry::Folder) => {
            Err(Problem::error("no-file", &token.place, format!("{} is a folder", path.display()))
                .help("name the file in it"))
        }
        None => Err(Problem::error("no-file", &token.place, format!("there is no file {}", path.display()))
            .help(format!("relative paths start at {}", cx.base.display()))),
    }
}

/// Every `*.pem` of these folders, each with a certificate and its key, as Caddy has it.
fn load(cx: &Context<'_>, tls: &mut TlsSettings, folders: &[Token]) -> Result<(), Box<Problem>> {
    for token in folders {
        let files = pem_files(cx, token)?;
        tls.files
            .extend(files.into_iter().map(|path| CertificateFiles { certificate: path.clone(), key: path }));
    }
    Ok(())
}

/// The files `*.pem` of a folder.
fn pem_files(cx: &Context<'_>, token: &Token) -> Result<Vec<PathBuf>, Box<Problem>> {
    let folder = cx.absolute(&fixed(cx.source, token, "the path of a folder")?);
    cx.source.glob(&folder.join("*.pem")).map_err(|error| {
        Problem::error("no-file", &token.place, format!("{} cannot be read: {error}", folder.display()))
            .help("name a folder with files in PEM")
    })
}

fn protocols(cx: &Context<'_>, policy: &mut TlsPolicy, option: &Directive) -> Result<(), Box<Problem>> {
    let version = |token: &Token| match fixed(cx.source, token, "a version of TLS")?.as_str() {
        "tls1.2" => Ok(TlsVersion::Tls12),
        "tls1.3" => Ok(TlsVersion::Tls13),
        "tls1.0" | "tls1.1" => {
            Err(Problem::error("tls", &token.place, format!("`{}` is broken", token.text))
                .help("RFC 8996 forbids it: the oldest version is `tls1.2`"))
        }
        other => {
            Err(Problem::error("unknown-option", &token.place, format!("there is no version `{other}`"))
                .help("there are `tls1.2` and `tls1.3`"))
        }
    };
    let (oldest, newest) = match option.args.as_slice() {
        [oldest] => (version(oldest)?, TlsVersion::Tls13),
        [oldest, newest] => (version(oldest)?, version(newest)?),
        _ => return Err(wrong_arguments(option, "protocols <oldest> [<newest>]")),
    };
    if oldest > newest {
        let message = "the oldest version is newer than the newest";
        return Err(Problem::error("contradiction", &option.name.place, message)
            .help("write `protocols tls1.2 tls1.3`"));
    }
    (policy.oldest, policy.newest) = (oldest, newest);
    Ok(())
}

fn known_words(
    cx: &Context<'_>,
    tokens: &[Token],
    known: &[&str],
    what: &str,
    into: &mut Vec<String>,
) -> Result<(), Box<Problem>> {
    for token in tokens {
        let word = fixed(cx.source, token, &format!("a {what}"))?;
        if !known.contains(&word.as_str()) {
            let problem =
                Problem::error("unknown-option", &token.place, format!("there is no {what} `{word}` here"));
            return Err(match nearest(&word, known.iter().copied()) {
                Some(near) => problem.help(format!("did you mean `{near}`?")),
                None => problem.help(format!("there are {}", known.join(", "))),
            });
        }
        into.push(word);
    }
    Ok(())
}

/// `alpn h2 http/1.1`: the protocols that are offered, in the order of preference.
fn alpn(cx: &Context<'_>, policy: &mut TlsPolicy, tokens: &[Token]) -> Result<(), Box<Problem>> {
    for token in tokens {
        let name = fixed(cx.source, token, "a protocol")?;
        if !["h2", "http/1.1"].contains(&name.as_str()) {
            return Err(Problem::error(
                "not-yet",
                &token.place,
                format!("`{name}` is a protocol that onehop does not have yet"),
            )
            .help("write `alpn h2 http/1.1`, one of them, or nothing"));
        }
        policy.protocols.push(name.to_owned());
    }
    Ok(())
}

fn external_account(cx: &Context<'_>, option: &Directive) -> Result<(String, String), Box<Problem>> {
    match (option.args.as_slice(), &option.block) {
        ([key_id, mac_key], None) => {
            Ok((fixed(cx.source, key_id, "a key identifier")?, fixed(cx.source, mac_key, "a MAC key")?))
        }
        _ => Err(wrong_arguments(option, "eab <key id> <mac key>")),
    }
}

pub(crate) fn key_type(cx: &Context<'_>, token: &Token) -> Result<KeyType, Box<Problem>> {
    let word = fixed(cx.source, token, "a kind of key")?;
    KEY_TYPES.iter().find(|(name, _)| *name == word).map(|(_, kind)| *kind).ok_or_else(|| {
        Problem::error("unknown-option", &token.place, format!("there is no kind of key `{word}`"))
            .help("there are `p256`, `p384`, `ed25519`, `rsa2048` and `rsa4096`")
    })
}

pub(crate) fn ratio(token: &Token) -> Result<f64, Box<Problem>> {
    let parsed = token.text.parse::<f64>().ok().filter(|ratio| (0.05..=0.95).contains(ratio));
    parsed.ok_or_else(|| {
        Problem::error("number", &token.place, format!("`{}` is no part of a certificate's life", token.text))
            .help("a number from 0.05 to 0.95: with 0.33 a certificate is renewed when a third of its life is left")
    })
}

/// `issuer acme { … }`, `issuer internal`; also `cert_issuer` of the global block.
pub(crate) fn issuer(cx: &mut Context<'_>, option: &Directive) -> Result<CertificateIssuer, Box<Problem>> {
    let Some((kind, rest)) = option.args.split_first() else {
        return Err(wrong_arguments(option, "issuer acme|internal"));
    };
    match (kind.text.as_str(), rest) {
        ("internal", []) => internal::internal(cx, option),
        ("acme", rest @ ([] | [_])) => {
            let mut acme = AcmeIssuer::default();
            if let [directory] = rest {
                acme.directory = Some(fixed(cx.source, directory, "the URL of a directory")?);
            }
            ACME.read(cx, &mut acme, option.block.as_deref());
            Ok(CertificateIssuer::Acme(Box::new(acme)))
        }
        ("zerossl", _) => Err(Problem::error(
            "not-yet",
            &kind.place,
            "`issuer zerossl` is a feature of Caddy that onehop does not have yet",
        )
        .help(
            "`issuer acme https://acme.zerossl.com/v2/DV90 { eab KEY_ID MAC_KEY }` speaks to the same issuer",
        )),
        ("acme" | "internal", _) => Err(wrong_arguments(option, "issuer acme|internal [{ … }]")),
        (other, _) => {
            let problem =
                Problem::error("unknown-option", &kind.place, format!("there is no issuer `{other}`"));
            Err(problem.help("there are `acme` and `internal`"))
        }
    }
}

/// `on_demand_tls { … }` of the global block: the URL that permits certificates.
pub(crate) fn on_demand(cx: &mut Context<'_>, line: &Directive) -> Result<Option<String>, Box<Problem>> {
    if !line.args.is_empty() {
        return Err(wrong_arguments(line, "on_demand_tls { ask <url> }"));
    }
    let mut ask = None;
    let seen = ON_DEMAND.read(cx, &mut ask, line.block.as_deref());
    if let (Some(ask), Some(permission), false) =
        (seen.token("ask"), seen.token("permission"), seen.is_broken)
    {
        return Err(set_twice(permission, ask));
    }
    if ask.is_none() && !seen.is_broken {
        let message = "`on_demand_tls` does not say whom to ask";
        return Err(Problem::error("on-demand", &line.name.place, message)
            .help("add `ask URL`: onehop appends `?domain=NAME`, and status 200 permits a certificate"));
    }
    Ok(ask)
}

fn ask_url(cx: &Context<'_>, token: &Token) -> Result<String, Box<Problem>> {
    let url = fixed(cx.source, token, "a URL")?;
    let host = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
    if host.is_none_or(|host| host.is_empty() || host.starts_with('/') || url.contains('#')) {
        let message = format!("`{}` is no URL that can be asked", token.text);
        return Err(Problem::error("address", &token.place, message)
            .help("for example `ask http://localhost:5555/check`"));
    }
    Ok(url)
}

/// `permission http URL`, `permission http { endpoint URL }`.
fn permission(cx: &Context<'_>, option: &Directive) -> Result<String, Box<Problem>> {
    let block = option.block.as_deref().unwrap_or_default();
    match (option.args.as_slice(), block) {
        ([kind], [endpoint]) if kind.text == "http" && endpoint.name.text == "endpoint" => {
            ask_url(cx, one_argument(endpoint, "endpoint <url>")?)
        }
        ([kind, url], []) if kind.text == "http" => ask_url(cx, url),
        ([kind, ..], _) if kind.text != "http" => {
            let message =
                format!("`permission {}` is a plugin of Caddy that onehop does not have", kind.text);
            Err(Problem::error("not-yet", &kind.place, message).help("write `ask URL`"))
        }
        _ => Err(wrong_arguments(option, "permission http <url>")),
    }
}

fn mode(cx: &Context<'_>, token: &Token) -> Result<ClientAuthMode, Box<Problem>> {
    let word = fixed(cx.source, token, "a mode")?;
    MODES.iter().find(|(name, _)| *name == word).map(|(_, mode)| *mode).ok_or_else(|| {
        let names: Vec<String> = MODES.iter().map(|(name, _)| format!("`{name}`")).collect();
        Problem::error("unknown-option", &token.place, format!("there is no mode `{word}`"))
            .help(format!("there are {}", names.join(", ")))
    })
}

fn trust_pool(
    cx: &mut Context<'_>,
    draft: &mut ClientAuthDraft,
    option: &Directive,
) -> Result<(), Box<Problem>> {
    let Some((kind, files)) = option.args.split_first() else {
        return Err(wrong_arguments(option, TRUST_POOL));
    };
    let (name, read): (_, ReadTrusted) = match (kind.text.as_str(), files) {
        ("file", _) => ("pem_file", trusted_file),
        ("inline", []) => ("trust_der", trusted_der),
        ("combined", []) => return combined(cx, draft, option),
        ("inline" | "combined", _) => return Err(wrong_arguments(option, TRUST_POOL)),
        (other, _) => {
            let message = format!("`trust_pool {other}` is a feature of Caddy that onehop does not have yet");
            return Err(Problem::error("not-yet", &kind.place, message).help("write `trust_pool file FILE`"));
        }
    };
    let before = draft.issuers.len();
    trusted(cx, files, read, &mut draft.issuers)?;
    for inner in option.block.iter().flatten() {
        if inner.name.text != name {
            let message = format!("`trust_pool {}` has no option `{}`", kind.text, inner.name.text);
            return Err(Problem::error("unknown-option", &inner.name.place, message)
                .help(format!("there is `{name}`")));
        }
        trusted(cx, &inner.args, read, &mut draft.issuers)?;
    }
    if draft.issuers.len() == before {
        return Err(wrong_arguments(option, TRUST_POOL));
    }
    Ok(())
}

/// `trust_pool combined { source file FILE… }`: all of several pools.
fn combined(
    cx: &mut Context<'_>,
    draft: &mut ClientAuthDraft,
    option: &Directive,
) -> Result<(), Box<Problem>> {
    let sources = option.block.as_deref().unwrap_or_default();
    if sources.is_empty() {
        return Err(wrong_arguments(option, "trust_pool combined { source file <file>… }"));
    }
    for source in sources {
        let kind = source.args.first().map(|kind| kind.text.as_str());
        if source.name.text != "source" || kind == Some("combined") {
            return Err(Problem::error(
                "arguments",
                &source.name.place,
                "`trust_pool combined` holds other pools",
            )
            .help("each is written `source file FILE…` or `source inline { trust_der BASE64… }`"));
        }
        trust_pool(cx, draft, source)?;
    }
    Ok(())
}

/// `verifier leaf file FILE…`, `verifier leaf folder FOLDER…`, or both in a block: certificates of clients.
fn verifier(
    cx: &mut Context<'_>,
    draft: &mut ClientAuthDraft,
    option: &Directive,
) -> Result<(), Box<Problem>> {
    let wrong = || wrong_arguments(option, "verifier leaf { file <file>… folder <folder>… }");
    let (kind, inline) = option.args.split_first().ok_or_else(wrong)?;
    if kind.text != "leaf" {
        let message = format!("`verifier {}` is a plugin of Caddy that onehop does not have", kind.text);
        return Err(Problem::error("not-yet", &kind.place, message).help("write `verifier leaf file FILE`"));
    }
    let mut loaders: Vec<(&Token, &[Token])> = Vec::new();
    loaders.extend(inline.split_first());
    loaders.extend(option.block.iter().flatten().map(|line| (&line.name, &*line.args)));
    if loaders.is_empty() {
        return Err(wrong());
    }
    for (loader, paths) in loaders {
        match (loader.text.as_str(), paths) {
            (_, []) => return Err(wrong()),
            ("file", files) => trusted(cx, files, trusted_file, &mut draft.leaves)?,
            ("folder", folders) => trusted_folders(cx, folders, &mut draft.leaves)?,
            (other, _) => {
                let message =
                    format!("`verifier leaf` takes certificates from files and folders, not from `{other}`");
                return Err(Problem::error("not-yet", &loader.place, message)
                    .help("write `file FILE…` or `folder FOLDER…`"));
            }
        }
    }
    Ok(())
}

/// Every `*.pem` of these folders. One without any would let nobody in.
fn trusted_folders(
    cx: &Context<'_>,
    folders: &[Token],
    into: &mut Vec<TrustedCertificate>,
) -> Result<(), Box<Problem>> {
    for token in folders {
        let files = pem_files(cx, token)?;
        if files.is_empty() {
            let message = format!("there is no file `*.pem` in {}", token.text);
            return Err(Problem::error("no-file", &token.place, message)
                .help(format!("relative paths start at {}", cx.base.display())));
        }
        into.extend(files.into_iter().map(TrustedCertificate::File));
    }
    Ok(())
}

const TRUST_POOL: &str =
    "trust_pool file <file>…, trust_pool inline { trust_der <base64>… }, or trust_pool combined { source … }";

type ReadTrusted = fn(&Context<'_>, &Token) -> Result<TrustedCertificate, Box<Problem>>;

fn trusted(
    cx: &Context<'_>,
    tokens: &[Token],
    read: ReadTrusted,
    into: &mut Vec<TrustedCertificate>,
) -> Result<(), Box<Problem>> {
    tokens.iter().try_for_each(|token| read(cx, token).map(|one| into.push(one)))
}

fn trusted_file(cx: &Context<'_>, token: &Token) -> Result<TrustedCertificate, Box<Problem>> {
    file(cx, token).map(TrustedCertificate::File)
}

/// A certificate in the base64 of PEM, without its first and last line.
fn trusted_der(cx: &Context<'_>, token: &Token) -> Result<TrustedCertificate, Box<Problem>> {
    let text = fixed(cx.source, token, "a certificate in base64")?;
    let decoded = base64::engine::general_purpose::STANDARD.decode(text.as_bytes());
    // A certificate is a SEQUENCE (RFC 5280 section 4.1).
    match decoded {
        Ok(der) if der.first() == Some(&0x30) => Ok(TrustedCertificate::Der(der)),
        _ => Err(Problem::error("client-auth", &token.place, "this is no certificate in base64")
            .help("it is what stands between the lines BEGIN and END of a PEM file, without line ends")),
    }
}

/// As in Caddy, a pool or certificates without a mode mean `require_and_verify`, and neither means nothing.
fn client_auth(cx: &mut Context<'_>, option: &Directive) -> Result<Option<ClientAuth>, Box<Problem>> {
    if !option.args.is_empty() {
        return Err(wrong_arguments(option, "client_auth { … }"));
    }
    let mut draft = ClientAuthDraft::default();
    let seen = CLIENT_AUTH.read(cx, &mut draft, option.block.as_deref());
    if let (Some(old), Some(new)) = (seen.token("trusted_ca_cert_file"), seen.token("trust_pool")) {
        return Err(set_twice(new, old));
    }
    let trusts = !draft.issuers.is_empty() || !draft.leaves.is_empty();
    let mode = match draft.mode {
        Some(mode) => mode,
        None if trusts || seen.is_broken => ClientAuthMode::RequireAndVerify,
        None => {
            let message = "`client_auth` does not say which clients are let in";
            return Err(Problem::error("client-auth", &option.name.place, message)
                .help("add `trust_pool file FILE` with the certificates that issue those of clients"));
        }
    };
    let verifies = matches!(mode, ClientAuthMode::VerifyIfGiven | ClientAuthMode::RequireAndVerify);
    // To verify against what the system trusts would let in everybody who ever bought a certificate.
    if verifies && !trusts && !seen.is_broken {
        let message = "`client_auth` verifies certificates, and nothing says which issuers are trusted";
        return Err(Problem::error("client-auth", &option.name.place, message)
            .help("add `trust_pool file FILE` with the certificates that issue those of clients"));
    }
    Ok(Some(ClientAuth { mode, trusted_issuers: draft.issuers, trusted_leaves: draft.leaves }))
}
