//! Which version of a program is measured.
//!
//! Owns asking it. Never runs a program that it does not know: `--version` starts a server where a program ignores
//! its arguments.

use std::io::Read as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// What a program gets to say its version. Java takes half a second.
const WITHIN: Duration = Duration::from_secs(2);
/// Between two looks.
const POLL: Duration = Duration::from_millis(2);
/// What is read of it: what a pipe holds, and some print how they were built.
const READ_BYTES_MAX: usize = 64 * 1024;

/// Programs, the arguments for which they say their version, and what stands before a bare number.
const KNOWN: [(&str, &[&str], &str); 23] = [
    ("onehop", &["--version"], ""),
    ("nginx", &["-v"], ""),
    ("caddy", &["version"], "Caddy "),
    ("node", &["--version"], "node "),
    ("bun", &["--version"], "bun "),
    ("deno", &["--version"], ""),
    ("python", &["--version"], ""),
    ("python3", &["--version"], ""),
    ("gunicorn", &["--version"], ""),
    ("uvicorn", &["--version"], ""),
    ("ruby", &["--version"], ""),
    ("php", &["--version"], ""),
    ("java", &["-version"], ""),
    ("go", &["version"], ""),
    ("dotnet", &["--version"], "dotnet "),
    ("perl", &["--version"], ""),
    ("apache2", &["-v"], ""),
    ("httpd", &["-v"], ""),
    ("lighttpd", &["-v"], ""),
    ("haproxy", &["-v"], ""),
    ("traefik", &["version"], ""),
    ("wrk", &["-v"], ""),
    ("npm", &["--version"], "npm "),
];

/// The version as the program says it, on one line; `None` where it is not known how to ask, or it does not answer
/// within two seconds.
pub fn version_of(program: &str) -> Option<String> {
    let name = Path::new(program).file_name()?.to_str()?;
    let (_, arguments, before) = KNOWN.iter().find(|(known, ..)| *known == name)?;
    let text = output_of(Command::new(program).args(*arguments))?;
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    let line = line
        .strip_prefix("nginx version: ")
        .or_else(|| line.strip_prefix("Server version: "))
        .unwrap_or(line);
    let line = if before.is_empty() {
        line
    } else {
        // Caddy adds a checksum.
        line.split_whitespace().next()?
    };
    Some(format!("{before}{line}"))
}

/// Runs a command and returns its output, 64 KiB at most; `None` where it does not end within two seconds.
pub fn output_of(command: &mut Command) -> Option<String> {
    let (mut reader, writer) = std::io::pipe().ok()?;
    command.stdin(Stdio::null()).stdout(writer.try_clone().ok()?).stderr(writer);
    let mut child = command.spawn().ok()?;
    // The command holds ends of the pipe.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    // What it says fits into a pipe, so that it can be read after its end.
    let has_ended = wait(&mut child);
    if !has_ended {
        let _ = child.kill();
        let _ = child.wait();
        return None;
    }
    let mut buffer = [0; READ_BYTES_MAX];
    let read = reader.read(&mut buffer).ok()?;
    Some(String::from_utf8_lossy(buffer.get(..read)?).into_owned())
}

fn wait(child: &mut Child) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < WITHIN {
        match child.try_wait() {
            Ok(Some(_)) => return true,
            Ok(None) => std::thread::sleep(POLL),
            Err(_) => return false,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_not_known_or_not_there_is_not_asked() {
        assert_eq!(version_of("sh"), None);
        assert_eq!(version_of("/nowhere/nginx"), None);
        assert_eq!(version_of(""), None);
    }

    #[test]
    fn the_version_is_one_line() {
        let folder = tempfile::tempdir().unwrap();
        for (name, says, expected) in [
            ("nginx", "echo 'nginx version: nginx/1.22.1' >&2", Some("nginx/1.22.1")),
            ("node", "echo v20.19.2; echo more", Some("node v20.19.2")),
            ("caddy", "echo 'v2.6.2 h1:abc='", Some("Caddy v2.6.2")),
            ("lighttpd", "true", None),
        ] {
            let program = folder.path().join(name);
            std::fs::write(&program, format!("#!/bin/sh\n{says}\n")).unwrap();
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            std::fs::set_permissions(&program, mode).unwrap();
            assert_eq!(version_of(program.to_str().unwrap()).as_deref(), expected, "{name}");
        }
    }
}
