//! Reading scenarios: what is taken, what is refused, and what the refusal says. Starts nothing.

use super::*;

fn scenario(text: &str) -> Result<Scenario, ScenarioError> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(FILE_NAME), text).unwrap();
    Scenario::read(folder.path())
}

const TWO: &str = "about = \"x\"\n[[server]]\nname = \"a\"\ncommand = \"true\"\n[[server]]\nname = \"b\"\ncommand = \"true\"\n";

#[test]
fn what_is_not_said_is_as_compare_has_it() {
    let scenario =
        scenario(&format!("{TWO}[[case]]\nname = \"page\"\nrequest = [{{ path = \"/\" }}]\n")).unwrap();
    let all = Choice::default();
    let [(case, settings)] = &scenario.settings(&all)[..] else { panic!() };
    let usual = Settings::default();
    assert_eq!((settings.rounds, settings.time, settings.warm_up), (usual.rounds, usual.time, usual.warm_up));
    assert_eq!(settings.pace, Pace::Closed { connections: 64, think: Duration::ZERO });
    let targets = scenario.targets(case, &all).unwrap();
    assert_eq!(targets.iter().map(|target| target.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert!(scenario.check(&all).is_ok());
}

#[test]
fn what_cannot_be_run_says_where_and_why() {
    let page = "[[case]]\nname = \"page\"\nrequest = [{ path = \"/\" }]\n";
    for (text, expected) in [
        ("about = \"x\"\n".to_owned(), "two [[server]] tables"),
        (TWO.to_owned(), "there is no [[case]]"),
        (format!("colour = 1\n{TWO}{page}"), "unknown field `colour`"),
        (format!("time = \"soon\"\n{TWO}{page}"), "soon"),
        (format!("{TWO}{page}{page}"), "two [[case]] tables have the name `page`"),
        (format!("{TWO}[[case]]\nname = \"page\"\nrequest = []\n"), "case `page`: `request` holds"),
        (format!("{TWO}[[case]]\nname = \"page\"\nrequest = [{{ path = \"x\" }}]\n"), "begin with /"),
        (format!("rounds = 0\n{TWO}{page}"), "`rounds` is from 1"),
        (format!("{TWO}[[behind]]\nname = \"port\"\ncommand = \"true\"\n{page}"), "cannot be called `port`"),
        (
            format!("{TWO}files = [\"a/x.conf\", \"b/x.conf\"]\n{page}"),
            "server `b` has two files called `x.conf`",
        ),
        (format!("{TWO}{page}time = \"0s\"\n"), "scenario.toml"),
        (
            format!(
                "{TWO}{page}[[bound]]\ncase = \"page\"\nagainst = \"b\"\nfigure = \"after_idle_us\"\nat_most = 1\n"
            ),
            "measured where the case says `idle`",
        ),
        (format!("{TWO}{page}servers = [\"c\"]\n"), "names the server `c`, and there are a, b"),
        (
            format!(
                "{TWO}{page}[[bound]]\ncase = \"page\"\nagainst = \"b\"\nfigure = \"memory_at_rest_bytes\"\nat_most = 1\n"
            ),
            "measured where the case says `idle_connections`",
        ),
        (format!("{TWO}{page}idle_connections = 65500\n"), "`idle_connections` together are 65535 at most"),
        (format!("{TWO}{page}overload = true\n"), "`overload` needs a `rate` or a `share_of_capacity`"),
        (format!("{TWO}{page}recovery = \"3s\"\n"), "`recovery` needs `overload = true`"),
        (
            format!(
                "{TWO}{page}recovery = \"3s\"\noverload = true\nshare_of_capacity = 2\nwarm_up = \"0s\"\n"
            ),
            "`recovery` needs a `warm_up`",
        ),
        (format!("{TWO}{page}servers = [\"b\"]\n"), "`servers` names `a`"),
        (format!("{TWO}{page}streams = 4\n"), "say `http2 = true` beside it"),
        (format!("{TWO}{page}http2 = true\nstreams = 0\n"), "`streams` are from 1 to 10000"),
        (format!("{TWO}{page}http2 = true\nstreams = 2\nnew_connections = true\n"), "leave `streams` out"),
        (format!("{TWO}{page}[[bound]]\ncase = \"page\"\nagainst = \"b\"\n"), "either at_most or at_least"),
        (format!("{TWO}{page}[[bound]]\ncase = \"page\"\nagainst = \"a\"\nat_most = 1\n"), "is not compared"),
        (
            format!(
                "{TWO}{page}[[bound]]\ncase = \"page\"\nagainst = \"b\"\nfigure = \"cpu\"\nat_most = 1\n"
            ),
            "there is no figure `cpu`",
        ),
    ] {
        let error = scenario(&text).unwrap_err().to_string();
        assert!(error.contains(expected) && error.contains(FILE_NAME), "{error}");
    }
}

#[test]
fn names_that_are_not_there_and_programs_that_are_missing_are_listed() {
    let scenario = scenario(&format!(
        "needs = [\"no-such-program\"]\n{TWO}[[case]]\nname = \"page\"\nrequest = [{{ path = \"/\" }}]\n"
    ))
    .unwrap();
    let missing = scenario.check(&Choice::default()).unwrap_err().to_string();
    assert!(missing.contains("not found in PATH: no-such-program"), "{missing}");
    let unknown = scenario.check(&Choice { cases: vec!["other".to_owned()], ..Choice::default() });
    assert_eq!(unknown.unwrap_err().to_string(), "there is no case `other` in the scenario; there are page");
}

#[test]
fn a_place_without_a_scenario_is_named() {
    let error = Scenario::read(Path::new("/nowhere")).unwrap_err().to_string();
    assert!(error.contains("/nowhere") && error.contains("bench init"), "{error}");
}

/// The keys that a table may have, as the reader says them.
fn known(text: &str) -> BTreeSet<String> {
    let error = scenario(text).unwrap_err().to_string();
    let names = error.split("expected").nth(1).unwrap_or_else(|| panic!("{error}"));
    names.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn the_schema_has_the_keys_that_are_read() {
    let schema: serde_json::Value =
        serde_json::from_str(include_str!("../../../../docs/scenario.schema.json")).unwrap();
    let properties = |path: &str| {
        let table = schema.pointer(path).unwrap_or_else(|| panic!("no {path}"));
        let keys = table["properties"].as_object().unwrap().keys();
        keys.cloned().collect::<BTreeSet<String>>()
    };
    for (path, text) in [
        ("", "colour = 1\n".to_owned()),
        ("/properties/server/items", "about = \"x\"\n[[server]]\ncolour = 1\n".to_owned()),
        ("/properties/behind/items", "about = \"x\"\n[[behind]]\ncolour = 1\n".to_owned()),
        ("/properties/case/items", format!("{TWO}[[case]]\ncolour = 1\n")),
        (
            "/properties/case/items/properties/request/items",
            format!("{TWO}[[case]]\nname = \"x\"\nrequest = [{{ colour = 1 }}]\n"),
        ),
        ("/properties/bound/items", format!("{TWO}[[bound]]\ncolour = 1\n")),
    ] {
        assert_eq!(properties(path), known(&text), "{path}");
    }
    let figures: BTreeSet<&str> = FIGURES.iter().map(|(name, _)| *name).collect();
    let in_schema =
        schema["properties"]["bound"]["items"]["properties"]["figure"]["enum"].as_array().unwrap();
    assert_eq!(in_schema.iter().filter_map(serde_json::Value::as_str).collect::<BTreeSet<_>>(), figures);
}
