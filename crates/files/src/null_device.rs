//! Standard input and outputs of processes that need none, also where there is no /dev/null: in an empty root
//! directory, a container without /dev.
//!
//! A process always gets all three: what it opens first would otherwise take their place.

use std::fs::OpenOptions;
use std::io::{self, pipe};
use std::process::Stdio;

const NULL: &str = "/dev/null";

/// An input that is at its end.
pub fn no_input() -> io::Result<Stdio> {
    match OpenOptions::new().read(true).open(NULL) {
        Ok(null) => Ok(null.into()),
        // A pipe that nobody can write to.
        Err(_) => Ok(pipe()?.0.into()),
    }
}

/// An output that nobody reads. Where there is no /dev/null, whoever writes there is told so (`EPIPE`).
pub fn no_output() -> io::Result<Stdio> {
    match OpenOptions::new().write(true).open(NULL) {
        Ok(null) => Ok(null.into()),
        Err(_) => Ok(pipe()?.1.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_process_without_input_and_outputs_ends_as_if_they_were_there() {
        let mut cat = Command::new("cat");
        cat.stdin(no_input().expect("one"))
            .stdout(no_output().expect("one"))
            .stderr(no_output().expect("one"));
        assert!(cat.status().expect("started").success());
    }
}
