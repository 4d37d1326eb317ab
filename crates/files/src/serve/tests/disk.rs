use std::io::Read as _;
use std::os::unix::fs::{FileExt as _, symlink};
use std::path::{Path, PathBuf};

use onehop_message::response::Disk;

use super::*;
use crate::{OnDisk, OwnedFileRequest, finish_on_disk, from_disk};

/// A root and, beside it, what must not be reached.
struct Tree {
    base: PathBuf,
    root: PathBuf,
}

impl Tree {
    fn new(name: &str) -> Self {
        let base = own_folder(name);
        let root = base.join("root");
        std::fs::create_dir_all(root.join("docs")).unwrap();
        std::fs::create_dir_all(root.join("list")).unwrap();
        std::fs::create_dir_all(base.join("outside")).unwrap();
        for (name, bytes) in [
            ("root/a.txt", "0123456789"),
            ("root/docs/index.html", "docs"),
            ("root/list/b.txt", "b"),
            ("root/list/.env", "secret"),
            ("root/a.js", "js"),
            ("root/a.js.gz", "coded gz"),
            ("root/.env", "secret"),
            ("outside/secret.txt", "secret"),
        ] {
            std::fs::write(base.join(name), bytes).unwrap();
        }
        symlink("../outside/secret.txt", root.join("relative-out.txt")).unwrap();
        symlink(base.join("outside/secret.txt"), root.join("absolute-out.txt")).unwrap();
        symlink("../outside", root.join("folder-out")).unwrap();
        symlink("../../outside/secret.txt", root.join("list/out.txt")).unwrap();
        symlink("a.txt", root.join("relative-in.txt")).unwrap();
        symlink(root.join("a.txt"), root.join("absolute-in.txt")).unwrap();
        symlink("loop.txt", root.join("loop.txt")).unwrap();
        Self { base, root }
    }

    fn ask(&self, settings: &FileServer, method: &str, target: &str, lines: &[&str]) -> (String, Response) {
        let head = head(method, target, lines);
        let request = OwnedFileRequest {
            path: head.path().to_vec(),
            query: head.query().map(<[u8]>::to_vec),
            original_path: head.path().to_vec(),
            error_status: None,
            head,
        };
        let mut answer = Response::default();
        answer.clear();
        let served = from_disk(settings, &self.root, request, &mut answer);
        (text(served, &answer), answer)
    }

    fn get(&self, target: &str, lines: &[&str]) -> (String, Response) {
        self.ask(&file_server_settings(), "GET", target, lines)
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.base);
    }
}

fn text(served: Result<Served, HttpError>, answer: &Response) -> String {
    match served {
        Ok(Served::Answered) if answer.status == 308 => format!("308 {}", field(answer, "Location").unwrap()),
        Ok(Served::Answered) => format!("{} {}", answer.status, body_on_disk(answer)),
        Ok(Served::PassedOn) => "passed".to_owned(),
        other => format!("{other:?}"),
    }
}

