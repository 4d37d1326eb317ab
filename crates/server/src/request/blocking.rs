//! What a request waits for that a core's own thread must not do: reading from disk, which one of its few blocking threads does,
//! and checking a password (`passwords.rs`). Owned values, so that the core serves other requests meanwhile.

use std::path::PathBuf;
use std::sync::Arc;

use onehop_config::checked::{FileServer, TryPolicy};
use onehop_files::{self as files, InPack, OnDisk, OwnedFileRequest, Served};
use onehop_http1::RequestHead;
use onehop_message::error::HttpError;
use onehop_message::response::Response;

use super::passwords::PasswordCheck;

/// Something that takes its time.
#[derive(Debug)]
pub(crate) enum BlockingWork {
    /// Which file exists.
    Lookup(Lookup),
    /// The response to a request below a root that is not in memory.
    Tree { settings: Arc<FileServer>, root: PathBuf, request: OwnedFileRequest },
    /// A file that its store does not hold. For an error page (`is_named`) any method will do.
    File { on_disk: OnDisk, head: RequestHead, is_named: bool },
    /// A file that is still in the pack only.
    Packed { in_pack: InPack, head: RequestHead },
    /// Whether a password is a user's.
    Password(PasswordCheck),
}

/// Candidates of `try_files` below a root that is not in memory.
#[derive(Debug)]
pub(crate) struct Lookup {
    pub(crate) root: PathBuf,
    pub(crate) candidates: Vec<Vec<u8>>,
    pub(crate) policy: TryPolicy,
}

/// What came of it.
#[derive(Debug)]
pub(crate) enum BlockingResult {
    /// The candidate that exists, relative to the root.
    Found(Option<Vec<u8>>),
    /// The response is complete.
    Responded,
    /// No file is there, and the next route may answer.
    PassedOn,
    /// The password is that of this user.
    Admitted(String),
    /// It failed.
    Error(HttpError),
}

impl BlockingWork {
    /// Does it on a thread that may block.
    #[expect(
        clippy::disallowed_methods,
        reason = "files that are not in memory are what a core's few blocking threads are for"
    )]
    pub(crate) async fn perform(self, response: &mut Response) -> BlockingResult {
        if let Self::Password(check) = self {
            return check.perform().await.map_or_else(BlockingResult::Error, BlockingResult::Admitted);
        }
        let mut made = std::mem::take(response);
        let read = tokio::task::spawn_blocking(move || {
            let result = self.read(&mut made);
            (made, result)
        });
        match read.await {
            Ok((made, result)) => {
                *response = made;
                result
            }
            // The thread panicked: a defect of ours.
            Err(_) => BlockingResult::Error(HttpError::FileUnreadable),
        }
    }

    fn read(self, response: &mut Response) -> BlockingResult {
        let served = match self {
            Self::Lookup(Lookup { root, candidates, policy }) => {
                let found = files::find_candidate_on_disk(&root, &candidates, policy, false);
                return BlockingResult::Found(found.map(|candidate| candidate.relative));
            }
            Self::Tree { settings, root, request } => files::from_disk(&settings, &root, request, response),
            Self::File { on_disk, head, is_named: false } => {
                files::finish_on_disk(on_disk, &head, response).map(|()| Served::Answered)
            }
            Self::File { on_disk, head, is_named: true } => {
                files::finish_named_file(on_disk, &head, response).map(|()| Served::Answered)
            }
            Self::Packed { in_pack, head } => {
                files::finish_in_pack(&in_pack, &head, response).map(|()| Served::Answered)
            }
            // It is not for this thread.
            Self::Password(_) => return BlockingResult::Error(HttpError::Unauthorized),
        };
        match served {
            Ok(Served::PassedOn) => BlockingResult::PassedOn,
            Ok(_) => BlockingResult::Responded,
            Err(error) => BlockingResult::Error(error),
        }
    }
}
