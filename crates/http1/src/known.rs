//! The header fields that are looked up by name on the way of a request.

/// A field whose place in a head is remembered while it is parsed, so that a lookup builds no map.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
#[expect(missing_docs, reason = "each variant is the field of that name")]
pub enum Known {
    Accept,
    AcceptEncoding,
    Authorization,
    Connection,
    ContentEncoding,
    ContentLength,
    ContentType,
    Cookie,
    Date,
    Etag,
    Expect,
    Host,
    IfMatch,
    IfModifiedSince,
    IfNoneMatch,
    IfRange,
    IfUnmodifiedSince,
    KeepAlive,
    LastModified,
    Location,
    Origin,
    Range,
    Referer,
    SecFetchDest,
    SecFetchMode,
    Te,
    Trailer,
    TransferEncoding,
    Upgrade,
    UserAgent,
    Vary,
    XForwardedFor,
    XForwardedHost,
    XForwardedProto,
}

impl Known {
    /// How many there are.
    pub const COUNT: usize = Known::XForwardedProto as usize + 1;
}
