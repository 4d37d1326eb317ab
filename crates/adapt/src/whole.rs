//! A whole nginx.conf as an Onehopfile: each server as a site, with a comment for each directive that is not carried over.
//!
//! The translation itself refuses what has no equal. Here a refused directive is taken out and becomes a comment, and the
//! rest is translated once more, until nothing is refused. Never opens what nginx keeps closed: where a rule about who may
//! ask is taken out, its block answers 403.

use std::path::Path;
use std::sync::Arc;

use onehop_config::Source;

use crate::deployment::Deployment;
use crate::nginx::{self, Configuration, Directive, Listens, Server};
use crate::onehopfile::{indented, word, words};
use crate::position::Position;
use crate::refusal::Refusal;

/// What a comment about a directive begins with, so that it can be looked for.
const LEFT_OUT: &str = "NOT CARRIED OVER";
/// Refusals of a server after which it is given up: each of them costs a translation.
const REFUSALS_MAX: usize = 1_000;
/// Directives that decide who may ask.
const GUARDS: [&str; 10] = [
    "allow",
    "deny",
    "satisfy",
    "auth_basic",
    "auth_request",
    "auth_jwt",
    "secure_link",
    "limit_except",
    "internal",
    "valid_referers",
];

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
    /// What stands around the servers, without what was refused.
    http: Directive,
    /// A rule about who may ask was taken out there.
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

    /// The addresses of a server without TLS whose names no server with TLS has.
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
            let taken = take_out(std::slice::from_mut(&mut directive), &refusal)
                .or_else(|| take_out(std::slice::from_mut(&mut self.http), &refusal));
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
        let closed = match self.is_closed {
            true => " nginx decides by it who may ask, so these requests get 403 until you do.",
            false => "",
        };
        let also = match self.directive.inner().is_empty() {
            true => String::new(),
            false => format!(" With all of `{}`.", self.directive.shown()),
        };
        format!("{LEFT_OUT}: {place}: {}.{also}{closed}", refusal.cause)
    }
}

/// Takes the innermost directive out that a refusal is about.
fn take_out(directives: &mut [Directive], refusal: &Refusal) -> Option<Taken> {
    let is_named = |directive: &Directive| refusal.cause.contains(&format!("`{}`", directive.shown()));
    // A line may hold several; one that is not named is the outermost.
    take_out_where(directives, refusal, &is_named).or_else(|| take_out_where(directives, refusal, &|_| true))
}

fn take_out_where(
    directives: &mut [Directive],
    refusal: &Refusal,
    is_it: &dyn Fn(&Directive) -> bool,
) -> Option<Taken> {
    for directive in directives {
        let from = directive.name.clone();
        let is_closable = ["location", "server", "http"].contains(&from.as_str());
        let Some(block) = &mut directive.block else { continue };
        let is_at = |place: &Position| Some(place.line) == refusal.line && *place.file == *refusal.file;
        if let Some(taken) = take_out_where(block, refusal, is_it) {
            return Some(taken);
        }
        let found = block.iter().position(|inner| is_at(&inner.place) && is_it(inner));
        let Some(found) = found else { continue };
        let taken = block.remove(found);
        let is_closed = is_closable && GUARDS.contains(&taken.name.as_str());
        if is_closed && from != "http" {
            block.retain(|inner| ["listen", "server_name"].contains(&inner.name.as_str()));
            block.push(Directive::new("return", &["403"], &taken.place));
        }
        return Some(Taken { directive: taken, from, is_closed });
    }
    None
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

    fn is_folder_needed(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests;
