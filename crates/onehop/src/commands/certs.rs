//! `onehop certs`: shows the certificates of a running server, revokes one, and imports those of Caddy.

use std::time::Duration;

use onehop_certificates::import::{Imported, import_caddy};
use serde_json::Value;

use super::certificate_store;
use super::control::ask;
use crate::arguments::{Certs, CertsCommand, ImportCertificates, RevokeCertificate};
use crate::control_client::{list, number, text};
use crate::failure::Failure;
use crate::table::Column::{Left, Right};
use crate::table::table;
use crate::units::{counted, duration};

/// Names of one certificate that its line has; of more, their number.
const NAMES_SHOWN_MAX: usize = 3;

pub(crate) fn certs(arguments: &Certs) -> Result<(), Failure> {
    match &arguments.command {
        Some(CertsCommand::Import(arguments)) => return import(arguments),
        Some(CertsCommand::Revoke(arguments)) => return revoke(arguments),
        None => {}
    }
    let response = ask(&arguments.target, "GET", "/certificates")?;
    if arguments.json {
        super::standard_output::print(&format!("{}\n", response.body));
    } else {
        super::standard_output::print(&page(&response.body));
    }
    Ok(())
}

fn revoke(arguments: &RevokeCertificate) -> Result<(), Failure> {
    let RevokeCertificate { name, reason, target, json } = arguments;
    let response = ask(target, "POST", &format!("/certificates/{name}/revoke/{reason}"))?;
    if *json {
        super::standard_output::print(&format!("{}\n", response.body));
        return Ok(());
    }
    let issuer = text(&response.body, "issuer");
    super::standard_output::print(&format!(
        "revoked the certificate for {name} at {issuer}\n\
         a new certificate is ordered now, and the revoked one is served until it is there:\n  onehop certs\n\
         to stop serving {name}, remove it from the configuration:\n  onehop reload\n"
    ));
    Ok(())
}

fn import(arguments: &ImportCertificates) -> Result<(), Failure> {
    let folder = certificate_store::folder(&arguments.store)?;
    let store = certificate_store::open(&folder)?;
    let imported = import_caddy(&arguments.folder, &store);
    let imported = imported.map_err(|error| Failure::failed(error.to_string()))?;
    let (from, to) = (arguments.folder.display(), folder.display());
    super::standard_output::print(&format!(
        "{} from {from} to {to}\n{}",
        copied(&imported),
        notes(&imported)
    ));
    Ok(())
}

fn copied(imported: &Imported) -> String {
    let authority = if imported.has_authority { ", the local authority" } else { "" };
    format!(
        "copied {}, {}{authority}",
        counted(imported.certificates as u64, "certificate"),
        counted(imported.accounts as u64, "account"),
    )
}

/// What was skipped, and when the rest is used.
fn notes(imported: &Imported) -> String {
    let skipped = imported.skipped.iter().map(|one| format!("skipped {}: {}\n", one.key, one.reason));
    let mut notes: String = skipped.collect();
    if imported.certificates > 0 || imported.has_authority {
        notes.push_str(
            "a running onehop uses them at its next reload, where it has no valid certificate yet, otherwise when \
             that is due for renewal:\n  onehop reload\n",
        );
    }
    notes
}

/// The page. Fields that an older or newer server does not send are shown as nothing.
fn page(status: &Value) -> String {
    let certificates = list(status, "certificates");
    let mut page = format!("{}\n", headline(status));
    let rows: Vec<Vec<String>> = certificates.iter().map(row).collect();
    let columns =
        [Left("NAME"), Left("STATE"), Left("ISSUER"), Right("VALID FOR"), Right("RENEWED IN"), Left("FILE")];
    page.push_str(&table(&columns, &rows));
    page.push_str(&problems(certificates));
    let left_out = number(status, "total").saturating_sub(certificates.len() as u64);
    if left_out > 0 {
        page.push_str(&format!("and {left_out} more, which expire later\n"));
    }
    page
}

/// `3 certificates, 1 with a problem`
pub(super) fn headline(status: &Value) -> String {
    let total = counted(number(status, "total"), "certificate");
    match number(status, "failing") {
        0 => total,
        failing => format!("{total}, {failing} with a problem"),
    }
}

