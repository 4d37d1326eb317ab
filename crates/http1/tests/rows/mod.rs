//! Malformed and smuggling-shaped requests, each with the check that refuses it. Shared with the
//! server's tests, which send them over sockets.

use onehop_http1::Refusal;

pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) bytes: &'static [u8],
    pub(crate) refusal: Refusal,
    pub(crate) section: &'static str,
}

macro_rules! rows {
    ($($name:literal, $bytes:expr, $refusal:ident, $section:literal;)+) => {
        &[$(Row { name: $name, bytes: $bytes, refusal: Refusal::$refusal, section: $section },)+]
    };
}

pub(crate) const LENGTHS: &[Row] = rows! {
    "both lengths, length first", b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", BothLengths, "RFC 9112 section 6.3";
    "both lengths, coding first", b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", BothLengths, "RFC 9112 section 6.3";
    "both lengths with a length of zero", b"GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", BothLengths, "RFC 9112 section 6.3";
    "both lengths in other case", b"POST / HTTP/1.1\r\nHost: h\r\ncontent-LENGTH: 5\r\ntransfer-ENCODING: Chunked\r\n\r\n", BothLengths, "RFC 9112 section 6.3";
    "both lengths in 1.0", b"POST / HTTP/1.0\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", BothLengths, "RFC 9112 section 6.3";
    "two different lengths", b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n", DifferingContentLength, "RFC 9112 section 6.3";
    "two spellings of one length", b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nContent-Length: 05\r\n\r\n", DifferingContentLength, "RFC 9112 section 6.3";
    "one length twice", b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello", ListedContentLength, "RFC 9112 section 6.3";
    "a list of equal lengths", b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5, 5\r\n\r\nhello", ListedContentLength, "RFC 9112 section 6.3";
    "a list of lengths", b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5, 6\r\n\r\nhello", ListedContentLength, "RFC 9112 section 6.3";
    "a length and a comma", b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5,\r\n\r\nhello", ListedContentLength, "RFC 9112 section 6.3";
    "a signed length", b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: +5\r\n\r\nhello", BadContentLength, "RFC 9112 section 6.3";
    "a negative length", b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: -5\r\n\r\n", BadContentLength, "RFC 9112 section 6.3";
    "a hexadecimal length", b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0x5\r\n\r\nhello", BadContentLength, "RFC 9112 section 6.3";
    "an empty length", b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length:\r\n\r\n", BadContentLength, "RFC 9112 section 6.3";
    "two empty lengths", b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length:\r\nContent-Length: \r\n\r\n", ListedContentLength, "RFC 9112 section 6.3";
    "a length with a space inside", b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1 0\r\n\r\n", BadContentLength, "RFC 9112 section 6.3";
    "a quoted length", b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: \"5\"\r\n\r\n", BadContentLength, "RFC 9112 section 6.3";
    "a fractional length", b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5.0\r\n\r\n", BadContentLength, "RFC 9112 section 6.3";
    "a length over 64 bits", b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 18446744073709551616\r\n\r\n", BadContentLength, "RFC 9112 section 6.3";
    "a length in other digits", b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: \xd9\xa5\r\n\r\n", BadContentLength, "RFC 9112 section 6.3";
    "identity", b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: identity\r\n\r\n", TransferEncodingNotChunked, "RFC 9112 section 6.3";
    "an empty coding", b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding:\r\n\r\n", TransferEncodingNotChunked, "RFC 9112 section 6.3";
    "a coding that looks like chunked", b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: xchunked\r\n\r\n", TransferEncodingNotChunked, "RFC 9112 section 6.3";
    "chunked twice in a list", b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked, chunked\r\n\r\n", TransferEncodingNotChunked, "RFC 9112 section 6.3";
    "chunked twice in two fields", b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", TransferEncodingNotChunked, "RFC 9112 section 6.3";
    "chunked that is not final", b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked, gzip\r\n\r\n", TransferEncodingNotChunked, "RFC 9112 section 6.3";
    "chunked, then identity in a second field", b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n", TransferEncodingNotChunked, "RFC 9112 section 6.3";
    "chunked with a parameter", b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked;q=1\r\n\r\n", TransferEncodingNotChunked, "RFC 9112 section 6.3";
    "quoted chunked", b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: \"chunked\"\r\n\r\n", TransferEncodingNotChunked, "RFC 9112 section 6.3";
    "chunked after an empty member", b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: ,chunked\r\n\r\n", TransferEncodingNotChunked, "RFC 9112 section 6.3";
    "chunked with a vertical tab", b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: \x0bchunked\r\n\r\n", BadFieldValue, "RFC 9110 section 5.5";
    "gzip below chunked", b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", UnknownTransferCoding, "RFC 9112 section 6.1";
    "gzip and chunked in two fields", b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n", UnknownTransferCoding, "RFC 9112 section 6.1";
    "chunked in 1.0", b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", ChunkedInHttp10, "RFC 9112 section 6.1";
    "chunked in 1.0 with keep-alive", b"POST / HTTP/1.0\r\nHost: h\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", ChunkedInHttp10, "RFC 9112 section 6.1";
};

