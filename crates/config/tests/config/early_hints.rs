//! `early_hints`: what is read of it, and what a person reads where it cannot be meant.

use onehop_config::checked::{EarlyHints, Step};

use crate::limit::site;
use crate::memory::Memory;

fn read(lines: &str) -> EarlyHints {
    let loaded = Memory::main(&format!(":8080 {{\n{lines}\n}}\n")).sound();
    match &loaded.checked.sites[0].routes[0].step {
        Step::EarlyHints(hints) => hints.clone(),
        step => panic!("{step:?}"),
    }
}

#[test]
fn a_link_is_what_stands_on_its_line() {
    let hints = read(
        "early_hints /a/* {\n\tlink </app.css>; rel=preload; as=style\n\tlink \"</b.js>; rel=preload; as=script\"\n}",
    );
    assert_eq!(hints.links, ["</app.css>; rel=preload; as=style", "</b.js>; rel=preload; as=script"]);
    assert!(!hints.learn);
}

#[test]
fn learning_stands_on_the_line_or_in_the_block() {
    let learning = EarlyHints { links: Vec::new(), learn: true };
    assert_eq!(read("early_hints learn"), learning);
    assert_eq!(read("early_hints /a/* learn"), learning);
    assert_eq!(read("early_hints {\n\tlearn\n}"), learning);
    assert!(read("early_hints learn {\n\tlink <https://a>; rel=preconnect\n}").links.len() == 1);
}

#[test]
fn every_wrong_value_of_early_hints() {
    insta::assert_snapshot!(
        site(
            "early_hints
early_hints /a/*
early_hints learnt
early_hints learn </a.css>
early_hints {
	link
	link /app.css
	link </app.css>
	link </app.css>; as=style
	link <>; rel=preload
	link <{path}.css>; rel=preload
	lnik </app.css>; rel=preload
	learn now
}
handle_errors {
	early_hints learn
}"
        )
        .errors()
    );
}

#[test]
fn more_links_than_a_connection_should_begin_with() {
    let links = "\tlink </a>; rel=preload\n".repeat(33);
    insta::assert_snapshot!(site(&format!("early_hints {{\n{links}}}")).errors());
}
