//! Where sites are reached instead of where the configuration says.
//!
//! A place (`:8080`, `127.0.0.1:8080`, `unix//run/app.sock`) answers any host: it does not say by which name the site is
//! reached. A URL (`http://app.example.com`) says the host, too; of this machine itself
//! (`http://localhost:8080`) also the interface. Several sites in one place keep their hosts, by which they are told
//! apart.

use std::collections::{BTreeSet, HashMap};

use super::find_site;
use crate::check::{Address, Context, Endpoint};
use crate::checked::Global;
use crate::problem::Problem;
use crate::syntax::{Block, Token};

/// One address, of one site or of all.
#[derive(Debug)]
pub(super) struct Listen {
    pub(super) site: Option<Token>,
    pub(super) at: Token,
}

/// What is said about where to listen, the weakest first.
#[derive(Debug, Default)]
pub(crate) struct Listens {
    pub(super) layers: Vec<Vec<Listen>>,
    pub(super) port: Option<Token>,
}

/// Where a site is reached now.
#[derive(Debug, Default)]
pub(crate) struct Moved {
    at: Vec<Token>,
    keeps_hosts: bool,
}

/// A place of the configuration: what is bound to, and how it is spoken with.
type Reached = BTreeSet<(String, Endpoint)>;

impl Listens {
    /// What moves, by the number of its block.
    pub(crate) fn decide(
        &self,
        cx: &mut Context<'_>,
        global: &Global,
        blocks: &[Block],
    ) -> HashMap<usize, Moved> {
        let sites: Vec<usize> = (0..blocks.len())
            .filter(|number| blocks.get(*number).is_some_and(|block| !block.keys.is_empty()))
            .collect();
        let mut moved = HashMap::new();
        for layer in &self.layers {
            let mut here: HashMap<usize, Moved> = HashMap::new();
            let mut of_all: Vec<&Token> = Vec::new();
            for listen in layer {
                let Some(site) = &listen.site else {
                    of_all.push(&listen.at);
                    continue;
                };
                if let Some(number) = cx.keep(find_site(blocks, site)) {
                    here.entry(number).or_default().at.push(listen.at.clone());
                }
            }
            if !of_all.is_empty() {
                if let Err(problem) = may_move_all(cx, global, blocks, &sites, &of_all) {
                    cx.problems.push(problem);
                    continue;
                }
                for number in &sites {
                    let entry = here.entry(*number).or_default();
                    entry.at.extend(of_all.iter().map(|token| (*token).clone()));
                    entry.keeps_hosts = sites.len() > 1;
                }
            }
            moved.extend(here);
        }
        if moved.is_empty()
            && let Some(port) = &self.port
        {
            self.by_port(cx, global, blocks, &sites, port, &mut moved);
        }
        moved
    }

    /// `PORT` takes the place of the one TCP address.
    fn by_port(
        &self,
        cx: &mut Context<'_>,
        global: &Global,
        blocks: &[Block],
        sites: &[usize],
        port: &Token,
        moved: &mut HashMap<usize, Moved>,
    ) {
        let all: Reached = sites
            .iter()
            .filter_map(|number| blocks.get(*number))
            .flat_map(|block| reached(cx, global, block))
            .collect();
        let is_unix = |(bind, _): &&(String, Endpoint)| bind.starts_with("unix/");
        if all.iter().all(|place| is_unix(&place)) {
            return;
        }
        if all.len() > 1 {
            let message = "there are several addresses to listen on, and `PORT` names one port";
            cx.problems.push(Problem::error("port", &port.place, message).help(
                "say where each site is reached, `--listen SITE=ADDRESS`, or write `{$PORT}` into the \
                 configuration; without the variable `PORT` all addresses stay as they are",
            ));
            return;
        }
        for number in sites {
            moved.insert(*number, Moved { at: vec![port.clone()], keeps_hosts: sites.len() > 1 });
        }
    }
}

/// Several sites can move at once where they are reached in the same place.
fn may_move_all(
    cx: &Context<'_>,
    global: &Global,
    blocks: &[Block],
    sites: &[usize],
    at: &[&Token],
) -> Result<(), Box<Problem>> {
    let Some(first) = at.first() else { return Ok(()) };
    let blocks: Vec<&Block> = sites.iter().filter_map(|number| blocks.get(*number)).collect();
    let [one, others @ ..] = blocks.as_slice() else { return Ok(()) };
    if others.is_empty() {
        return Ok(());
    }
    let key = one.keys.first().map_or("", |key| key.text.as_str());
    let how = |problem: Box<Problem>| {
        problem.help(format!(
            "name the site: `--listen {key}={}`, or `site {key} {{ … }}` in an override file",
            first.text
        ))
    };
    if let Some(url) = at.iter().find(|token| is_url(token)) {
        let message = format!("`{}` names a host, and there are several sites", url.text);
        return Err(how(Problem::error("listen", &url.place, message)));
    }
    let place = reached(cx, global, one);
    if others.iter().any(|other| reached(cx, global, other) != place) {
        let message = "there are several sites in several places, and this does not say which is meant";
        return Err(how(Problem::error("listen", &first.place, message)));
    }
    Ok(())
}

/// Where a site is reached as it is written; what is broken is told elsewhere.
fn reached(cx: &Context<'_>, global: &Global, block: &Block) -> Reached {
    let lines = block.lines.iter().filter(|line| line.name.text == "bind");
    let mut binds: Vec<String> = lines.flat_map(|line| &line.args).map(|token| token.text.clone()).collect();
    if binds.is_empty() {
        binds.push(String::new());
    }
    let addresses = block.keys.iter().filter_map(|key| Address::parse(cx, key).ok());
    let endpoints: Vec<Endpoint> = addresses.map(|address| address.quiet_endpoint(global)).collect();
    binds
        .into_iter()
        .flat_map(|bind| endpoints.iter().map(move |endpoint| (bind.clone(), *endpoint)))
        .collect()
}

fn is_url(token: &Token) -> bool {
    token.text.contains("://")
}

impl Moved {
    /// The site's addresses now; `written` are those of the configuration.
    pub(crate) fn addresses(&self, cx: &mut Context<'_>, written: &[Address]) -> Vec<Address> {
        let mut addresses: Vec<Address> = Vec::new();
        for token in &self.at {
            let parsed =
                if is_url(token) { Address::of_url(cx, token) } else { Address::of_place(cx, token) };
            let Some(address) = cx.keep(parsed) else { continue };
            if !self.keeps_hosts {
                addresses.push(address);
                continue;
            }
            let from = addresses.len();
            for other in written {
                let is_there = addresses.iter().skip(from).any(|known: &Address| known.host == other.host);
                if !is_there {
                    addresses.push(address.with_host_of(other));
                }
            }
        }
        addresses
    }
}
