//! `onehop proxy`: a reverse proxy without a file.
//!
//! Owns the way from what was typed to the text of an Onehopfile. Never makes settings itself: the checker reads that
//! text as it reads any file, so `--print` shows all that there is.

use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use onehop_config::checked::ListenAddress;
use onehop_config::{Entry, FileKind, FileSource, Loaded, Source};

use super::app::in_words;
use super::serving::{Serving, reporter, serve_until_stopped};
use crate::arguments::{Admin, Proxy};
use crate::configuration;
use crate::failure::Failure;
use crate::listen;

/// The name of the text, for the checker.
const FILE: &str = "Onehopfile";
/// What `http://` means without a port.
const HTTP_PORT: u16 = 80;
/// The address of the upstream that a request goes to, as `caddy reverse-proxy --change-host-header` has it.
const UPSTREAM: &str = "{upstream_hostport}";

pub(crate) fn proxy(arguments: &Proxy) -> Result<(), Failure> {
    let form = arguments.process.log;
    start(arguments).map_err(|failure| failure.in_form(form))
}

fn start(arguments: &Proxy) -> Result<(), Failure> {
    let folder = configuration::working_directory()?;
    let text = onehopfile(arguments)?;
    let written = Written { text, folder: folder.clone() };
    let loaded = written.load().map_err(Failure::wrong)?;
    let reporter = reporter(&arguments.process)?;
    let warn =
        || loaded.warnings.iter().for_each(|warning| reporter.warn(in_words(std::slice::from_ref(warning))));
    if arguments.print {
        warn();
        super::standard_output::print(&written.text);
        return Ok(());
    }
    reporter.starting(&format!("passes requests on to {}", arguments.to.join(", ")));
    warn();
    serve_until_stopped(Serving {
        checked: loaded.checked,
        process: &arguments.process,
        // The folder, as with `serve` and `app`: there `onehop status` needs no name.
        subject: &folder,
        load: Arc::new(move || written.load().map(|loaded| loaded.checked)),
        watch: None,
        packed: None,
        reporter,
        keeps_history: false,
    })
}

/// What was asked for, as an Onehopfile.
fn onehopfile(arguments: &Proxy) -> Result<String, Failure> {
    let Reached { address, bind } = reached(arguments.from.as_deref())?;
    let mut site = bind.map(|bind| format!("\tbind {bind}\n")).unwrap_or_default();
    if arguments.access_log {
        site.push_str("\tlog\n");
    }
    let upstreams = arguments.to.iter().map(|to| upstream(to)).collect::<Result<Vec<_>, _>>()?;
    let block = block(arguments)?;
    site.push_str(&format!("\treverse_proxy {}", upstreams.join(" ")));
    site.push_str(&if block.is_empty() { "\n".to_owned() } else { format!(" {{\n{block}\t}}\n") });
    let admin = match arguments.admin {
        Admin::Off => "off".to_owned(),
        Admin::Address(address) => address.to_string(),
    };
    Ok(format!("{{\n\tadmin {admin}\n}}\n\n{address} {{\n{site}}}\n"))
}

/// The lines of the directive's block.
fn block(arguments: &Proxy) -> Result<String, Failure> {
    let mut block = String::new();
    for field in &arguments.header_up {
        block.push_str(&format!("\t\theader_up {}\n", self::field("--header-up", field)?));
    }
    if arguments.change_host_header {
        // Behind the others, since it holds over a Host among them, as with Caddy.
        block.push_str(&format!("\t\theader_up Host {UPSTREAM}\n"));
    }
    for field in &arguments.header_down {
        block.push_str(&format!("\t\theader_down {}\n", self::field("--header-down", field)?));
    }
    let bounds = [("min", arguments.min), ("max", arguments.max)];
    let bounds = bounds.iter().filter_map(|(name, number)| Some(format!(" {name} {}", (*number)?)));
    let bounds: String = bounds.collect();
    if !bounds.is_empty() {
        block.push_str(&format!("\t\tpool{bounds}\n"));
    }
    if arguments.insecure {
        if !arguments.to.iter().any(|to| to.starts_with("https://")) {
            return Err(Failure::wrong(format!(
                "--insecure is about certificates, and {} is spoken to without TLS\n  \
                 write https:// before it, or leave --insecure out",
                arguments.to.join(", ")
            )));
        }
        block.push_str("\t\ttransport http {\n\t\t\ttls_insecure_skip_verify\n\t\t}\n");
    }
    Ok(block)
}

/// A site's address, and the interface beside it.
#[derive(Debug, PartialEq, Eq)]
struct Reached {
    address: String,
    bind: Option<String>,
}

