//! `GET /logs/follow`: the last lines, and then what comes, until the client leaves.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use onehop_http1::{AnswerHead, BodyLength};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::Api;
use super::connection::{Connection, JSON_LINES, Reply};
use crate::limits::{LOG_FOLLOW_PAUSE, LOG_FOLLOWERS_MAX};

/// Connections that follow, of the whole process: there is one control socket.
static FOLLOWERS: AtomicUsize = AtomicUsize::new(0);

/// One of them, counted while it lives.
struct Follower;

impl Follower {
    fn enter() -> Option<Self> {
        let follower = Self;
        (FOLLOWERS.fetch_add(1, Ordering::Relaxed) < LOG_FOLLOWERS_MAX).then_some(follower)
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        FOLLOWERS.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    /// Sends lines until the client leaves. The connection ends with it.
    pub(super) async fn follow(&mut self, api: &Arc<dyn Api>) -> io::Result<()> {
        self.codec.close_after_answer();
        let Some(_follower) = Follower::enter() else {
            self.write(&Reply::error(503, &format!("{LOG_FOLLOWERS_MAX} clients follow the logs already")))
                .await?;
            return self.stream.shutdown().await;
        };
        let fields = format!(
            "Content-Type: {JSON_LINES}\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n"
        );
        let date = format!("Date: {}\r\n", httpdate::fmt_http_date(std::time::SystemTime::now()));
        let (fields, date) = (fields.as_bytes(), date.as_bytes());
        let mut out = Vec::new();
        let body = BodyLength::Chunked;
        self.codec.write_head(&mut out, AnswerHead { status: 200, fields, date, body, upgrade: false });
        let recent = api.recent();
        let (mut next, mut is_first) = (0, true);
        loop {
            let unread = recent.read(next);
            // What had gone before the client came is not missed.
            if unread.missed > 0 && !is_first {
                let line = format!("{{\"kind\":\"missed\",\"lines\":{}}}\n", unread.missed);
                self.codec.write_data(&mut out, line.as_bytes());
            }
            if !unread.text.is_empty() {
                self.codec.write_data(&mut out, unread.text.as_bytes());
            }
            (next, is_first) = (unread.next, false);
            self.send(&out).await?;
            out.clear();
            let more = poll_fn(|context| recent.poll_line(next, context));
            let mut unread = [0; 64];
            tokio::select! {
                () = more => tokio::time::sleep(LOG_FOLLOW_PAUSE).await,
                // It has nothing more to say, and what it says is not read.
                read = self.stream.read(&mut unread) => if read? == 0 { return Ok(()) },
            }
        }
    }
}
