//! A whole nginx.conf as an Onehopfile: each server as a site, with a comment for each directive that is not carried over.
//!
//! The translation itself refuses what has no equal. Here a refused directive is taken out and becomes a comment, and the
//! rest is translated once more, until nothing is refused. Never serves what nginx would not: a block of which something
//! was taken out answers 403, since files that an application hid, or a rule about who may ask, would else be open.

use std::path::Path;
use std::sync::Arc;

use onehop_config::Source;

use crate::deployment::Deployment;
use crate::nginx::{self, Configuration, Directive, Listens, Server};
use crate::onehopfile::{indented, word, words};
use crate::position::Position;
use crate::refusal::{LEFT_OUT, Refusal};

/// Refusals of a server after which it is given up: each of them costs a translation.
const REFUSALS_MAX: usize = 1_000;
/// Directives without which the same is served, in another form.
const HARMLESS: [&str; 4] = ["mirror", "split_clients", "ssi", "sub_filter"];

/// An nginx.conf as an Onehopfile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Adapted {
    /// The whole text.
    pub onehopfile: String,
    /// Directives that were not carried over; each has a comment with `NOT CARRIED OVER`.
    pub left_out: usize,
}

/// Translates all servers of an nginx.conf with everything that it includes.
///
/// # Errors
/// What is no configuration, cannot be read, or has no server.
pub fn adapt(path: &Path, source: &dyn Source) -> Result<Adapted, Refusal> {
    let configuration = Configuration::read(path, source, &mut Vec::new())?;
    let place = Position { file: Arc::from(path), line: 1 };
    let http =
        Directive { block: Some(configuration.http().to_vec()), ..Directive::new("http", &[], &place) };
    let mut whole = Whole { configuration: &configuration, http, is_closed: false, left_out: 0 };
    let mut head = whole.outside();
    let servers: Vec<&Directive> = configuration.servers().collect();
    if servers.is_empty() {
        return Err(Refusal::of_file(
            path,
            "it has no server",
            "name the file with the server, such as /etc/nginx/sites-enabled/default",
        ));
    }
    let sites = servers.iter().map(|server| whole.site(server)).collect::<Result<Vec<String>, _>>()?;
    let mut unneeded = Unneeded::default();
    for directive in configuration.main() {
        match directive.name.as_str() {
            "http" => directive.inner().iter().for_each(|inner| unneeded.add(inner)),
            _ => unneeded.add(directive),
        }
    }
    head.extend(unneeded.comment());
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut onehopfile = format!("# From {name}, by `onehop adapt`.\n");
    head.iter().for_each(|line| onehopfile.push_str(&comment(line)));
    for site in sites {
        onehopfile.push('\n');
        onehopfile.push_str(&site);
    }
    Ok(Adapted { onehopfile, left_out: whole.left_out })
}

struct Whole<'a> {
    configuration: &'a Configuration<'a>,
    /// The directives around the servers, without those that were refused.
    http: Directive,
    /// One of those was not harmless.
    is_closed: bool,
    left_out: usize,
}

