//! The beginning of a request's body: what is there already, or all of it where `request_buffers` asks for that.
//!
//! A body that is held as a whole goes out with its length, and may go out again. Holds no more than the setting and
//! one piece.

use onehop_http1::BodyLength;
use onehop_message::error::HttpError;

use onehop_connection::limits::{UPLOAD_PIECE_BYTES_MAX, UPLOAD_PIECE_BYTES_MIN};
use onehop_connection::{RequestBody, ResponseWriter};

/// As much of a request's body as is held.
pub(super) struct Opening {
    pub(super) bytes: Vec<u8>,
    /// That is all of it.
    pub(super) is_complete: bool,
    /// How it is announced to the upstream.
    pub(super) length: BodyLength,
}

impl Opening {
    /// Takes what has come, and waits for up to `most` bytes more.
    pub(super) async fn take(
        request_body: &mut RequestBody<'_, '_>,
        writer: &mut ResponseWriter<'_, '_>,
        most: u64,
    ) -> Result<Self, HttpError> {
        let length = request_body.length();
        let mut bytes = Vec::new();
        if length == BodyLength::None {
            return Ok(Self { bytes, is_complete: true, length });
        }
        let fits = most > 0 && !matches!(length, BodyLength::Known(declared) if declared > most);
        let is_complete = if fits {
            Self::gather(request_body, writer, most, &mut bytes).await?
        } else {
            // A client that waits to be asked for its body has sent none.
            !request_body.expects_continue() && request_body.take_ready(&mut bytes, UPLOAD_PIECE_BYTES_MAX)?
        };
        let length = match length {
            // Trailers travel behind chunks only (RFC 9112 section 7.1.2). Without the option an upstream sees what
            // the client has sent, however fast that came.
            BodyLength::Chunked if fits && is_complete && !request_body.has_trailers() => {
                BodyLength::Known(bytes.len() as u64)
            }
            length => length,
        };
        Ok(Self { bytes, is_complete, length })
    }

    async fn gather(
        request_body: &mut RequestBody<'_, '_>,
        writer: &mut ResponseWriter<'_, '_>,
        most: u64,
        bytes: &mut Vec<u8>,
    ) -> Result<bool, HttpError> {
        // It is read here, so the upstream need not be asked for leave.
        writer.send_continue().await.map_err(|_| HttpError::ClientGone)?;
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        while bytes.len() <= most {
            let room = (most - bytes.len()).clamp(UPLOAD_PIECE_BYTES_MIN, UPLOAD_PIECE_BYTES_MAX);
            if request_body.next(bytes, room).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
