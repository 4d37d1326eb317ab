//! A worker that another service manager starts: no process, only an address that is probed.

use std::sync::Arc;

use onehop_config::checked::AppAddress;
use onehop_workers::{Transport, Worker};
use tokio::time::{interval, sleep, timeout};

use crate::limits::{ELSEWHERE_PROBE_PERIOD, WORKER_DRAIN_LOOK_PERIOD};
use crate::messages::{End, Reports, Task, Withdrawal, WorkerCommand, WorkerEvent};
use crate::probe::{connects, program_concurrency};

/// Watches the address until the worker is not wanted any more.
pub(crate) async fn run(mut task: Task, address: AppAddress) {
    let runtime = match &address {
        AppAddress::Tcp(address) => address.to_string(),
        AppAddress::Unix(path) => format!("unix/{}", path.display()),
    };
    let (mut worker, mut reports) = worker_at(&task, &address);
    let mut look = interval(ELSEWHERE_PROBE_PERIOD);
    // What was last reported. Nothing before the first probe: requests wait that long.
    let mut is_there = None;
    let drained = loop {
        tokio::select! {
            command = task.command() => break command == WorkerCommand::Drain,
            // A connection that broke says no more than that; a probe does.
            _ = reports.lost() => look.reset_immediately(),
            _ = look.tick() => {
                let answers = connects(&address, None).await.is_ok();
                if answers && is_there != Some(true) {
                    (worker, reports) = worker_at(&task, &address);
                    let (worker, runtime) = (Arc::clone(&worker), runtime.clone());
                    task.report(WorkerEvent::Ready { worker, runtime }).await;
                } else if !answers && is_there != Some(false) {
                    task.report(WorkerEvent::Withdraw(Withdrawal::Lost)).await;
                }
                is_there = Some(answers);
            }
        }
    };
    let finished = async {
        while worker.in_flight() > 0 {
            sleep(WORKER_DRAIN_LOOK_PERIOD).await;
        }
    };
    if drained {
        let _ = timeout(task.app.stop_timeout, finished).await;
    }
    let reason = "it is not asked any more".to_owned();
    task.report(WorkerEvent::Ended(End { pid: 0, reason, failed: false, never_ran: false })).await;
}

fn worker_at(task: &Task, address: &AppAddress) -> (Arc<Worker>, Reports) {
    let (report, reports) = Reports::new(task.shared.cores);
    let transport = Transport::Http { address: address.clone(), uid: None };
    (Worker::new(task.id, task.index, transport, program_concurrency(&task.app), report), reports)
}
