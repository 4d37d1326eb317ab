//! Why a message is refused.
//!
//! Owns the list of checks, the status each deserves and the section that asks for it. Allocates no text
//! and never holds a peer's bytes, so a refusal may be logged and counted as it is.

/// One check that a message failed. In a request the client is at fault; in an answer the upstream is, and
/// the proxy tells its own client 502 whatever [`Refusal::status`] says.
///
/// After any of these the connection is not used again: what follows in it cannot be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// Content-Length and Transfer-Encoding together.
    BothLengths,
    /// A Content-Length that is a list, or is given twice with one value.
    ListedContentLength,
    /// Content-Length fields that contradict each other.
    DifferingContentLength,
    /// A Content-Length that is no number, or does not fit 64 bits.
    BadContentLength,
    /// Transfer-Encoding does not end in one single `chunked`.
    TransferEncodingNotChunked,
    /// A transfer coding before the final `chunked`.
    UnknownTransferCoding,
    /// Transfer-Encoding in an HTTP/1.0 message.
    ChunkedInHttp10,
    /// A field line that goes on in the next line.
    ObsoleteFold,
    /// CR without LF.
    BareCr,
    /// LF without CR.
    BareLf,
    /// White space between a field's name and its colon.
    SpaceBeforeColon,
    /// A NUL byte.
    Nul,
    /// A field name that is no token, or a line without colon.
    BadFieldName,
    /// A control character in a field value.
    BadFieldValue,
    /// A request line that is not method, space, target, space, version.
    BadRequestLine,
    /// A method that is no token.
    BadMethod,
    /// A method longer than any that is known.
    MethodTooLong,
    /// A target of no known form, or with characters that need escaping.
    BadTarget,
    /// No Host field in HTTP/1.1.
    MissingHost,
    /// An empty Host field.
    EmptyHost,
    /// More than one Host field.
    DoubledHost,
    /// An authority with user information, with a bad port or with forbidden characters.
    BadHost,
    /// The target's authority is not the Host field's.
    HostDisagrees,
    /// A head over its bound.
    HeadTooLarge,
    /// More fields than allowed.
    TooManyFields,
    /// More members of Connection than allowed.
    TooManyConnectionOptions,
    /// A target over its bound.
    TargetTooLong,
    /// A chunk size that is not hexadecimal, or has more digits than 64 bits need.
    BadChunkSize,
    /// A chunk extension against its grammar.
    BadChunkExtension,
    /// A chunk-size line over its bound.
    ChunkLineTooLong,
    /// More bytes of chunk extensions in one body than allowed.
    ChunkExtensionsTooLarge,
    /// A chunk's data that is not followed by CRLF.
    BadChunkEnd,
    /// A trailer section over its bound.
    TrailersTooLarge,
    /// A trailer field that decides framing or routing.
    ForbiddenTrailer,
    /// A major version other than 1; an answer's minor version other than 0 and 1, too.
    UnsupportedVersion,
    /// The connection ended inside a message.
    UnexpectedEnd,
    /// A status line that is not version, space, three digits, space, reason.
    BadStatusLine,
    /// An answer that cannot follow what was asked.
    UnexpectedAnswer,
    /// The caller asked for the next message before this one was over. Our own mistake: going on would
    /// read a body as a request.
    OutOfOrder,
}

impl Refusal {
    /// All of them, for tables of metrics.
    pub const ALL: &[Refusal] = &[
        Refusal::BothLengths,
        Refusal::ListedContentLength,
        Refusal::DifferingContentLength,
        Refusal::BadContentLength,
        Refusal::TransferEncodingNotChunked,
        Refusal::UnknownTransferCoding,
        Refusal::ChunkedInHttp10,
        Refusal::ObsoleteFold,
        Refusal::BareCr,
        Refusal::BareLf,
        Refusal::SpaceBeforeColon,
        Refusal::Nul,
        Refusal::BadFieldName,
        Refusal::BadFieldValue,
        Refusal::BadRequestLine,
        Refusal::BadMethod,
        Refusal::MethodTooLong,
        Refusal::BadTarget,
        Refusal::MissingHost,
        Refusal::EmptyHost,
        Refusal::DoubledHost,
        Refusal::BadHost,
        Refusal::HostDisagrees,
        Refusal::HeadTooLarge,
        Refusal::TooManyFields,
        Refusal::TooManyConnectionOptions,
        Refusal::TargetTooLong,
        Refusal::BadChunkSize,
        Refusal::BadChunkExtension,
        Refusal::ChunkLineTooLong,
        Refusal::ChunkExtensionsTooLarge,
        Refusal::BadChunkEnd,
        Refusal::TrailersTooLarge,
        Refusal::ForbiddenTrailer,
        Refusal::UnsupportedVersion,
        Refusal::UnexpectedEnd,
        Refusal::BadStatusLine,
        Refusal::UnexpectedAnswer,
        Refusal::OutOfOrder,
    ];

