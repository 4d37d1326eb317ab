//! testssl.sh (Debian) asks onehop what it negotiates, and rates it.
//!
//! Nothing may be rated above LOW, except what [`EXPECTED`] names: it concerns the test's authority. The report is kept in
//! tests/tls/testssl.txt, with its date.

use std::fmt::Write as _;
use std::path::Path;

use onehop_testkit::{Folder, Onehop, Program};
use serde_json::Value;

use crate::steps::{command, quiet};
use crate::{Outcome, install, workspace};

/// The committed report.
const REPORT: &str = "tests/tls/testssl.txt";

/// Findings above LOW that are right, with the reason.
const EXPECTED: &[(&str, &str)] = &[(
    "cert_revocation",
    "the test's authority has neither a CRL nor OCSP, which its certificate could name",
)];

/// Ratings that need no reason. `WARN` is what testssl.sh could not find out; it is in the report.
const HARMLESS: [&str; 5] = ["OK", "INFO", "LOW", "WARN", "DEBUG"];

/// Fewer findings mean that the run was cut off.
const FINDINGS_MIN: usize = 100;

/// Runs testssl.sh against the program; writes the report where `keep` says so.
pub(crate) fn run(keep: bool) -> Outcome {
    install::debian(&["testssl.sh", "bsdmainutils", "dnsutils", "openssl"])?;
    let folder = Folder::new();
    make_certificate(folder.path())?;
    let onehop = serve(&folder);
    let report = folder.join("report.json");
    let mut testssl =
        command("testssl", &["--quiet", "--color", "0", "--warnings", "batch", "--nodns", "none"]);
    testssl.args(["--ip", "127.0.0.1", "--add-ca"]).arg(folder.join("authority.pem"));
    testssl.arg("--jsonfile").arg(&report).arg(format!("https://localhost:{}", port(&onehop)));
    // Its exit code counts findings; the report decides.
    let output = testssl.output().map_err(|error| format!("cannot run testssl: {error}"))?;
    let Ok(text) = std::fs::read_to_string(&report) else {
        return Err(String::from_utf8_lossy(&output.stdout).into_owned().into());
    };
    let findings = findings(&text)?;
    let wrong = wrong(&findings);
    println!("    {} findings, {} of them wrong", findings.len(), wrong.len());
    if keep {
        std::fs::write(workspace::root().join(REPORT), report_of(&findings, port(&onehop))?)?;
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n").into()) }
}

/// An authority, and a certificate of it for 90 days.
fn make_certificate(folder: &Path) -> Outcome {
    let openssl =
        |words: &str| quiet(command("openssl", &[]).args(words.split_whitespace()).current_dir(folder));
    let key = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes";
    openssl(&format!(
        "req -x509 {key} -keyout authority.key -out authority.pem -days 365 -subj /CN=Authority"
    ))?;
    openssl(&format!("req {key} -keyout site.key -out site.csr -subj /CN=localhost"))?;
    let extensions =
        "subjectAltName=DNS:localhost,IP:127.0.0.1\nextendedKeyUsage=serverAuth\nkeyUsage=digitalSignature\n";
    std::fs::write(folder.join("site.ext"), extensions)?;
    openssl(
        "x509 -req -in site.csr -CA authority.pem -CAkey authority.key -CAcreateserial -days 90 -extfile site.ext -out site.pem",
    )
}

fn serve(folder: &Folder) -> Onehop {
    let data = folder.join("data");
    let globals = format!("admin off\n\tauto_https disable_redirects\n\tdata_dir {}", data.display());
    // HSTS and what browsers may guess are a site's to say.
    let site = "bind 127.0.0.1\n\ttls site.pem site.key\n\theader Strict-Transport-Security max-age=31536000\n\theader X-Content-Type-Options nosniff\n\trespond hello";
    let file =
        folder.write("Onehopfile", format!("{{\n\t{globals}\n}}\nhttps://localhost:0 {{\n\t{site}\n}}\n"));
    let line = ["run", "--log", "json", "--control", "off", "--config"].map(str::to_owned);
    let line = line.into_iter().chain([file.display().to_string()]);
    Program::of(&workspace::program(), line).inside(folder.path()).serve()
}

fn port(onehop: &Onehop) -> &str {
    onehop.address.rsplit(':').next().unwrap_or_default()
}

/// One line of the report.
#[derive(Debug)]
struct Finding {
    id: String,
    severity: String,
    text: String,
}

fn findings(report: &str) -> Outcome<Vec<Finding>> {
    let report: Value = serde_json::from_str(report)?;
    let field = |finding: &Value, name: &str| finding[name].as_str().unwrap_or_default().to_owned();
    let all = report.as_array().ok_or("the report is no list")?;
    Ok(all
        .iter()
        .map(|finding| Finding {
            id: field(finding, "id"),
            severity: field(finding, "severity"),
            text: field(finding, "finding"),
        })
        .collect())
}

/// Findings above LOW that nothing explains, explanations that nothing needs, and a run that was cut off.
fn wrong(findings: &[Finding]) -> Vec<String> {
    let bad = || findings.iter().filter(|finding| !HARMLESS.contains(&finding.severity.as_str()));
    let explains = |finding: &Finding| EXPECTED.iter().any(|(id, _)| finding.id.starts_with(id));
    let mut wrong: Vec<String> = bad()
        .filter(|finding| !explains(finding))
        .map(|finding| format!("{} {}: {}", finding.severity, finding.id, finding.text))
        .collect();
    for (id, _) in EXPECTED {
        if !bad().any(|finding| finding.id.starts_with(id)) {
            wrong.push(format!("{id} is not found any more: take it out of the list"));
        }
    }
    if findings.len() < FINDINGS_MIN {
        wrong.push(format!("there are only {} findings: the run was cut off", findings.len()));
    }
    wrong
}

fn report_of(findings: &[Finding], port: &str) -> Outcome<String> {
    let version =
        workspace::output_of("dpkg-query", &["-W", "-f", "${Version}", "testssl.sh"]).unwrap_or_default();
    let mut text = format!(
        "date: {}\ntestssl.sh: {version}\ncommand: cargo xtask suites --only testssl\ncertificate: ECDSA P-256, 90 days, of an authority made \
         for the run\n\nexpected above LOW:\n",
        workspace::date()
    );
    for (id, reason) in EXPECTED {
        writeln!(text, "{id}: {reason}")?;
    }
    text.push_str("\nfindings:\n");
    for Finding { id, severity, text: found } in findings {
        writeln!(text, "{severity:<8} {id}: {}", found.replace(port, "PORT"))?;
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_rated_above_low_needs_a_reason_and_a_reason_a_finding() {
        let finding = |id: &str, severity: &str| {
            format!(r#"{{"id":"{id}","ip":"a","port":"1","severity":"{severity}","finding":"text"}}"#)
        };
        let report = |last: &str| {
            let many = vec![finding("TLS1_3", "OK"); FINDINGS_MIN].join(",");
            findings(&format!("[{many},{last}]")).unwrap()
        };
        assert!(wrong(&report(&finding("cert_revocation", "HIGH"))).is_empty());
        let unexpected =
            report(&format!("{},{}", finding("RC4", "HIGH"), finding("cert_revocation", "HIGH")));
        assert_eq!(wrong(&unexpected), ["HIGH RC4: text"]);
        assert_eq!(wrong(&report(&finding("a", "LOW"))).len(), 1);
    }
}
