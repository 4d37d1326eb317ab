"""A TLS client that sends what a case tells it to: every message and every record is bytes in the case's hands.

It knows one suite and one group per version (AES-128-GCM, X25519), so that it stays small enough to read; ciphers, curve and
the names of alerts are tlslite-ng's. It never retries and never waits without a deadline.
"""

import hashlib
import hmac
import os
import socket
import struct
import time

from tlslite.constants import AlertDescription
from tlslite.utils.cipherfactory import createAESGCM
from tlslite.utils.x25519 import X25519_G, x25519

CCS, ALERT, HANDSHAKE, DATA, HEARTBEAT = 20, 21, 22, 23, 24
CLIENT_HELLO, SERVER_HELLO, NEW_TICKET, END_OF_EARLY_DATA = 1, 2, 4, 5
ENCRYPTED_EXTENSIONS, CERTIFICATE, SERVER_KEY_EXCHANGE, CERTIFICATE_REQUEST = 8, 11, 12, 13
SERVER_HELLO_DONE, CERTIFICATE_VERIFY, CLIENT_KEY_EXCHANGE, FINISHED, KEY_UPDATE = 14, 15, 16, 20, 24
SNI, MAX_FRAGMENT, GROUPS, POINT_FORMATS, SIGNATURES, ALPN = 0, 1, 10, 11, 13, 16
EMS, RECORD_LIMIT, TICKET, PSK, EARLY_DATA, VERSIONS = 23, 28, 35, 41, 42, 43
COOKIE, PSK_MODES, KEY_SHARE, RENEGOTIATION = 44, 45, 51, 0xFF01
X25519, P256 = 29, 23
# RFC 8446 section 4.1.3: the random of a HelloRetryRequest.
RETRY_RANDOM = hashlib.sha256(b"HelloRetryRequest").digest()
REPLY_SECONDS = 3.0


class Ended(Exception):
    """The server said no, or has gone, while the client waited for a message."""


def vector(width, data):
    """A length in `width` bytes, and the data."""
    return len(data).to_bytes(width, "big") + bytes(data)


def u16s(*numbers):
    return b"".join(struct.pack(">H", number) for number in numbers)


def message(kind, body):
    return bytes([kind]) + vector(3, body)


def record(kind, payload, version=0x0303):
    return bytes([kind]) + struct.pack(">HH", version, len(payload)) + payload


def server_name(*names, kind=0):
    return vector(2, b"".join(bytes([kind]) + vector(2, name) for name in names))


def alpn(*names):
    return vector(2, b"".join(vector(1, name) for name in names))


def key_share(*shares):
    return vector(2, b"".join(u16s(group) + vector(2, key) for group, key in shares))


class Hello:
    """A ClientHello, field by field; extensions keep their order and may be there twice."""

    def __init__(self, version, name=b"localhost"):
        self.legacy = 0x0303
        self.random = os.urandom(32)
        self.session = os.urandom(32)
        self.compression = b"\0"
        self.secret = os.urandom(32)
        self.public = bytes(x25519(bytearray(self.secret), bytearray(X25519_G)))
        self.trailing = b""
        self.extensions = [
            (SNI, server_name(name)),
            (GROUPS, vector(2, u16s(X25519))),
            (SIGNATURES, vector(2, u16s(0x0403, 0x0804, 0x0401))),
            (ALPN, alpn(b"http/1.1")),
        ]
        if version == 13:
            self.suites = u16s(0x1301)
            self.extensions += [
                (VERSIONS, vector(1, u16s(0x0304))),
                (PSK_MODES, vector(1, b"\1")),
                (KEY_SHARE, key_share((X25519, self.public))),
            ]
        else:
            self.suites = u16s(0xC02B, 0xC02F)
            self.extensions += [(POINT_FORMATS, vector(1, b"\0")), (EMS, b""), (RENEGOTIATION, b"\0"), (TICKET, b"")]

    def has(self, kind):
        return any(known == kind for known, _ in self.extensions)

    def put(self, kind, data):
        """Replaces an extension, or adds it at the end."""
        if self.has(kind):
            self.extensions = [(known, data if known == kind else old) for known, old in self.extensions]
        else:
            self.extensions.append((kind, data))
        return self

    def add(self, kind, data):
        self.extensions.append((kind, data))
        return self

    def drop(self, kind):
        self.extensions = [pair for pair in self.extensions if pair[0] != kind]
        return self

    def body(self):
        extensions = b"".join(u16s(kind) + vector(2, data) for kind, data in self.extensions)
        return self.head() + vector(2, extensions) + self.trailing

    def head(self):
        """All that comes before the extensions."""
        fixed = u16s(self.legacy) + self.random + vector(1, self.session)
        return fixed + vector(2, self.suites) + vector(1, self.compression)

    def message(self):
        return message(CLIENT_HELLO, self.body())


