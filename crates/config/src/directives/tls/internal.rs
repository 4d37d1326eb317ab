//! `issuer internal` and the global option `pki`: authorities of our own, and how they issue.

use std::path::PathBuf;
use std::time::Duration;

use super::file;
use crate::arguments::wrong_arguments;
use crate::check::Context;
use crate::check::template::fixed;
use crate::checked::tls::{Authority, AuthorityFiles, CertificateIssuer, LocalIssuer};
use crate::limits::{AUTHORITY_LIFE_MAX, AUTHORITY_LIFE_MIN};
use crate::nearest::nearest;
use crate::option_table::{OptionTable, Value, flag, line, not_yet, repeated, value};
use crate::problem::Problem;
use crate::syntax::{Directive, Token};

/// The authority that is there without `pki`.
const USUAL: &str = "local";
/// How long an intermediate lives where `pki` does not say it, as in Caddy.
const INTERMEDIATE_LIFE: Duration = Duration::from_secs(7 * 24 * 60 * 60);
const CA_USAGE: &str = "ca [<name>] { … }";

/// What `issuer internal` says.
#[derive(Debug, Default)]
pub(crate) struct InternalDraft {
    authority: Option<Token>,
    lifetime: Option<(Duration, Token)>,
    signs_with_root: bool,
}

/// Options of `issuer internal`.
pub(crate) const INTERNAL: OptionTable<InternalDraft> = OptionTable {
    once: true,
    ..OptionTable::new(
        "issuer internal",
        &[
            value("ca", "company", |_, draft, value| {
                draft.authority = Some(value.token.clone());
                Ok(())
            }),
            value("lifetime", "12h", |_, draft, value| {
                draft.lifetime = Some((life(value)?, value.token.clone()));
                Ok(())
            }),
            flag("sign_with_root", |draft| draft.signs_with_root = true),
        ],
    )
};

/// Options of the global `pki`.
pub(crate) const PKI: OptionTable<Vec<Authority>> =
    OptionTable::new("pki", &[repeated(line("ca", "[<name>] { … }", authority))]);

/// Options of `ca` in `pki`.
pub(crate) const CA: OptionTable<Authority> = OptionTable {
    once: true,
    ..OptionTable::new(
        "ca",
        &[
            value("name", "\"Company Authority\"", |cx, authority, value| {
                authority.name = Some(fixed(cx.source, value.token, "the name of an authority")?);
                Ok(())
            }),
            value("root_cn", "\"Company Root\"", |cx, authority, value| {
                authority.root_name = Some(fixed(cx.source, value.token, "a common name")?);
                Ok(())
            }),
            value("intermediate_cn", "\"Company Intermediate\"", |cx, authority, value| {
                authority.intermediate_name = Some(fixed(cx.source, value.token, "a common name")?);
                Ok(())
            }),
            value("intermediate_lifetime", "7d", |_, authority, value| {
                authority.intermediate_lifetime = Some(life(value)?);
                Ok(())
            }),
            line("root", "{ cert <file> key <file> }", |cx, authority, line| {
                authority.root = Some(files(cx, line)?);
                Ok(())
            }),
            line("intermediate", "{ cert <file> key <file> }", |cx, authority, line| {
                authority.intermediate = Some(files(cx, line)?);
                Ok(())
            }),
            not_yet("maintenance_interval"),
            not_yet("renewal_window_ratio"),
        ],
    )
};

/// A certificate and its key, so far.
type FilesDraft = (Option<PathBuf>, Option<PathBuf>);

/// Options of `root` and `intermediate` in `ca`.
pub(crate) const FILES: OptionTable<FilesDraft> = OptionTable {
    once: true,
    ..OptionTable::new(
        "root",
        &[
            value("cert", "./root.pem", |cx, files, value| {
                files.0 = Some(file(cx, value.token)?);
                Ok(())
            }),
            value("key", "./root.key", |cx, files, value| {
                files.1 = Some(file(cx, value.token)?);
                Ok(())
            }),
            value("format", "pem_file", |_, _, value| match value.token.text.as_str() {
                "pem_file" => Ok(()),
                other => {
                    let message = format!("there is no format `{other}`");
                    Err(Problem::error("unknown-option", &value.token.place, message)
                        .help("files are in PEM: `format pem_file`, or nothing"))
                }
            }),
        ],
    )
};

/// `pki { ca … }` of the global block.
pub(crate) fn pki(cx: &mut Context<'_>, line: &Directive) -> Result<(), Box<Problem>> {
    if !line.args.is_empty() {
        return Err(wrong_arguments(line, "pki { ca [<name>] { … } }"));
    }
    let mut authorities = Vec::new();
    PKI.read(cx, &mut authorities, line.block.as_deref());
    cx.certificates.authorities = authorities;
    Ok(())
}

fn authority(
    cx: &mut Context<'_>,
    authorities: &mut Vec<Authority>,
    line: &Directive,
) -> Result<(), Box<Problem>> {
    let mut authority = usual();
    match line.args.as_slice() {
        [] => {}
        [name] => authority.id = id(cx, name)?,
        _ => return Err(wrong_arguments(line, CA_USAGE)),
    }
    if authorities.iter().any(|known| known.id == authority.id) {
        let message = format!("there are two authorities `{}`", authority.id);
        return Err(Problem::error("duplicate-option", &line.name.place, message)
            .help("put both blocks into one, or name one of them otherwise: `ca NAME { … }`"));
    }
    let seen = CA.read(cx, &mut authority, line.block.as_deref());
    // What follows would be said of an option that is broken already.
    if !seen.is_broken {
        agree(&authority, line)?;
    }
    authorities.push(authority);
    Ok(())
}

