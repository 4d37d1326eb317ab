//! Which certificate a site gets, and what a person reads when `tls` is wrong.

use std::time::Duration;

use onehop_config::checked::tls::{
    AcmeIssuer, Authority, CertificateIssuer, ClientAuthMode, DnsProvider, KeyType, TlsVersion,
    TrustedCertificate,
};
use onehop_config::checked::{Part, Placeholder, RedirectKind, Step};

use crate::memory::Memory;
use crate::outline::host;

/// Each managed name with its issuers, and the number of files.
fn certificates(text: &str) -> Vec<String> {
    let loaded = Memory::main(text).file("cert.pem", "").file("key.pem", "").sound();
    let mut all = Vec::new();
    for tls in loaded.checked.sites.iter().flat_map(|site| &site.tls) {
        all.extend(tls.files.iter().map(|pair| format!("file {}", pair.certificate.display())));
        for managed in &tls.managed {
            let issuers: Vec<String> = managed.issuers.iter().map(issuer).collect();
            let unless = if managed.unless_loaded { " unless loaded" } else { "" };
            let names = managed.names.iter();
            all.extend(names.map(|name| format!("{name} from {}{unless}", issuers.join(", "))));
        }
    }
    all
}

fn issuer(issuer: &CertificateIssuer) -> String {
    match issuer {
        CertificateIssuer::Local(local) => local.authority.id.clone(),
        CertificateIssuer::Acme(acme) => {
            let AcmeIssuer { directory, email, dns, .. } = &**acme;
            let directory = directory.as_deref().unwrap_or("Let's Encrypt");
            let email = email.as_ref().map_or_else(String::new, |email| format!(" as {email}"));
            let dns = if dns.is_some() { " by DNS" } else { "" };
            format!("{directory}{email}{dns}")
        }
    }
}

#[test]
fn names_get_their_certificates_by_caddys_rules() {
    for (text, expected) in [
        ("example.com", &["example.com from Let's Encrypt"][..]),
        ("https://example.com:8443", &["example.com from Let's Encrypt"]),
        ("example.com:8443", &["example.com from Let's Encrypt"]),
        ("http://example.com", &[]),
        ("example.com:80", &[]),
        (":443", &[]),
        (":8080", &[]),
        ("localhost", &["localhost from local"]),
        ("a.localhost:3000", &["a.localhost from local"]),
        ("https://127.0.0.1", &["127.0.0.1 from local"]),
        ("[::1]", &["::1 from local"]),
        ("203.0.113.9", &["203.0.113.9 from local"]),
        (
            "nas.home.arpa, app.internal, printer.local, intranet",
            &[
                "nas.home.arpa from local",
                "app.internal from local",
                "printer.local from local",
                "intranet from local",
            ],
        ),
        ("localhost, example.com", &["localhost from local", "example.com from Let's Encrypt"]),
        ("http://example.com, https://example.com", &["example.com from Let's Encrypt"]),
    ] {
        assert_eq!(certificates(&format!("{text} {{\n\trespond a\n}}\n")), expected, "{text}");
    }
}

/// Caddy's second issuer needs an email address.
const BOTH: &str =
    "example.com from Let's Encrypt as me@a.example, https://acme.zerossl.com/v2/DV90 as me@a.example";

#[test]
fn what_a_site_and_the_global_block_say_of_issuers_counts() {
    for (global, site, expected) in [
        ("email me@a.example", "", BOTH),
        ("", "tls me@a.example", BOTH),
        ("email you@a.example", "tls me@a.example", BOTH),
        ("email me@a.example\n\tcert_issuer acme", "", "example.com from Let's Encrypt as me@a.example"),
        (
            "email me@a.example\n\tacme_ca https://ca.internal/dir",
            "",
            "example.com from https://ca.internal/dir as me@a.example",
        ),
        (
            "email me@a.example\n\tacme_eab {\n\t\tkey_id a\n\t\tmac_key b\n\t}",
            "",
            "example.com from Let's Encrypt as me@a.example",
        ),
        ("acme_ca https://ca.internal/dir", "", "example.com from https://ca.internal/dir"),
        (
            "acme_ca https://ca.internal/dir",
            "tls {\n\tca https://other/dir\n}",
            "example.com from https://other/dir",
        ),
        ("local_certs", "", "example.com from local"),
        ("cert_issuer internal\n\tcert_issuer acme", "", "example.com from local, Let's Encrypt"),
        ("local_certs", "tls {\n\tissuer acme\n}", "example.com from Let's Encrypt"),
        ("", "tls internal", "example.com from local"),
        (
            "",
            "tls {\n\tissuer acme https://one/dir {\n\t\temail a@b.example\n\t}\n\tissuer internal\n}",
            "example.com from https://one/dir as a@b.example, local",
        ),
        ("acme_dns exec /bin/hook", "", "example.com from Let's Encrypt by DNS"),
    ] {
        let text = format!("{{\n\tadmin off\n\t{global}\n}}\nexample.com {{\n\trespond a\n\t{site}\n}}\n");
        assert_eq!(certificates(&text), [expected], "{global} {site}");
    }
}