pub(crate) const LINES: &[Row] = rows! {
    "a folded field", b"GET / HTTP/1.1\r\nHost: h\r\nA: b\r\n c\r\n\r\n", ObsoleteFold, "RFC 9112 section 5.2";
    "a field folded with a tab", b"GET / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding:\r\n\tchunked\r\n\r\n", ObsoleteFold, "RFC 9112 section 5.2";
    "white space before the first field", b"GET / HTTP/1.1\r\n Host: h\r\nHost: i\r\n\r\n", ObsoleteFold, "RFC 9112 section 5.2";
    "a line of white space", b"GET / HTTP/1.1\r\nHost: h\r\n \r\n\r\n", ObsoleteFold, "RFC 9112 section 5.2";
    "a bare CR in a value", b"GET / HTTP/1.1\r\nHost: h\r\nA: b\rc\r\n\r\n", BareCr, "RFC 9112 section 2.2";
    "a bare CR for a line end", b"GET / HTTP/1.1\rHost: h\r\n\r\n", BareCr, "RFC 9112 section 2.2";
    "two CRs before LF", b"GET / HTTP/1.1\r\nHost: h\r\r\n\r\n", BareCr, "RFC 9112 section 2.2";
    "a bare CR in a name", b"GET / HTTP/1.1\r\nHo\rst: h\r\n\r\n", BareCr, "RFC 9112 section 2.2";
    "a bare CR before the request line", b"\rGET / HTTP/1.1\r\nHost: h\r\n\r\n", BareCr, "RFC 9112 section 2.2";
    "bare LFs throughout", b"GET / HTTP/1.1\nHost: h\n\n", BareLf, "RFC 9112 section 2.2";
    "a bare LF after the request line", b"GET / HTTP/1.1\nHost: h\r\n\r\n", BareLf, "RFC 9112 section 2.2";
    "a bare LF after a field", b"GET / HTTP/1.1\r\nHost: h\nA: b\r\n\r\n", BareLf, "RFC 9112 section 2.2";
    "a bare LF after a field with white space", b"GET / HTTP/1.1\r\nHost: h \nA: b\r\n\r\n", BareLf, "RFC 9112 section 2.2";
    "a bare LF after an empty value", b"GET / HTTP/1.1\r\nHost: h\r\nA:\nB: c\r\n\r\n", BareLf, "RFC 9112 section 2.2";
    "a bare LF for the empty line", b"GET / HTTP/1.1\r\nHost: h\r\n\n", BareLf, "RFC 9112 section 2.2";
    "a bare LF for the empty line without fields", b"GET / HTTP/1.0\r\n\nGET /b HTTP/1.0\r\n\r\n", BareLf, "RFC 9112 section 2.2";
    "a bare LF before the request line", b"\nGET / HTTP/1.1\r\nHost: h\r\n\r\n", BareLf, "RFC 9112 section 2.2";
    "a second field behind a bare LF", b"GET / HTTP/1.1\r\nHost: h\r\nX: a\nContent-Length: 5\r\n\r\n", BareLf, "RFC 9112 section 2.2";
    "a space before the colon", b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length : 5\r\n\r\nhello", SpaceBeforeColon, "RFC 9112 section 5.1";
    "a tab before the colon", b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding\t: chunked\r\n\r\n", SpaceBeforeColon, "RFC 9112 section 5.1";
    "NUL in a value", b"GET / HTTP/1.1\r\nHost: h\r\nA: b\0c\r\n\r\n", Nul, "RFC 9110 section 5.5";
    "NUL in a name", b"GET / HTTP/1.1\r\nHost: h\r\nA\0: b\r\n\r\n", Nul, "RFC 9110 section 5.5";
    "NUL in the target", b"GET /\0 HTTP/1.1\r\nHost: h\r\n\r\n", Nul, "RFC 9110 section 5.5";
    "a TLS greeting", b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03", Nul, "RFC 9110 section 5.5";
    "a line without colon", b"GET / HTTP/1.1\r\nHost: h\r\nnothing\r\n\r\n", BadFieldName, "RFC 9110 section 5.1";
    "an empty name", b"GET / HTTP/1.1\r\nHost: h\r\n: a\r\n\r\n", BadFieldName, "RFC 9110 section 5.1";
    "a space inside a name", b"GET / HTTP/1.1\r\nHost: h\r\nA b: c\r\n\r\n", BadFieldName, "RFC 9110 section 5.1";
    "a non-ASCII name", b"GET / HTTP/1.1\r\nHost: h\r\n\xe9: c\r\n\r\n", BadFieldName, "RFC 9110 section 5.1";
    "a delimiter in a name", b"GET / HTTP/1.1\r\nHost: h\r\nA(b): c\r\n\r\n", BadFieldName, "RFC 9110 section 5.1";
    "an underlined length is another name", b"GET / HTTP/1.1\r\nHost: h\r\nContent_Length\x7f: 5\r\n\r\n", BadFieldName, "RFC 9110 section 5.1";
    "a control character in a value", b"GET / HTTP/1.1\r\nHost: h\r\nA: b\x01\r\n\r\n", BadFieldValue, "RFC 9110 section 5.5";
    "DEL in a value", b"GET / HTTP/1.1\r\nHost: h\r\nA: \x7f\r\n\r\n", BadFieldValue, "RFC 9110 section 5.5";
    "an escape sequence in a value", b"GET / HTTP/1.1\r\nHost: h\r\nA: \x1b[2J\r\n\r\n", BadFieldValue, "RFC 9110 section 5.5";
};

