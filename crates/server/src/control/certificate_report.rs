//! What is told of certificates: `onehop certs`, `onehop status` and `/metrics`; documented in docs/control-api.md.
//!
//! Only reads what the keeper and the sites know. Keys are never among it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use onehop_certificates::keeper::CertificateStatus;
use onehop_certificates::loaded::Loaded;
use onehop_message::calendar::Moment;
use onehop_metrics::families::{Families, Kind};
use serde::Serialize;

/// Bytes of the certificates in one response, about: a client of the control socket reads at most 4 MiB. Those with a
/// problem come first, so that it is the others that are left out.
const LISTED_BYTES_MAX: usize = 3 * 1024 * 1024;

/// Bytes of one certificate in a response, besides its names and its reason.
const LISTED_BYTES_EACH: usize = 320;

/// Certificates with a problem in `GET /status`: a page for a person. `GET /certificates` has the others.
const IN_STATUS_MAX: usize = 20;

/// Certificates with a metric of their own; of more, those that expire first. As many as sites have counters.
const IN_METRICS_MAX: usize = 1_000;

/// All certificates of the server, or those of them that have a problem.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct CertificatesStatus {
    /// How many there are, those included that are only wanted yet.
    pub total: usize,
    /// How many of them have a problem.
    pub failing: usize,
    /// Those that are shown.
    pub certificates: Vec<CertificateReport>,
}

/// A certificate in [`CertificatesStatus`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CertificateReport {
    /// The names that it is for.
    pub names: Vec<String>,
    /// `valid`; `ordered` where there is none yet; `failing`, `expired` and `not_yet_valid` are problems.
    pub state: &'static str,
    /// The folder of its issuer in the store; of a file, the common name of its issuer.
    pub issuer: Option<String>,
    /// Its file; none where it is obtained and renewed.
    pub file: Option<PathBuf>,
    /// Its end (RFC 3339).
    pub expires_at: Option<String>,
    /// Seconds until its end; negative afterwards.
    pub seconds_left: Option<i64>,
    /// Seconds until it is renewed, or until the next attempt; none for a file.
    pub renews_in_seconds: Option<u64>,
    /// What is wrong with it, with the next step.
    pub reason: Option<String>,
    /// Seconds since the last attempt failed.
    pub failed_seconds_ago: Option<u64>,
}

/// A certificate that was revoked: the response of `POST /certificates/NAME/revoke/REASON`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RevokedCertificate {
    /// Its name, as it was asked for.
    pub name: String,
    /// The folder of its issuer in the store.
    pub issuer: String,
}

/// A certificate that a site loads from files.
#[derive(Debug, Clone)]
pub(super) struct FileCertificate {
    /// The file of its chain.
    pub(super) path: PathBuf,
    /// What is in it.
    pub(super) loaded: Arc<Loaded>,
}

/// Every certificate, those with a problem first, then those that expire first.
pub(super) struct Certificates(Vec<CertificateReport>);

impl Certificates {
    /// From what the keeper and the sites know.
    pub(super) fn of(kept: Vec<CertificateStatus>, files: &[FileCertificate], now: SystemTime) -> Self {
        let kept = kept.into_iter().map(|status| obtained(status, now));
        let mut all: Vec<_> = kept.chain(files.iter().map(|file| from_file(file, now))).collect();
        all.sort_by_key(|one| (!one.is_failing(), one.seconds_left.unwrap_or(i64::MIN)));
        Self(all)
    }

    /// For `GET /certificates`.
    pub(super) fn all(self) -> CertificatesStatus {
        let (total, failing) = (self.0.len(), self.failing());
        let mut bytes = 0;
        let fits = |one: &CertificateReport| {
            let names: usize = one.names.iter().map(|name| name.len() + 3).sum();
            bytes += LISTED_BYTES_EACH + names + one.reason.as_ref().map_or(0, String::len);
            bytes <= LISTED_BYTES_MAX
        };
        CertificatesStatus { total, failing, certificates: self.0.into_iter().take_while(fits).collect() }
    }

    /// For `GET /status`.
    pub(super) fn problems(self) -> CertificatesStatus {
        let (total, failing) = (self.0.len(), self.failing());
        let shown = failing.min(IN_STATUS_MAX);
        CertificatesStatus { total, failing, certificates: self.0.into_iter().take(shown).collect() }
    }

    /// For `/metrics`. Of certificates with the same first name the one that expires first counts.
    pub(super) fn write_metrics(&self, now: SystemTime, out: &mut Families) {
        let now = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let mut ends: Vec<(i64, &str)> = self.0.iter().filter_map(CertificateReport::end).collect();
        ends.sort_unstable();
        let mut by_name: BTreeMap<&str, i64> = BTreeMap::new();
        for (seconds_left, name) in ends {
            if by_name.len() < IN_METRICS_MAX {
                by_name.entry(name).or_insert(seconds_left);
            }
        }
        let name = "onehop_certificate_expiry_timestamp_seconds";
        let family = out.family(name, Kind::Gauge, "When a certificate expires, in seconds since 1970.");
        for (certificate, seconds_left) in by_name {
            family.sample(&[("name", certificate)], now.saturating_add_signed(seconds_left));
        }
        let help = "Certificates that are not valid, or whose last order failed.";
        out.family("onehop_certificates_failing", Kind::Gauge, help).sample(&[], self.failing());
    }

    fn failing(&self) -> usize {
        self.0.iter().filter(|one| one.is_failing()).count()
    }
}

impl CertificateReport {
    fn is_failing(&self) -> bool {
        self.reason.is_some()
    }

    fn end(&self) -> Option<(i64, &str)> {
        Some((self.seconds_left?, self.names.first()?))
    }
}