#[test]
fn a_wildcard_is_obtained_where_dns_can_be_changed_or_the_authority_is_local() {
    let of = |tls: &str| certificates(&format!("*.example.com {{\n\trespond a\n\ttls {tls}\n}}\n"));
    assert_eq!(of("internal"), ["*.example.com from local"]);
    assert_eq!(of("{\n\t\tdns exec /bin/hook --zone a\n\t}"), ["*.example.com from Let's Encrypt by DNS"]);
    assert_eq!(of("cert.pem key.pem"), ["file /work/cert.pem"]);
}

#[test]
fn files_stand_for_certificates_that_would_be_obtained() {
    let of = |global: &str| {
        certificates(&format!(
            "{{\n\tadmin off\n\t{global}\n}}\nexample.com {{\n\ttls cert.pem key.pem\n\trespond a\n}}\n"
        ))
    };
    assert_eq!(of(""), ["file /work/cert.pem", "example.com from Let's Encrypt unless loaded"]);
    assert_eq!(of("auto_https disable_certs"), ["file /work/cert.pem"]);
    assert_eq!(
        of("auto_https ignore_loaded_certs"),
        ["file /work/cert.pem", "example.com from Let's Encrypt"]
    );
    assert_eq!(certificates("{\n\tauto_https disable_certs\n}\nexample.com {\n\trespond a\n}\n"), [""; 0]);
}

#[test]
fn a_site_with_tls_is_encrypted_on_any_port() {
    let loaded = Memory::main(":9443 {\n\ttls cert.pem key.pem\n\trespond a\n}\n")
        .file("cert.pem", "")
        .file("key.pem", "")
        .sound();
    assert!(loaded.checked.listeners[0].tls);
    let redirects = &loaded.checked.listeners[1];
    assert!(!redirects.tls);
    let Step::Redirect { to, kind: RedirectKind::Status(308) } = &loaded.checked.sites[1].routes[0].step
    else {
        panic!("no redirect");
    };
    assert_eq!(to.parts[1], Part::Value(Placeholder::Host));
}