impl Whole<'_> {
    /// What has no equal beside `http`.
    fn outside(&mut self) -> Vec<String> {
        let others = self.configuration.main().iter().filter(|directive| directive.block.is_some());
        let others = others.filter(|directive| !["http", "events"].contains(&directive.name.as_str()));
        let lines: Vec<String> = others
            .map(|directive| {
                format!("{LEFT_OUT}: {}: `{}`: onehop serves HTTP alone.", directive.place, directive.shown())
            })
            .collect();
        self.left_out += lines.len();
        lines
    }

    /// The addresses for those names of a server that no server with TLS has.
    fn without_https(&self, server: &Directive) -> Vec<String> {
        let names = |server: &Directive| nginx::names(server, &mut Vec::new());
        let with_tls = self.configuration.servers().filter(|server| Listens::of(server).is_tls());
        let with_tls: Vec<String> = with_tls.flat_map(names).collect();
        let others = names(server).into_iter().filter(|name| !with_tls.contains(name));
        others.map(|name| format!("http://{name}")).collect()
    }

    /// One server as a site.
    fn site(&mut self, written: &Directive) -> Result<String, Refusal> {
        let listens = Listens::of(written);
        let mut of_redirect = Vec::new();
        if nginx::leads_to_https(written) && !listens.is_tls() {
            of_redirect = self.without_https(written);
            if of_redirect.is_empty() {
                return Ok(comment(&format!(
                    "{}: this server leads to HTTPS. onehop does that by itself for the sites with HTTPS.",
                    written.place
                )));
            }
        }
        let mut directive = written.clone();
        let mut comments = Vec::new();
        let (body, mut notes) = loop {
            let mut notes = Vec::new();
            let refusal = {
                let server = self.configuration.server_of(self.http.inner(), &directive);
                match nginx::translate(&server, &AsWritten, &mut notes) {
                    Ok(translated) => break (translated.body, notes),
                    Err(refusal) => refusal,
                }
            };
            let taken = close_passes(&mut directive, &self.http, &refusal)
                .or_else(|| take_out([&mut directive, &mut self.http], &refusal));
            let Some(taken) = taken.filter(|_| comments.len() < REFUSALS_MAX) else { return Err(refusal) };
            self.left_out += 1;
            self.is_closed |= taken.is_closed && taken.from == "http";
            comments.push(taken.comment(&refusal));
        };
        let server = self.configuration.server_of(self.http.inner(), written);
        let (mut addresses, lines) = head(&server, &listens, &mut notes);
        if !of_redirect.is_empty() {
            addresses = of_redirect.join(", ");
        }
        let mut seen = std::collections::HashSet::new();
        notes.retain(|note| seen.insert(note.clone()));
        self.left_out += notes.iter().filter(|note| note.starts_with(LEFT_OUT)).count();
        let mut site = String::new();
        comments.iter().chain(&notes).for_each(|line| site.push_str(&comment(line)));
        let mut unneeded = Unneeded::default();
        written.inner().iter().for_each(|inner| unneeded.add(inner));
        unneeded.comment().iter().for_each(|line| site.push_str(&comment(line)));
        site.push_str(&lines);
        site.push_str(if self.is_closed { "respond 403\n" } else { &body });
        Ok(format!("{addresses} {{\n{}}}\n", indented(&site)))
    }
}

/// The addresses of a site, and its lines about listeners and certificates.
fn head(server: &Server<'_>, listens: &Listens<'_>, notes: &mut Vec<String>) -> (String, String) {
    let addresses = listens.addresses(notes).join(", ");
    let mut lines = String::new();
    let hosts = listens.own_hosts();
    if !hosts.is_empty() {
        lines.push_str(&format!("bind {}\n", words(&hosts)));
    }
    let levels = [server.http, server.directive.inner()];
    let found = |name| nginx::nearest(name, &levels);
    if let (true, Some(certificate), Some(key)) =
        (listens.is_tls(), found("ssl_certificate"), found("ssl_certificate_key"))
    {
        if ["letsencrypt", "certbot", "acme"].iter().any(|tool| certificate.arg(0).contains(tool)) {
            notes.push(format!(
                "`{}` ({}): onehop obtains and renews certificates by itself.",
                certificate.shown(),
                certificate.place.words()
            ));
        } else {
            let file =
                |directive: &Directive| word(&server.folder.join(directive.arg(0)).display().to_string());
            lines.push_str(&format!("tls {} {}\n", file(certificate), file(key)));
        }
    }
    (addresses, lines)
}

/// A directive that was taken out.
struct Taken {
    directive: Directive,
    /// The name of the block that it stood in.
    from: String,
    is_closed: bool,
}

impl Taken {
    fn comment(&self, refusal: &Refusal) -> String {
        let place = refusal.place();
        let closed = match (self.is_closed, self.from.as_str()) {
            (false, _) => "",
            (true, "location") => " This location answers 403.",
            (true, "server") => " This site answers 403.",
            (true, _) => " All sites answer 403.",
        };
        let next = match (self.is_closed, self.directive.name.as_str()) {
            (true, "auth_basic") => {
                " Give the users bcrypt hashes in their file (`htpasswd -B`), and run `onehop adapt` again; without `auth_basic` \
                 everybody could ask."
            }
            (true, _) => " Decide, take it out of a copy of the file, and run `onehop adapt` on that.",
            (false, _) => "",
        };
        let also = match self.directive.inner().is_empty() {
            true => String::new(),
            false => format!(" With all of `{}`.", self.directive.shown()),
        };
        format!("{LEFT_OUT}: {place}: {}.{also}{closed}{next}", refusal.cause)
    }
}

