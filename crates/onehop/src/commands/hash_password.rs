//! `onehop hash-password`: the hash of a password, for `basic_auth`.

use std::io::{self, BufRead, Read, Write};

use rustix::termios::{LocalModes, OptionalActions, Termios, isatty, tcgetattr, tcsetattr};

use super::standard_output::print;
use crate::arguments::HashPassword;
use crate::failure::Failure;

/// Bytes of a password that bcrypt takes; more are refused, since they would not count.
const PASSWORD_BYTES_MAX: usize = 72;

pub(crate) fn hash_password(arguments: &HashPassword) -> Result<(), Failure> {
    let password = if isatty(io::stdin()) { ask()? } else { read_line()? };
    if password.is_empty() {
        return Err(Failure::wrong(
            "the password is empty: type one, or give it as the first line of standard input",
        ));
    }
    if password.len() > PASSWORD_BYTES_MAX {
        return Err(Failure::wrong(format!(
            "the password has {} bytes, and bcrypt takes {PASSWORD_BYTES_MAX}: choose a shorter one",
            password.len()
        )));
    }
    let hash = bcrypt::non_truncating_hash(&password, arguments.cost)
        .map_err(|error| Failure::failed(format!("the password cannot be hashed: {error}")))?;
    print(&format!("{hash}\n"));
    Ok(())
}

/// Asks twice: the terminal does not show what is typed.
fn ask() -> Result<String, Failure> {
    let _hidden = Hidden::new();
    let one = prompt("Password: ")?;
    if one != prompt("Again: ")? {
        return Err(Failure::wrong("these were two passwords: call it again"));
    }
    Ok(one)
}

fn prompt(question: &str) -> Result<String, Failure> {
    // Standard output has the hash alone. A question that is not seen changes nothing.
    let _ = io::stderr().write_all(question.as_bytes());
    let line = read_line();
    let _ = io::stderr().write_all(b"\n");
    line
}

fn read_line() -> Result<String, Failure> {
    let mut line = String::new();
    let most = PASSWORD_BYTES_MAX as u64 + 2;
    let read = io::stdin().lock().take(most).read_line(&mut line);
    read.map_err(|error| Failure::failed(format!("no password can be read from standard input: {error}")))?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}

/// What is typed is not shown until this is dropped.
struct Hidden {
    before: Option<Termios>,
}

impl Hidden {
    fn new() -> Self {
        let before = tcgetattr(io::stdin()).ok();
        if let Some(mut hidden) = before.clone() {
            hidden.local_modes.remove(LocalModes::ECHO);
            // A terminal that cannot do it shows what is typed.
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, &hidden);
        }
        Self { before }
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, before);
        }
    }
}
