// Where onehop answers the corpus differently from Caddy, each with its reason. An entry says where it
// applies (`site`, `request`, `what`, `status`: text or pattern; `if`: a function of the difference).
// Entries marked `open` are no intention but work to do. docs/caddy-differences.md tells people about
// those that they may notice.

const isHead = ({ line }) => line.startsWith("HEAD ");

export const DIFFERENCES = [
  // What is refused.
  {
    reason: "paths that climb, hide a slash, a backslash or a NUL are refused, not cleaned up",
    request: /^\w+ [^|]*(\/\.\.\/|%2e%2e|%2F|%5C|%00)/i,
    what: "status",
    status: /^40[04]$/,
  },
  { reason: "a fragment is no part of a request target (RFC 9112 section 3.2)", request: /#part/, what: "status", status: 400 },
  { reason: "names that begin with a dot are absent", request: /\/\.dotfile/, what: "status", status: 404 },
  { reason: "names that begin with a dot are absent, so that the app's page answers", site: "single-page", request: /\/\.dotfile/, what: /^(body|content-type|content-length)$/ },
  { reason: "no control character gets into a header field", site: "header", request: /%00/, what: "x-path" },
  { reason: "a path with two readings is refused before any route sees it", request: /%00/, status: 400, what: /^x-/ },
  { reason: "dot segments are resolved before any route sees the path", site: /^(handle|header|rewrite)$/, request: /\/\.\.?\//, what: /^(body|content-length|x-path|x-uri)$/ },
  { reason: "no file has a slash in its name", site: "single-page", request: /docs%2Fguide/, what: /^(body|content-length|content-type)$/ },

  {
    reason: "parameters that `uri query` does not change stay as they were sent, in their order",
    site: "uri",
    request: /\/query\/(block|delete\?z=1)/,
    what: /^(body|content-length)$/,
  },
  { reason: "`request_header -*` leaves Host, which has chosen the site", site: "request-header", request: /\/every\//, what: /^(body|content-length)$/ },

  // Ranges.
  { reason: "Range has a meaning with GET alone (RFC 9110 section 14.2)", request: /^HEAD .*Range: bytes/, what: "status", status: 200 },
  { reason: "an unknown range unit is ignored (RFC 9110 section 14.2)", request: /Range: lines=/, what: "status", status: 200 },
  {
    reason: "a refused range is answered without text; its Content-Range says what there is (RFC 9110 section 15.5.17)",
    status: 416,
    what: /^(body|content-length|content-type|content-range|x-content-type-options|etag|last-modified|cache-control|accept-ranges)$/,
  },
  {
    reason: "the parts of several ranges name their type first, and the boundary is our own",
    status: 206,
    what: /^(body|content-type|content-length)$/,
    request: /Range: bytes=0-0,4-5/,
  },
  { reason: "a failed precondition is answered without the file's fields", status: 412, what: /^(content-type|etag|last-modified|cache-control|accept-ranges|content-length|body)$/ },

  {
    reason: "a page of an error is sent as a whole, whatever the client asks for or has",
    site: "errors",
    status: 404,
    request: /Range: |If-Match: |If-None-Match: |If-Modified-Since: |If-Unmodified-Since: /,
    what: /^(body|content-length|content-range|content-type|last-modified|accept-ranges|etag|x-content-type-options)$/,
  },

  // Choosing a coding.
  {
    reason: "Vary names Accept-Encoding only where a coding could have been chosen",
    what: "vary",
    if: ({ caddy, onehop }) => String(caddy).includes("Accept-Encoding") && !String(onehop).includes("Accept-Encoding"),
  },
  { reason: "`*` in Accept-Encoding accepts any coding (RFC 9110 section 12.5.3)", request: /Accept-Encoding: \*/, what: /^(content-encoding|etag|accept-ranges|content-length|body)$/ },

  { reason: "an encoded answer has ranges too", what: "accept-ranges", request: /Accept-Encoding/, if: ({ caddy, onehop }) => caddy === undefined && onehop === "bytes" },
  {
    reason: "a range counts in the coding that was chosen (RFC 9110 section 14): the encoded form is held, and has an ETag of its own",
    request: /Range: bytes=0-9 \| Accept-Encoding: gzip/,
    status: 206,
    what: /^(body|content-encoding|content-range)$/,
  },
  {
    reason: "a date does not tell codings apart, so where there are several it is no validator for If-Range",
    site: /^(encode|single-page|precompressed|request-header)$/,
    request: /If-Range: \w+, /,
    what: "status",
    status: 200,
  },

  // Lengths that Caddy leaves out.
  { reason: "an answer to HEAD tells the length that GET would have", what: "content-length", if: (difference) => isHead(difference) && difference.caddy === undefined },

  { reason: "an empty query leaves no question mark in {uri}", site: "rewrite", request: /^\w+ \/query\?( |$)/, what: "x-uri" },

  // Pages of our own.
  { reason: "a directory page is our own", site: "browse", what: /^(body|content-length|cache-control|last-modified|etag)$/, request: /^\w+ \/(list|assets|empty)\// },
  { reason: "a directory page is made anew, never 304", site: "browse", what: "status", status: 200, request: /If-Modified-Since/ },
  { reason: "a directory page knows GET and HEAD", site: "browse", what: "status", status: 405, request: /^(POST|PUT|DELETE|OPTIONS) \/list\// },
  { reason: "a method that nothing here knows is not implemented (RFC 9110 section 15.6.2)", request: /^BREW /, status: 501, what: /^/ },
  { reason: "application/json has no charset (RFC 8259 section 11)", site: "browse", what: "content-type", if: ({ onehop }) => onehop === "application/json" },
  { reason: "the page of `redir … html` is our own", site: "redir", request: /^\w+ \/page/, what: /^(body|content-length)$/ },
  {
    reason: "a redirect has its line of text for every method",
    what: /^(body|content-length|content-type)$/,
    status: /^30[18]$/,
    if: ({ line }) => !line.startsWith("GET ") && !line.startsWith("HEAD "),
  },

  // Types.
  { reason: "more types are known", what: "content-type", if: ({ caddy, onehop }) => caddy === undefined && onehop !== undefined && /^application\/(manifest\+)?json$/.test(onehop) },
];
