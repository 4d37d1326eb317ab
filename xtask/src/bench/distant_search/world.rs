//! One target between two network namespaces: the search service in the far one, a proxy and the clients in the near one.
//!
//! Owns both servers; they end before their network does. Every world has the same addresses, because none sees another.

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use onehop_load::measure::Server;
use onehop_testkit::distance::{Between, Distance, Lateness, Namespace, Passed};

use crate::steps::quiet;
use crate::{Outcome, workspace};

use super::super::interrupt;
use super::super::servers::{self, Cores};
use super::plan::{Case, Plan, Target, Transport};

/// The port of the file, on both sides.
const PORT: u16 = 7718;
/// Programs listen within milliseconds; half a minute means never.
const LISTEN_DEADLINE: Duration = Duration::from_secs(30);
/// Nothing has passed for so long: connections that are opened ahead are open, with their handshakes.
const QUIET: Duration = Duration::from_millis(600);
/// A wire that is never quiet is measured as it is.
const QUIET_DEADLINE: Duration = Duration::from_secs(15);
/// A service that keeps idle connections keeps them for a day.
const KEPT_SECONDS: &str = "86400";
/// One pause of whoever waits.
const PAUSE: Duration = Duration::from_millis(5);

/// Files of the experiment, relative to the checkout.
pub(super) const EXPERIMENT: &str = "experiments/distant-search";

/// What all worlds share: programs and certificates.
pub(super) struct Shared {
    pub(super) caddy: Option<PathBuf>,
    pub(super) nginx: Option<PathBuf>,
    pub(super) folder: PathBuf,
}

/// A target that runs in its world.
pub(super) struct World {
    pub(super) target: Target,
    pub(super) case: Case,
    proxy: Option<Server>,
    search: Server,
    distance: Distance,
}

impl Shared {
    /// Makes an authority with a certificate of the search service's address.
    pub(super) fn prepare(nginx: Option<PathBuf>, caddy: Option<PathBuf>) -> Outcome<Shared> {
        let folder = workspace::target_folder("bench/distant-search")?;
        let shared = Shared { caddy, nginx, folder };
        shared.make_certificates()?;
        Ok(shared)
    }

    /// Where the authority's certificate is.
    pub(super) fn authority(&self) -> PathBuf {
        self.folder.join("authority.pem")
    }

    fn make_certificates(&self) -> Outcome {
        let openssl = |words: &str| {
            let mut command = Command::new("openssl");
            quiet(command.args(words.split_whitespace()).current_dir(&self.folder))
        };
        let key = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes";
        openssl(&format!(
            "req -x509 {key} -keyout authority.key -out authority.pem -days 30 -subj /CN=authority"
        ))?;
        openssl(&format!("req {key} -keyout search.key -out search.csr -subj /CN=search"))?;
        std::fs::write(
            self.folder.join("search.ext"),
            format!("subjectAltName=DNS:search,IP:{}\n", far().ip()),
        )?;
        openssl(
            "x509 -req -in search.csr -CA authority.pem -CAkey authority.key -CAcreateserial -days 30 \
             -extfile search.ext -out search.pem",
        )
    }

    /// The variables of a server that shows or verifies the certificate.
    pub(super) fn environment(&self, work: &Path) -> Vec<(String, String)> {
        let own = |name: &str| self.folder.join(name).display().to_string();
        let work = |name: &str| work.join(name).display().to_string();
        [
            ("SEARCH_AUTHORITY", own("authority.pem")),
            ("SEARCH_CERTIFICATE", own("search.pem")),
            ("SEARCH_KEY", own("search.key")),
            ("ONEHOP_CONTROL", work("control")),
            // Caddy keeps its last settings and its identity there.
            ("XDG_CONFIG_HOME", work("")),
            ("XDG_DATA_HOME", work("")),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .to_vec()
    }
}

impl World {
    /// Makes the ends, starts the servers and waits until they listen and nothing is under way any more.
    pub(super) fn open(shared: &Shared, plan: &Plan, case: Case, target: Target) -> Outcome<World> {
        let between =
            Between { one_way: plan.one_way, lost_per_mille: case.lost_per_mille(), ..Between::default() };
        let distance = Distance::open(&between)?;
        distance.use_congestion_control(&plan.congestion)?;
        let slow_start = if plan.slow_start_after_idle { "1" } else { "0" };
        distance.far().set("net/ipv4/tcp_slow_start_after_idle", slow_start)?;
        let work = format!("bench/distant-search/{}-{}", case.name, target.name());
        // What an earlier run left may belong to another user.
        let _ = std::fs::remove_dir_all(workspace::target().join(&work));
        let work = workspace::target_folder(&work)?;
        let search = start_search(shared, case, &work, distance.far())?;
        let proxy = start_proxy(shared, case, target, &work, distance.near())?;
        let world = World { target, case, proxy, search, distance };
        world.wait_for_quiet()?;
        Ok(world)
    }

    /// Where the client asks.
    pub(super) fn address(&self) -> SocketAddr {
        if self.target == Target::Direct { far() } else { near() }
    }

    /// Runs something where the client is.
    pub(super) fn near<T: Send>(&self, work: impl FnOnce() -> Outcome<T> + Send) -> Outcome<T> {
        inside(self.distance.near(), work)
    }

