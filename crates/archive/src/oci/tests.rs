//! An image is read back as engines read it: by what refers to what.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Read;
use std::path::Path;

use flate2::read::GzDecoder;
use serde_json::Value;

use super::*;
use crate::index::{AbsolutePath, Configuration, Runtime, Source, SourceKind};
use crate::slot::{LOCATION_BYTES, mark};
use crate::{Index, Writer, layout};

fn program(loader: Option<&[u8]>) -> Vec<u8> {
    let mut program = vec![0; 5000];
    program[..6].copy_from_slice(b"\x7fELF\x02\x01");
    (program[32], program[54], program[56]) = (64, 56, 1);
    if let Some(loader) = loader {
        (program[64], program[64 + 8], program[64 + 32]) = (3, 200, loader.len() as u8);
        program[200..200 + loader.len()].copy_from_slice(loader);
    }
    program.extend_from_slice(&mark());
    program.resize(program.len() + LOCATION_BYTES, 0);
    program
}

fn pack(folder: &Path, with_app: bool, program: &[u8]) -> PathBuf {
    let path = folder.join("pack");
    let _ = fs::remove_file(&path);
    let out = OpenOptions::new().read(true).write(true).create_new(true).open(&path).expect("a file");
    let mut writer = Writer::begin(program, out).expect("a program");
    let configuration = writer.add(b":8080").expect("added");
    let script = writer.add_compressed(&b"run ".repeat(1000), 3).expect("added");
    let mut node = vec![b'n'; 1000];
    node[100..200].fill(0);
    let node = writer.add_compressed(&node, 3).expect("added");
    let file = |path: &str, content, executable| Source {
        path: path.to_owned(),
        kind: SourceKind::File { content, executable },
    };
    let long = format!("{}/x.js", "deep".repeat(60));
    let mut sources = vec![file("Onehopfile", configuration, false)];
    let runtime = with_app.then(|| {
        sources.push(file("bin/run", script, true));
        sources.push(Source { path: "bin/same".into(), kind: SourceKind::Link { to: "run".into() } });
        sources.push(file(&long, script, false));
        Runtime {
            name: "node".into(),
            version: "v1".into(),
            files: vec![file("bin/node", node, true), file("lib/ld.so", configuration, true)],
            paths: vec![AbsolutePath {
                file: "bin/node".into(),
                path: "lib/ld.so".into(),
                offset: 100,
                room: 100,
            }],
        }
    });
    let index = Index {
        made_by: "onehop test".into(),
        name: "myapp".into(),
        target: "x86_64-linux".into(),
        configuration: Configuration { path: "Onehopfile".into(), caddyfile: false },
        sources,
        runtime,
        listens: vec![":8080".into()],
        ..Index::default()
    };
    writer.finish(index).expect("sound");
    path
}

fn settings() -> Settings {
    Settings {
        reference: Reference::parse("team/myapp:1").expect("a name"),
        labels: BTreeMap::from([("a".to_owned(), "b".to_owned())]),
        created: None,
    }
}

fn image(folder: &Path, pack: &Path, settings: &Settings) -> (Written, Vec<u8>) {
    let path = folder.join("image.tar");
    let mut out = File::create(&path).expect("a file");
    let written = write(pack, settings, folder, &mut out).expect("an image");
    (written, fs::read(&path).expect("there"))
}

/// Files of a tar file, with the mode; links have their target as content.
fn files(tar: &[u8]) -> BTreeMap<String, (u32, Vec<u8>)> {
    let mut archive = tar::Archive::new(tar);
    let mut files = BTreeMap::new();
    for entry in archive.entries().expect("a tar file") {
        let mut entry = entry.expect("an entry");
        let header = entry.header();
        assert_eq!(header.mtime().expect("a time"), 0);
        let mode = header.mode().expect("a mode");
        let path = entry.path().expect("a path").display().to_string();
        let owner = if path == "var/lib/onehop/" { u64::from(USER) } else { 0 };
        assert_eq!((header.uid().expect("a user"), header.gid().expect("a group")), (owner, owner), "{path}");
        let mut content = Vec::new();
        match entry.link_name().expect("readable") {
            Some(to) => content.extend_from_slice(to.as_os_str().as_encoded_bytes()),
            None => drop(entry.read_to_end(&mut content).expect("whole")),
        }
        assert!(files.insert(path.clone(), (mode, content)).is_none(), "{path} twice");
    }
    files
}

