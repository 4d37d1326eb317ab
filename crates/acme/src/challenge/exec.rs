//! DNS-01 by a program of the operator, which changes the zone through the provider's interface.

use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};

use super::{Answering, Challenge, Challenges};
use crate::limits::OUTPUT_BYTES_MAX;

/// Runs `program arguments… present FQDN VALUE` and `program arguments… remove FQDN VALUE`, without a shell. Success is
/// exit status 0; what the program writes is quoted in the error otherwise. At the deadline its process group is
/// killed.
#[derive(Debug, Clone)]
pub struct ExecHook {
    /// The program's path, or its name in `PATH`.
    pub program: PathBuf,
    /// Arguments before those of the hook.
    pub arguments: Vec<String>,
    /// How long one run may take.
    pub deadline: Duration,
}

impl ExecHook {
    async fn run(&self, action: &str, challenge: &Challenge) -> Result<(), String> {
        let Challenge::Dns01 { name, value } = challenge else {
            return Err("a DNS hook answers dns-01 challenges only".to_owned());
        };
        let program = self.program.display();
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).args([action, name, value]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // A group of its own, so that what a script starts ends with it.
        command.process_group(0).kill_on_drop(true);
        let mut child = command.spawn().map_err(|error| {
            format!("cannot run the DNS hook {program}: {error}; it must be an executable file of this server's user")
        })?;
        let mut group = Group(child.id().and_then(|id| Pid::from_raw(id.try_into().ok()?)));
        let finished = tokio::time::timeout(self.deadline, finish(&mut child)).await;
        if finished.is_err() {
            drop(group);
            // Killed, so that this returns at once.
            let _ = child.wait().await;
        } else {
            group.0 = None;
        }
        match finished {
            Ok(Ok((status, _))) if status.success() => Ok(()),
            Ok(Ok((status, output))) => {
                let output = String::from_utf8_lossy(&output);
                Err(format!("`{program} {action} {name} {value}` ended with {status}: {}", output.trim()))
            }
            Ok(Err(error)) => Err(format!("the DNS hook {program} cannot be waited for: {error}")),
            Err(_) => Err(format!(
                "`{program} {action} {name} {value}` was killed after {} s: make it faster or raise its deadline",
                self.deadline.as_secs_f32()
            )),
        }
    }
}

/// The process group of a running program. Killed when this is dropped, also where an order is given up.
struct Group(Option<Pid>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

impl Challenges for ExecHook {
    fn present<'a>(&'a self, challenge: &'a Challenge) -> Answering<'a, Result<(), String>> {
        Box::pin(self.run("present", challenge))
    }

    fn remove<'a>(&'a self, challenge: &'a Challenge) -> Answering<'a, ()> {
        Box::pin(async { drop(self.run("remove", challenge).await) })
    }
}

/// Reads what the program writes until it exits and has closed its output.
async fn finish(child: &mut Child) -> std::io::Result<(ExitStatus, Vec<u8>)> {
    let (errors, output) = (child.stderr.take(), child.stdout.take());
    let (status, errors, output) = tokio::join!(child.wait(), read(errors), read(output));
    Ok((status?, [errors, output].concat()))
}

/// The beginning of a stream. The rest is read too, because a program waits while its pipe is full.
async fn read(stream: Option<impl AsyncRead + Unpin>) -> Vec<u8> {
    let mut beginning = Vec::new();
    if let Some(mut stream) = stream {
        let _ = (&mut stream).take(OUTPUT_BYTES_MAX).read_to_end(&mut beginning).await;
        let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
    }
    beginning
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    fn hook(script: &str, deadline: Duration) -> ExecHook {
        let arguments = ["-c", script, "hook"].map(str::to_owned).to_vec();
        ExecHook { program: "/bin/sh".into(), arguments, deadline }
    }

    fn challenge() -> Challenge {
        Challenge::Dns01 { name: "_acme-challenge.example.com".into(), value: "a value".into() }
    }

    #[tokio::test]
    async fn a_hook_gets_the_record_as_arguments() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("calls");
        let script = format!(r#"echo "$1|$2|$3" >> {}"#, file.display());
        let hook = hook(&script, Duration::from_secs(20));
        hook.present(&challenge()).await.unwrap();
        hook.remove(&challenge()).await;
        let expected =
            "present|_acme-challenge.example.com|a value\nremove|_acme-challenge.example.com|a value\n";
        assert_eq!(std::fs::read_to_string(file).unwrap(), expected);
    }

    #[tokio::test]
    async fn a_failing_hook_is_quoted_and_not_more_than_its_beginning() {
        let script = "echo no such zone >&2; head -c 1000000 /dev/zero | tr '\\0' x; exit 3";
        let error = hook(script, Duration::from_secs(20)).present(&challenge()).await.unwrap_err();
        assert!(error.contains("exit status: 3: no such zone"), "{error}");
        assert!(error.len() < 3000, "{}", error.len());
    }

    #[tokio::test]
    async fn a_hanging_hook_is_killed_with_all_that_it_started() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("process");
        let script = format!("sleep 600 & echo $! > {}; wait", file.display());
        let began = Instant::now();
        let error = hook(&script, Duration::from_millis(500)).present(&challenge()).await.unwrap_err();
        assert!(error.contains("was killed after 0.5 s"), "{error}");
        assert!(began.elapsed() < Duration::from_secs(30));
        let process = std::fs::read_to_string(file).unwrap();
        let is_running = || {
            let status = std::fs::read_to_string(format!("/proc/{}/stat", process.trim()));
            status.is_ok_and(|status| !status.contains(") Z "))
        };
        while is_running() {
            assert!(began.elapsed() < Duration::from_secs(30), "{process} still runs");
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_missing_hook_is_an_error_that_names_it() {
        let hook =
            ExecHook { program: "/no/such".into(), arguments: vec![], deadline: Duration::from_secs(1) };
        let error = hook.present(&challenge()).await.unwrap_err();
        assert!(error.contains("cannot run the DNS hook /no/such"), "{error}");
    }
}
