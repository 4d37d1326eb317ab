//! From a Host to a site.

use hashbrown::HashMap;
use onehop_config::checked::HostPattern;
use onehop_message::uri::host_without_port;

/// Bytes of a host name without its port: DNS allows 253, an IPv6 literal needs fewer.
const HOST_BYTES_MAX: usize = 255;

/// The hosts of one listener. An exact host goes before a wildcard, a wildcard with more labels
/// before one with fewer, and a site without hosts takes the rest.
#[derive(Debug, Default)]
pub struct HostTable {
    exact: HashMap<Box<[u8]>, usize, foldhash::fast::RandomState>,
    wildcards: Vec<(Vec<Option<String>>, usize)>,
    rest: Option<usize>,
    first: Option<usize>,
}

impl HostTable {
    /// A table of sites, each with its hosts; no hosts means any. The first of two equals wins.
    pub fn new<'a>(sites: impl IntoIterator<Item = (usize, &'a [HostPattern])>) -> Self {
        let mut table = Self::default();
        for (site, hosts) in sites {
            table.first.get_or_insert(site);
            if hosts.is_empty() {
                table.rest.get_or_insert(site);
            }
            for host in hosts {
                match host {
                    HostPattern::Exact(name) => {
                        table.exact.entry(name.as_bytes().into()).or_insert(site);
                    }
                    HostPattern::Wildcard(labels) => table.wildcards.push((labels.clone(), site)),
                }
            }
        }
        let exact_labels = |labels: &[Option<String>]| labels.iter().flatten().count();
        table.wildcards.sort_by_key(|(labels, _)| std::cmp::Reverse((labels.len(), exact_labels(labels))));
        table
    }

    /// The first site of the listener.
    pub fn first(&self) -> Option<usize> {
        self.first
    }

    /// The site for an effective host as the head has it, with or without a port.
    pub fn find(&self, host: Option<&[u8]>) -> Option<usize> {
        if self.exact.is_empty() && self.wildcards.is_empty() {
            return self.rest;
        }
        let Some(host) = host.map(host_without_port).filter(|h| h.len() <= HOST_BYTES_MAX) else {
            return self.rest;
        };
        let mut lower = [0u8; HOST_BYTES_MAX];
        let lower = &mut lower[..host.len()];
        lower.copy_from_slice(host);
        lower.make_ascii_lowercase();
        if let Some(site) = self.exact.get(&*lower) {
            return Some(*site);
        }
        let wild = self.wildcards.iter().find(|(labels, _)| labels_match(labels, lower));
        wild.map(|(_, site)| *site).or(self.rest)
    }
}

/// Whether a pattern fits a host, without regard to case.
pub(crate) fn host_matches(pattern: &HostPattern, host: &[u8]) -> bool {
    match pattern {
        HostPattern::Exact(name) => name.as_bytes().eq_ignore_ascii_case(host),
        HostPattern::Wildcard(labels) => labels_match(labels, host),
    }
}

fn labels_match(labels: &[Option<String>], host: &[u8]) -> bool {
    let mut parts = host.split(|b| *b == b'.');
    for label in labels {
        match (parts.next(), label) {
            (None, _) | (Some(b""), _) => return false,
            (Some(part), Some(label)) if !part.eq_ignore_ascii_case(label.as_bytes()) => return false,
            _ => {}
        }
    }
    parts.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wildcard(text: &str) -> HostPattern {
        HostPattern::Wildcard(text.split('.').map(|l| (l != "*").then(|| l.to_owned())).collect())
    }

    fn table() -> HostTable {
        let exact = [HostPattern::Exact("example.com".into()), HostPattern::Exact("::1".into())];
        let near = [wildcard("*.example.com")];
        let far = [wildcard("*.*.example.com"), wildcard("*.eu.example.com")];
        HostTable::new([(0, &exact[..]), (1, &near[..]), (2, &far[..1]), (3, &far[1..])])
    }

    #[test]
    fn an_exact_host_is_found_whatever_its_case_port_or_final_dot() {
        for host in ["example.com", "EXAMPLE.com", "example.com:8080", "example.com.", "[::1]:80", "[::1]"] {
            assert_eq!(table().find(Some(host.as_bytes())), Some(0), "{host}");
        }
    }

    #[test]
    fn a_star_stands_for_exactly_one_label() {
        assert_eq!(table().find(Some(b"a.example.com")), Some(1));
        assert_eq!(table().find(Some(b"a.b.example.com")), Some(2));
        assert_eq!(table().find(Some(b"a.eu.example.com")), Some(3));
        assert_eq!(table().find(Some(b"a.b.c.example.com")), None);
        assert_eq!(table().find(Some(b".example.com")), None);
    }

    #[test]
    fn an_unknown_or_overlong_host_finds_nobody_unless_a_site_takes_any() {
        assert_eq!(table().find(Some(b"other.test")), None);
        assert_eq!(table().find(Some(&[b'a'; 4000])), None);
        assert_eq!(table().find(None), None);
        let any = HostTable::new([(7, &[][..])]);
        assert_eq!(any.find(Some(b"other.test")), Some(7));
        assert_eq!(any.find(None), Some(7));
    }
}