/// What `--from` means. An IP address is an interface here, as with `serve --listen`: in a site's address it would be
/// the host that requests have to name, on every interface.
fn reached(from: Option<&str>) -> Result<Reached, Failure> {
    let Some(from) = from else {
        let address = listen::from_environment(std::env::var_os("PORT")).map_err(Failure::wrong)?;
        return Ok(at(&address));
    };
    let wrong = |why: &str| {
        Failure::wrong(format!(
            "--from {from}: {why}\n  write :7718, 127.0.0.1:7718 or http://app.example.com"
        ))
    };
    if from.is_empty() || from.contains(|character: char| is_special(character) || character == ',') {
        return Err(wrong("this is no address"));
    }
    let plain = from.strip_prefix("http://");
    let place = plain.unwrap_or(from);
    let bare = place.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    match (plain, bare) {
        (Some(_), Ok(host)) => return Ok(at(&ListenAddress::Tcp { host: Some(host), port: HTTP_PORT })),
        (Some("localhost"), _) => return reached(Some("localhost:80")),
        _ => {}
    }
    match listen::parse(place) {
        Ok(listen::Address(address)) => Ok(at(&address)),
        // A name is a host that requests have to name; whether it is one says the checker.
        Err(_)
            if from.contains(|character: char| character.is_ascii_alphabetic())
                && !place.starts_with("unix/") =>
        {
            Ok(Reached { address: from.to_owned(), bind: None })
        }
        Err(why) => Err(wrong(&why)),
    }
}

/// A place to listen, as a site says it.
fn at(address: &ListenAddress) -> Reached {
    match address {
        ListenAddress::Tcp { host, port } => {
            Reached { address: format!(":{port}"), bind: host.map(|host| host.to_string()) }
        }
        ListenAddress::Unix { path, mode } => {
            let mode = mode.map(|mode| format!("|{mode:04o}")).unwrap_or_default();
            let path = format!("unix/{}{mode}", path.display());
            Reached { address: format!(":{HTTP_PORT}"), bind: Some(word(&path).unwrap_or(path)) }
        }
    }
}

/// An upstream as a word; what is one says the checker.
fn upstream(to: &str) -> Result<String, Failure> {
    if to.is_empty() || to.starts_with(['/', '@', '*']) {
        return Err(Failure::wrong(format!(
            "--to {to}: this is no upstream\n  write host:port, https://host:port, or unix//run/app.sock for a socket"
        )));
    }
    word(to).ok_or_else(|| Failure::wrong(format!("--to {to:?}: this is no upstream\n  write host:port")))
}

/// `Name: value` as the two words of `header_up` and `header_down`.
fn field(option: &str, written: &str) -> Result<String, Failure> {
    let wrong = |why: &str| {
        Failure::wrong(format!(
            "{option} {written:?}: {why}\n  write it as 'Name: value', in quotes for the shell"
        ))
    };
    let Some((name, value)) = written.split_once(':') else { return Err(wrong("there is no colon in it")) };
    let (name, value) = (name.trim(), value.trim());
    if name.is_empty() || value.is_empty() {
        return Err(wrong("name or value is missing"));
    }
    if name.starts_with(['+', '-', '?', '>']) || name.contains(is_special) {
        return Err(wrong(
            "this sets a field; an Onehopfile can also add and remove some (--print makes one)",
        ));
    }
    let value = word(value).ok_or_else(|| wrong("a value has one line, and not every kind of quote"))?;
    Ok(format!("{name} {value}"))
}

/// A text as one word of an Onehopfile, quoted where it must be; nothing where no quotes can hold it. Placeholders
/// in it hold, `{$NAME}` too.
fn word(text: &str) -> Option<String> {
    if text.contains(|character: char| character.is_control()) {
        return None;
    }
    if !text.is_empty() && !text.contains(is_special) && !text.starts_with("<<") {
        return Some(text.to_owned());
    }
    let is_placeholder = text.starts_with('{') && text.ends_with('}') && !text.contains([' ', '"', '`', '#']);
    if is_placeholder && text.matches('{').count() == 1 && text.len() > 2 {
        return Some(text.to_owned());
    }
    if !text.contains('`') {
        return Some(format!("`{text}`"));
    }
    // In double quotes a backslash only means something before a quote.
    let is_plain = !text.contains("\\\"") && !text.ends_with('\\');
    is_plain.then(|| format!("\"{}\"", text.replace('"', "\\\"")))
}

/// Whether a character may mean something else than itself in an Onehopfile.
fn is_special(character: char) -> bool {
    character.is_whitespace() || character.is_control() || "{}\"'`#\\".contains(character)
}

/// An Onehopfile that is in no folder.
struct Written {
    text: String,
    folder: PathBuf,
}

impl Written {
    fn load(&self) -> Result<Loaded, String> {
        onehop_config::load(Path::new(FILE), FileKind::Onehopfile, self)
            .map_err(|problems| in_words(&problems))
    }
}

impl Source for Written {
    fn read(&self, path: &Path) -> io::Result<String> {
        if path == Path::new(FILE) { Ok(self.text.clone()) } else { FileSource.read(path) }
    }

    fn entry(&self, path: &Path) -> Option<Entry> {
        FileSource.entry(path)
    }

