//! Where a stuck worker stands: asks Node's inspector, which answers from a thread of its own.
//!
//! Only ever asks a process that is killed right afterwards, so that no inspector stays open. Bounded by
//! [`WORKER_STACK_DEADLINE`] whatever the process does.

use std::collections::HashMap;
use std::net::SocketAddr;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

use super::output::INSPECTOR_LINE;
use super::process::Process;
use crate::limits::{
    WORKER_STACK_BYTES_MAX, WORKER_STACK_DEADLINE, WORKER_STACK_FRAMES_MAX, WORKER_STACK_SCRIPTS_MAX,
};

/// Its stack, a line for each frame, or why there is none.
pub(super) async fn of(process: &mut Process) -> String {
    if !process.has_inspector {
        return "(only Node can be asked for the stack of a stuck process)".to_owned();
    }
    match timeout(WORKER_STACK_DEADLINE, ask(process)).await {
        Ok(Ok(stack)) => stack,
        Ok(Err(reason)) => format!("(not found out: {reason})"),
        Err(_) => "(not found out: it did not even answer its inspector; is it in native code?)".to_owned(),
    }
}

async fn ask(process: &mut Process) -> Result<String, String> {
    process.wake_inspector();
    // An application may have woken it before; only loopback is asked in any case.
    let url = loop {
        let line = process.inspector.recv().await.ok_or("it has ended")?;
        if let Some(url) = line.strip_prefix(INSPECTOR_LINE) {
            break url.to_owned();
        }
    };
    let failed = |error: &dyn std::fmt::Display| error.to_string();
    let address = url.strip_prefix("ws://").and_then(|rest| rest.split('/').next()).unwrap_or_default();
    let address: SocketAddr = address.parse().map_err(|error| failed(&error))?;
    if !address.ip().is_loopback() {
        return Err(format!("its inspector listens on {address}"));
    }
    let stream = TcpStream::connect(address).await.map_err(|error| failed(&error))?;
    let mut bounds = WebSocketConfig::default();
    bounds.max_message_size = Some(WORKER_STACK_BYTES_MAX);
    bounds.max_frame_size = Some(WORKER_STACK_BYTES_MAX);
    let (mut inspector, _) =
        client_async_with_config(url, stream, Some(bounds)).await.map_err(|error| failed(&error))?;
    for (id, method) in [(1, "Debugger.enable"), (2, "Debugger.pause")] {
        let text = json!({ "id": id, "method": method }).to_string();
        inspector.send(Message::text(text)).await.map_err(|error| failed(&error))?;
    }
    let frames = paused(&mut inspector).await?;
    Ok(describe(&frames))
}

/// The frames, once it stands still. The scripts that they stand in are told before.
async fn paused(inspector: &mut WebSocketStream<TcpStream>) -> Result<Vec<Value>, String> {
    let mut scripts = HashMap::new();
    while let Some(message) = inspector.next().await {
        let message = message.map_err(|error| error.to_string())?;
        let Ok(text) = message.to_text() else { continue };
        let Ok(mut said) = serde_json::from_str::<Value>(text) else { continue };
        match said.get("method").and_then(Value::as_str) {
            Some("Debugger.scriptParsed") if scripts.len() < WORKER_STACK_SCRIPTS_MAX => {
                let of = |name: &str| said.pointer(name).and_then(Value::as_str).map(str::to_owned);
                scripts.extend(of("/params/scriptId").zip(of("/params/url")));
            }
            Some("Debugger.paused") => {
                let frames = said.pointer_mut("/params/callFrames").map(Value::take);
                let Some(Value::Array(mut frames)) = frames else { return Err("it names no frames".into()) };
                frames.iter_mut().for_each(|frame| name_script(frame, &scripts));
                return Ok(frames);
            }
            _ => {}
        }
    }
    Err("its inspector closed".to_owned())
}

/// A frame names its script by number.
fn name_script(frame: &mut Value, scripts: &HashMap<String, String>) {
    let number = frame.pointer("/location/scriptId").and_then(Value::as_str);
    if let Some(url) = number.and_then(|number| scripts.get(number)).cloned()
        && let Some(frame) = frame.as_object_mut()
    {
        frame.insert("url".to_owned(), url.into());
    }
}

fn describe(frames: &[Value]) -> String {
    let mut lines: Vec<String> = frames.iter().take(WORKER_STACK_FRAMES_MAX).map(frame).collect();
    let more = frames.len().saturating_sub(lines.len());
    if more > 0 {
        lines.push(format!("and {more} more"));
    }
    lines.join("\n")
}

/// As Node itself writes a frame.
fn frame(frame: &Value) -> String {
    let text = |at: &str| frame.pointer(at).and_then(Value::as_str).unwrap_or_default();
    // Both are counted from 0 there.
    let number = |at: &str| frame.pointer(at).and_then(Value::as_u64).map_or(0, |number| number + 1);
    let (url, line, column) =
        (text("/url"), number("/location/lineNumber"), number("/location/columnNumber"));
    let place = url.strip_prefix("file://").unwrap_or(url);
    let place = if place.is_empty() { "<unknown>" } else { place };
    match text("/functionName") {
        "" => format!("at {place}:{line}:{column}"),
        name => format!("at {name} ({place}:{line}:{column})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_is_written_as_node_writes_it() {
        let frames = [
            json!({"functionName": "spin", "url": "file:///srv/api.mjs", "location": {"lineNumber": 4, "columnNumber": 9}}),
            json!({"functionName": "", "url": "node:internal/timers", "location": {"lineNumber": 0, "columnNumber": 0}}),
            json!({"unexpected": true}),
        ];
        assert_eq!(
            describe(&frames),
            "at spin (/srv/api.mjs:5:10)\nat node:internal/timers:1:1\nat <unknown>:0:0"
        );
        let many = vec![frames[0].clone(); WORKER_STACK_FRAMES_MAX + 3];
        assert!(describe(&many).ends_with("\nand 3 more"));
    }
}
