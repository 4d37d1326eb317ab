//! `basic_auth`: only who knows a user's password passes (RFC 7617).

use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use onehop_config::checked::{self, HeaderOp, HeaderStep, Template};
use onehop_http1::RequestHead;
use onehop_message::error::HttpError;
use regex_lite::Regex;

use super::header;
use crate::request::context::{Authentication, RequestContext};
use crate::request::passwords::PasswordCheck;

/// With the space that follows it.
const SCHEME: &[u8] = b"Basic ";

/// A `basic_auth` as requests meet it.
#[derive(Debug)]
pub struct BasicAuth {
    settings: Arc<checked::BasicAuth>,
    /// Asks for a password (RFC 7617 section 2).
    challenge: HeaderStep,
    /// None is an expression.
    expressions: [Option<Regex>; 1],
}

impl BasicAuth {
    pub(crate) fn new(settings: &Arc<checked::BasicAuth>) -> Self {
        // RFC 9110 section 5.6.4
        let realm = settings.realm.replace('\\', "\\\\").replace('"', "\\\"");
        let value = Template::text(format!("Basic realm=\"{realm}\""));
        let op = HeaderOp::Set { name: "WWW-Authenticate".to_owned(), value };
        Self {
            settings: Arc::clone(settings),
            challenge: HeaderStep { ops: vec![op], deferred: false },
            expressions: [None],
        }
    }

    /// Admits a request with a password that was right before; any other password is returned for checking.
    pub(crate) fn admit<'a>(
        &'a self,
        context: &mut RequestContext<'a>,
    ) -> Result<Option<PasswordCheck>, HttpError> {
        let head = &context.request.head;
        let challenge = header::gather(&self.challenge, &self.expressions, context);
        let authentication =
            context.authentication.insert(Box::new(Authentication { user: None, challenge }));
        let (user, password) = credentials(head).ok_or(HttpError::Unauthorized)?;
        let known = self.settings.accounts.iter().find(|(name, _)| *name == user);
        // Who is unknown takes as long as who is known, so that names cannot be found out.
        let (_, hash) = known.or(self.settings.accounts.first()).ok_or(HttpError::Unauthorized)?;
        let check = PasswordCheck::new(user, password, Arc::clone(hash), known.is_some());
        if check.is_known_to_be_right() {
            authentication.user = Some(check.into_user());
            return Ok(None);
        }
        Ok(Some(check))
    }
}

/// The user and the password of a request. Two fields may say two things, and count as none.
fn credentials(head: &RequestHead) -> Option<(String, Vec<u8>)> {
    let mut fields = head.find_all("authorization");
    let field = fields.next().filter(|_| fields.next().is_none())?;
    // RFC 9110 section 11.1: the name of a scheme has no case.
    let (scheme, encoded) = field.split_at_checked(SCHEME.len())?;
    let encoded = Some(encoded).filter(|_| scheme.eq_ignore_ascii_case(SCHEME))?;
    let decoded = BASE64_STANDARD.decode(encoded.trim_ascii()).ok()?;
    let colon = decoded.iter().position(|byte| *byte == b':')?;
    let user = String::from_utf8(decoded.get(..colon)?.to_vec()).ok()?;
    Some((user, decoded.get(colon + 1..)?.to_vec()))
}
