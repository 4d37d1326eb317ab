//! What is said of an image: its configuration, its manifest, and the lists of both kinds of archives.
//!
//! JSON of sorted fields, so that equal images have equal bytes.

use std::collections::BTreeMap;
use std::time::{Duration, UNIX_EPOCH};

use onehop_message::calendar::Moment;
use serde_json::{Value, json};

use super::layer::Layer;
use super::{DATA_FOLDER, ImageError, Settings, USER};
use crate::{Digest, Index};

/// Media types of the OCI image specification, media-types.md.
pub(super) const CONFIG_TYPE: &str = "application/vnd.oci.image.config.v1+json";
pub(super) const MANIFEST_TYPE: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX_TYPE: &str = "application/vnd.oci.image.index.v1+json";
const LAYER_TYPE: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

/// The file that says that this is an image layout (image-layout.md).
pub(super) const LAYOUT: &[u8] = br#"{"imageLayoutVersion":"1.0.0"}"#;

/// Where programs look for programs. Workers get the runtime's folder in front of it.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Nanoseconds in a second, in which Docker counts.
const SECOND: u64 = 1_000_000_000;

/// 9999-12-31T23:59:59Z, in seconds since 1970.
const LAST_SECOND: u64 = 253_402_300_799;

/// What the name of a pack becomes in an image where it cannot be a file's name there.
const PLAIN_NAME: &str = "app";

/// A piece as others refer to it.
pub(super) struct Descriptor {
    kind: &'static str,
    digest: Digest,
    length: u64,
}

impl Descriptor {
    pub(super) fn of(kind: &'static str, bytes: &[u8]) -> Self {
        Self { kind, digest: Digest::of(bytes), length: bytes.len() as u64 }
    }

    fn json(&self) -> Value {
        json!({"mediaType": self.kind, "digest": name(&self.digest), "size": self.length})
    }
}

/// Everything that there is to say.
pub(super) struct Image<'a> {
    pub(super) index: &'a Index,
    pub(super) name: &'a str,
    pub(super) architecture: &'static str,
    pub(super) settings: &'a Settings,
    pub(super) layers: &'a [Layer],
}

impl Image<'_> {
    /// The configuration (config.md). `Healthcheck` is Docker's; others pass it over.
    pub(super) fn config(&self, ports: &[u16]) -> Vec<u8> {
        let created = time(self.settings.created.unwrap_or(0));
        let program = format!("/{}", self.name);
        let history = self.layers.iter().map(|layer| {
            json!({
                "created": created,
                "created_by": format!("{}: onehop pack --oci", self.index.made_by),
                "comment": layer.holds,
            })
        });
        let diffs = self.layers.iter().map(|layer| name(&layer.uncompressed));
        let exposed: BTreeMap<String, Value> =
            ports.iter().map(|port| (format!("{port}/tcp"), json!({}))).collect();
        let config = json!({
            "architecture": self.architecture,
            "os": "linux",
            "created": created,
            "config": {
                "User": format!("{USER}:{USER}"),
                "Entrypoint": [program],
                "WorkingDir": "/",
                "Env": [
                    format!("PATH={PATH}"),
                    "ONEHOP_LOG=json".to_owned(),
                    "ONEHOP_LOG_TO=stdout".to_owned(),
                    // As systemd names it: the first place where the server looks for its data directory.
                    format!("STATE_DIRECTORY={DATA_FOLDER}"),
                ],
                "Volumes": { DATA_FOLDER: {} },
                "ExposedPorts": exposed,
                "StopSignal": "SIGTERM",
                "Healthcheck": {
                    "Test": ["CMD", program, "status", "--healthy"],
                    "Interval": 10 * SECOND,
                    "Timeout": 5 * SECOND,
                    "StartPeriod": 30 * SECOND,
                    "Retries": 3,
                },
                "Labels": self.labels(&created),
            },
            "rootfs": {"type": "layers", "diff_ids": diffs.collect::<Vec<_>>()},
            "history": history.collect::<Vec<_>>(),
        });
        bytes(&config)
    }

    /// Predefined keys are those of annotations.md.
    fn labels(&self, created: &str) -> BTreeMap<String, String> {
        let mut labels =
            BTreeMap::from([("org.opencontainers.image.title".to_owned(), self.name.to_owned())]);
        if self.settings.created.is_some() {
            labels.insert("org.opencontainers.image.created".to_owned(), created.to_owned());
        }
        labels.extend(self.settings.labels.clone());
        labels
    }

    /// The manifest (manifest.md).
    pub(super) fn manifest(&self, config: &Descriptor) -> Vec<u8> {
        let layers = self
            .layers
            .iter()
            .map(|layer| Descriptor { kind: LAYER_TYPE, digest: layer.digest, length: layer.stored }.json());
        bytes(&json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST_TYPE,
            "config": config.json(),
            "layers": layers.collect::<Vec<_>>(),
        }))
    }

    /// The list of an image layout (image-index.md), with names for containerd and for others.
    pub(super) fn index_json(&self, manifest: &Descriptor) -> Vec<u8> {
        let full = self.settings.reference.full();
        let mut descriptor = manifest.json();
        if let Some(fields) = descriptor.as_object_mut() {
            fields.insert("platform".to_owned(), json!({"architecture": self.architecture, "os": "linux"}));
            fields.insert(
                "annotations".to_owned(),
                json!({"io.containerd.image.name": full, "org.opencontainers.image.ref.name": full}),
            );
        }
        bytes(&json!({"schemaVersion": 2, "mediaType": INDEX_TYPE, "manifests": [descriptor]}))
    }

    /// The list that `docker load` reads.
    pub(super) fn docker_manifest(&self, config: &Digest) -> Vec<u8> {
        let layers = self.layers.iter().map(|layer| format!("blobs/sha256/{}", layer.digest));
        bytes(&json!([{
            "Config": format!("blobs/sha256/{config}"),
            "RepoTags": [self.settings.reference.short()],
            "Layers": layers.collect::<Vec<_>>(),
        }]))
    }
}

