"""Cases about a connection whose handshake is over: records, messages, floods, and ends."""

import struct
import time

import client as tls
from cases import attempt, case
from client import ALERT, CCS, DATA, HANDSHAKE, Hello, message, record, vector
from flow import REQUEST, broken

HALF = b"GET /hello.txt HTTP/1.1\r\nHost: local"
POST = b"POST /upstream HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n" + bytes(500)
KEY_UPDATES = 10_000
FLOOD = 1_000


def done(name, version):
    """A case that begins when the handshake is over. The steps may give the outcome."""

    def register(steps):
        def run(server):
            return attempt(server, version, lambda client: steps(client.to_done()))

        case(name)(run)
        return steps

    return register


def sends(name, version, action):
    """The same in one expression, whose value is no outcome."""

    def steps(client):
        action(client)

    done(name, version)(steps)


# Cut.

@done("13-data-record-cut", 13)
def data_record_cut(client):
    whole = client.sealed(DATA, REQUEST)
    client.raw(whole[: len(whole) // 2])
    client.fin()


@done("13-fin-in-request", 13)
def fin_in_request(client):
    client.send(DATA, HALF)
    client.fin()


def body_cut(name, version, action):
    def run(server):
        upstream = server.upstream
        with tls.Client(server.ports["ec"], version) as client:
            client.to_done()
            whole, cut = len(upstream.whole), len(upstream.cut)
            client.send(DATA, POST)
            action(client)
            said = client.finish_reading()
        if len(upstream.whole) > whole:
            return f"passed on as a whole body, and {said}"
        if said == "answered" or said.endswith("left open"):
            return said
        return "not passed on", f"{said}, {len(upstream.cut) - cut} cut at the upstream"

    case(name)(run)


body_cut("13-close-notify-in-body", 13, lambda client: client.send(ALERT, b"\1\0"))
body_cut("12-close-notify-in-body", 12, lambda client: client.send(ALERT, b"\1\0"))
body_cut("13-fin-in-body", 13, lambda client: client.fin())


@done("13-data-after-close-notify", 13)
def data_after_close(client):
    client.send(ALERT, b"\1\0")
    client.send(DATA, REQUEST)


def at_once(name, version, *payloads):
    """Finished and what follows it in one write."""

    def steps(client):
        client.to_flight()
        if version == 12:
            client.key_exchange12()
            client.change12()
        whole = client.sealed(HANDSHAKE, message(tls.FINISHED, client.verify_data()))
        client.transcript += message(tls.FINISHED, client.verify_data())
        if version == 13:
            client.data_keys()
        else:
            client.is_done = True
        client.raw(whole + b"".join(client.sealed(kind, payload) for kind, payload in payloads))
        return client.finish_reading()

    case(name)(lambda server: attempt(server, version, steps))


at_once("13-finished-and-request", 13, (DATA, REQUEST))
at_once("12-finished-and-request", 12, (DATA, REQUEST))
at_once("13-request-and-close-notify", 13, (DATA, REQUEST), (ALERT, b"\1\0"))


# Oversized.

sends("13-record-garbage-16641", 13, lambda client: client.raw(record(DATA, bytes(2**14 + 257))))
sends("13-record-sealed-16641", 13, lambda client: client.send(DATA, bytes(2**14 + 240)))
for version in (12, 13):
    sends(f"{version}-record-18433", version, lambda client: client.raw(record(DATA, bytes(2**14 + 2049))))
sends("12-plaintext-16385", 12, lambda client: client.send(DATA, bytes(2**14 + 1)))


@done("13-padding-longest", 13)
def longest_padding(client):
    client.send(DATA, REQUEST, 2**14 - len(REQUEST))
    return client.finish_reading()


# Records.

for version in (12, 13):
    sends(f"{version}-type-99-after", version, lambda client: client.raw(record(99, bytes(40))))
    sends(f"{version}-too-short-to-open", version, lambda client: client.raw(record(DATA, bytes(5))))
    sends(f"{version}-bad-tag-data", version, lambda client: client.raw(broken(client.sealed(DATA, REQUEST))))
    sends(f"{version}-replayed-record", version, lambda client: client.raw(client.sealed(DATA, HALF) * 2))
    sends(f"{version}-empty-alert", version, lambda client: client.send(ALERT, b""))
    sends(f"{version}-heartbeat", version, lambda client: client.send(tls.HEARTBEAT, b"\1\x40\0abc"))
    sends(f"{version}-fatal-alert", version, lambda client: client.send(ALERT, b"\2\x28"))
sends("13-alert-one-byte", 13, lambda client: client.send(ALERT, b"\2"))
sends("13-alert-three-bytes", 13, lambda client: client.send(ALERT, b"\2\x28\0"))
sends("13-alert-level-3", 13, lambda client: client.send(ALERT, b"\3\x28"))
sends("13-zeros-only", 13, lambda client: client.raw(client.write.seal13(bytes(20))))
sends("13-header-changed", 13, lambda client: client.raw(
    (lambda sealed: sealed[:1] + b"\3\1" + sealed[3:])(client.sealed(DATA, REQUEST))))
sends("13-plain-alert-after", 13, lambda client: client.raw(record(ALERT, b"\2\x28")))


@done("13-plain-close-after", 13)
def plain_close(client):
    client.send(DATA, HALF)
    client.raw(record(ALERT, b"\1\0"))


def empty_records(name, version, kind, count):
    def steps(client):
        for _ in range(count):
            client.send(kind, b"")
        return client.request()

    done(name, version)(steps)


empty_records("13-empty-data", 13, DATA, 30)
empty_records("13-empty-data-flood", 13, DATA, FLOOD)
empty_records("12-empty-data-flood", 12, DATA, FLOOD)
empty_records("13-empty-handshake", 13, HANDSHAKE, 1)
empty_records("12-empty-handshake", 12, HANDSHAKE, 1)
empty_records("12-empty-handshake-flood", 12, HANDSHAKE, FLOOD)


def closes_with_notify(name, version):
    def steps(client):
        said = client.request()
        if said == "answered" and client.warnings == ["close_notify"] and client.end == "eof":
            return "close_notify"
        return f"{said}, {client.warnings}, {client.end}"

    done(name, version)(steps)


closes_with_notify("12-closes-with-notify", 12)
closes_with_notify("13-closes-with-notify", 13)


# Messages.

sends("13-ccs-after-finished", 13, lambda client: client.raw(record(CCS, b"\1")))
sends("13-hello-after-finished", 13, lambda client: client.send(HANDSHAKE, Hello(13).message()))
sends("13-unknown-message", 13, lambda client: client.send(HANDSHAKE, message(99, b"hello")))
sends("13-message-hash", 13, lambda client: client.send(HANDSHAKE, message(254, bytes(32))))
sends("13-ticket-from-client", 13, lambda client: client.send(
    HANDSHAKE, message(tls.NEW_TICKET, struct.pack(">II", 100, 0) + vector(1, b"1") + vector(2, b"ticket") + vector(2, b""))))
sends("13-certificate-after", 13, lambda client: client.send(HANDSHAKE, message(tls.CERTIFICATE, b"\0" + vector(3, b""))))
for version in (12, 13):
    sends(f"{version}-hello-request", version, lambda client: client.send(HANDSHAKE, message(0, b"")))


@done("13-key-update", 13)
def key_update(client):
    client.send(HANDSHAKE, message(tls.KEY_UPDATE, b"\1"))
    client.update_keys()
    said = client.request()
    return f"{said} after {client.key_updates} key update" if said == "answered" else said


sends("13-key-update-value-2", 13, lambda client: client.send(HANDSHAKE, message(tls.KEY_UPDATE, b"\2")))
sends("13-key-update-empty", 13, lambda client: client.send(HANDSHAKE, message(tls.KEY_UPDATE, b"")))
sends("13-key-update-not-last", 13, lambda client: client.send(HANDSHAKE, message(tls.KEY_UPDATE, b"\0") * 2))


@done("13-key-update-old-keys", 13)
def key_update_old_keys(client):
    client.send(HANDSHAKE, message(tls.KEY_UPDATE, b"\0"))
    client.send(DATA, REQUEST)


@done("13-key-update-flood", 13)
def key_update_flood(client):
    sent, deadline = 0, time.monotonic() + 15
    while sent < KEY_UPDATES and time.monotonic() < deadline:
        if not client.send(HANDSHAKE, message(tls.KEY_UPDATE, b"\1")):
            break
        client.update_keys()
        sent += 1
    said = client.finish_reading()
    if said == "left open" and client.key_updates <= sent:
        return "bounded", f"{client.key_updates} for {sent}"
    return said, f"{client.key_updates} key updates came back, {sent} were sent"


# Floods.

@done("12-renegotiation", 12)
def renegotiation(client):
    client.send(HANDSHAKE, Hello(12).message())
    if not client.take() or client.warnings != ["no_renegotiation"]:
        return None
    said = client.request()
    return f"{said} after no_renegotiation" if said == "answered" else said


def flood(name, version, kind, payload):
    def steps(client):
        for _ in range(FLOOD):
            if not client.send(kind, payload):
                return None
        return client.request()

    done(name, version)(steps)


flood("12-renegotiation-flood", 12, HANDSHAKE, Hello(12).message())
flood("12-warning-flood", 12, ALERT, b"\1\x5a")
flood("13-user-canceled-flood", 13, ALERT, b"\1\x5a")
sends("13-warning", 13, lambda client: client.send(ALERT, b"\1\x70"))