    /// The status that a server answers with before it closes.
    pub const fn status(self) -> u16 {
        match self {
            Refusal::TargetTooLong => 414,
            Refusal::HeadTooLarge
            | Refusal::TooManyFields
            | Refusal::TooManyConnectionOptions
            | Refusal::TrailersTooLarge => 431,
            Refusal::UnknownTransferCoding | Refusal::MethodTooLong => 501,
            Refusal::UnsupportedVersion => 505,
            Refusal::OutOfOrder => 500,
            _ => 400,
        }
    }

    /// The section that asks for the check.
    pub const fn section(self) -> &'static str {
        match self {
            Refusal::BothLengths
            | Refusal::ListedContentLength
            | Refusal::DifferingContentLength
            | Refusal::BadContentLength
            | Refusal::TransferEncodingNotChunked
            | Refusal::UnexpectedAnswer => "RFC 9112 section 6.3",
            Refusal::UnknownTransferCoding | Refusal::ChunkedInHttp10 => "RFC 9112 section 6.1",
            Refusal::ObsoleteFold => "RFC 9112 section 5.2",
            Refusal::BareCr | Refusal::BareLf => "RFC 9112 section 2.2",
            Refusal::SpaceBeforeColon => "RFC 9112 section 5.1",
            Refusal::Nul | Refusal::BadFieldValue => "RFC 9110 section 5.5",
            Refusal::BadFieldName => "RFC 9110 section 5.1",
            Refusal::BadRequestLine | Refusal::MethodTooLong | Refusal::TargetTooLong => "RFC 9112 section 3",
            Refusal::BadMethod => "RFC 9112 section 3.1",
            Refusal::BadTarget | Refusal::MissingHost | Refusal::EmptyHost | Refusal::DoubledHost => {
                "RFC 9112 section 3.2"
            }
            Refusal::BadHost => "RFC 9110 section 4.2.4",
            Refusal::HostDisagrees => "RFC 9112 section 3.2.2",
            Refusal::HeadTooLarge | Refusal::TooManyFields | Refusal::TooManyConnectionOptions => {
                "RFC 6585 section 5"
            }
            Refusal::BadChunkSize | Refusal::BadChunkEnd => "RFC 9112 section 7.1",
            Refusal::BadChunkExtension | Refusal::ChunkLineTooLong | Refusal::ChunkExtensionsTooLarge => {
                "RFC 9112 section 7.1.1"
            }
            Refusal::TrailersTooLarge => "RFC 9112 section 7.1.2",
            Refusal::ForbiddenTrailer => "RFC 9110 section 6.5.1",
            Refusal::UnsupportedVersion => "RFC 9110 section 2.5",
            Refusal::UnexpectedEnd => "RFC 9112 section 8",
            Refusal::BadStatusLine => "RFC 9112 section 4",
            Refusal::OutOfOrder => "RFC 9112 section 9.3.2",
        }
    }

    /// A label for metrics and logs.
    pub const fn name(self) -> &'static str {
        match self {
            Refusal::BothLengths => "both_lengths",
            Refusal::ListedContentLength => "listed_content_length",
            Refusal::DifferingContentLength => "differing_content_length",
            Refusal::BadContentLength => "bad_content_length",
            Refusal::TransferEncodingNotChunked => "transfer_encoding_not_chunked",
            Refusal::UnknownTransferCoding => "unknown_transfer_coding",
            Refusal::ChunkedInHttp10 => "chunked_in_http10",
            Refusal::ObsoleteFold => "obsolete_fold",
            Refusal::BareCr => "bare_cr",
            Refusal::BareLf => "bare_lf",
            Refusal::SpaceBeforeColon => "space_before_colon",
            Refusal::Nul => "nul",
            Refusal::BadFieldName => "bad_field_name",
            Refusal::BadFieldValue => "bad_field_value",
            Refusal::BadRequestLine => "bad_request_line",
            Refusal::BadMethod => "bad_method",
            Refusal::MethodTooLong => "method_too_long",
            Refusal::BadTarget => "bad_target",
            Refusal::MissingHost => "missing_host",
            Refusal::EmptyHost => "empty_host",
            Refusal::DoubledHost => "doubled_host",
            Refusal::BadHost => "bad_host",
            Refusal::HostDisagrees => "host_disagrees",
            Refusal::HeadTooLarge => "head_too_large",
            Refusal::TooManyFields => "too_many_fields",
            Refusal::TooManyConnectionOptions => "too_many_connection_options",
            Refusal::TargetTooLong => "target_too_long",
            Refusal::BadChunkSize => "bad_chunk_size",
            Refusal::BadChunkExtension => "bad_chunk_extension",
            Refusal::ChunkLineTooLong => "chunk_line_too_long",
            Refusal::ChunkExtensionsTooLarge => "chunk_extensions_too_large",
            Refusal::BadChunkEnd => "bad_chunk_end",
            Refusal::TrailersTooLarge => "trailers_too_large",
            Refusal::ForbiddenTrailer => "forbidden_trailer",
            Refusal::UnsupportedVersion => "unsupported_version",
            Refusal::UnexpectedEnd => "unexpected_end",
            Refusal::BadStatusLine => "bad_status_line",
            Refusal::UnexpectedAnswer => "unexpected_answer",
            Refusal::OutOfOrder => "out_of_order",
        }
    }
}