fn row(certificate: &Value) -> Vec<String> {
    let or_none = |text: &str| if text.is_empty() { "-".to_owned() } else { text.to_owned() };
    let valid_for = match certificate.get("seconds_left").and_then(Value::as_i64) {
        None => "-".to_owned(),
        Some(left @ ..0) => format!("{} ago", rough(left.unsigned_abs())),
        Some(left) => rough(left.unsigned_abs()),
    };
    let renewed_in = certificate.get("renews_in_seconds").and_then(Value::as_u64);
    vec![
        names(certificate),
        text(certificate, "state").replace('_', " "),
        or_none(text(certificate, "issuer")),
        valid_for,
        renewed_in.map_or_else(|| "-".to_owned(), rough),
        text(certificate, "file").to_owned(),
    ]
}

/// What is wrong with certificates, a paragraph for each.
pub(super) fn problems(certificates: &[Value]) -> String {
    let problem = |certificate: &Value| {
        let reason = certificate.get("reason").and_then(Value::as_str)?;
        let failed = certificate.get("failed_seconds_ago").and_then(Value::as_u64);
        let failed = failed.map_or_else(String::new, |ago| format!(", failed {} ago", rough(ago)));
        let again = certificate.get("renews_in_seconds").and_then(Value::as_u64);
        let again = again.map_or_else(String::new, |time| format!(", next attempt in {}", rough(time)));
        Some(format!("\n{}{failed}{again}:\n    {}\n", names(certificate), reason.replace('\n', "\n    ")))
    };
    certificates.iter().filter_map(problem).collect()
}

fn names(certificate: &Value) -> String {
    let all: Vec<&str> = list(certificate, "names").iter().filter_map(Value::as_str).collect();
    let shown = all.iter().take(NAMES_SHOWN_MAX).copied().collect::<Vec<_>>().join(", ");
    match all.len().saturating_sub(NAMES_SHOWN_MAX) {
        _ if all.is_empty() => "(no name)".to_owned(),
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// Whole seconds, without the tenths that other durations have.
fn rough(seconds: u64) -> String {
    if seconds < 60 { format!("{seconds} s") } else { duration(Duration::from_secs(seconds)) }
}

#[cfg(test)]
mod tests {
    use onehop_certificates::import::Skipped;

    use super::*;

    #[test]
    fn certificates_stand_in_columns_and_their_problems_below() {
        let status = serde_json::json!({
            "total": 6, "failing": 2,
            "certificates": [
                {"names": ["api.example.com"], "state": "failing", "issuer": null, "file": null, "expires_at": null,
                 "seconds_left": null, "renews_in_seconds": 55, "failed_seconds_ago": 5,
                 "reason": "https://ca.internal/dir refused: no such name (dns). Create an A or AAAA record"},
                {"names": ["old.example.com"], "state": "expired", "issuer": "An Issuer", "file": "/srv/old.pem",
                 "expires_at": "2026-11-20T10:00:00Z", "seconds_left": -260_000, "renews_in_seconds": null,
                 "failed_seconds_ago": null, "reason": "the certificate for old.example.com expired 3 days ago"},
                {"names": ["new.example.com"], "state": "ordered", "issuer": null, "file": null, "expires_at": null,
                 "seconds_left": null, "renews_in_seconds": 0, "failed_seconds_ago": null, "reason": null},
                {"names": ["localhost"], "state": "valid", "issuer": "local", "file": null,
                 "expires_at": "2026-11-24T01:00:00Z", "seconds_left": 39_780, "renews_in_seconds": 25_380,
                 "failed_seconds_ago": null, "reason": null},
                {"names": ["a.example", "b.example", "c.example", "d.example"], "state": "valid",
                 "issuer": "An Issuer", "file": "/srv/cert.pem", "expires_at": "2027-01-20T10:00:00Z",
                 "seconds_left": 5_000_000, "renews_in_seconds": null, "failed_seconds_ago": null, "reason": null},
            ],
        });
        insta::assert_snapshot!(page(&status));
        assert_eq!(page(&serde_json::json!({"total": 0, "failing": 0})), "0 certificates\n");
    }

    #[test]
    fn an_import_says_what_it_skipped_and_when_the_rest_is_used() {
        let skipped = vec![Skipped {
            key: "acme/ca/users/me".to_owned(),
            reason: "the account's key is missing".to_owned(),
        }];
        let imported = Imported { certificates: 1, accounts: 0, has_authority: true, skipped };
        insta::assert_snapshot!(format!("{}\n{}", copied(&imported), notes(&imported)));
        assert_eq!(notes(&Imported::default()), "");
    }
}
