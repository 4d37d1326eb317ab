"""Cases about the first message: cut, too long, malformed, contradictory, or about things that nobody should want."""

import os

import client as tls
from cases import attempt, case, with_hello
from client import HANDSHAKE, Client, Hello, alpn, key_share, message, record, server_name, u16s, vector


def hello_case(name, change, version=13, port="ec", record_version=0x0301):
    case(name)(lambda server: with_hello(server, version, change, port, record_version))


def raw_case(name, data, fin=False, port="ec"):
    """Bytes as they are in place of a ClientHello."""

    def steps(client):
        client.raw(data() if callable(data) else data)
        if fin:
            client.fin()

    case(name)(lambda server: attempt(server, 13, steps, port))


def body_case(name, change):
    """A ClientHello whose body is changed as bytes."""
    raw_case(name, lambda: record(HANDSHAKE, message(1, change(Hello(13)))))


def hello_record(version=13):
    return record(HANDSHAKE, Hello(version).message())


# Truncated.

raw_case("any-no-bytes", b"", fin=True)
raw_case("any-record-header-only", b"\x16\x03\x01\x02\x00", fin=True)
raw_case("any-record-half", lambda: hello_record()[:100], fin=True)


def cut_everywhere(version):
    def run(server):
        whole = hello_record(version)
        for length in range(1, len(whole)):
            with Client(server.ports["ec"]) as client:
                client.raw(whole[:length])
                client.fin()
                said = client.finish_reading()
            if said != "closed" and not said.startswith("alert ") or said.endswith("left open"):
                return f"after {length} bytes: {said}"
        return "closed"

    return run


case("any-hello-cut")(cut_everywhere(13))
case("any-hello12-cut")(cut_everywhere(12))


@case("any-half-then-silence")
def half_then_silence(server):
    with Client(server.ports["ec"]) as client:
        client.raw(hello_record()[:100])
        return client.finish_reading(13)


# Oversized.

for length in (16385, 18433, 65535):
    raw_case(f"any-plain-record-{length}", record(HANDSHAKE, message(1, bytes(length - 4))))


@case("any-message-2-24")
def message_of_16_mib(server):
    def steps(client):
        piece = record(HANDSHAKE, bytes(16384))
        client.raw(record(HANDSHAKE, b"\1\xff\xff\xff\3\3" + bytes(1000)))
        before = server.resident_kib()
        sent = 0
        while sent < 1100 and client.raw(piece):
            sent += 1
        if server.resident_kib() > before + 8192:
            return f"the server keeps {server.resident_kib() - before} KiB"
        return None

    return attempt(server, 13, steps)


def in_records(whole):
    return b"".join(record(HANDSHAKE, whole[at : at + 16384]) for at in range(0, len(whole), 16384))


def long_hello(client, hello):
    client.sent = hello
    client.transcript = hello.message()
    client.raw(in_records(hello.message()))
    client.server_hello()
    client.handshake_keys()
    client.flight()
    client.handshake(tls.FINISHED, client.verify_data())
    client.data_keys()
    return client.request()


@case("any-hello-over-bound")
def hello_over_bound(server):
    hello = Hello(13).add(21, bytes(65000))
    hello.suites += u16s(0x5A5A) * 32000
    return attempt(server, 13, lambda client: long_hello(client, hello))


case("any-hello-60000")(
    lambda server: attempt(server, 13, lambda client: long_hello(client, Hello(13).add(21, bytes(60000)))))


# Lengths and contents.

def extensions_of(hello):
    return b"".join(u16s(kind) + vector(2, data) for kind, data in hello.extensions)


body_case("any-extension-past-end",
          lambda hello: hello.head() + vector(2, extensions_of(hello) + u16s(0x1234, 100) + b"short"))
body_case("any-extensions-past-end",
          lambda hello: hello.head() + u16s(len(extensions_of(hello)) + 50) + extensions_of(hello))
body_case("any-extensions-trailing", lambda hello: hello.body() + b"\0")
hello_case("any-inner-past-end", lambda hello: hello.put(tls.GROUPS, u16s(400, 29)))
hello_case("any-inner-trailing", lambda hello: hello.put(tls.GROUPS, vector(2, u16s(29)) + b"\0"))
hello_case("any-groups-odd", lambda hello: hello.put(tls.GROUPS, vector(2, b"\0\x1d\0")))
hello_case("any-session-id-33", lambda hello: setattr(hello, "session", bytes(33)))
body_case("any-session-id-255", lambda hello: u16s(0x0303) + hello.random + b"\xff")
body_case("any-suites-65535",
          lambda hello: u16s(0x0303) + hello.random + b"\0" + u16s(0xFFFF, 0x1301) + b"\1\0" + vector(2, b""))
hello_case("any-suites-none", lambda hello: setattr(hello, "suites", b""))
hello_case("any-compression-none", lambda hello: setattr(hello, "compression", b""))
for version in (12, 13):
    hello_case(f"{version}-compression-deflate", lambda hello: setattr(hello, "compression", b"\1\0"), version)
    hello_case(f"{version}-compression-deflate-only", lambda hello: setattr(hello, "compression", b"\1"), version)