    fn glob(&self, pattern: &Path) -> io::Result<Vec<PathBuf>> {
        FileSource.glob(pattern)
    }

    fn env(&self, name: &str) -> Option<String> {
        FileSource.env(name)
    }

    fn working_directory(&self) -> PathBuf {
        self.folder.clone()
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use onehop_config::checked::Step;

    use super::*;

    fn asked(words: &[&str]) -> Proxy {
        let line = ["onehop", "proxy"].iter().chain(words);
        let crate::arguments::Command::Proxy(proxy) = crate::arguments::Arguments::parse_from(line).command
        else {
            panic!("another command")
        };
        proxy
    }

    fn text(words: &[&str]) -> String {
        onehopfile(&asked(words)).expect("sound")
    }

    /// The sentence without which a person would not know what to write.
    fn refused(words: &[&str]) -> String {
        format!("{:?}", onehopfile(&asked(words)).expect_err("refused"))
    }

    #[test]
    fn what_was_asked_for_is_an_onehopfile() {
        let all = [
            "--from",
            ":7718",
            "--to",
            "https://search.example.com:7718",
            "-t",
            "https://10.0.0.3,https://10.0.0.4",
            "--min",
            "4",
            "--max",
            "20",
            "-c",
            "--insecure",
            "-H",
            "X-Key: {env.KEY}",
            "-H",
            "X-Say:say \"hello\"",
            "-d",
            "X-Served-By: onehop",
            "--access-log",
            "--admin",
            "off",
        ];
        let cases = [&["--from", ":80", "--to", "localhost:3000"][..], &all];
        insta::assert_snapshot!(cases.map(text).join("----\n"));
    }

    #[test]
    fn an_ip_address_is_an_interface_and_a_name_is_a_host() {
        for (from, address, bind) in [
            (":7718", ":7718", None),
            ("127.0.0.1:7718", ":7718", Some("127.0.0.1")),
            ("http://127.0.0.1:7718", ":7718", Some("127.0.0.1")),
            ("http://127.0.0.1", ":80", Some("127.0.0.1")),
            ("http://[::1]:7718", ":7718", Some("::1")),
            ("http://[::1]", ":80", Some("::1")),
            ("localhost:0", ":0", Some("127.0.0.1")),
            ("http://localhost", ":80", Some("127.0.0.1")),
            ("http://app.example.com", "http://app.example.com", None),
            ("app.example.com:8080", "app.example.com:8080", None),
            ("https://app.example.com", "https://app.example.com", None),
            ("unix//run/proxy.sock|0660", ":80", Some("unix//run/proxy.sock|0660")),
        ] {
            let expected = Reached { address: address.to_owned(), bind: bind.map(str::to_owned) };
            assert_eq!(reached(Some(from)).expect(from), expected, "{from}");
        }
    }

    #[test]
    fn a_wrong_word_says_what_to_write() {
        let to = ["--to", "localhost:1"];
        for (words, hint) in [
            (["--from", "7718"], "127.0.0.1:7718 for this machine only"),
            (["--from", ":70000"], "not a port"),
            (["--from", "a b"], "this is no address"),
            (["--from", ":1 {"], "this is no address"),
            (["--from", "unix/"], "path is missing"),
            (["--to", "/run/a.sock"], "unix//run/app.sock"),
            (["--to", "@a"], "https://host:port"),
            (["--header-up", "X-A"], "no colon"),
            (["--header-up", "X-A: "], "is missing"),
            (["--header-up", "+X-A: 1"], "add and remove"),
            (["--header-down", "X A: 1"], "add and remove"),
            (["--header-down", "X-A: a\nb"], "one line"),
        ] {
            let said = refused(&[&to[..], &words].concat());
            assert!(said.contains(hint), "{words:?}: {said}");
        }
        let said = refused(&[&to[..], &["--insecure"]].concat());
        assert!(said.contains("without TLS"), "{said}");
    }

    #[test]
    fn a_value_is_one_word_whatever_it_holds() {
        for value in [
            "a",
            "a b",
            "say \"b\"",
            "`a`",
            "<<a",
            "#a",
            "a#b",
            "a\\",
            "{\"a\": 1}",
            "}",
            "{",
            "{}",
            "é",
            "''",
        ] {
            let word = word(value).expect(value);
            let written = Written { text: format!(":1 {{\n\theader X-A {word}\n}}\n"), folder: "/".into() };
            let checked = written.load().expect(value).checked;
            let Some(Step::Header(step)) = checked.sites[0].routes.first().map(|route| &route.step) else {
                panic!("{checked:?}")
            };
            let shown = format!("{:?}", step.ops);
            assert!(shown.contains(&format!("Text({value:?})")), "{value}: {shown}");
        }
        for value in ["`\\\"", "`\\", "a\nb", "\0"] {
            assert_eq!(word(value), None, "{value:?}");
        }
    }
}