fn obtained(status: CertificateStatus, now: SystemTime) -> CertificateReport {
    let has_expired = status.not_after.is_some_and(|end| end < now);
    let state = match (&status.last_error, status.not_after) {
        _ if has_expired => "expired",
        (Some(_), _) => "failing",
        (None, None) => "ordered",
        (None, Some(_)) => "valid",
    };
    let (error, failed_at) = status.last_error.unzip();
    let reason = error.or_else(|| {
        has_expired.then(|| "it has expired, and clients refuse it: its renewal is under way".to_owned())
    });
    CertificateReport {
        names: vec![status.name],
        state,
        issuer: status.issuer,
        file: None,
        expires_at: status.not_after.map(|end| Moment::of(end).rfc3339()),
        seconds_left: status.not_after.map(|end| seconds_until(end, now)),
        renews_in_seconds: Some(seconds(status.next_renewal.duration_since(now).unwrap_or_default())),
        reason,
        failed_seconds_ago: failed_at.map(|at| seconds(now.duration_since(at).unwrap_or_default())),
    }
}

fn from_file(file: &FileCertificate, now: SystemTime) -> CertificateReport {
    let loaded = &file.loaded;
    let state = match () {
        () if now > loaded.not_after => "expired",
        () if now < loaded.not_before => "not_yet_valid",
        () => "valid",
    };
    CertificateReport {
        names: loaded.names.clone(),
        state,
        issuer: Some(loaded.issuer.clone()).filter(|issuer| !issuer.is_empty()),
        file: Some(file.path.clone()),
        expires_at: Some(Moment::of(loaded.not_after).rfc3339()),
        seconds_left: Some(seconds_until(loaded.not_after, now)),
        renews_in_seconds: None,
        reason: loaded.warning(now),
        failed_seconds_ago: None,
    }
}

fn seconds_until(end: SystemTime, now: SystemTime) -> i64 {
    let signed = |time: Duration| i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    match end.duration_since(now) {
        Ok(left) => signed(left),
        Err(since) => -signed(since.duration()),
    }
}

/// Rounded up: what is due in half a second is not due yet.
fn seconds(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}

#[cfg(test)]
mod tests {
    use onehop_metrics::exposition::{self, TextFormat};

    use super::*;

    fn at(seconds: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(seconds)
    }

    fn status(name: &str, not_after: Option<u64>, error: Option<&str>) -> CertificateStatus {
        CertificateStatus {
            name: name.to_owned(),
            issuer: not_after.map(|_| "local".to_owned()),
            not_after: not_after.map(at),
            next_renewal: at(1_060),
            last_error: error.map(|error| (error.to_owned(), at(940))),
        }
    }

    fn all() -> Certificates {
        let kept = vec![
            status("valid.example", Some(5_000), None),
            status("ordered.example", None, None),
            status("failing.example", Some(4_000), Some("nobody answers: start it")),
            status("expired.example", Some(900), None),
            status("never.example", None, Some("nobody answers: start it")),
        ];
        Certificates::of(kept, &[], at(1_000))
    }

    #[test]
    fn problems_come_first_and_are_counted() {
        let shown = all().all();
        assert_eq!((shown.total, shown.failing), (5, 3));
        let states: Vec<_> = shown
            .certificates
            .iter()
            .map(|one| (one.names[0].as_str(), one.state, one.seconds_left))
            .collect();
        assert_eq!(
            states,
            [
                ("never.example", "failing", None),
                ("expired.example", "expired", Some(-100)),
                ("failing.example", "failing", Some(3_000)),
                ("ordered.example", "ordered", None),
                ("valid.example", "valid", Some(4_000)),
            ]
        );
        assert!(
            shown
                .certificates
                .iter()
                .all(|one| one.reason.is_some() == (one.state != "valid" && one.state != "ordered"))
        );
        assert_eq!(shown.certificates[2].failed_seconds_ago, Some(60));
        assert_eq!(shown.certificates[2].renews_in_seconds, Some(60));
        let problems = all().problems();
        assert_eq!((problems.total, problems.failing, problems.certificates.len()), (5, 3, 3));
    }

    #[test]
    fn a_response_stays_within_its_bound_however_many_certificates_there_are() {
        let reason = "r".repeat(1_000);
        let many = (0..5_000).map(|number| status(&format!("{number}.example"), None, Some(&reason)));
        let many: Vec<_> = many.collect();
        let shown = Certificates::of(many.clone(), &[], at(1_000)).all();
        assert_eq!((shown.total, shown.failing), (5_000, 5_000));
        assert!((2_000..3_000).contains(&shown.certificates.len()), "{}", shown.certificates.len());
        assert!(serde_json::to_string(&shown).unwrap().len() <= LISTED_BYTES_MAX);
        assert_eq!(Certificates::of(many, &[], at(1_000)).problems().certificates.len(), IN_STATUS_MAX);
    }

    #[test]
    fn metrics_have_the_end_of_each_certificate_up_to_a_bound() {
        let text = |certificates: Certificates| {
            let mut out = Families::default();
            certificates.write_metrics(at(1_000), &mut out);
            exposition::text(&out, TextFormat::Prometheus)
        };
        insta::assert_snapshot!(text(all()));
        let many = (0..2_000).map(|number| status(&format!("{number}.example"), Some(2_000 + number), None));
        let text = text(Certificates::of(many.collect(), &[], at(1_000)));
        assert_eq!(text.matches("seconds{").count(), IN_METRICS_MAX);
        assert!(text.contains("{name=\"0.example\"} 2000\n"), "{text}");
        assert!(!text.contains("1999.example"));
    }
}