raw_case("any-hello-empty", record(HANDSHAKE, message(1, b"")))
raw_case("any-hello-zeros", record(HANDSHAKE, message(1, bytes(300))))
hello_case("13-signatures-empty", lambda hello: hello.put(tls.SIGNATURES, vector(2, b"")))
hello_case("13-versions-empty", lambda hello: hello.put(tls.VERSIONS, vector(1, b"")))
hello_case("13-share-short", lambda hello: hello.put(tls.KEY_SHARE, key_share((29, bytes(hello.public[:31])))))
hello_case("13-share-zero", lambda hello: hello.put(tls.KEY_SHARE, key_share((29, bytes(32)))))
hello_case("13-share-not-on-curve", lambda hello: hello.put(tls.GROUPS, vector(2, u16s(23)))
           .put(tls.KEY_SHARE, key_share((23, b"\4" + b"\7" * 64))))
hello_case("13-share-empty", lambda hello: hello.put(tls.KEY_SHARE, key_share((29, b""))))
hello_case("12-points-compressed-only", lambda hello: hello.put(tls.POINT_FORMATS, vector(1, b"\1\2")), 12)
hello_case("12-renegotiation-info-full", lambda hello: hello.put(tls.RENEGOTIATION, vector(1, bytes(12))), 12)
hello_case("12-renegotiation-info-none", lambda hello: hello.drop(tls.RENEGOTIATION), 12)
hello_case("12-no-extended-master-secret", lambda hello: hello.drop(tls.EMS), 12)
hello_case("12-no-signature-algorithms", lambda hello: hello.drop(tls.SIGNATURES), 12)
hello_case("12-no-groups", lambda hello: hello.drop(tls.GROUPS), 12)
hello_case("12-max-fragment-invalid", lambda hello: hello.put(tls.MAX_FRAGMENT, b"\x09"), 12)
hello_case("13-record-limit-63", lambda hello: hello.put(tls.RECORD_LIMIT, u16s(63)))
hello_case("13-record-limit-512", lambda hello: hello.put(tls.RECORD_LIMIT, u16s(512)))


def grease(hello):
    hello.suites = u16s(0x0A0A) + hello.suites
    hello.extensions = [(0x2A2A, b"")] + hello.extensions
    hello.put(tls.GROUPS, vector(2, u16s(0x1A1A, 29)))
    hello.put(tls.KEY_SHARE, key_share((0x1A1A, b"\0"), (29, hello.public)))
    hello.put(tls.VERSIONS, vector(1, u16s(0x3A3A, 0x0304)))
    hello.put(tls.ALPN, alpn(b"\x4a\x4a", b"http/1.1"))
    hello.put(tls.SIGNATURES, vector(2, u16s(0x5A5A, 0x0403)))
    hello.put(tls.PSK_MODES, vector(1, b"\x6a\1"))
    hello.add(0xFAFA, b"\0")


hello_case("13-grease", grease)


# Duplicated.

hello_case("13-extension-twice", lambda hello: hello.add(tls.GROUPS, vector(2, u16s(29))))
hello_case("12-extension-twice", lambda hello: hello.add(tls.EMS, b""), 12)
hello_case("13-unknown-extension-twice", lambda hello: hello.add(0x1234, b"").add(0x1234, b""))
hello_case("13-share-group-twice",
           lambda hello: hello.put(tls.KEY_SHARE, key_share((29, hello.public), (29, hello.public))))
for version in (12, 13):
    raw_case(f"{version}-hello-twice-one-record",
             lambda version=version: record(HANDSHAKE, Hello(version).message() * 2))


# Versions, suites, groups.

# Version 0.2, suites of 21 bytes, no session id, a challenge of 16 bytes.
raw_case("any-sslv2-hello", b"\x80\x2e\x01\x00\x02\x00\x15\x00\x00\x00\x10"
         + b"\1\0\x80\2\0\x80\3\0\x80\4\0\x80\5\0\x80\6\0\x40\7\0\xc0" + os.urandom(16))


def old_hello(version):
    hello = Hello(12)
    hello.legacy = version
    hello.suites = u16s(0xC009, 0xC013, 0x002F, 0x000A, 0x0005)
    if version == 0x0300:
        return record(HANDSHAKE, message(1, hello.head()), version)
    hello.drop(tls.SIGNATURES)
    return record(HANDSHAKE, hello.message(), version)


raw_case("any-sslv3-only", lambda: old_hello(0x0300))
raw_case("any-tls10-only", lambda: old_hello(0x0301))
raw_case("any-tls11-only", lambda: old_hello(0x0302))
hello_case("13-versions-old-only", lambda hello: hello.put(tls.VERSIONS, vector(1, u16s(0x0302, 0x0301))))
hello_case("13-versions-unknown-only", lambda hello: hello.put(tls.VERSIONS, vector(1, u16s(0x7A7A))))
for legacy in (0x0300, 0x0301, 0x0304):
    hello_case(f"13-legacy-version-{legacy:04x}", lambda hello, legacy=legacy: setattr(hello, "legacy", legacy))