pub(crate) const REQUEST_LINES: &[Row] = rows! {
    "no version", b"GET /\r\n\r\n", BadRequestLine, "RFC 9112 section 3";
    "two spaces before the target", b"GET  / HTTP/1.1\r\nHost: h\r\n\r\n", BadRequestLine, "RFC 9112 section 3";
    "two spaces before the version", b"GET /  HTTP/1.1\r\nHost: h\r\n\r\n", BadRequestLine, "RFC 9112 section 3";
    "a space after the version", b"GET / HTTP/1.1 \r\nHost: h\r\n\r\n", BadRequestLine, "RFC 9112 section 3";
    "a space before the method", b" GET / HTTP/1.1\r\nHost: h\r\n\r\n", BadRequestLine, "RFC 9112 section 3";
    "a space in the target", b"GET /a b HTTP/1.1\r\nHost: h\r\n\r\n", BadRequestLine, "RFC 9112 section 3";
    "a tab for a space", b"GET\t/ HTTP/1.1\r\nHost: h\r\n\r\n", BadRequestLine, "RFC 9112 section 3";
    "a version in lower case", b"GET / http/1.1\r\nHost: h\r\n\r\n", BadRequestLine, "RFC 9112 section 3";
    "a version of too many digits", b"GET / HTTP/1.10\r\nHost: h\r\n\r\n", BadRequestLine, "RFC 9112 section 3";
    "a version without minor", b"GET / HTTP/1\r\nHost: h\r\n\r\n", BadRequestLine, "RFC 9112 section 3";
    "another protocol", b"GET / RTSP/1.0\r\n\r\n", BadRequestLine, "RFC 9112 section 3";
    "five empty lines", b"\r\n\r\n\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n", BadRequestLine, "RFC 9112 section 3";
    "an answer", b"HTTP/1.1 200 OK\r\n\r\n", BadMethod, "RFC 9112 section 3.1";
    "a method with a delimiter", b"G@T / HTTP/1.1\r\nHost: h\r\n\r\n", BadMethod, "RFC 9112 section 3.1";
    "an empty method", b"\x01 / HTTP/1.1\r\nHost: h\r\n\r\n", BadMethod, "RFC 9112 section 3.1";
    "a long method", b"ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFG / HTTP/1.1\r\nHost: h\r\n\r\n", MethodTooLong, "RFC 9112 section 3";
    "the HTTP/2 preface", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", UnsupportedVersion, "RFC 9110 section 2.5";
    "a higher minor version with a fault behind it", b"GET /\"  HTTP/1.2\r\nHost: h\r\n\r\n", BadRequestLine, "RFC 9112 section 3";
    "version 0.9", b"GET / HTTP/0.9\r\n\r\n", UnsupportedVersion, "RFC 9110 section 2.5";
    "version 3.0", b"GET / HTTP/3.0\r\nHost: h\r\n\r\n", UnsupportedVersion, "RFC 9110 section 2.5";
};