def hmac256(key, data):
    return hmac.new(key, data, hashlib.sha256).digest()


def expand(secret, label, context, length):
    """HKDF-Expand-Label (RFC 8446 section 7.1)."""
    info = u16s(length) + vector(1, b"tls13 " + label) + vector(1, context)
    out, block, count = b"", b"", 1
    while len(out) < length:
        block = hmac256(secret, block + info + bytes([count]))
        out, count = out + block, count + 1
    return out[:length]


def prf(secret, label, seed, length):
    """The pseudorandom function of RFC 5246 section 5."""
    out, step = b"", label + seed
    while len(out) < length:
        step = hmac256(secret, step)
        out += hmac256(secret, step + label + seed)
    return out[:length]


class Keys:
    """One direction's keys."""

    def __init__(self, key, iv):
        self.cipher = createAESGCM(bytearray(key), ["python"])
        self.iv = iv
        self.count = 0

    @classmethod
    def of(cls, secret):
        return cls(expand(secret, b"key", b"", 16), expand(secret, b"iv", b"", 12))

    def seal13(self, inner, version=0x0303):
        header = bytes([DATA]) + struct.pack(">HH", version, len(inner) + 16)
        return header + bytes(self.cipher.seal(bytearray(self._nonce()), bytearray(inner), bytearray(header)))

    def open13(self, header, payload):
        plain = self.cipher.open(bytearray(self._nonce()), bytearray(payload), bytearray(header))
        if plain is None:
            raise AssertionError("a record of the server cannot be decrypted")
        inner = bytes(plain).rstrip(b"\0")
        return inner[-1], inner[:-1]

    def seal12(self, kind, plain):
        explicit = struct.pack(">Q", self.count)
        known = explicit + bytes([kind, 3, 3]) + u16s(len(plain))
        self.count += 1
        sealed = self.cipher.seal(bytearray(self.iv + explicit), bytearray(plain), bytearray(known))
        return record(kind, explicit + bytes(sealed))

    def open12(self, kind, payload):
        known = struct.pack(">Q", self.count) + bytes([kind, 3, 3]) + u16s(len(payload) - 24)
        self.count += 1
        plain = self.cipher.open(bytearray(self.iv + payload[:8]), bytearray(payload[8:]), bytearray(known))
        if plain is None:
            raise AssertionError("a record of the server cannot be decrypted")
        return bytes(plain)

    def _nonce(self):
        count = struct.pack(">Q", self.count).rjust(12, b"\0")
        self.count += 1
        return bytes(a ^ b for a, b in zip(self.iv, count))