for number in (0x0301, 0x0302, 0x0303, 0x0304, 0x0200):
    hello_case(f"13-record-version-{number:04x}", lambda hello: None, record_version=number)
hello_case("12-to-new-only", lambda hello: None, 12, "new")


@case("12-downgrade-sentinel")
def downgrade_sentinel(server):
    def steps(client):
        client.to_done()
        said = client.request()
        return "marked" if said == "answered" and client.server_random[24:] == b"DOWNGRD\1" else f"{said}, no mark"

    return attempt(server, 12, steps)


for name, suites in {
    "null": (0x0001, 0x0002, 0x003B, 0xC006, 0xC010),
    "export": (0x0003, 0x0006, 0x0008, 0x0014, 0x0062),
    "rc4": (0x0004, 0x0005, 0xC007, 0xC011),
    "cbc": (0xC009, 0xC00A, 0xC013, 0xC014, 0xC023, 0xC024, 0xC027, 0xC028),
    "anonymous": (0x0018, 0x0034, 0x00A6, 0xC018, 0xC019),
    "static-rsa": (0x009C, 0x009D, 0x003C, 0x002F),
}.items():
    hello_case(f"12-{name}-only", lambda hello, suites=suites: setattr(hello, "suites", u16s(*suites)), 12,
               "rsa" if name == "static-rsa" else "ec")
hello_case("12-fallback-scsv", lambda hello: setattr(hello, "suites", hello.suites + u16s(0x5600)), 12)
hello_case("13-suites-of-12-only", lambda hello: setattr(hello, "suites", u16s(0xC02B, 0xC02F)))
hello_case("13-suites-unknown-only", lambda hello: setattr(hello, "suites", u16s(0x13FE, 0x0A0A)))
hello_case("13-groups-unknown-only", lambda hello: hello.put(tls.GROUPS, vector(2, u16s(0x7F7F)))
           .put(tls.KEY_SHARE, key_share((0x7F7F, bytes(32)))))
hello_case("13-signatures-none-fits", lambda hello: hello.put(tls.SIGNATURES, vector(2, u16s(0x0808))))
hello_case("13-no-signatures", lambda hello: hello.drop(tls.SIGNATURES))
hello_case("13-share-without-groups", lambda hello: hello.drop(tls.GROUPS))
hello_case("13-groups-without-share", lambda hello: hello.drop(tls.KEY_SHARE))


@case("13-share-not-in-groups")
def share_not_in_groups(server):
    def steps(client):
        client.hello(Hello(13).put(tls.GROUPS, vector(2, u16s(24))))
        return "HelloRetryRequest" if client.server_hello() else "the share was taken"

    return attempt(server, 13, steps)


# Names and protocols.

def sni_case(name, value):
    hello_case(f"13-sni-{name}", lambda hello: hello.put(tls.SNI, value))


hello_case("13-sni-none", lambda hello: hello.drop(tls.SNI))
sni_case("unknown", server_name(b"nobody.example"))
sni_case("empty-name", server_name(b""))
sni_case("empty-list", server_name())
sni_case("nul", server_name(b"localhost\0.example"))
sni_case("ip", server_name(b"127.0.0.1"))
sni_case("300", server_name(b"a" * 60 + (b"." + b"b" * 59) * 4))
sni_case("two-names", server_name(b"localhost", b"nobody.example"))
sni_case("other-kind", server_name(b"localhost", kind=7))
sni_case("upper-case", server_name(b"LOCALHOST"))
sni_case("dot", server_name(b"localhost."))


def alpn_case(name, value, version=13):
    hello_case(f"{version}-alpn-{name}", lambda hello: hello.put(tls.ALPN, value), version)


hello_case("13-alpn-none", lambda hello: hello.drop(tls.ALPN))
alpn_case("h2-only", alpn(b"h2"))
alpn_case("h2-only", alpn(b"h2"), 12)
alpn_case("empty-list", alpn())
alpn_case("empty-name", alpn(b"", b"http/1.1"))
alpn_case("second-fits", alpn(b"h2", b"http/1.1"))
alpn_case("challenge", alpn(b"acme-tls/1"))


# Records before a ClientHello.

raw_case("any-finished-first", record(HANDSHAKE, message(tls.FINISHED, bytes(32))))
raw_case("any-empty-handshake", lambda: record(HANDSHAKE, b"") + hello_record())
raw_case("any-ccs-first", lambda: record(tls.CCS, b"\1") + hello_record())
raw_case("any-alert-first", record(tls.ALERT, b"\2\x28"))
raw_case("any-data-first", record(tls.DATA, b"GET / HTTP/1.1\r\n\r\n"))
raw_case("any-heartbeat-first", record(tls.HEARTBEAT, b"\1\x40\0"))
raw_case("any-type-99-first", record(99, b"hello"))
raw_case("any-plain-http", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
raw_case("any-type-99-second",
         lambda: record(HANDSHAKE, Hello(13).message()[:100]) + record(99, b"hello"))
raw_case("13-hello-not-last", lambda: record(HANDSHAKE, Hello(13).message() + b"\x18\0\0"))
