//! `onehop init`, and `onehop` alone, run as the real program.

use onehop_testkit::{Finished, Folder, Program};

fn finish_in(folder: &Folder, arguments: &[&str]) -> Finished {
    Program::new(arguments).inside(folder.path()).control_in(folder.path()).finish()
}

const PAGE: &str = "<script type=\"module\" src=\"/a.js\"></script>";
const SERVER: &str = "require('http').createServer((q, s) => s.end('x')).listen(process.env.PORT);";

#[test]
fn an_onehopfile_is_written_for_what_is_there_and_is_sound() {
    let conf = "server { listen 8080; root /srv/a; location /x { auth_basic x; } }";
    for (files, description, line) in [
        (&[("dist/index.html", PAGE)][..], "a built single-page application", "\tspa ./dist\n"),
        (&[("server.js", SERVER)], "", "\tapp ./server.js"),
        (
            &[
                ("package.json", "{\"scripts\":{\"start\":\"node server.js\"}}"),
                ("server.js", SERVER),
                ("dist/index.html", PAGE),
            ],
            "an application",
            "\t#     spa ./dist\n\t#     app /api/* ./server.js",
        ),
        (
            &[("Procfile", "web: python app.py\n")],
            "a Procfile that starts `python app.py`",
            "\t\tcommand python app.py\n",
        ),
        (
            &[("Dockerfile", "CMD [\"node\", \"m.js\"]\n"), ("m.js", SERVER)],
            "a Dockerfile that starts",
            "\tapp ./m.js",
        ),
        (&[("nginx.conf", conf)], "an nginx.conf", ""),
    ] {
        let folder = Folder::with(files);
        let printed = finish_in(&folder, &["init", "--dry-run"]);
        assert_eq!(printed.code, Some(0), "{files:?}: {}", printed.stderr);
        assert!(!folder.path().join("Onehopfile").exists());
        let done = finish_in(&folder, &["init"]);
        assert_eq!(done.code, Some(0), "{files:?}: {}", done.stderr);
        assert!(done.stdout.contains(description), "{}", done.stdout);
        assert!(done.stdout.ends_with("written  Onehopfile\nnext     onehop run\n"), "{}", done.stdout);
        let written = std::fs::read_to_string(folder.path().join("Onehopfile")).unwrap();
        assert_eq!(written, printed.stdout);
        let is_nginx = files[0].0 == "nginx.conf";
        assert!(written.contains(line), "{written}");
        // The folders of an nginx.conf may be another machine's.
        let checked = finish_in(&folder, &["validate"]);
        assert!(is_nginx || checked.code == Some(0), "{written}\n{}", checked.stderr);
        assert_eq!(finish_in(&folder, &["fmt", "--check"]).code, Some(0), "{written}");
    }
}

#[test]
fn nothing_that_is_there_is_replaced() {
    let folder = Folder::with(&[("server.js", SERVER), ("Onehopfile", "mine")]);
    let refused = finish_in(&folder, &["init"]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("is there already and is not replaced"), "{}", refused.stderr);
    assert_eq!(std::fs::read_to_string(folder.path().join("Onehopfile")).unwrap(), "mine");
    let refused = finish_in(&Folder::with(&[("Caddyfile", ":80\n")]), &["init"]);
    assert!(refused.stderr.contains("onehop takes it as it is"), "{}", refused.stderr);
}

#[test]
fn onehop_alone_says_what_is_here_and_what_to_type() {
    for (files, seen, next) in [
        (&[("Onehopfile", ":8080 {\n}\n")][..], "Here: Onehopfile\n", "  onehop run "),
        (&[("dist/index.html", PAGE)], "Here: a built single-page application", "  onehop init "),
        (&[], "Here: nothing that says what it serves\n", "  onehop serve DIR "),
    ] {
        let said = finish_in(&Folder::with(files), &[]);
        assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""), "{files:?}");
        assert!(said.stdout.contains(seen) && said.stdout.contains(next), "{}", said.stdout);
        assert!(said.stdout.contains("  onehop help "), "{}", said.stdout);
    }
}