struct ReadBack {
    files: BTreeMap<String, (u32, Vec<u8>)>,
    manifest: Value,
    config: Value,
    layers: Vec<BTreeMap<String, (u32, Vec<u8>)>>,
}

/// From the list of the layout down to each layer, every digest and size checked.
fn read(tar: &[u8]) -> ReadBack {
    let files = files(tar);
    let json = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).expect("JSON");
    let follow = |descriptor: &Value| {
        let digest = descriptor["digest"].as_str().and_then(|digest| digest.strip_prefix("sha256:"));
        let bytes = &files[&format!("blobs/sha256/{}", digest.expect("SHA-256"))].1;
        assert_eq!(Digest::of(bytes).to_string(), digest.expect("SHA-256"));
        assert_eq!(descriptor["size"], bytes.len() as u64);
        bytes.clone()
    };
    assert_eq!(json(&files["oci-layout"].1)["imageLayoutVersion"], "1.0.0");
    let index = json(&files["index.json"].1);
    let descriptor = &index["manifests"][0];
    assert_eq!(descriptor["annotations"]["io.containerd.image.name"], "docker.io/team/myapp:1");
    let manifest = json(&follow(descriptor));
    let config = json(&follow(&manifest["config"]));
    let mut layers = Vec::new();
    for (number, layer) in manifest["layers"].as_array().expect("layers").iter().enumerate() {
        let mut plain = Vec::new();
        GzDecoder::new(&follow(layer)[..]).read_to_end(&mut plain).expect("gzip");
        let expected = format!("sha256:{}", Digest::of(&plain));
        assert_eq!(config["rootfs"]["diff_ids"][number], expected.as_str());
        layers.push(self::files(&plain));
    }
    assert_eq!(config["history"].as_array().map(Vec::len), Some(layers.len()));
    let docker = json(&files["manifest.json"].1);
    assert_eq!(docker[0]["RepoTags"][0], "team/myapp:1");
    let digest_of = |value: &Value| value["digest"].as_str().expect("a digest").replace(':', "/");
    assert_eq!(docker[0]["Config"], format!("blobs/{}", digest_of(&manifest["config"])).as_str());
    for (number, layer) in manifest["layers"].as_array().expect("layers").iter().enumerate() {
        assert_eq!(docker[0]["Layers"][number], format!("blobs/{}", digest_of(layer)).as_str());
    }
    ReadBack { files, manifest, config, layers }
}

#[test]
fn an_image_says_of_itself_what_engines_need() {
    let folder = tempfile::tempdir().expect("a folder");
    let pack = pack(folder.path(), true, &program(None));
    let (written, tar) = image(folder.path(), &pack, &settings());
    assert_eq!(written.bytes, tar.len() as u64);
    assert_eq!((written.architecture, &written.ports[..], written.warnings.len()), ("amd64", &[8080][..], 0));
    let read = read(&tar);
    assert!(read.files.contains_key(&format!("blobs/sha256/{}", written.manifest)));
    assert_eq!(read.manifest["schemaVersion"], 2);
    let config = &read.config["config"];
    assert_eq!(read.config["architecture"], "amd64");
    assert_eq!(read.config["created"], "1970-01-01T00:00:00Z");
    assert_eq!(config["User"], "65532:65532");
    assert_eq!(config["Entrypoint"][0], "/myapp");
    assert_eq!(config["StopSignal"], "SIGTERM");
    assert_eq!(config["Healthcheck"]["Test"][3], "--healthy");
    assert!(config["ExposedPorts"]["8080/tcp"].is_object());
    assert_eq!(config["Volumes"], serde_json::json!({ "/var/lib/onehop": {} }));
    assert!(config["Env"].as_array().expect("variables").contains(&"STATE_DIRECTORY=/var/lib/onehop".into()));
    assert_eq!(config["Labels"]["a"], "b");
    assert_eq!(config["Labels"]["org.opencontainers.image.title"], "myapp");
    assert!(config["Labels"]["org.opencontainers.image.created"].is_null());
}