/// Takes the innermost directive out that a refusal is about, from the server or from the directives around it.
fn take_out(mut from: [&mut Directive; 2], refusal: &Refusal) -> Option<Taken> {
    // A line may hold several; one that is not named is the outermost.
    for is_it in [is_named as fn(&Directive, &Refusal) -> bool, |_, _| true] {
        for directive in &mut from {
            let found = take_out_where(std::slice::from_mut(&mut **directive), refusal, is_it);
            if found.is_some() {
                return found;
            }
        }
    }
    None
}

/// Whether a refusal names a directive's line.
fn is_at(directive: &Directive, refusal: &Refusal) -> bool {
    Some(directive.place.line) == refusal.line && *directive.place.file == *refusal.file
}

/// Whether it shows the directive.
fn is_named(directive: &Directive, refusal: &Refusal) -> bool {
    refusal.cause.contains(&format!("`{}`", directive.shown()))
}

fn take_out_where(
    directives: &mut [Directive],
    refusal: &Refusal,
    is_it: fn(&Directive, &Refusal) -> bool,
) -> Option<Taken> {
    for directive in directives {
        let from = directive.name.clone();
        let is_closable = ["location", "server", "http"].contains(&from.as_str());
        let Some(block) = &mut directive.block else { continue };
        if let Some(taken) = take_out_where(block, refusal, is_it) {
            return Some(taken);
        }
        let found = block.iter().position(|inner| is_at(inner, refusal) && is_it(inner, refusal));
        let Some(found) = found else { continue };
        let taken = block.remove(found);
        let is_closed = is_closable && !HARMLESS.contains(&taken.name.as_str());
        if is_closed && from != "http" {
            close(block, &taken.place);
        }
        return Some(Taken { directive: taken, from, is_closed });
    }
    None
}

/// Leaves nothing of a block but that it answers 403; a server goes on to listen.
fn close(block: &mut Vec<Directive>, place: &Position) {
    block.retain(|inner| ["listen", "server_name"].contains(&inner.name.as_str()));
    block.push(Directive::new("return", &["403"], place));
}

/// Where an `upstream` is refused, closes the locations of a server that pass requests to it.
fn close_passes(server: &mut Directive, http: &Directive, refusal: &Refusal) -> Option<Taken> {
    let is_it = |directive: &Directive| is_at(directive, refusal) && is_named(directive, refusal);
    let mut upstreams = http.inner().iter().filter(|directive| directive.name == "upstream");
    let upstream = upstreams.find(|upstream| is_it(upstream) || upstream.inner().iter().any(is_it))?;
    let leads_there = |directive: &Directive| {
        let passed = nginx::passed(directive.arg(0));
        directive.name == "proxy_pass" && passed.is_some_and(|to| to.host == upstream.arg(0))
    };
    let mut is_closed = false;
    for location in server.block.iter_mut().flatten().filter(|directive| directive.name == "location") {
        if let Some(block) = location.block.as_mut().filter(|block| block.iter().any(leads_there)) {
            close(block, &upstream.place);
            is_closed = true;
        }
    }
    is_closed.then(|| Taken { directive: upstream.clone(), from: "location".to_owned(), is_closed })
}

/// Directives that do nothing here, by their names with the lines of each.
#[derive(Default)]
struct Unneeded(Vec<String>);

impl Unneeded {
    fn add(&mut self, directive: &Directive) {
        // Those have a comment of their own, or are carried over.
        let is_certificate = ["ssl_certificate", "ssl_certificate_key"].contains(&directive.name.as_str());
        if nginx::is_unneeded(&directive.name) && !is_certificate {
            self.0.push(format!("{} ({})", directive.name, directive.place.line));
        }
        if directive.name == "location" {
            directive.inner().iter().for_each(|inner| self.add(inner));
        }
    }

    fn comment(&self) -> Option<String> {
        let names = self.0.join(", ");
        (!names.is_empty()).then(|| format!("Not needed, with their lines: {names}."))
    }
}

fn comment(text: &str) -> String {
    // A directive that is shown may go over several lines.
    format!("# {}\n", text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// A machine of which only the configuration's text is known, and which may be another one than this.
struct AsWritten;

impl Deployment for AsWritten {
    fn access_log(&self, written: Option<&Directive>, _notes: &mut Vec<String>) -> Option<String> {
        let file = written?.arg(0);
        file.starts_with('/').then(|| word(file))
    }

    fn folder(&self, _near: &Path, folder: &Path) -> String {
        folder.display().to_string()
    }

    fn is_measured(&self) -> bool {
        false
    }

    fn is_folder_needed(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests;