/// The architecture as images name it (that of Go).
pub(super) fn architecture(target: &str) -> Result<&'static str, ImageError> {
    match target {
        "x86_64-linux" => Ok("amd64"),
        "aarch64-linux" => Ok("arm64"),
        other => Err(ImageError::Target(other.to_owned())),
    }
}

/// The program's name in `/`: that of the pack, unless it would hide a folder or leave it.
pub(super) fn program_name(name: &str) -> String {
    let is_sound = !name.is_empty()
        && name.len() <= 255
        && name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'/')
        && !matches!(name, "." | ".." | "etc" | "tmp" | "var" | "run" | "dev" | "proc" | "sys");
    if is_sound { name.to_owned() } else { PLAIN_NAME.to_owned() }
}

/// TCP ports of addresses as they are shown, and what to say of those that nobody outside will reach.
pub(super) fn ports(listens: &[String]) -> (Vec<u16>, Vec<String>) {
    let mut ports: Vec<u16> = listens.iter().filter_map(|listen| port(listen)).collect();
    ports.sort_unstable();
    ports.dedup();
    let is_loopback = |listen: &String| {
        let bare = listen.split_once("://").map_or(listen.as_str(), |(_, rest)| rest);
        bare.starts_with("127.") || bare.starts_with("[::1]")
    };
    let mut warnings = Vec::new();
    if !listens.is_empty() && listens.iter().all(is_loopback) {
        warnings.push(format!(
            "the pack listens on {} only, which nobody outside of a container reaches: leave `bind` out, or start \
             it with ONEHOP_LISTEN=:8080",
            listens.join(", ")
        ));
    }
    if let Some(port) = ports.iter().find(|port| **port < 1024) {
        warnings.push(format!(
            "the image's user is not root, and some systems let only root listen on port {port}: a port from 1024 \
             on works everywhere"
        ));
    }
    (ports, warnings)
}

/// `:8080`, `127.0.0.1:8080`, `[::1]:8080`, `http://localhost:8080`, `https://example.com`.
fn port(listen: &str) -> Option<u16> {
    let (scheme, rest) = listen.split_once("://").unwrap_or(("", listen));
    if rest.starts_with("unix/") {
        return None;
    }
    let authority = rest.split('/').next().unwrap_or_default();
    let port = authority.rsplit_once(':').map(|(_, port)| port).filter(|port| !port.ends_with(']'));
    let port = match (port, scheme) {
        (Some(port), _) => port.parse().ok()?,
        (None, "http") => 80,
        (None, "https") => 443,
        (None, _) => return None,
    };
    (port != 0).then_some(port)
}

/// RFC 3339, in UTC. Its years have four digits: a later second becomes the last one of them.
fn time(seconds: u64) -> String {
    Moment::of(UNIX_EPOCH + Duration::from_secs(seconds.min(LAST_SECOND))).rfc3339()
}

fn name(digest: &Digest) -> String {
    format!("sha256:{digest}")
}

/// `serde_json` keeps fields sorted.
fn bytes(value: &Value) -> Vec<u8> {
    value.to_string().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_read_from_addresses_as_they_are_shown() {
        for (listen, expected) in [
            (":8080", Some(8080)),
            ("127.0.0.1:3000", Some(3000)),
            ("[::]:80", Some(80)),
            ("[::1]", None),
            ("http://localhost:8080", Some(8080)),
            ("http://example.com/path", Some(80)),
            ("https://example.com", Some(443)),
            ("unix//run/site.sock", None),
            (":0", None),
            ("", None),
        ] {
            assert_eq!(port(listen), expected, "{listen}");
        }
    }

    #[test]
    fn what_nobody_outside_reaches_is_reported() {
        let reported = |listens: &[&str]| {
            ports(&listens.iter().map(|listen| (*listen).to_owned()).collect::<Vec<_>>()).1.len()
        };
        assert_eq!(reported(&[":8080"]), 0);
        assert_eq!(reported(&["127.0.0.1:8080", ":8081"]), 0);
        assert_eq!(reported(&["127.0.0.1:8080"]), 1);
        assert_eq!(reported(&[":80"]), 1);
        assert_eq!(reported(&[]), 0);
    }

    #[test]
    fn times_are_those_of_the_calendar() {
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_767_225_599, "2025-12-31T23:59:59Z"),
            (1_709_251_199, "2024-02-29T23:59:59Z"),
        ] {
            assert_eq!(time(seconds), expected);
        }
        assert!(time(u64::MAX).starts_with("9999-"));
    }

    #[test]
    fn a_name_that_leads_elsewhere_is_replaced() {
        for name in ["", "..", "a/b", "etc", "a b", "ä", "\0"] {
            assert_eq!(program_name(name), "app", "{name:?}");
        }
        assert_eq!(program_name("myapp-1.2"), "myapp-1.2");
    }
}