pub(crate) const TARGETS: &[Row] = rows! {
    "a relative target", b"GET a HTTP/1.1\r\nHost: h\r\n\r\n", BadTarget, "RFC 9112 section 3.2";
    "a fragment", b"GET /a#b HTTP/1.1\r\nHost: h\r\n\r\n", BadTarget, "RFC 9112 section 3.2";
    "another scheme", b"GET ftp://h/ HTTP/1.1\r\nHost: h\r\n\r\n", BadTarget, "RFC 9112 section 3.2";
    "a file", b"GET file:///etc/passwd HTTP/1.1\r\nHost: h\r\n\r\n", BadTarget, "RFC 9112 section 3.2";
    "a scheme without slashes", b"GET http:h/ HTTP/1.1\r\nHost: h\r\n\r\n", BadTarget, "RFC 9112 section 3.2";
    "an asterisk for GET", b"GET * HTTP/1.1\r\nHost: h\r\n\r\n", BadTarget, "RFC 9112 section 3.2";
    "an asterisk and more", b"OPTIONS *a HTTP/1.1\r\nHost: h\r\n\r\n", BadTarget, "RFC 9112 section 3.2";
    "an authority for GET", b"GET h:80 HTTP/1.1\r\nHost: h:80\r\n\r\n", BadTarget, "RFC 9112 section 3.2";
    "CONNECT without port", b"CONNECT h HTTP/1.1\r\nHost: h\r\n\r\n", BadTarget, "RFC 9112 section 3.2";
    "CONNECT to an empty port", b"CONNECT h: HTTP/1.1\r\nHost: h\r\n\r\n", BadTarget, "RFC 9112 section 3.2";
    "CONNECT to a path", b"CONNECT /a HTTP/1.1\r\nHost: h\r\n\r\n", BadHost, "RFC 9110 section 4.2.4";
    "unescaped UTF-8", b"GET /\xc3\xa9 HTTP/1.1\r\nHost: h\r\n\r\n", BadTarget, "RFC 9112 section 3.2";
    "a control character", b"GET /\x01 HTTP/1.1\r\nHost: h\r\n\r\n", BadTarget, "RFC 9112 section 3.2";
    "DEL", b"GET /\x7f HTTP/1.1\r\nHost: h\r\n\r\n", BadTarget, "RFC 9112 section 3.2";
    "a quotation mark", b"GET /\" HTTP/1.1\r\nHost: h\r\n\r\n", BadTarget, "RFC 9112 section 3.2";
    "a backtick in the path", b"GET /` HTTP/1.1\r\nHost: h\r\n\r\n", BadTarget, "RFC 9112 section 3.2";
    "markup", b"GET /<script> HTTP/1.1\r\nHost: h\r\n\r\n", BadTarget, "RFC 9112 section 3.2";
};

