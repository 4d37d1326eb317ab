//! `handle_errors`: what its lines mean. The order in which several act was compared with what Caddy 2.11 makes of the same
//! file (`caddy adapt`).

use crate::memory::Memory;
use crate::outline::{outline, template};
use onehop_config::checked::{ErrorRoutes, Step};

fn site(lines: &str) -> Memory {
    Memory::main(&format!("http://a.example {{\n{lines}\n}}\n")).file("a.mjs", "")
}

#[track_caller]
fn errors(lines: &str) -> Vec<ErrorRoutes> {
    site(lines).sound().checked.sites[0].errors.clone()
}

#[test]
fn statuses_are_numbers_and_kinds() {
    let of = |lines: &str| errors(lines)[0].statuses.clone();
    assert_eq!(of("handle_errors {\nrespond a\n}"), Vec::<u16>::new());
    assert_eq!(of("handle_errors 502 404 404 {\nrespond a\n}"), [404, 502]);
    assert_eq!(of("handle_errors 450 4xx {\nrespond a\n}"), (400..500).collect::<Vec<u16>>());
    assert_eq!(
        of("handle_errors 5xx 404 {\nrespond a\n}"),
        [404].into_iter().chain(500..600).collect::<Vec<u16>>()
    );
}

#[test]
fn those_without_a_status_act_last_and_all_others_as_written() {
    let lines = "handle_errors {\nrespond all\n}\nhandle_errors 404 {\nrespond first\n}\nhandle_errors 4xx {\nrespond second\nheader A b\n}";
    let shown: Vec<String> = errors(lines).iter().map(|errors| outline(&errors.routes)).collect();
    assert_eq!(
        shown,
        ["respond 200 \"first\"\n", "header A=b\nrespond 200 \"second\"\n", "respond 200 \"all\"\n"]
    );
}

#[test]
fn a_block_without_anything_is_an_answer_of_its_own() {
    for lines in ["handle_errors", "handle_errors {\n}", "handle_errors 502 503"] {
        assert!(errors(lines)[0].routes.is_empty(), "{lines}");
    }
}

#[test]
fn the_error_is_known_within_the_block() {
    let lines = "handle_errors {
        header X-Error {err.id}
        rewrite * /{http.error.status_code}.html
        handle {
            respond \"{err.status_code} {err.status_text}\"
        }
    }";
    assert_eq!(
        outline(&errors(lines)[0].routes),
        "header X-Error=<ErrorId>
rewrite /<ErrorStatus>.html
handle
  respond 200 \"<ErrorStatus> <ErrorStatusText>\"
"
    );
}

#[test]
fn the_status_of_an_answer_is_the_errors_where_none_is_written() {
    for (line, expected) in [
        ("respond a", None),
        ("respond a {err.status_code}", None),
        ("respond a {http.error.status_code}", None),
        ("respond a 200", Some(200)),
        ("respond 410", Some(410)),
    ] {
        let made = errors(&format!("handle_errors {{\n{line}\n}}"));
        let Step::Respond { status, body, .. } = &made[0].routes[0].step else { panic!("{made:?}") };
        assert_eq!(*status, expected, "{line}");
        assert!(line.contains("410") || template(body) == "a");
    }
}

#[test]
fn matchers_of_the_site_are_known_within_the_block() {
    let lines = "@api path /api/*\nhandle_errors {\nrespond @api a\nrespond b\n}";
    assert_eq!(outline(&errors(lines)[0].routes), "respond 200 \"a\" path /api/*\nrespond 200 \"b\"\n");
}

#[test]
fn pages_of_errors_are_looked_for_below_the_root_of_their_site() {
    let pages = "handle_errors {\nrewrite * /{err.status_code}.html\nfile_server\n}\n";
    for (lines, first) in [
        (pages.to_owned(), "root /work"),
        (format!("root /srv\n{pages}"), "root /srv"),
        ("handle_errors {\nroot /pages\nfile_server\n}\nrespond a".to_owned(), "respond 200 \"a\""),
    ] {
        let loaded = site(&lines).sound();
        assert_eq!(outline(&loaded.checked.sites[0].routes).lines().next(), Some(first), "{lines}");
    }
}

#[test]
fn an_application_or_an_upstream_can_make_the_page() {
    let checked = site("respond a\nhandle_errors {\napp /a/* a.mjs\nreverse_proxy b:80\n}").sound().checked;
    assert_eq!((checked.apps().len(), checked.proxies().len()), (1, 1));
}

#[test]
fn what_is_done_with_errors_is_visited_too() {
    let mut count = 0;
    site("respond a\nhandle_errors {\nhandle {\nrespond b\n}\n}").sound().checked.each_step(|_| count += 1);
    assert_eq!(count, 3);
}

#[test]
fn a_site_at_two_places_answers_errors_at_both() {
    let text =
        "http://a.example, http://b.example:8080 {\n\trespond a\n\thandle_errors {\n\t\trespond b\n\t}\n}\n";
    let checked = Memory::main(text).sound().checked;
    assert_eq!(checked.sites.iter().map(|site| site.errors.len()).collect::<Vec<_>>(), [1, 1]);
}

macro_rules! errors {
    ($name:ident, $text:expr) => {
        #[test]
        fn $name() {
            insta::assert_snapshot!(site($text).errors());
        }
    };
}

errors!(
    what_is_no_status_of_an_error,
    "handle_errors 40 {
}
handle_errors 200 {
}
handle_errors 3xx {
}
handle_errors 4XX {
}
handle_errors 600 {
}
handle_errors +04 {
}
handle_errors /api/* 404 {
}
handle_errors @api {
	respnd a
}"
);
errors!(
    what_does_not_belong_into_handle_errors,
    "handle_errors {
	limit in_flight 3
	rate_limit 10r/s
	log
	handle {
		rate_limit 10r/s
		handle_errors {
			respond a
		}
	}
}
handle {
	handle_errors {
		respond a
	}
}"
);
errors!(
    the_error_is_not_known_elsewhere,
    "respond \"{err.status_code}\"
header X-Id {http.error.id}
respond a {err.status_code}
handle_errors {
	respond \"{err.message} {err.trace} {err.nothing}\"
}"
);
