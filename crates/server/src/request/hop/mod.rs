//! One hop further: what a request and its answer lose and gain where another server speaks for this one.
//!
//! [`fields`] has the rules about fields, [`ask`] the parts of a request's head that everybody writes the same way,
//! [`trust`] decides whose word counts about who the client is. Knows no connection; what is done with a request is
//! for `handle/app` and `handle/proxy`, which decide nothing of this for themselves.

pub(crate) mod ask;
pub(crate) mod fields;
pub(crate) mod trust;
