//! The way of a response's body to the client, written when it is due. Reads nothing.

use onehop_config::checked::proxy::ProxyFlush;
use onehop_message::error::HttpError;
use tokio::time::Instant;

use onehop_connection::ResponseWriter;
use onehop_connection::response_writer::gone;

/// The way of a body to the client.
pub(super) struct Sending {
    flush: ProxyFlush,
    /// When what was gathered is to go out.
    due: Option<Instant>,
}

impl Sending {
    /// What has no end in sight waits for nothing, as Caddy has it.
    pub(super) fn new(flush: ProxyFlush, has_end: bool) -> Self {
        let flush = match flush {
            ProxyFlush::Every(_) if !has_end => ProxyFlush::AsItComes,
            flush => flush,
        };
        Self { flush, due: None }
    }

    /// When what was gathered is to go out, where it may wait.
    pub(super) fn take_due(&mut self) -> Option<Instant> {
        self.due.take()
    }

    /// It waits on.
    pub(super) fn keep_due(&mut self, due: Instant) {
        self.due = Some(due);
    }

    /// Sends bytes of the body as the upstream framed them.
    pub(super) async fn send(
        &mut self,
        writer: &mut ResponseWriter<'_, '_>,
        bytes: &[u8],
    ) -> Result<(), HttpError> {
        writer.proven_data(bytes).await.map_err(gone)?;
        match self.flush {
            ProxyFlush::AsItComes => {}
            ProxyFlush::Immediately => writer.flush().await.map_err(gone)?,
            ProxyFlush::Every(time) => {
                let now = Instant::now();
                if now >= *self.due.get_or_insert(now + time) {
                    self.due = None;
                    writer.flush().await.map_err(gone)?;
                }
            }
        }
        Ok(())
    }
}
