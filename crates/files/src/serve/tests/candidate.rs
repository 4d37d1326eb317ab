use onehop_config::checked::TryPolicy;

use super::*;
use crate::{find_candidate, find_candidate_on_disk};

const CASES: &[(TryPolicy, &[&str], Option<&str>)] = &[
    (TryPolicy::FirstExist, &["/a.txt", "/index.html"], Some("/a.txt")),
    (TryPolicy::FirstExist, &["/gone", "/index.html"], Some("/index.html")),
    (TryPolicy::FirstExist, &["gone", "index.html"], Some("/index.html")),
    (TryPolicy::FirstExist, &["/gone", "/gone2"], None),
    (TryPolicy::FirstExist, &["/docs", "/index.html"], Some("/index.html")),
    (TryPolicy::FirstExist, &["/docs/", "/index.html"], Some("/docs/")),
    (TryPolicy::FirstExist, &["/a.txt/", "/index.html"], Some("/index.html")),
    (TryPolicy::FirstExist, &["/docs/../a.txt"], Some("/a.txt")),
    (TryPolicy::FirstExist, &["/../../a.txt"], Some("/a.txt")),
    (TryPolicy::FirstExist, &["/a\\b", "/a.txt"], Some("/a.txt")),
    (TryPolicy::FirstExist, &["/"], Some("/")),
    (TryPolicy::FirstExistFallback, &["/gone", "/gone2.html"], Some("/gone2.html")),
    (TryPolicy::FirstExistFallback, &["/a.txt", "/gone"], Some("/a.txt")),
    (TryPolicy::SmallestSize, &["/gone", "/index.html", "/a.txt"], Some("/a.txt")),
    (TryPolicy::LargestSize, &["/a.txt", "/gone", "/index.html"], Some("/index.html")),
    (TryPolicy::MostRecentlyModified, &["/gone", "/a.txt"], Some("/a.txt")),
];

#[test]
fn the_policy_takes_among_what_exists() {
    let store = Builder::new().file("index.html", "long").file("a.txt", "a").file("docs/b.txt", "b").build();
    let folder = own_folder("candidates");
    std::fs::create_dir_all(folder.join("docs")).unwrap();
    for (name, bytes) in [("index.html", "long"), ("a.txt", "a"), ("docs/b.txt", "b")] {
        std::fs::write(folder.join(name), bytes).unwrap();
    }
    for (policy, candidates, expected) in CASES {
        let taken = find_candidate(&store, candidates, *policy);
        let text =
            |taken: Option<crate::Candidate>| taken.map(|taken| String::from_utf8(taken.relative).unwrap());
        assert_eq!(text(taken).as_deref(), *expected, "{candidates:?}");
        let taken = find_candidate_on_disk(&folder, candidates, *policy, false);
        assert_eq!(text(taken).as_deref(), *expected, "{candidates:?} on disk");
    }
    std::fs::remove_dir_all(folder).unwrap();
}