#[test]
fn what_would_be_unpacked_lies_at_its_place_and_belongs_to_root() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = pack(folder.path(), true, &program(None));
    let read = read(&image(folder.path(), &path, &settings()).1);
    let [unpacked, last] = &read.layers[..] else { panic!("two layers") };
    let (pack, index) = Pack::open(&path).expect("a pack");
    let root = format!("var/cache/onehop/onehop-pack-{}", layout::key(pack.location()));
    let of = |name: &str| unpacked.get(&format!("{root}/{name}")).unwrap_or_else(|| panic!("no {name}"));
    assert_eq!(unpacked["var/cache/"].0, 0o755);
    assert_eq!(unpacked[&format!("{root}/app/bin/")].0, 0o555);
    assert_eq!(of("app/bin/run"), &(0o555, b"run ".repeat(1000)));
    assert_eq!(of("app/bin/same").1, b"run");
    assert_eq!(of("app/Onehopfile"), &(0o444, b":8080".to_vec()));
    assert_eq!(of(&format!("app/{}/x.js", "deep".repeat(60))).1.len(), 4000, "a name of more than 100 bytes");
    assert_eq!(of(".complete").1, format!("{}\n", pack.location().digest).into_bytes());
    let node = &of("runtime/bin/node").1;
    let loader = format!("/{root}/runtime/lib/ld.so");
    assert_eq!(node.len(), 1000);
    assert_eq!(&node[100..100 + loader.len()], loader.as_bytes());
    assert_eq!((node[100 + loader.len()], node[99], node[200]), (0, b'n', b'n'));
    assert_eq!(layout::entries(&index).len() + 5, unpacked.len(), "nothing else is there");
    assert_eq!(last["myapp"], (0o555, fs::read(&path).expect("there")));
    assert_eq!(last["tmp/"].0, 0o1777);
    assert_eq!(last["var/lib/onehop/"].0, 0o700);
    assert!(last["etc/passwd"].1.ends_with(b"nonroot:x:65532:65532:nonroot:/tmp:/sbin/nologin\n"));
}

#[test]
fn a_pack_without_applications_makes_an_image_of_one_layer() {
    let folder = tempfile::tempdir().expect("a folder");
    let pack = pack(folder.path(), false, &program(None));
    assert_eq!(read(&image(folder.path(), &pack, &settings()).1).layers.len(), 1);
}

#[test]
fn two_images_of_the_same_are_identical() {
    let folder = tempfile::tempdir().expect("a folder");
    let first = pack(folder.path(), true, &program(None));
    let one = image(folder.path(), &first, &settings());
    let second = pack(folder.path(), true, &program(None));
    assert_eq!(one, image(folder.path(), &second, &settings()));
    let later = Settings { created: Some(86_400), ..settings() };
    let mut out = File::create(folder.path().join("later.tar")).expect("a file");
    let other = write(&second, &later, folder.path(), &mut out).expect("an image");
    assert_ne!(other.manifest, one.0.manifest);
}

#[test]
fn a_program_that_needs_a_system_around_it_is_refused_with_the_way_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let pack = pack(folder.path(), false, &program(Some(b"/lib64/ld-linux-x86-64.so.2\0")));
    let mut out = File::create(folder.path().join("image.tar")).expect("a file");
    let refused = write(&pack, &settings(), folder.path(), &mut out).expect_err("it cannot run");
    assert_eq!(
        refused.to_string(),
        "an image holds nothing but the pack, and its program asks for /lib64/ld-linux-x86-64.so.2: pack the \
         static onehop, `--target onehop-linux-x86_64`"
    );
}
