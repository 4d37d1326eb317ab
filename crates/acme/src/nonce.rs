//! Requests whose nonce the server refuses are repeated (RFC 8555 section 6.5). instant-acme does so twice, which is too
//! few where a server forgets its nonces (several servers behind one address).

/// Evaluates an expression that awaits a request until the server takes the nonce, up to
/// [`NONCE_ATTEMPTS_MAX`](crate::limits::NONCE_ATTEMPTS_MAX) times. A macro, because futures of async closures that
/// borrow are not known to be `Send`.
macro_rules! with_nonces {
    ($request:expr) => {{
        let mut attempts = 1;
        loop {
            match $request {
                Err(error)
                    if attempts < crate::limits::NONCE_ATTEMPTS_MAX
                        && crate::explain::is_problem(&error, "badNonce") =>
                {
                    attempts += 1;
                }
                outcome => break outcome,
            }
        }
    }};
}

pub(crate) use with_nonces;