class Client:
    """A connection. `write` and `read` are the keys in force; without them records are plain."""

    def __init__(self, port, version=13):
        self.version = version
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=REPLY_SECONDS)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.transcript = b""
        self.write = self.read = None
        self.buffer = self.messages = b""
        # What the server said: its alerts, its data, and how the connection ended.
        self.fatal = None
        self.warnings = []
        self.plain = b""
        self.data = b""
        self.end = None
        self.tickets = []
        self.key_updates = 0
        self.requested = self.request_context = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    # Sending.

    def raw(self, data):
        """Bytes as they are. A server that has closed is not the sender's business: what it said is read later."""
        try:
            self.socket.sendall(data)
            return True
        except OSError:
            return False

    def fin(self):
        try:
            self.socket.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def sealed(self, kind, payload, padding=0):
        """The record for a payload under the keys in force, without sending it."""
        if self.write is None:
            return record(kind, payload)
        if self.version == 13:
            return self.write.seal13(payload + bytes([kind]) + bytes(padding))
        return self.write.seal12(kind, payload)

    def send(self, kind, payload, padding=0):
        return self.raw(self.sealed(kind, payload, padding))

    def handshake(self, kind, body):
        """A handshake message, which is a part of the transcript."""
        whole = message(kind, body)
        self.transcript += whole
        return self.send(HANDSHAKE, whole)

    def hello(self, hello, version=0x0301):
        self.sent = hello
        self.transcript += hello.message()
        return self.raw(record(HANDSHAKE, hello.message(), version))

    # Receiving.

    def _fill(self, length, deadline):
        while len(self.buffer) < length:
            self.socket.settimeout(max(0.001, deadline - time.monotonic()))
            try:
                more = self.socket.recv(65536)
            except TimeoutError:
                return False
            except OSError:
                self.end = "reset"
                return False
            if not more:
                self.end = "eof"
                return False
            self.buffer += more
        return True

    def next_record(self, seconds=REPLY_SECONDS):
        """The next record's type and content; `None` at the end, or where none comes in time."""
        deadline = time.monotonic() + seconds
        if not self._fill(5, deadline):
            return None
        if self.buffer[0] not in (CCS, ALERT, HANDSHAKE, DATA, HEARTBEAT):
            # No TLS: all there is, until the end.
            while self._fill(len(self.buffer) + 1, deadline):
                pass
            self.plain, self.buffer = self.buffer, b""
            return None
        header = self.buffer[:5]
        length = struct.unpack(">H", header[3:])[0]
        if not self._fill(5 + length, deadline):
            return None
        payload, self.buffer = self.buffer[5 : 5 + length], self.buffer[5 + length :]
        kind = header[0]
        if self.read and self.version == 13 and kind == DATA:
            kind, payload = self.read.open13(header, payload)
        elif self.read and self.version == 12:
            payload = self.read.open12(kind, payload)
        return kind, payload

    def take(self, seconds=REPLY_SECONDS):
        """Takes one record and files what it holds. False at the end."""
        got = self.next_record(seconds)
        if got is None:
            return False
        kind, payload = got
        if kind == ALERT:
            name = AlertDescription.toStr(payload[1])
            if payload[0] == 2:
                self.fatal = name
            else:
                self.warnings.append(name)
        elif kind == DATA:
            self.data += payload
        elif kind == HANDSHAKE:
            self.messages += payload
            self._after_handshake()
        elif kind == CCS and self.version == 12:
            self.read = self.pending_read
        return True

    def _after_handshake(self):
        """Tickets and key updates of TLS 1.3, once its handshake is over."""
        while getattr(self, "is_done", False) and self.version == 13 and len(self.messages) >= 4:
            length = int.from_bytes(self.messages[1:4], "big")
            if len(self.messages) < 4 + length:
                return
            kind, body = self.messages[0], self.messages[4 : 4 + length]
            self.messages = self.messages[4 + length :]
            if kind == NEW_TICKET:
                nonce = body[9 : 9 + body[8]]
                rest = body[9 + body[8] :]
                ticket = rest[2 : 2 + int.from_bytes(rest[:2], "big")]
                age_add = int.from_bytes(body[4:8], "big")
                self.tickets.append((ticket, expand(self.resumption, b"resumption", nonce, 32), age_add))
            elif kind == KEY_UPDATE:
                self.key_updates += 1
                self.server_secret = expand(self.server_secret, b"traffic upd", b"", 32)
                self.read = Keys.of(self.server_secret)

    def next_message(self, *wanted):
        """The next handshake message of the server."""
        while len(self.messages) < 4 or len(self.messages) < 4 + int.from_bytes(self.messages[1:4], "big"):
            if not self.take() or self.fatal:
                raise Ended()
        length = int.from_bytes(self.messages[1:4], "big")
        whole, self.messages = self.messages[: 4 + length], self.messages[4 + length :]
        if wanted and whole[0] not in wanted:
            raise AssertionError(f"the server sent handshake message {whole[0]}, not one of {wanted}")
        if not (self.version == 12 and whole[0] == 0):
            self.transcript += whole
        return whole[0], whole[4:]

    def finish_reading(self, seconds=REPLY_SECONDS):
        """Reads to the end of the connection, and says in a word what became of it."""
        deadline = time.monotonic() + seconds
        while self.end is None and self.take(max(0.001, deadline - time.monotonic())):
            pass
        return self.label()

    def label(self):
        if self.fatal:
            return f"alert {self.fatal}" + ("" if self.end else ", left open")
        if self.data.startswith(b"HTTP/1.1 200"):
            return "answered"
        if self.data:
            return f"data {self.data[:32]!r}"
        if self.plain.startswith(b"HTTP/1.1 400"):
            return "plain 400"
        if self.plain:
            return f"plain {self.plain[:32]!r}"
        return "closed" if self.end else "left open"

    def request(self, path="/hello.txt", name="localhost"):
        """A good request, and what became of it."""
        self.data = b""
        self.send(DATA, f"GET {path} HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n".encode())
        said = self.finish_reading()
        return said if said != "answered" or self.data.endswith(b"hello\n") else "a wrong body"

    # TLS 1.3.

    def hash(self):
        return hashlib.sha256(self.transcript).digest()

    def derive(self, secret, label, digest=None):
        return expand(secret, label, hashlib.sha256(b"").digest() if digest is None else digest, 32)

    def server_hello(self):
        """Reads a ServerHello: its extensions, and whether it is a HelloRetryRequest."""
        first = self.transcript
        _, body = self.next_message(SERVER_HELLO)
        self.server_random = body[2:34]
        rest = body[35 + body[34] :]
        self.suite = int.from_bytes(rest[:2], "big")
        self.answers = {}
        extensions = rest[5:]
        while extensions:
            kind, length = struct.unpack(">HH", extensions[:4])
            self.answers[kind] = extensions[4 : 4 + length]
            extensions = extensions[4 + length :]
        is_retry = self.server_random == RETRY_RANDOM
        if is_retry:
            # RFC 8446 section 4.4.1: the first ClientHello is replaced by its hash.
            self.transcript = message(254, hashlib.sha256(first).digest()) + self.transcript[len(first) :]
        return is_retry

    def handshake_keys(self, psk=bytes(32)):
        share = self.answers[KEY_SHARE][4:]
        shared = bytes(x25519(bytearray(self.sent.secret), bytearray(share)))
        early = hmac256(bytes(32), psk)
        self.secret = hmac256(self.derive(early, b"derived"), shared)
        self.client_secret = self.derive(self.secret, b"c hs traffic", self.hash())
        self.server_secret = self.derive(self.secret, b"s hs traffic", self.hash())
        self.write, self.read = Keys.of(self.client_secret), Keys.of(self.server_secret)

    def flight(self):
        """The server's messages up to its Finished, which is verified; then its data keys are in force."""
        kind = None
        while kind != FINISHED:
            before = self.hash()
            kind, body = self.next_message()
            if kind == CERTIFICATE_REQUEST:
                self.requested = body
                self.request_context = body[1 : 1 + body[0]]
        expected = hmac256(expand(self.server_secret, b"finished", b"", 32), before)
        if body != expected:
            raise AssertionError("the server's Finished is wrong")
        self.master = hmac256(self.derive(self.secret, b"derived"), bytes(32))
        self.server_secret = self.derive(self.master, b"s ap traffic", self.hash())
        self.next_secret = self.derive(self.master, b"c ap traffic", self.hash())
        self.read = Keys.of(self.server_secret)

    def verify_data(self):
        if self.version == 12:
            return prf(self.master, b"client finished", self.hash(), 12)
        return hmac256(expand(self.client_secret, b"finished", b"", 32), self.hash())

    def data_keys(self):
        """After the client's Finished."""
        self.resumption = self.derive(self.master, b"res master", self.hash())
        self.client_secret = self.next_secret
        self.write = Keys.of(self.client_secret)
        self.is_done = True
        self._after_handshake()

    def update_keys(self):
        self.client_secret = expand(self.client_secret, b"traffic upd", b"", 32)
        self.write = Keys.of(self.client_secret)

    # TLS 1.2.

    def flight12(self):
        """ServerHello to ServerHelloDone; makes the keys ready for `change12`."""
        self.server_hello()
        kind = None
        while kind != SERVER_HELLO_DONE:
            kind, body = self.next_message()
            if kind == SERVER_KEY_EXCHANGE:
                assert body[:3] == b"\x03\x00\x1d", "the server chose another curve"
                self.server_point = body[4 : 4 + body[3]]
            elif kind == CERTIFICATE_REQUEST:
                self.requested = body

    def key_exchange12(self):
        """Sends ClientKeyExchange and derives what is next."""
        self.handshake(CLIENT_KEY_EXCHANGE, vector(1, self.sent.public))
        self.keys12()

    def keys12(self):
        shared = bytes(x25519(bytearray(self.sent.secret), bytearray(self.server_point)))
        randoms = self.sent.random + self.server_random
        if EMS in self.answers:
            self.master = prf(shared, b"extended master secret", self.hash(), 48)
        else:
            self.master = prf(shared, b"master secret", randoms, 48)
        self.blocks12()

    def blocks12(self):
        block = prf(self.master, b"key expansion", self.server_random + self.sent.random, 40)
        self.pending_write = Keys(block[:16], block[32:36])
        self.pending_read = Keys(block[16:32], block[36:40])

    def change12(self):
        self.send(CCS, b"\1")
        self.write = self.pending_write

    def finish12(self):
        """Reads the server's ChangeCipherSpec and Finished."""
        kind = None
        while kind != FINISHED:
            kind, body = self.next_message()
            if kind == NEW_TICKET:
                self.tickets.append((body[6:], self.master, 0))
        self.is_done = True

    # Whole handshakes, to the point that a case is about.

    def to_flight(self, hello=None, record_version=0x0301):
        """Up to the end of the server's first flight."""
        self.hello(hello or Hello(self.version), record_version)
        if self.version == 12:
            self.flight12()
        else:
            if self.server_hello():
                raise AssertionError("the server asked for another ClientHello")
            self.handshake_keys()
            self.flight()
        return self

    def to_done(self, hello=None, record_version=0x0301):
        """A whole handshake."""
        self.to_flight(hello, record_version)
        if self.version == 12:
            self.key_exchange12()
            self.change12()
            self.handshake(FINISHED, self.verify_data())
            self.finish12()
        else:
            self.handshake(FINISHED, self.verify_data())
            self.data_keys()
        return self