#[test]
fn plain_requests_are_redirected_unless_a_plain_site_names_their_host() {
    for (text, expected) in [
        // A plain site for the host stays; one for any host takes what is left.
        ("a.example, http://a.example, http://b.example", &["a.example b.example", ""][..]),
        ("a.example, :80", &["", "a.example"]),
        ("a.example, http://*.example", &["*.example", ""]),
        ("a.example:8443, b.example", &["a.example", ""]),
        ("http://a.example", &["a.example"]),
    ] {
        let loaded = Memory::main(&format!("{text} {{\n\trespond a\n}}\n")).sound();
        let plain = loaded.checked.listeners.iter().find(|listener| !listener.tls).unwrap();
        let sites = plain.sites.iter().map(|number| &loaded.checked.sites[*number].hosts);
        let hosts: Vec<String> =
            sites.map(|hosts| hosts.iter().map(host).collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(hosts, expected, "{text}");
    }
    for word in ["off", "disable_redirects"] {
        let loaded =
            Memory::main(&format!("{{\n\tauto_https {word}\n}}\nhttps://a.example {{\n\trespond a\n}}\n"))
                .sound();
        assert_eq!(loaded.checked.listeners.len(), 1, "{word}");
    }
}

#[test]
fn every_option_of_tls_is_read() {
    let text = "example.com {\n\trespond a\n\ttls {\n\t\tprotocols tls1.3\n\t\tciphers TLS_AES_128_GCM_SHA256\n\t\tcurves x25519 secp256r1\n\t\talpn http/1.1\n\t\tkey_type rsa2048\n\t\trenewal_window_ratio 0.5\n\t\tclient_auth {\n\t\t\ttrust_pool file cert.pem\n\t\t\ttrusted_leaf_cert_file key.pem\n\t\t}\n\t}\n}\n";
    let loaded = Memory::main(text).file("cert.pem", "").file("key.pem", "").sound();
    let tls = loaded.checked.sites[0].tls.as_ref().unwrap();
    assert_eq!((tls.policy.oldest, tls.policy.newest), (TlsVersion::Tls13, TlsVersion::Tls13));
    assert_eq!(tls.policy.ciphers, ["TLS_AES_128_GCM_SHA256"]);
    assert_eq!(tls.policy.curves, ["x25519", "secp256r1"]);
    assert_eq!((tls.managed[0].key_type, tls.managed[0].renewal_ratio), (KeyType::Rsa2048, 0.5));
    let auth = tls.policy.client_auth.as_ref().unwrap();
    assert_eq!(auth.mode, ClientAuthMode::RequireAndVerify);
    assert_eq!((auth.trusted_issuers.len(), auth.trusted_leaves.len()), (1, 1));
}

#[test]
fn names_that_clients_ask_for_are_obtained_on_demand_and_not_before() {
    let global = "{\n\ton_demand_tls {\n\t\tpermission http {\n\t\t\tendpoint http://a/ask\n\t\t}\n\t}\n}\n";
    for (globals, address, tls, expected) in [
        (global, "https://", "{\n\ton_demand\n}", "Let's Encrypt"),
        (global, "*.example.com", "{\n\ton_demand\n}", "Let's Encrypt"),
        (global, "localhost, a.example", "{\n\ton_demand\n}", "Let's Encrypt"),
        ("", "a.example", "{\n\ton_demand\n}", "Let's Encrypt"),
        ("", "https://", "internal {\n\ton_demand\n}", "local"),
    ] {
        let text = format!("{globals}{address} {{\n\trespond a\n\ttls {tls}\n}}\n");
        let checked = Memory::main(&text).sound().checked;
        let tls = checked.sites[0].tls.as_ref().unwrap();
        let issuers: Vec<_> = tls.on_demand.as_ref().unwrap().issuers.iter().map(issuer).collect();
        assert_eq!((issuers.join(", ").as_str(), tls.managed.len()), (expected, 0), "{text}");
        assert_eq!(checked.global.tls.ask.as_deref(), (!globals.is_empty()).then_some("http://a/ask"));
    }
}

#[test]
fn a_zone_is_updated_as_caddys_plugin_writes_it() {
    let dns = "dns rfc2136 {\n\t\tkey_name test\n\t\tkey_alg hmac-sha512.\n\t\tkey \"aGVsbG8=\"\n\t\tserver \"192.0.2.1\"\n\t}";
    let options = "resolvers 1.1.1.1 [::1]:5353\n\tpropagation_delay 5s\n\tpropagation_timeout -1\n\tdns_ttl 2m\n\tdns_challenge_override_domain _x.b.example";
    let key = DnsProvider::Rfc2136 {
        server: "192.0.2.1:53".to_owned(),
        key_name: "test".to_owned(),
        algorithm: "hmac-sha512".to_owned(),
        key: b"hello".to_vec(),
    };
    for text in [
        format!("*.example.com {{\n\ttls {{\n\t{dns}\n\t{options}\n\t}}\n\trespond a\n}}\n"),
        format!(
            "*.example.com {{\n\ttls {{\n\tissuer acme {{\n\t{dns}\n\t{options}\n\t}}\n\t}}\n\trespond a\n}}\n"
        ),
        format!("{{\n\tacme_{dns}\n}}\n*.example.com {{\n\ttls {{\n\t{options}\n\t}}\n\trespond a\n}}\n"),
    ] {
        let checked = Memory::main(&text).sound().checked;
        let issuers = &checked.sites[0].tls.as_ref().unwrap().managed[0].issuers;
        let CertificateIssuer::Acme(acme) = &issuers[0] else { panic!("{text}") };
        let AcmeIssuer { dns, records, .. } = &**acme;
        assert_eq!(dns.as_ref(), Some(&key), "{text}");
        assert_eq!(records.resolvers, ["1.1.1.1:53", "[::1]:5353"]);
        assert_eq!((records.delay.unwrap().as_secs(), records.timeout.unwrap().as_secs()), (5, 0));
        assert_eq!((records.ttl_seconds, records.name.as_deref()), (Some(120), Some("_x.b.example")));
    }
}

#[test]
fn certificates_of_clients_are_trusted_from_files_folders_and_several_pools() {
    let text = "a.example {\n\trespond a\n\ttls force_automate {\n\t\tclient_auth {\n\t\t\ttrust_pool combined {\n\t\t\t\tsource file cert.pem\n\t\t\t\tsource inline {\n\t\t\t\t\ttrust_der MAAw\n\t\t\t\t}\n\t\t\t}\n\t\t\tverifier leaf file key.pem\n\t\t\tverifier leaf {\n\t\t\t\tfolder leaves\n\t\t\t}\n\t\t}\n\t}\n}\n";
    let memory = Memory::main(text).file("cert.pem", "").file("key.pem", "").file("leaves/a.pem", "");
    let loaded = memory.sound();
    let auth = loaded.checked.sites[0].tls.as_ref().unwrap().policy.client_auth.clone().unwrap();
    assert_eq!(auth.mode, ClientAuthMode::RequireAndVerify);
    let file = |path: &str| TrustedCertificate::File(format!("/work/{path}").into());
    assert_eq!(auth.trusted_issuers, [file("cert.pem"), TrustedCertificate::Der(vec![0x30, 0, 0x30])]);
    assert_eq!(auth.trusted_leaves, [file("key.pem"), TrustedCertificate::File("leaves/a.pem".into())]);
}

#[test]
fn an_authority_of_our_own_issues_as_the_file_says() {
    let text = "{\n\tcert_issuer internal\n\tpki {\n\t\tca {\n\t\t\tname \"Our Authority\"\n\t\t}\n\t\tca company {\n\t\t\troot_cn \"Company Root\"\n\t\t\tintermediate_cn \"Company Intermediate\"\n\t\t\tintermediate_lifetime 30d\n\t\t\troot {\n\t\t\t\tformat pem_file\n\t\t\t\tcert cert.pem\n\t\t\t\tkey key.pem\n\t\t\t}\n\t\t}\n\t}\n}\na.example {\n\trespond a\n}\nb.example {\n\ttls {\n\t\tissuer internal {\n\t\t\tca company\n\t\t\tlifetime 10d\n\t\t\tsign_with_root\n\t\t}\n\t}\n\trespond b\n}\n";
    let loaded = Memory::main(text).file("cert.pem", "").file("key.pem", "").sound();
    let issuers = |site: usize| {
        let CertificateIssuer::Local(local) =
            loaded.checked.sites[site].tls.as_ref().unwrap().managed[0].issuers[0].clone()
        else {
            panic!("site {site}")
        };
        *local
    };
    let (first, second) = (issuers(0), issuers(1));
    assert_eq!(
        (first.authority.id.as_str(), first.authority.name.as_deref()),
        ("local", Some("Our Authority"))
    );
    assert_eq!((first.lifetime, first.signs_with_root), (None, false));
    let Authority { id, root_name, intermediate_name, intermediate_lifetime, root, .. } = second.authority;
    assert_eq!((id.as_str(), root_name.as_deref()), ("company", Some("Company Root")));
    assert_eq!(intermediate_name.as_deref(), Some("Company Intermediate"));
    let day = |count: u64| Some(Duration::from_secs(count * 86_400));
    assert_eq!((intermediate_lifetime, second.lifetime, second.signs_with_root), (day(30), day(10), true));
    let root = root.unwrap();
    assert_eq!(root.certificate.display().to_string(), "/work/cert.pem");
    assert_eq!(root.key.unwrap().display().to_string(), "/work/key.pem");
}

macro_rules! errors {
    ($name:ident, $text:expr) => {
        #[test]
        fn $name() {
            insta::assert_snapshot!(Memory::main($text).errors());
        }
    };
}

errors!(a_wildcard_without_dns_says_what_is_needed, "*.example.com, a.*.example.com {\n\trespond a\n}\n");
errors!(
    mistakes_in_tls_are_named,
    "example.com {\n\trespond a\n\ttls {\n\t\tprotocols tls1.1\n\t\tciphers TLS_RSA\n\t\tcurves x25518\n\t\talpn h2\n\t\tkey_type dsa\n\t\tdns cloudflare TOKEN\n\t\tissuer zerossl\n\t\tget_certificate tailscale\n\t\trenewal_window_ratio 2\n\t\tclient_auth {\n\t\t\tmode verify_if_given\n\t\t}\n\t}\n}\n"
);
errors!(a_file_of_tls_that_is_not_there, "example.com {\n\ttls cert.pem key.pem\n\trespond a\n}\n");
errors!(
    tls_without_encryption,
    "http://example.com {\n\ttls internal\n\trespond a\n}\nb.example {\n\ttls cert.pem\n\trespond a\n}\nc.example {\n\ttls internal\n\ttls {\n\t\tprotocols tls1.3 tls1.2\n\t}\n}\n"
);
errors!(
    mistakes_in_global_options_of_certificates,
    "{\n\tauto_https of\n\tacme_eab id key\n\tstorage redis\n\tkey_type p512\n\tcert_issuer letsencrypt\n}\n:80 {\n\trespond a\n}\n"
);
errors!(tls_over_a_unix_socket, "https://a.internal {\n\tbind unix//run/a.sock\n\trespond a\n}\n");
errors!(on_demand_without_a_permission, "*.example.com {\n\ttls {\n\t\ton_demand\n\t}\n\trespond a\n}\n");
errors!(
    mistakes_in_on_demand,
    "{\n\ton_demand_tls {\n\t\task localhost\n\t\tinterval 2m\n\t\tpermission file a\n\t}\n}\n{$HOST:https://} {\n\ttls {\n\t\ton_demand true\n\t}\n\trespond a\n}\n"
);

errors!(
    mistakes_in_dns_updates,
    "*.example.com {\n\ttls {\n\t\tdns rfc2136 {\n\t\t\tkey_alg hmac-md5\n\t\t\tkey ?\n\t\t\tserver a/b\n\t\t\tzone a\n\t\t}\n\t}\n\trespond a\n}\n*.b.example {\n\ttls {\n\t\tdns rfc2136 {\n\t\t\tkey_name a\n\t\t}\n\t}\n\trespond a\n}\n"
);

errors!(
    mistakes_in_authorities,
    "{\n\tpki {\n\t\tca ../a\n\t\tca company {\n\t\t\troot_name a\n\t\t}\n\t\tca company {\n\t\t\tintermediate_lifetime 5m\n\t\t}\n\t\tca local {\n\t\t\troot {\n\t\t\t\tcert Onehopfile\n\t\t\t}\n\t\t}\n\t\tca offline {\n\t\t\troot {\n\t\t\t\tcert Onehopfile\n\t\t\t}\n\t\t}\n\t\tca open {\n\t\t\tintermediate {\n\t\t\t\tkey Onehopfile\n\t\t\t}\n\t\t}\n\t}\n}\na.example {\n\ttls {\n\t\tissuer internal {\n\t\t\tca compny\n\t\t}\n\t\tissuer internal {\n\t\t\tlifetime 8d\n\t\t}\n\t}\n\trespond a\n}\n"
);
errors!(
    mistakes_in_verifiers,
    "a.example {\n\ttls {\n\t\tclient_auth {\n\t\t\ttrust_pool combined {\n\t\t\t\tfile a.pem\n\t\t\t}\n\t\t\tverifier dummy\n\t\t\tverifier leaf\n\t\t\tverifier leaf pem a\n\t\t\tverifier leaf folder nowhere\n\t\t}\n\t}\n\trespond a\n}\n"
);
errors!(
    a_time_of_dns_records_that_nothing_sets,
    "a.example {\n\ttls {\n\t\tpropagation_delay 10s\n\t\tdns_ttl 5m\n\t}\n\trespond a\n}\n"
);
errors!(an_acme_server_is_not_yet_there, "acme.internal {\n\tacme_server {\n\t\tca company\n\t}\n}\n");

#[test]
fn placeholders_of_tls_have_caddys_names() {
    for (written, long) in [
        ("tls_version", "version"),
        ("tls_cipher", "cipher_suite"),
        ("http.request.tls.resumed", "resumed"),
        ("http.request.tls.proto", "proto"),
        ("http.request.tls.server_name", "server_name"),
        ("tls_client_subject", "client.subject"),
        ("tls_client_issuer", "client.issuer"),
        ("tls_client_serial", "client.serial"),
        ("tls_client_fingerprint", "client.fingerprint"),
        ("tls_client_certificate_pem", "client.certificate_pem"),
        ("tls_client_certificate_der_base64", "client.certificate_der_base64"),
        ("http.request.tls.client.public_key", "client.public_key"),
        ("http.request.tls.client.public_key_sha256", "client.public_key_sha256"),
        ("http.request.tls.client.san.dns_names", "client.san.dns_names"),
        ("http.request.tls.client.san.emails.0", "client.san.emails.0"),
        ("http.request.tls.client.san.ips.12", "client.san.ips.12"),
        ("http.request.tls.client.san.uris", "client.san.uris"),
    ] {
        let loaded = Memory::main(&format!("localhost\nrespond {{{written}}}\n")).sound();
        let Step::Respond { body, .. } = &loaded.checked.sites[0].routes[0].step else { panic!("{written}") };
        let [Part::Value(Placeholder::Tls(value))] = &*body.parts else { panic!("{written}: {body:?}") };
        assert_eq!(value.to_string(), format!("http.request.tls.{long}"));
    }
    for unknown in ["client.san.dns_names.-1", "client.san.names", "client.shoe_size", "proto_mutual"] {
        let text = format!("localhost\nrespond {{http.request.tls.{unknown}}}\n");
        assert!(Memory::main(&text).errors().contains("not have yet"), "{unknown}");
    }
}
