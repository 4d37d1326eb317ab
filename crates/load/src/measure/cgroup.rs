//! The control group of a tree, where it has one of its own: a container, a service.
//!
//! Owns a second opinion on CPU time. It is never the figure: a group may hold more than the tree.

use std::collections::BTreeSet;
use std::time::Duration;

use super::process::{Life, number_behind, read};

/// A second opinion that differs by less is none: the kernel adds a group's time up in ticks.
const DIFFERENCE_MAX: f64 = 0.05;
/// The same, in time.
const DIFFERENCE_TIME_MAX: Duration = Duration::from_millis(50);

/// A group in which all of a tree's processes are, and this process is not.
#[derive(Debug)]
pub(crate) struct Group {
    path: String,
    begin: Option<Duration>,
}

impl Group {
    /// The group of these processes, where it is one of their own (cgroups(7), version 2).
    pub(crate) fn of(members: &[Life]) -> Option<Group> {
        let paths: BTreeSet<Option<String>> =
            members.iter().map(|life| path_of(&life.number.to_string())).collect();
        let mut paths = paths.into_iter();
        let path = paths.next()??;
        let is_own = paths.next().is_none() && Some(&path) != path_of("self").as_ref() && path != "/";
        is_own.then(|| Group { begin: spent(&path), path })
    }

    /// What is to be said beside a figure: where the processes are, and where the group's own count differs.
    pub(crate) fn note(&self, cpu: Duration) -> String {
        let counted = self.begin.zip(spent(&self.path)).map(|(begin, end)| end.saturating_sub(begin));
        let path = &self.path;
        match counted {
            Some(counted) if differs(counted, cpu) => format!(
                "its processes are in the control group {path}, which counted {counted:.2?} of CPU time where they \
                 themselves counted {cpu:.2?}: it holds more than the server, or processes ended unseen"
            ),
            Some(_) => {
                format!("its processes are in the control group {path}, which counted the same CPU time")
            }
            None => format!("its processes are in the control group {path}"),
        }
    }
}

fn differs(one: Duration, other: Duration) -> bool {
    let difference = one.abs_diff(other);
    difference > DIFFERENCE_TIME_MAX && difference > one.max(other).mul_f64(DIFFERENCE_MAX)
}

/// The path in the hierarchy of version 2.
fn path_of(process: &str) -> Option<String> {
    let text = read(&format!("/proc/{process}/cgroup"))?;
    text.lines().find_map(|line| line.strip_prefix("0::")).map(|path| path.trim().to_owned())
}

fn spent(path: &str) -> Option<Duration> {
    let text = read(&format!("/sys/fs/cgroup{path}/cpu.stat"))?;
    number_behind(&text, "usage_usec").map(Duration::from_micros)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_beside_us_have_no_group_of_their_own() {
        let own = super::super::process::Process::with_number(std::process::id()).unwrap();
        assert!(Group::of(&[own.life]).is_none());
        assert!(Group::of(&[]).is_none());
    }

    #[test]
    fn a_difference_is_reported_only_where_it_is_one() {
        let (one, near, far) =
            (Duration::from_secs(2), Duration::from_millis(2060), Duration::from_millis(2200));
        assert!(!differs(one, near) && !differs(near, one));
        assert!(differs(one, far) && differs(far, one));
        assert!(!differs(Duration::ZERO, Duration::from_millis(40)));
        let group = Group { path: "/no/such/group".to_owned(), begin: None };
        assert_eq!(group.note(one), "its processes are in the control group /no/such/group");
    }
}
