//! The user that runs an application: names to numbers.
//!
//! Reads /etc/passwd and /etc/group itself, since the C library's lookups are not safe code. Accounts that
//! only a directory service knows are given by number.

use std::path::PathBuf;

/// A user of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// Name, home and shell, where they are known.
    pub(crate) entry: Option<(String, PathBuf, PathBuf)>,
}

/// Looks up a user, and a group if it is to be another than the user's own.
pub(crate) fn look_up(user: &str, group: Option<&str>) -> Result<Account, String> {
    let read = |path: &str| std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"));
    let passwd = read("/etc/passwd")?;
    let groups = if group.is_some() { read("/etc/group")? } else { String::new() };
    find(user, group, &passwd, &groups)
}

fn find(user: &str, group: Option<&str>, passwd: &str, groups: &str) -> Result<Account, String> {
    let number = user.parse::<u32>().ok();
    let mut account = None;
    for line in passwd.lines() {
        let mut fields = line.split(':');
        let (Some(name), Some(_), Some(uid), Some(gid)) =
            (fields.next(), fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        let (Ok(uid), Ok(gid)) = (uid.parse(), gid.parse()) else { continue };
        if name == user || number == Some(uid) {
            let (home, shell) = (fields.nth(1).unwrap_or("/"), fields.next().unwrap_or("/bin/sh"));
            account = Some(Account { uid, gid, entry: Some((name.to_owned(), home.into(), shell.into())) });
            break;
        }
    }
    let account = account.or_else(|| number.map(|uid| Account { uid, gid: uid, entry: None }));
    let mut account =
        account.ok_or_else(|| format!("there is no user `{user}` in /etc/passwd; a number is taken too"))?;
    if let Some(group) = group {
        let named = groups.lines().find_map(|line| {
            let mut fields = line.split(':');
            if fields.next()? == group { fields.nth(1)?.parse::<u32>().ok() } else { None }
        });
        account.gid = named
            .or_else(|| group.parse().ok())
            .ok_or_else(|| format!("there is no group `{group}` in /etc/group; a number is taken too"))?;
    }
    Ok(account)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str =
        "root:x:0:0:root:/root:/bin/bash\nbroken\nweb:x:33:34:web:/var/www:/usr/sbin/nologin\n";
    const GROUPS: &str = "root:x:0:\nssl:x:110:web\n";

    #[test]
    fn users_and_groups_are_found_by_name_and_by_number() {
        for (user, group, uid, gid, home) in [
            ("web", None, 33, 34, Some("/var/www")),
            ("33", None, 33, 34, Some("/var/www")),
            ("web", Some("ssl"), 33, 110, Some("/var/www")),
            ("web", Some("77"), 33, 77, Some("/var/www")),
            ("4000", None, 4000, 4000, None),
        ] {
            let account = find(user, group, PASSWD, GROUPS).expect(user);
            assert_eq!((account.uid, account.gid), (uid, gid), "{user} {group:?}");
            assert_eq!(account.entry.map(|(_, home, _)| home), home.map(PathBuf::from), "{user}");
        }
    }

    #[test]
    fn an_unknown_user_or_group_is_said() {
        assert!(find("nobody-here", None, PASSWD, GROUPS).expect_err("none").contains("nobody-here"));
        assert!(find("web", Some("none"), PASSWD, GROUPS).expect_err("none").contains("group `none`"));
    }
}