    /// What passed since then.
    pub(super) fn passed_since(&self, moment: Instant) -> Vec<Passed> {
        self.distance.passed_since(moment)
    }

    /// What the relay says of itself.
    pub(super) fn lateness(&self) -> Lateness {
        self.distance.lateness()
    }

    /// What the servers wrote last, for whoever wonders about an error.
    pub(super) fn log_tail(&self) -> String {
        let proxy = self.proxy.as_ref().map(Server::log_tail).unwrap_or_default();
        let text = if proxy.trim().is_empty() { self.search.log_tail() } else { proxy };
        text.lines().last().unwrap_or_default().to_owned()
    }

    fn wait_for_quiet(&self) -> Outcome {
        let begun = Instant::now();
        while begun.elapsed() < QUIET_DEADLINE {
            interrupt::check()?;
            let since = self.distance.last_activity().map_or(begun, |last| last.max(begun));
            if since.elapsed() > QUIET {
                break;
            }
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }
}

fn start_search(shared: &Shared, case: Case, work: &Path, namespace: &Namespace) -> Outcome<Server> {
    let script = settings("search.mjs").display().to_string();
    let mut environment = vec![("HOST".to_owned(), far().ip().to_string())];
    if case.transport != Transport::Plain {
        environment.extend(shared.environment(work));
    }
    if case.transport == Transport::Http2 {
        environment.push(("SEARCH_HTTP2".to_owned(), "1".to_owned()));
    }
    if !case.closes {
        environment.push(("SEARCH_IDLE_SECONDS".to_owned(), KEPT_SECONDS.to_owned()));
    }
    start(&["node".to_owned(), script], &environment, namespace, far())
}

fn start_proxy(
    shared: &Shared,
    case: Case,
    target: Target,
    work: &Path,
    namespace: &Namespace,
) -> Outcome<Option<Server>> {
    let Some(file) = target.settings(case.transport).map(settings) else { return Ok(None) };
    let program = |path: &Path| path.display().to_string();
    let words = match target {
        Target::Direct => return Ok(None),
        Target::Caddy => {
            let caddy = shared.caddy.as_deref().ok_or("Caddy is not there")?;
            let words = [&program(caddy), "run", "--adapter", "caddyfile", "--config", &program(&file)];
            words.map(str::to_owned).to_vec()
        }
        Target::Onehop | Target::OnehopFour => {
            let words = [&program(&workspace::program()), "run", "--config", &program(&file)];
            words.map(str::to_owned).to_vec()
        }
        Target::Nginx => nginx(shared, case, work, &file)?,
    };
    let mut environment = shared.environment(work);
    let versions = if case.transport == Transport::Http2 { "2" } else { "1.1" };
    environment.push(("SEARCH_VERSIONS".to_owned(), versions.to_owned()));
    start(&words, &environment, namespace, near()).map(Some)
}

/// nginx reads no variables: its file is written anew with its names filled in.
fn nginx(shared: &Shared, case: Case, work: &Path, file: &Path) -> Outcome<Vec<String>> {
    let scheme = if case.transport == Transport::Plain { "http" } else { "https" };
    let text = std::fs::read_to_string(file)?
        .replace("@NAMES@", "Names")
        .replace("@WORK@", &work.display().to_string())
        .replace("@SCHEME@", scheme)
        .replace("@AUTHORITY@", &shared.authority().display().to_string());
    let written = work.join("nginx.conf");
    std::fs::write(&written, text)?;
    let nginx = shared.nginx.as_deref().ok_or("nginx is not there")?;
    let words = [nginx, Path::new("-p"), work, Path::new("-c"), &written];
    Ok(words.map(|word| word.display().to_string()).to_vec())
}

/// Starts a server in a namespace and waits until it listens there. It is not asked anything: the first search must be
/// the first request.
pub(super) fn start(
    words: &[String],
    environment: &[(String, String)],
    namespace: &Namespace,
    address: SocketAddr,
) -> Outcome<Server> {
    let server = inside(namespace, || servers::start(words, environment, PORT, Cores::All))?;
    let begun = Instant::now();
    while inside(namespace, || Ok(TcpStream::connect(address)?)).is_err() {
        interrupt::check()?;
        if let Some(how) = server.ended() {
            let log = server.log_tail();
            return Err(
                format!("{} ended before it listened ({how}): {}", server.program(), log.trim()).into()
            );
        }
        if begun.elapsed() > LISTEN_DEADLINE {
            return Err(format!("{} does not listen on {address}", server.program()).into());
        }
        std::thread::sleep(PAUSE);
    }
    Ok(server)
}

/// Runs something in a namespace. Errors change threads as text.
pub(super) fn inside<T: Send>(namespace: &Namespace, work: impl FnOnce() -> Outcome<T> + Send) -> Outcome<T> {
    Ok(namespace.run(|| work().map_err(|error| error.to_string()))??)
}

fn settings(file: &str) -> PathBuf {
    workspace::root().join(EXPERIMENT).join(file)
}

fn near() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, PORT))
}

pub(super) fn far() -> SocketAddr {
    SocketAddr::from((Between::default().far, PORT))
}
