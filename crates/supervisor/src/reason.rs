//! Why a worker ended, with all that matters in the first line: some views show no more.

use std::path::Path;
use std::process::Stdio;

use onehop_files::null_device::no_input;
use tokio::process::Command;
use tokio::time::timeout;

use crate::limits::{REASON_SENTENCE_LINES_MAX, RUNTIME_VERSION_DEADLINE};

/// The first major version of Node that is supported.
const NODE_MAJOR_MIN: u32 = 20;

/// Joins the lines of an error's message, which end where its stack begins, into the first one.
pub(crate) fn whole(text: &str) -> String {
    let mut lines = text.lines();
    let mut first = lines.next().unwrap_or_default().to_owned();
    let mut rest = Vec::new();
    let mut is_message = true;
    for (number, line) in lines.enumerate() {
        // An indented line belongs to a stack or a list; a position in the source may be in the first line already.
        is_message &= number < REASON_SENTENCE_LINES_MAX
            && !line.is_empty()
            && !line.starts_with([' ', '\t'])
            && !first.contains(line);
        if is_message {
            first.push(' ');
            first.push_str(line);
        } else {
            rest.push(line);
        }
    }
    rest.iter().fold(first, |text, line| text + "\n" + line)
}

/// What to do where this runtime, `node 18.20.0`, is not supported.
pub(crate) fn unsupported(runtime: &str) -> Option<String> {
    let version = runtime.strip_prefix("node ")?.trim_start_matches('v');
    let major: u32 = version.split('.').next()?.parse().ok()?;
    (major < NODE_MAJOR_MIN).then(|| {
        format!("Node.js {version} is not supported: install Node.js {NODE_MAJOR_MIN} or later, or name one with `runtime`")
    })
}

/// The version that a Node program reports, `node 20.20.2`; it runs as this user and group.
pub(crate) async fn version(program: &Path, account: Option<(u32, u32)>) -> String {
    let asked = async {
        let mut command = Command::new(program);
        command.arg("--version").env_clear().stdin(no_input().ok()?).stderr(Stdio::null()).kill_on_drop(true);
        if let Some((uid, gid)) = account {
            command.gid(gid).uid(uid);
        }
        let output = command.output().await.ok()?;
        String::from_utf8(output.stdout).ok()
    };
    let text = timeout(RUNTIME_VERSION_DEADLINE, asked).await.ok().flatten().unwrap_or_default();
    format!("node {}", text.lines().next().unwrap_or_default().trim_start_matches('v'))
}

/// A reason as it reads behind the word "it".
pub(crate) fn lowered(reason: &str) -> String {
    if reason.starts_with("ended") || reason.starts_with("was ") || reason.starts_with("closed") {
        reason.to_owned()
    } else {
        format!("failed: {reason}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_of_a_reason_holds_all_lines_of_its_message() {
        for (text, expected) in [
            (
                "Error: The module '/srv/better_sqlite3.node'\nwas compiled against a different Node.js version using\n\
                 NODE_MODULE_VERSION 108.\n    at Module.load (x:1)\n    at y {\n  code: 'ERR_DLOPEN_FAILED'\n}",
                "Error: The module '/srv/better_sqlite3.node' was compiled against a different Node.js version using \
                 NODE_MODULE_VERSION 108.\n    at Module.load (x:1)\n    at y {\n  code: 'ERR_DLOPEN_FAILED'\n}",
            ),
            ("TypeError: boom\n    at x:1", "TypeError: boom\n    at x:1"),
            (
                "SyntaxError: no (/srv/a.mjs:3)\n/srv/a.mjs:3\nlet a b;\n      ^",
                "SyntaxError: no (/srv/a.mjs:3)\n/srv/a.mjs:3\nlet a b;\n      ^",
            ),
            ("ended: exit code 1\n  no database", "ended: exit code 1\n  no database"),
            ("", ""),
        ] {
            assert_eq!(whole(text), expected);
        }
    }

    #[test]
    fn versions_of_node_before_the_first_supported_one_are_not_supported() {
        for (runtime, expected) in [
            ("node 18.20.0", true),
            ("node v6.0.0", true),
            ("node 20.0.0", false),
            ("node 101.1", false),
            ("bun 1.2.0", false),
            ("node ", false),
        ] {
            assert_eq!(unsupported(runtime).is_some(), expected, "{runtime}");
        }
    }
}