/// Refuses files that do not make a chain, and a root that `onehop trust` would not find.
fn agree(authority: &Authority, line: &Directive) -> Result<(), Box<Problem>> {
    let wrong = |message: &str, help: &str| {
        Err(Problem::error("contradiction", &line.name.place, message).help(help))
    };
    match (&authority.root, &authority.intermediate) {
        (None, None) => Ok(()),
        _ if authority.id == USUAL => wrong(
            "the authority `local` has a root of its own, which `onehop trust` installs",
            "give this authority another name, `ca company { … }`, and write `issuer internal { ca company }`",
        ),
        (None, Some(_)) => wrong(
            "there is an `intermediate` without the `root` that has signed it",
            "add `root { cert FILE }`",
        ),
        (_, Some(AuthorityFiles { key: None, .. })) => {
            wrong("`intermediate` has no key to sign with", "add `key FILE` to its block")
        }
        (Some(AuthorityFiles { key: None, .. }), None) => wrong(
            "`root` has no key to sign an intermediate with",
            "add `key FILE` to its block, or an `intermediate` with its key",
        ),
        _ => Ok(()),
    }
}

fn files(cx: &mut Context<'_>, line: &Directive) -> Result<AuthorityFiles, Box<Problem>> {
    if !line.args.is_empty() {
        return Err(wrong_arguments(line, "root { cert <file> key <file> }"));
    }
    let mut files = (None, None);
    let seen = FILES.read(cx, &mut files, line.block.as_deref());
    match files {
        (Some(certificate), key) => Ok(AuthorityFiles { certificate, key }),
        // The broken line has its own error.
        (None, key) if seen.is_broken => Ok(AuthorityFiles { certificate: PathBuf::new(), key }),
        (None, _) => {
            let message = format!("`{}` does not name its certificate", line.name.text);
            Err(Problem::error("arguments", &line.name.place, message).help("add `cert FILE` to its block"))
        }
    }
}

/// The name of an authority, which is also that of its folder.
fn id(cx: &Context<'_>, token: &Token) -> Result<String, Box<Problem>> {
    let name = fixed(cx.source, token, "the name of an authority")?;
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    if !name.is_empty() && name.bytes().all(fits) {
        return Ok(name);
    }
    let message = format!("`{}` cannot be the name of an authority", token.text);
    Err(Problem::error("name", &token.place, message)
        .help("it is the name of a folder: letters, digits, `-` and `_`; `name` takes any text"))
}

fn life(value: Value<'_>) -> Result<Duration, Box<Problem>> {
    value.within(AUTHORITY_LIFE_MIN, AUTHORITY_LIFE_MAX)
}

/// The authority of this name, if there is one.
fn known(cx: &Context<'_>, id: &str) -> Option<Authority> {
    let written = cx.certificates.authorities.iter().find(|known| known.id == id);
    written.cloned().or_else(|| (id == USUAL).then(usual))
}

/// The authority that issues where a site names none.
pub(crate) fn local_issuer(cx: &Context<'_>) -> CertificateIssuer {
    let authority = known(cx, USUAL).unwrap_or_else(usual);
    CertificateIssuer::Local(Box::new(LocalIssuer { authority, lifetime: None, signs_with_root: false }))
}

fn usual() -> Authority {
    Authority { id: USUAL.to_owned(), ..Authority::default() }
}

/// `issuer internal { … }`
pub(super) fn internal(cx: &mut Context<'_>, option: &Directive) -> Result<CertificateIssuer, Box<Problem>> {
    let mut draft = InternalDraft::default();
    INTERNAL.read(cx, &mut draft, option.block.as_deref());
    let InternalDraft { authority, lifetime, signs_with_root } = draft;
    let authority = match &authority {
        None => known(cx, USUAL).unwrap_or_else(usual),
        Some(token) => known(cx, &token.text).ok_or_else(|| no_authority(cx, token))?,
    };
    if let Some((lifetime, token)) = &lifetime {
        let intermediate = authority.intermediate_lifetime.unwrap_or(INTERMEDIATE_LIFE);
        if !signs_with_root && authority.intermediate.is_none() && *lifetime >= intermediate {
            let message = "certificates would live longer than the intermediate that signs them";
            return Err(Problem::error("contradiction", &token.place, message).help(
                "in `pki { ca { … } }`, `intermediate_lifetime` makes it longer than the usual 7 days",
            ));
        }
    }
    let root_without_key = authority.root.as_ref().is_some_and(|root| root.key.is_none());
    if signs_with_root && root_without_key {
        let message = format!("the root of the authority `{}` has no key to sign with", authority.id);
        return Err(Problem::error("contradiction", &option.name.place, message)
            .help("add `key FILE` to its `root`, or remove `sign_with_root`"));
    }
    let lifetime = lifetime.map(|(lifetime, _)| lifetime);
    Ok(CertificateIssuer::Local(Box::new(LocalIssuer { authority, lifetime, signs_with_root })))
}

fn no_authority(cx: &Context<'_>, token: &Token) -> Box<Problem> {
    let problem =
        Problem::error("unknown-name", &token.place, format!("there is no authority `{}`", token.text));
    match nearest(&token.text, cx.certificates.authorities.iter().map(|known| known.id.as_str())) {
        Some(near) => problem.help(format!("did you mean `{near}`?")),
        None => problem.help(format!("the global block defines it: `pki {{ ca {} {{ … }} }}`", token.text)),
    }
}
