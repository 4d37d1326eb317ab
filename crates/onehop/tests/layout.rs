//! `onehop fmt` and `onehop adapt`, run as the real program.

use onehop_testkit::{Finished, Folder, Program};

const WRITTEN: &str = "http://:80 {\n   root   ./dist\n\n\n file_server # all of it\n}\n";
const USUAL: &str = "http://:80 {\n\troot ./dist\n\n\tfile_server # all of it\n}\n";

fn finish_in(folder: &Folder, arguments: &[&str]) -> Finished {
    Program::new(arguments).inside(folder.path()).control_in(folder.path()).finish()
}

#[test]
fn fmt_prints_the_usual_layout_and_changes_nothing() {
    let folder = Folder::new();
    let file = folder.write("Onehopfile", WRITTEN);
    let shown = finish_in(&folder, &["fmt"]);
    assert_eq!((shown.code, shown.stdout.as_str(), shown.stderr.as_str()), (Some(0), USUAL, ""));
    assert_eq!(std::fs::read_to_string(file).unwrap(), WRITTEN);
}

#[test]
fn fmt_says_by_its_exit_code_whether_the_layout_is_the_usual_one() {
    let folder = Folder::new();
    folder.write("Onehopfile", WRITTEN);
    let checked = finish_in(&folder, &["fmt", "--check"]);
    assert_eq!((checked.code, checked.stdout.as_str()), (Some(1), ""));
    assert!(checked.stderr.contains("onehop fmt --overwrite"), "{}", checked.stderr);
    let shown = finish_in(&folder, &["fmt", "--diff"]);
    assert_eq!(shown.code, Some(1));
    for line in ["-   root   ./dist\n", "+\troot ./dist\n"] {
        assert!(shown.stdout.contains(line), "{}", shown.stdout);
    }
    folder.write("Onehopfile", USUAL);
    assert_eq!(finish_in(&folder, &["fmt", "--check"]).code, Some(0));
    assert_eq!(finish_in(&folder, &["fmt", "--diff"]).stdout, "");
}

#[test]
fn fmt_writes_a_file_back_behind_its_link_and_with_its_permissions() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = Folder::new();
    let file = folder.write("site", WRITTEN);
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
    let link = folder.path().join("Onehopfile");
    symlink("site", &link).unwrap();
    let done = finish_in(&folder, &["fmt", "--overwrite"]);
    assert_eq!((done.code, done.stdout.as_str(), done.stderr.as_str()), (Some(0), "", ""));
    assert!(link.is_symlink());
    assert_eq!(std::fs::read_to_string(&file).unwrap(), USUAL);
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
}

#[test]
fn fmt_leaves_a_broken_file_alone_and_says_where() {
    let folder = Folder::new();
    let file = folder.write("Onehopfile", "http://:80 {\n\trespond \"x\n}\n");
    let refused = finish_in(&folder, &["fmt", "--overwrite"]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("Onehopfile:2:10: error: this quote"), "{}", refused.stderr);
    assert!(std::fs::read_to_string(file).unwrap().contains("\"x"));
}

#[test]
fn adapt_prints_a_site_for_each_server_and_counts_what_it_left_out() {
    let folder = Folder::new();
    folder.write(
        "nginx.conf",
        "server { listen 8080; root /srv/a; location /x { auth_basic x; proxy_pass http://127.0.0.1:1; } }\n\
         server { listen 8081; root /srv/b; }\n",
    );
    let shown = finish_in(&folder, &["adapt", "nginx.conf"]);
    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
    assert!(shown.stdout.contains("\n:8080 {\n") && shown.stdout.contains("\n:8081 {\n"), "{}", shown.stdout);
    assert_eq!(shown.stderr, "1 directive could not be carried over: look for NOT CARRIED OVER\n");
    let missing = finish_in(&folder, &["adapt", "other.conf"]);
    assert_eq!((missing.code, missing.stdout.as_str()), (Some(2), ""));
    assert!(missing.stderr.contains("other.conf: there is no such file"), "{}", missing.stderr);
}
