//! Certificates and keys that a configuration names: a pack holds none of them.
//!
//! Keys, because a pack is copied around. Certificates that are trusted, because they are read before a pack is unpacked.

use std::path::Path;

use onehop_config::checked::Checked;
use onehop_config::checked::tls::{CertificateIssuer, TrustedCertificate};

use crate::failure::Failure;

/// Refuses a private key of `tls` below these folders.
pub(super) fn refuse_own_keys(project: &[&Path], checked: &Checked) -> Result<(), Failure> {
    let mut files = checked.sites.iter().flat_map(|site| &site.tls).flat_map(|tls| &tls.files);
    match files.find(|pair| project.iter().any(|folder| pair.key.starts_with(folder))) {
        Some(pair) => Err(Failure::wrong(format!(
            "`tls` names {}, and a pack holds no private keys\n  \
             name a place on the machine where it runs:   tls /etc/ssl/site.pem /etc/ssl/site.key\n  \
             or let it obtain certificates itself:        a site without `tls`",
            pair.key.display()
        ))),
        None => Ok(()),
    }
}

/// Refuses trusted certificates with relative paths: those that are another file with the packed configuration.
pub(super) fn refuse_relative(here: &Checked, packed: &Checked) -> Result<(), Failure> {
    let mut both = trusted(here).into_iter().zip(trusted(packed));
    match both.find(|(here, packed)| here != packed) {
        Some((path, _)) => Err(Failure::wrong(format!(
            "the trusted certificate {} has a relative path, and a pack reads it on the machine where it runs\n  \
             name a place there, with a path that begins with /:  /etc/ssl/root.pem",
            path.display()
        ))),
        None => Ok(()),
    }
}

/// The files of `acme_ca_root`, `ca_root` and `client_auth`, in the order of the sites.
fn trusted(checked: &Checked) -> Vec<&Path> {
    let mut all = Vec::new();
    for tls in checked.sites.iter().flat_map(|site| &site.tls) {
        let managed = tls.managed.iter().flat_map(|managed| &managed.issuers);
        let on_demand = tls.on_demand.iter().flat_map(|on_demand| &on_demand.issuers);
        for issuer in managed.chain(on_demand) {
            if let CertificateIssuer::Acme(acme) = issuer {
                all.extend(acme.trusted_root.as_deref());
            }
        }
        let clients = tls.policy.client_auth.iter();
        for certificate in clients.flat_map(|auth| auth.trusted_issuers.iter().chain(&auth.trusted_leaves)) {
            if let TrustedCertificate::File(path) = certificate {
                all.push(path);
            }
        }
    }
    all
}