fn body_on_disk(answer: &Response) -> String {
    let of_disk = |disk: &Disk| {
        let mut bytes = vec![0; usize::try_from(disk.length).unwrap()];
        disk.file.read_exact_at(&mut bytes, disk.offset).unwrap();
        String::from_utf8(bytes).unwrap()
    };
    match &answer.body {
        Body::Disk(disk) => of_disk(disk),
        Body::Pieces(pieces) => {
            let pieces = pieces.iter().map(|piece| match piece {
                Piece::Bytes(bytes) => String::from_utf8(bytes.clone()).unwrap(),
                Piece::Disk(disk) => of_disk(disk),
                Piece::Stored(_) => panic!("not on disk"),
            });
            let (_, boundary) = field(answer, "Content-Type").unwrap().split_once("boundary=").unwrap();
            pieces.collect::<String>().replace(boundary, "BOUNDARY")
        }
        Body::Bytes(bytes) => String::from_utf8(bytes.clone()).unwrap(),
        Body::Empty => String::new(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn files_are_answered_as_from_memory() {
    let tree = Tree::new("answers");
    for (target, expected) in [
        ("/a.txt", "200 0123456789"),
        ("/a.txt/", "308 /a.txt"),
        ("/docs", "308 /docs/"),
        ("/docs/", "200 docs"),
        ("/list/", "Err(NotFound)"),
        ("/gone", "Err(NotFound)"),
        ("/a.txt/b", "Err(NotFound)"),
        ("/.env", "Err(NotFound)"),
        ("/../outside/secret.txt", "Err(BadPath)"),
        ("/loop.txt", "Err(NotFound)"),
    ] {
        assert_eq!(tree.get(target, &[]).0, expected, "{target}");
    }
    let long = format!("/{}", "a".repeat(300));
    assert_eq!(tree.get(&long, &[]).0, "Err(NotFound)");
    assert_eq!(tree.ask(&file_server_settings(), "POST", "/a.txt", &[]).0, "Err(MethodNotAllowed(Files))");
    let passing = FileServer { pass_through: true, ..file_server_settings() };
    assert_eq!(tree.ask(&passing, "GET", "/gone", &[]).0, "passed");
    assert_eq!(tree.ask(&passing, "GET", "/list/", &[]).0, "passed");
}

#[test]
fn links_lead_nowhere_out_of_the_root() {
    let tree = Tree::new("links");
    for (target, inside, outside) in [
        ("/relative-in.txt", "200 0123456789", "200 0123456789"),
        ("/absolute-in.txt", "200 0123456789", "200 0123456789"),
        ("/relative-out.txt", "Err(NotFound)", "200 secret"),
        ("/absolute-out.txt", "Err(NotFound)", "200 secret"),
        ("/folder-out/secret.txt", "Err(NotFound)", "200 secret"),
    ] {
        assert_eq!(tree.get(target, &[]).0, inside, "{target}");
        let following = FileServer { follow_outside: true, ..file_server_settings() };
        assert_eq!(tree.ask(&following, "GET", target, &[]).0, outside, "{target} followed");
    }
}

#[test]
fn what_is_no_file_is_not_opened() {
    let root = Path::new("/dev");
    let head = head("GET", "/null", &[]);
    let (path, original_path) = (b"/null".to_vec(), b"/null".to_vec());
    let request = OwnedFileRequest { path, query: None, original_path, error_status: None, head };
    let served = from_disk(&file_server_settings(), root, request, &mut Response::default());
    assert!(matches!(served, Err(HttpError::NotFound)), "{served:?}");
}

#[test]
fn validators_and_ranges_hold_on_disk() {
    let tree = Tree::new("validators");
    let (_, answer) = tree.get("/a.txt", &[]);
    let tag = field(&answer, "ETag").unwrap().to_owned();
    let date = field(&answer, "Last-Modified").unwrap().to_owned();
    assert_eq!(field(&answer, "Content-Type"), Some("text/plain; charset=utf-8"));
    for (lines, expected) in [
        (vec![format!("If-None-Match: {tag}")], "304 "),
        (vec![format!("If-Modified-Since: {date}")], "304 "),
        (vec!["If-Match: \"x\"".to_owned()], "Err(PreconditionFailed)"),
        (vec!["Range: bytes=2-4".to_owned()], "206 234"),
        (vec!["Range: bytes=2-4".to_owned(), format!("If-Range: {tag}")], "206 234"),
        (vec!["Range: bytes=2-4".to_owned(), "If-Range: \"x\"".to_owned()], "200 0123456789"),
        (vec!["Range: bytes=0-1,1-4".to_owned()], "206 01234"),
        (
            vec!["Range: bytes=0-1,5-6".to_owned()],
            "206 --BOUNDARY\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Range: bytes 0-1/10\r\n\r\n01\r\n\
             --BOUNDARY\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Range: bytes 5-6/10\r\n\r\n56\r\n--BOUNDARY--\r\n",
        ),
        (vec!["Range: bytes=10-".to_owned()], "Err(RangeNotSatisfiable { length: 10 })"),
    ] {
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        assert_eq!(tree.get("/a.txt", &lines).0, expected, "{lines:?}");
    }
    std::fs::write(tree.root.join("a.txt"), "changed").unwrap();
    assert_eq!(tree.get("/a.txt", &[&format!("If-None-Match: {tag}")]).0, "200 changed");
}

#[test]
fn sidecars_stand_beside_files_on_disk() {
    let tree = Tree::new("sidecars");
    let settings =
        FileServer { precompressed: vec![Encoding::Brotli, Encoding::Gzip], ..file_server_settings() };
    let (sent, answer) = tree.ask(&settings, "GET", "/a.js", &["Accept-Encoding: br, gzip"]);
    assert_eq!((sent.as_str(), field(&answer, "Content-Encoding")), ("200 coded gz", Some("gzip")));
    assert_eq!(field(&answer, "Content-Type"), Some("text/javascript; charset=utf-8"));
    let (sent, answer) = tree.ask(&settings, "GET", "/a.js", &[]);
    assert_eq!((sent.as_str(), field(&answer, "Vary")), ("200 js", Some("Accept-Encoding")));
}

#[test]
fn a_page_of_a_folder_on_disk_lists_what_would_be_served() {
    let tree = Tree::new("page");
    let settings = FileServer { browse: true, ..file_server_settings() };
    assert_eq!(tree.ask(&settings, "GET", "/list", &[]).0, "308 /list/");
    let (_, answer) = tree.ask(&settings, "GET", "/list/", &["Accept: application/json"]);
    let entries: serde_json::Value = serde_json::from_str(&body_on_disk(&answer)).unwrap();
    let names: Vec<_> =
        entries.as_array().unwrap().iter().map(|entry| entry["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["b.txt"]);
    let (_, answer) = tree.ask(&settings, "GET", "/", &["Accept: application/json"]);
    let entries: serde_json::Value = serde_json::from_str(&body_on_disk(&answer)).unwrap();
    let link = entries.as_array().unwrap().iter().find(|entry| entry["name"] == "relative-in.txt").unwrap();
    assert_eq!((&link["is_symlink"], &link["size"]), (&true.into(), &10.into()));
}

#[test]
fn a_file_of_the_store_is_finished_from_disk() {
    let tree = Tree::new("finish");
    let on_disk = |path: &str| OnDisk {
        root: tree.root.clone(),
        path: path.as_bytes().to_vec(),
        content_type: "text/plain".to_owned(),
        sidecars: Vec::new(),
        varies: false,
        cache_control: Some(b"Cache-Control: no-cache\r\n"),
        status: None,
        follow_outside: false,
        varies_by_accept: false,
    };
    let mut answer = Response::default();
    let head = head("GET", "/x", &["Range: bytes=-2"]);
    assert_eq!(finish_on_disk(on_disk("a.txt"), &head, &mut answer), Ok(()));
    assert_eq!((answer.status, body_on_disk(&answer).as_str()), (206, "89"));
    assert_eq!(field(&answer, "Cache-Control"), Some("no-cache"));
    for path in ["gone", "docs", "relative-out.txt"] {
        assert_eq!(
            finish_on_disk(on_disk(path), &head, &mut Response::default()),
            Err(HttpError::NotFound),
            "{path}"
        );
    }
    let Body::Disk(disk) = answer.body else { panic!("not on disk") };
    let mut whole = String::new();
    (&*disk.file).read_to_string(&mut whole).unwrap();
    assert_eq!(whole, "0123456789");
}

#[test]
fn a_folder_that_becomes_a_link_between_the_look_and_the_open_leads_nowhere() {
    use std::sync::atomic::{AtomicBool, Ordering};

    use rustix::fs::{CWD, RenameFlags, renameat_with};

    let tree = Tree::new("swapped");
    std::fs::write(tree.root.join("docs/secret.txt"), "public").unwrap();
    symlink(tree.root.join("docs/secret.txt"), tree.root.join("absolute.txt")).unwrap();
    let (folder, link) = (tree.root.join("docs"), tree.root.join("folder-out"));
    let (stop, mut inside, mut leaked) = (AtomicBool::new(false), 0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                renameat_with(CWD, &folder, CWD, &link, RenameFlags::EXCHANGE).unwrap();
            }
        });
        for _ in 0..20_000 {
            let (answer, _) = tree.get("/absolute.txt", &[]);
            leaked += usize::from(answer == "200 secret");
            inside += usize::from(answer == "200 public");
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(leaked, 0, "the file lies outside of the root");
    assert!(inside > 0, "an absolute link that leads back below the root is served");
}