pub(crate) const HOSTS: &[Row] = rows! {
    "no Host", b"GET / HTTP/1.1\r\n\r\n", MissingHost, "RFC 9112 section 3.2";
    "no Host beside an absolute target", b"GET http://h/ HTTP/1.1\r\n\r\n", MissingHost, "RFC 9112 section 3.2";
    "an empty Host", b"GET / HTTP/1.1\r\nHost:\r\n\r\n", EmptyHost, "RFC 9112 section 3.2";
    "a Host of white space", b"GET / HTTP/1.1\r\nHost: \t \r\n\r\n", EmptyHost, "RFC 9112 section 3.2";
    "an empty Host in 1.0", b"GET / HTTP/1.0\r\nHost:\r\n\r\n", EmptyHost, "RFC 9112 section 3.2";
    "an absolute target without host", b"GET http:///a HTTP/1.1\r\nHost: h\r\n\r\n", EmptyHost, "RFC 9112 section 3.2";
    "two Hosts", b"GET / HTTP/1.1\r\nHost: h\r\nHost: i\r\n\r\n", DoubledHost, "RFC 9112 section 3.2";
    "one Host twice", b"GET / HTTP/1.1\r\nHost: h\r\nHost: h\r\n\r\n", DoubledHost, "RFC 9112 section 3.2";
    "two Hosts in 1.0", b"GET / HTTP/1.0\r\nHost: h\r\nhost: i\r\n\r\n", DoubledHost, "RFC 9112 section 3.2";
    "user information", b"GET / HTTP/1.1\r\nHost: a@h\r\n\r\n", BadHost, "RFC 9110 section 4.2.4";
    "user information and password", b"GET / HTTP/1.1\r\nHost: a:b@h\r\n\r\n", BadHost, "RFC 9110 section 4.2.4";
    "user information in the target", b"GET http://a@h/ HTTP/1.1\r\nHost: h\r\n\r\n", BadHost, "RFC 9110 section 4.2.4";
    "listed Hosts", b"GET / HTTP/1.1\r\nHost: h, i\r\n\r\n", BadHost, "RFC 9110 section 4.2.4";
    "listed Hosts without space", b"GET / HTTP/1.1\r\nHost: h,i\r\n\r\n", BadHost, "RFC 9110 section 4.2.4";
    "a space inside Host", b"GET / HTTP/1.1\r\nHost: h i\r\n\r\n", BadHost, "RFC 9110 section 4.2.4";
    "a path in Host", b"GET / HTTP/1.1\r\nHost: h/a\r\n\r\n", BadHost, "RFC 9110 section 4.2.4";
    "a URL in Host", b"GET / HTTP/1.1\r\nHost: http://h\r\n\r\n", BadHost, "RFC 9110 section 4.2.4";
    "a backslash in Host", b"GET / HTTP/1.1\r\nHost: h\\i\r\n\r\n", BadHost, "RFC 9110 section 4.2.4";
    "an escape in Host", b"GET / HTTP/1.1\r\nHost: %68\r\n\r\n", BadHost, "RFC 9110 section 4.2.4";
    "a non-ASCII Host", b"GET / HTTP/1.1\r\nHost: \xc3\xa9\r\n\r\n", BadHost, "RFC 9110 section 4.2.4";
    "a port alone", b"GET / HTTP/1.1\r\nHost: :80\r\n\r\n", BadHost, "RFC 9110 section 4.2.4";
    "an empty port and another host in the target", b"GET http://g:/ HTTP/1.1\r\nHost: h:\r\n\r\n", HostDisagrees, "RFC 9112 section 3.2.2";
    "an empty port that is not the target's", b"GET http://h:81/ HTTP/1.1\r\nHost: h:\r\n\r\n", HostDisagrees, "RFC 9112 section 3.2.2";
    "a port of letters", b"GET / HTTP/1.1\r\nHost: h:http\r\n\r\n", BadHost, "RFC 9110 section 4.2.4";
    "a port over 65535", b"GET / HTTP/1.1\r\nHost: h:65536\r\n\r\n", BadHost, "RFC 9110 section 4.2.4";
    "a signed port", b"GET / HTTP/1.1\r\nHost: h:+80\r\n\r\n", BadHost, "RFC 9110 section 4.2.4";
    "two ports", b"GET / HTTP/1.1\r\nHost: h:80:80\r\n\r\n", BadHost, "RFC 9110 section 4.2.4";
    "a bare IPv6 address", b"GET / HTTP/1.1\r\nHost: ::1\r\n\r\n", BadHost, "RFC 9110 section 4.2.4";
    "an open bracket", b"GET / HTTP/1.1\r\nHost: [::1\r\n\r\n", BadHost, "RFC 9110 section 4.2.4";
    "a name in brackets", b"GET / HTTP/1.1\r\nHost: [h]\r\n\r\n", BadHost, "RFC 9110 section 4.2.4";
    "a zone", b"GET / HTTP/1.1\r\nHost: [fe80::1%25eth0]\r\n\r\n", BadHost, "RFC 9110 section 4.2.4";
    "bytes after a bracket", b"GET / HTTP/1.1\r\nHost: [::1]a\r\n\r\n", BadHost, "RFC 9110 section 4.2.4";
    "another host in the target", b"GET http://a/ HTTP/1.1\r\nHost: b\r\n\r\n", HostDisagrees, "RFC 9112 section 3.2.2";
    "another port in the target", b"GET http://a:81/ HTTP/1.1\r\nHost: a\r\n\r\n", HostDisagrees, "RFC 9112 section 3.2.2";
    "the other scheme's port", b"GET http://a/ HTTP/1.1\r\nHost: a:443\r\n\r\n", HostDisagrees, "RFC 9112 section 3.2.2";
    "another host for CONNECT", b"CONNECT a:443 HTTP/1.1\r\nHost: b:443\r\n\r\n", HostDisagrees, "RFC 9112 section 3.2.2";
    "another host in 1.0", b"GET http://a/ HTTP/1.0\r\nHost: b\r\n\r\n", HostDisagrees, "RFC 9112 section 3.2.2";
};

