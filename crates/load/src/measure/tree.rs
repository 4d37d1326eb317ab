//! Processes that belong together: a server with its workers.
//!
//! Owns who is a member. A process that was a member once stays one until it ends, also when its parent has
//! ended, or when it moved into a group or session of its own: servers that go to the background (daemon(7)) do.
//! Never takes a shell or the system's first process for a part of a server.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use super::process::{self, Life, Process};
use super::sockets;
use crate::target::Address;

/// The variable by which a process is recognised that was never seen as a child of those that started it.
pub(crate) const MARK: &str = "ONEHOP_MEASURED_AS";

/// Processes and all that descend from them. Clones share what was seen.
#[derive(Debug, Clone, Default)]
pub struct Tree {
    seen: Arc<Mutex<Seen>>,
}

#[derive(Debug, Default)]
struct Seen {
    /// Every member that has not been found ended, by number.
    members: BTreeMap<u32, Life>,
    /// Values of [`MARK`] by which members are known.
    marks: Vec<String>,
    /// Processes whose environment was looked at and is none of ours.
    strangers: BTreeSet<Life>,
}

impl Tree {
    /// This process and its descendants. Where there is no such process, the tree is empty.
    pub fn of(pid: u32) -> Tree {
        Tree::from_roots(Process::with_number(pid).into_iter().map(|process| process.life))
    }

    /// The processes that listen at an address, with those above them that hold the same socket or that are the
    /// parents of all of them, and all that descend from these. `None` where nobody was found, be it that the
    /// processes are another user's.
    pub fn listening_at(address: &Address) -> Option<Tree> {
        let inodes = sockets::inodes_at(address);
        if inodes.is_empty() {
            return None;
        }
        let all = process::all();
        let holds = |process: &&Process| !sockets::inodes_of(process.life.number).is_disjoint(&inodes);
        let holders: Vec<Process> = all.iter().filter(holds).copied().collect();
        // A holder whose parent holds it too is reached from there.
        let is_top = |process: &&Process| !holders.iter().any(|other| other.life.number == process.parent);
        let tops: Vec<Life> = holders.iter().filter(is_top).map(|process| process.life).collect();
        (!tops.is_empty()).then(|| Tree::from_roots(tops))
    }

    /// Both together.
    #[must_use]
    pub fn with(self, other: Tree) -> Tree {
        let both = Tree::from_roots(self.lives().into_iter().chain(other.lives()));
        for tree in [&self, &other] {
            let marks = tree.locked().marks.clone();
            both.locked().marks.extend(marks);
        }
        both
    }

    /// The numbers of all members that run now.
    pub fn processes(&self) -> Vec<u32> {
        self.look().iter().map(|process| process.life.number).collect()
    }

    /// Where members listen over TCP.
    pub fn listening(&self) -> Vec<SocketAddr> {
        let inodes: BTreeSet<u64> = self.processes().into_iter().flat_map(sockets::inodes_of).collect();
        let listening = sockets::listening().into_iter();
        let own = listening.filter(|listening| inodes.contains(&listening.inode));
        let mut addresses: Vec<SocketAddr> = own.map(|listening| listening.address).collect();
        addresses.sort_unstable();
        addresses.dedup();
        addresses
    }

    /// A tree of the processes that carry this mark, and of the first one.
    pub(crate) fn marked(first: u32, mark: String) -> Tree {
        let tree = Tree::of(first);
        tree.locked().marks.push(mark);
        tree
    }

    /// Takes these in.
    pub(crate) fn adopt_those<'all>(&self, processes: impl Iterator<Item = &'all Process>) {
        let lives = processes.map(|process| (process.life.number, process.life));
        self.locked().members.extend(lives);
    }

    /// Members that run now.
    pub(crate) fn look(&self) -> Vec<Process> {
        self.look_among(&process::all())
    }

    /// Members among these, which are all processes that there are.
    pub(crate) fn look_among(&self, all: &[Process]) -> Vec<Process> {
        let mut seen = self.locked();
        seen.renew(all);
        let members = &seen.members;
        let is_member = |process: &&Process| members.get(&process.life.number) == Some(&process.life);
        all.iter().filter(is_member).filter(|process| !process.is_zombie).copied().collect()
    }

    /// Members by their lives, ended ones with a zombie included.
    pub(crate) fn lives(&self) -> Vec<Life> {
        self.look();
        self.locked().members.values().copied().collect()
    }

    fn from_roots(roots: impl IntoIterator<Item = Life>) -> Tree {
        let members = roots.into_iter().map(|life| (life.number, life)).collect();
        Tree { seen: Arc::new(Mutex::new(Seen { members, ..Seen::default() })) }
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, Seen> {
        // What is in there stays true whoever panicked.
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seen {
    /// Forgets the ended, takes in whoever descends from a member or carries a mark.
    fn renew(&mut self, all: &[Process]) {
        let by_number: BTreeMap<u32, &Process> =
            all.iter().map(|process| (process.life.number, process)).collect();
        let is_now = |life: &Life| by_number.get(&life.number).is_some_and(|process| process.life == *life);
        self.members.retain(|_, life| is_now(life));
        self.strangers.retain(|life| is_now(life));
        if !self.marks.is_empty() {
            for process in all {
                self.look_for_marks(process);
            }
        }
        // Numbers do not grow with descent (they wrap), so this goes on until nothing is found.
        loop {
            let is_new = |process: &&Process| {
                !self.members.contains_key(&process.life.number)
                    && self
                        .members
                        .get(&process.parent)
                        .is_some_and(|parent| parent.started <= process.life.started)
            };
            let found: Vec<Life> = all.iter().filter(is_new).map(|process| process.life).collect();
            if found.is_empty() {
                return;
            }
            self.members.extend(found.into_iter().map(|life| (life.number, life)));
        }
    }

    fn look_for_marks(&mut self, process: &Process) {
        let life = process.life;
        if self.members.contains_key(&life.number) || self.strangers.contains(&life) || process.is_zombie {
            return;
        }
        let environment = std::fs::read(format!("/proc/{}/environ", life.number)).unwrap_or_default();
        let is_marked = |variable: &[u8]| {
            let value = variable.strip_prefix(MARK.as_bytes()).and_then(|rest| rest.strip_prefix(b"="));
            value.is_some_and(|value| self.marks.iter().any(|mark| mark.as_bytes() == value))
        };
        if environment.split(|byte| *byte == 0).any(is_marked) {
            self.members.insert(life.number, life);
        } else {
            self.strangers.insert(life);
        }
    }
}