/// Heads before which the rows of chunked bodies stand.
pub(crate) const CHUNKED: &[u8] = b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";

pub(crate) const CHUNKS: &[Row] = rows! {
    "no size", b"\r\nhello\r\n0\r\n\r\n", BadChunkSize, "RFC 9112 section 7.1";
    "a size of other letters", b"g\r\nhello\r\n0\r\n\r\n", BadChunkSize, "RFC 9112 section 7.1";
    "a prefixed size", b"0x5\r\nhello\r\n0\r\n\r\n", BadChunkSize, "RFC 9112 section 7.1";
    "a signed size", b"+5\r\nhello\r\n0\r\n\r\n", BadChunkSize, "RFC 9112 section 7.1";
    "a negative size", b"-1\r\nhello\r\n0\r\n\r\n", BadChunkSize, "RFC 9112 section 7.1";
    "a size with underscore", b"1_0\r\nhello\r\n0\r\n\r\n", BadChunkSize, "RFC 9112 section 7.1";
    "white space before the size", b" 5\r\nhello\r\n0\r\n\r\n", BadChunkSize, "RFC 9112 section 7.1";
    "white space after the size", b"5 \r\nhello\r\n0\r\n\r\n", BadChunkSize, "RFC 9112 section 7.1";
    "a size over 64 bits", b"10000000000000005\r\nhello\r\n0\r\n\r\n", BadChunkSize, "RFC 9112 section 7.1";
    "too many leading zeros", b"00000000000000005\r\nhello\r\n0\r\n\r\n", BadChunkSize, "RFC 9112 section 7.1";
    "a list of sizes", b"5,5\r\nhello\r\n0\r\n\r\n", BadChunkSize, "RFC 9112 section 7.1";
    "a bare LF after the size", b"5\nhello\r\n0\r\n\r\n", BareLf, "RFC 9112 section 2.2";
    "a bare LF after an extension", b"5;a\nhello\r\n0\r\n\r\n", BareLf, "RFC 9112 section 2.2";
    "a bare LF inside an extension", b"2;\nxx\r\n4c\r\n0\r\n\r\n", BareLf, "RFC 9112 section 2.2";
    "a bare CR after the size", b"5\rhello\r\n0\r\n\r\n", BareCr, "RFC 9112 section 2.2";
    "two CRs after the size", b"5\r\r\nhello\r\n0\r\n\r\n", BareCr, "RFC 9112 section 2.2";
    "no CRLF after the data", b"5\r\nhello0\r\n\r\n", BadChunkEnd, "RFC 9112 section 7.1";
    "a bare LF after the data", b"5\r\nhello\n0\r\n\r\n", BadChunkEnd, "RFC 9112 section 7.1";
    "a bare CR after the data", b"5\r\nhello\r0\r\n\r\n", BadChunkEnd, "RFC 9112 section 7.1";
    "data longer than its size", b"5\r\nhello!\r\n0\r\n\r\n", BadChunkEnd, "RFC 9112 section 7.1";
    "an extension without name", b"5;\r\nhello\r\n0\r\n\r\n", BadChunkExtension, "RFC 9112 section 7.1.1";
    "an extension with an empty value", b"5;a=\r\nhello\r\n0\r\n\r\n", BadChunkExtension, "RFC 9112 section 7.1.1";
    "an open quotation", b"5;a=\"b\r\nhello\r\n0\r\n\r\n", BadChunkExtension, "RFC 9112 section 7.1.1";
    "a control character in an extension", b"5;a=\"\x01\"\r\nhello\r\n0\r\n\r\n", BadChunkExtension, "RFC 9112 section 7.1.1";
    "NUL in an extension", b"5;a=\"\0\"\r\nhello\r\n0\r\n\r\n", BadChunkExtension, "RFC 9112 section 7.1.1";
    "an extension ending in white space", b"5;a \r\nhello\r\n0\r\n\r\n", BadChunkExtension, "RFC 9112 section 7.1.1";
    "a bare LF after the last chunk", b"0\n\r\n", BareLf, "RFC 9112 section 2.2";
    "a bare LF for the empty line", b"0\r\n\n", BareLf, "RFC 9112 section 2.2";
    "a bare LF after a trailer", b"0\r\nA: b\n\r\n", BareLf, "RFC 9112 section 2.2";
    "a bare CR in a trailer", b"0\r\nA: b\rc\r\n\r\n", BareCr, "RFC 9112 section 2.2";
    "NUL in a trailer", b"0\r\nA: \0\r\n\r\n", Nul, "RFC 9110 section 5.5";
    "a folded trailer", b"0\r\nA: b\r\n c\r\n\r\n", ObsoleteFold, "RFC 9112 section 5.2";
    "a space before a trailer's colon", b"0\r\nA : b\r\n\r\n", SpaceBeforeColon, "RFC 9112 section 5.1";
    "a request for a trailer", b"0\r\nGET / HTTP/1.1\r\n\r\n", BadFieldName, "RFC 9110 section 5.1";
    "a control character in a trailer", b"0\r\nA: \x02\r\n\r\n", BadFieldValue, "RFC 9110 section 5.5";
    "a length for a trailer", b"0\r\nContent-Length: 5\r\n\r\n", ForbiddenTrailer, "RFC 9110 section 6.5.1";
    "a coding for a trailer", b"0\r\ntransfer-encoding: chunked\r\n\r\n", ForbiddenTrailer, "RFC 9110 section 6.5.1";
    "a host for a trailer", b"0\r\nA: b\r\nHost: h\r\n\r\n", ForbiddenTrailer, "RFC 9110 section 6.5.1";
};
