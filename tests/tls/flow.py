"""Cases about the handshake after the ClientHello: messages out of order, twice, cut, or never."""

import client as tls
from cases import attempt, case
from client import ALERT, CCS, DATA, HANDSHAKE, Hello, Keys, key_share, message, record, u16s, vector

REQUEST = b"GET /hello.txt HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


def after_flight(name, version, port="ec"):
    """A case that begins when the server's first flight has been read."""

    def register(steps):
        case(name)(lambda server: attempt(server, version, lambda client: steps(client.to_flight()), port))
        return steps

    return register


def sends(name, version, action, port="ec"):
    """The same in one expression, whose value is no outcome."""

    def steps(client):
        action(client.to_flight())

    case(name)(lambda server: attempt(server, version, steps, port))


def key_exchange(client):
    return message(tls.CLIENT_KEY_EXCHANGE, vector(1, client.sent.public))


def finished(client):
    return message(tls.FINISHED, client.verify_data())


# Cut.

sends("13-fin-before-finished", 13, lambda client: client.fin())
sends("12-fin-before-key-exchange", 12, lambda client: client.fin())


@after_flight("13-finished-cut", 13)
def finished_cut(client):
    whole = client.sealed(HANDSHAKE, finished(client))
    client.raw(whole[: len(whole) // 2])
    client.fin()


# Oversized.

sends("13-finished-2-24", 13, lambda client: client.send(HANDSHAKE, b"\x14\xff\xff\xff" + bytes(32)))


@after_flight("13-certificate-2-24", 13, "mutual")
def certificate_of_16_mib(client):
    client.send(HANDSHAKE, b"\x0b\xff\xff\xff\0\xff\xff\xf0" + bytes(8000))
    for _ in range(64):
        # Encrypting in Python is slow: what follows need not be decryptable to be too much.
        if not client.raw(record(DATA, bytes(16384))):
            return


# Points of TLS 1.2.

for name, point in {"zero": vector(1, bytes(32)), "short": vector(1, b"\7" * 31), "empty": b""}.items():
    sends(f"12-point-{name}", 12,
          lambda client, point=point: client.send(HANDSHAKE, message(tls.CLIENT_KEY_EXCHANGE, point)))


# Twice.

sends("13-hello-twice-after-hello", 13, lambda client: client.raw(record(HANDSHAKE, Hello(13).message())))
sends("12-hello-twice-after-hello", 12, lambda client: client.raw(record(HANDSHAKE, Hello(12).message())))
sends("12-key-exchange-twice", 12, lambda client: client.send(HANDSHAKE, key_exchange(client) * 2))


@after_flight("12-ccs-twice", 12)
def ccs_twice(client):
    client.key_exchange12()
    client.send(CCS, b"\1")
    client.send(CCS, b"\1")


@case("12-finished-twice")
def finished_twice(server):
    def steps(client):
        client.to_done()
        client.send(HANDSHAKE, finished(client))

    return attempt(server, 12, steps)


@case("13-finished-twice")
def finished_twice13(server):
    def steps(client):
        client.to_flight()
        again = finished(client)
        client.handshake(tls.FINISHED, client.verify_data())
        client.data_keys()
        client.send(HANDSHAKE, again)

    return attempt(server, 13, steps)


@after_flight("13-finished-twice-old-keys", 13)
def finished_twice_old_keys(client):
    client.send(HANDSHAKE, finished(client))
    client.send(HANDSHAKE, finished(client))


# Out of order.

sends("13-finished-before-certificate", 13, lambda client: client.send(HANDSHAKE, finished(client)), "mutual")
sends("13-verify-before-certificate", 13,
      lambda client: client.send(HANDSHAKE, message(tls.CERTIFICATE_VERIFY, u16s(0x0403) + vector(2, bytes(70)))), "mutual")
sends("13-certificate-unasked", 13,
      lambda client: client.send(HANDSHAKE, message(tls.CERTIFICATE, b"\0" + vector(3, b""))))
sends("12-certificate-unasked", 12, lambda client: client.send(HANDSHAKE, message(tls.CERTIFICATE, vector(3, b""))))
sends("12-certificate-after-key-exchange", 12,
      lambda client: client.send(HANDSHAKE, key_exchange(client) + message(tls.CERTIFICATE, vector(3, b""))), "mutual")
sends("12-finished-before-key-exchange", 12, lambda client: client.send(HANDSHAKE, message(tls.FINISHED, bytes(12))))


@after_flight("12-finished-without-ccs", 12)
def finished_without_ccs(client):
    client.key_exchange12()
    client.send(HANDSHAKE, finished(client))


sends("12-ccs-before-key-exchange", 12, lambda client: client.send(CCS, b"\1"))


@case("12-ccs-before-hello-done")
def ccs_early(server):
    def steps(client):
        client.sent = hello = Hello(12)
        client.transcript = hello.message()
        client.raw(record(HANDSHAKE, hello.message()) + record(CCS, b"\1"))
        client.flight12()
        client.key_exchange12()
        client.change12()
        client.handshake(tls.FINISHED, client.verify_data())
        client.finish12()
        return client.request()

    return attempt(server, 12, steps)


def with_hello_record(name, version, following):
    """A record that comes in one write with the ClientHello. The client then reads, and sends nothing more."""

    def steps(client):
        client.sent = hello = Hello(version)
        client.transcript = hello.message()
        client.raw(record(HANDSHAKE, hello.message()) + following)
        if version == 12:
            client.flight12()
        else:
            client.server_hello()
            client.handshake_keys()
            client.flight()

    case(name)(lambda server: attempt(server, version, steps))


with_hello_record("12-ccs-with-hello", 12, record(CCS, b"\1"))
with_hello_record("13-finished-with-hello", 13, record(HANDSHAKE, message(tls.FINISHED, bytes(32))))
sends("12-data-before-finished", 12, lambda client: client.send(DATA, REQUEST))


@after_flight("12-data-after-ccs", 12)
def data_after_ccs(client):
    client.key_exchange12()
    client.change12()
    client.send(DATA, REQUEST)


sends("12-key-update", 12, lambda client: client.send(HANDSHAKE, message(tls.KEY_UPDATE, b"\1")))
sends("13-data-before-finished", 13, lambda client: client.send(DATA, REQUEST))
sends("13-plain-data-before-finished", 13, lambda client: client.raw(record(DATA, REQUEST)))
sends("13-key-update-before-finished", 13, lambda client: client.send(HANDSHAKE, message(tls.KEY_UPDATE, b"\0")))
sends("13-end-of-early-data-unasked", 13, lambda client: client.send(HANDSHAKE, message(tls.END_OF_EARLY_DATA, b"")))


@after_flight("13-interleaved-data", 13)
def interleaved_data(client):
    whole = finished(client)
    client.send(HANDSHAKE, whole[:10])
    client.send(DATA, b"GET")
    client.send(HANDSHAKE, whole[10:])


@after_flight("13-interleaved-alert", 13)
def interleaved_alert(client):
    whole = finished(client)
    client.send(HANDSHAKE, whole[:10])
    client.send(ALERT, b"\1\x5a")
    client.handshake(tls.FINISHED, client.verify_data())
    client.data_keys()
    return client.request()


@after_flight("12-interleaved-data", 12)
def interleaved_data12(client):
    whole = key_exchange(client)
    client.send(HANDSHAKE, whole[:10])
    client.send(DATA, b"GET")
    client.send(HANDSHAKE, whole[10:])


# HelloRetryRequest.

def retried(name, second, needs_done=False):
    """A ClientHello without shares, the server's request for one, and the second ClientHello as `second` changes it."""

    def steps(client):
        hello = Hello(13)
        good = key_share((tls.X25519, hello.public))
        client.hello(hello.put(tls.KEY_SHARE, key_share()))
        if not client.server_hello():
            return "no HelloRetryRequest"
        hello.put(tls.KEY_SHARE, good)
        second(hello)
        client.hello(hello, 0x0303)
        client.server_hello()
        client.handshake_keys()
        client.flight()
        client.handshake(tls.FINISHED, client.verify_data())
        client.data_keys()
        return client.request()

    case(name)(lambda server: attempt(server, 13, steps))


retried("13-retry-good", lambda hello: None)
retried("13-retry-without-share", lambda hello: hello.put(tls.KEY_SHARE, key_share()))
retried("13-retry-other-group", lambda hello: hello.put(tls.GROUPS, vector(2, u16s(23)))
        .put(tls.KEY_SHARE, key_share((23, b"\4" + b"\7" * 64))))
retried("13-retry-early-data", lambda hello: hello.put(tls.EARLY_DATA, b""))


# ChangeCipherSpec in TLS 1.3.

def with_ccs(name, action):
    def steps(client):
        client.to_flight()
        action(client)
        client.handshake(tls.FINISHED, client.verify_data())
        client.data_keys()
        return client.request()

    case(name)(lambda server: attempt(server, 13, steps))


with_ccs("13-ccs-good", lambda client: client.raw(record(CCS, b"\1")))
with_ccs("13-ccs-value-2", lambda client: client.raw(record(CCS, b"\2")))
with_ccs("13-ccs-two-bytes", lambda client: client.raw(record(CCS, b"\1\1")))
with_ccs("13-ccs-encrypted", lambda client: client.send(CCS, b"\1"))
with_ccs("13-ccs-flood", lambda client: client.raw(record(CCS, b"\1") * 100))


# Finished.

@after_flight("13-wrong-finished", 13)
def wrong_finished(client):
    client.send(HANDSHAKE, message(tls.FINISHED, bytes(32)))


@after_flight("13-short-finished", 13)
def short_finished(client):
    client.send(HANDSHAKE, message(tls.FINISHED, client.verify_data()[:12]))


def finished12(name, change):
    def steps(client):
        client.to_flight()
        client.key_exchange12()
        client.change12()
        client.raw(change(client))

    case(name)(lambda server: attempt(server, 12, steps))


def broken(sealed):
    """The same record with a wrong tag."""
    return sealed[:-1] + bytes([sealed[-1] ^ 1])


finished12("12-wrong-finished", lambda client: client.sealed(HANDSHAKE, message(tls.FINISHED, bytes(12))))
finished12("12-long-finished",
           lambda client: client.sealed(HANDSHAKE, message(tls.FINISHED, client.verify_data() + b"\0")))
finished12("12-bad-tag-finished", lambda client: broken(client.sealed(HANDSHAKE, finished(client))))
sends("13-bad-tag-finished", 13, lambda client: client.raw(broken(client.sealed(HANDSHAKE, finished(client)))))
sends("13-plain-finished", 13, lambda client: client.raw(record(HANDSHAKE, finished(client))))
sends("13-plain-alert-in-handshake", 13, lambda client: client.raw(record(ALERT, b"\2\x33")))


# One byte at a time.

def one_by_one(name, version):
    def steps(client):
        whole = client.raw
        client.raw = lambda data: all([whole(data[at : at + 1]) for at in range(len(data))])
        client.to_done()
        return client.request()

    case(name)(lambda server: attempt(server, version, steps))


def records_of_one_byte(name, version):
    def steps(client):
        whole = client.send

        def send(kind, payload, padding=0):
            if kind == CCS:
                return whole(kind, payload)
            return all([whole(kind, payload[at : at + 1], padding) for at in range(len(payload))])

        client.send = send
        client.sent = hello = Hello(version)
        client.transcript = hello.message()
        send(HANDSHAKE, hello.message())
        # From here on as usual: the ClientHello has been sent.
        client.hello = lambda *_: None
        client.to_done(hello)
        return client.request()

    case(name)(lambda server: attempt(server, version, steps))


for number in (12, 13):
    one_by_one(f"{number}-bytes-one-by-one", number)
    records_of_one_byte(f"{number}-records-of-one-byte", number)


# Resumption.

def first_visit(server, version, change=lambda hello: None):
    """A ticket with its key."""
    with tls.Client(server.ports["ec"], version) as client:
        hello = Hello(version)
        change(hello)
        client.to_done(hello)
        said = client.request()
        assert said == "answered" and client.tickets, f"no ticket: {said}"
        return client.tickets[0]


def offer(hello, ticket, change=lambda binders: binders, early=False):
    """Adds a ticket with its binder. `change` gets the list of binders; gives the early secret."""
    name, psk, age_add = ticket
    if early:
        hello.put(tls.EARLY_DATA, b"")
    identities = vector(2, vector(2, name) + ((age_add + 10) % 2**32).to_bytes(4, "big"))
    hello.put(tls.PSK, identities + vector(2, vector(1, bytes(32))))
    secret = tls.hmac256(bytes(32), psk)
    nothing = tls.hashlib.sha256(b"").digest()
    key = tls.expand(tls.expand(secret, b"res binder", nothing, 32), b"finished", b"", 32)
    binder = tls.hmac256(key, tls.hashlib.sha256(hello.message()[:-35]).digest())
    hello.put(tls.PSK, identities + vector(2, b"".join(vector(1, each) for each in change([binder]))))
    return secret


def resumed(name, change=lambda binders: binders, alter=lambda hello: hello, known=True, port="ec", early=None):
    def run(server):
        ticket = first_visit(server, 13)
        if not known:
            ticket = (bytes(len(ticket[0])), *ticket[1:])

        def steps(client):
            hello = Hello(13)
            secret = offer(hello, ticket, change, early is not None)
            alter(hello)
            client.hello(hello)
            if early:
                early(client, tls.expand(secret, b"c e traffic", client.hash(), 32))
            client.server_hello()
            is_resumed = tls.PSK in client.answers
            client.handshake_keys(ticket[1] if is_resumed else bytes(32))
            client.flight()
            client.handshake(tls.FINISHED, client.verify_data())
            client.data_keys()
            said = client.request()
            if said != "answered" or early:
                return said
            return "answered resumed" if is_resumed else "answered in full"

        return attempt(server, 13, steps, port)

    case(name)(run)


def before_last(hello):
    hello.extensions.insert(-1, hello.extensions.pop())
    hello.add(0x1234, b"")


def no_identities(hello):
    hello.put(tls.PSK, vector(2, b"") + vector(2, b""))


def early_request(client, secret):
    client.raw(Keys.of(secret).seal13(REQUEST + bytes([DATA])))


def early_flood(client, _):
    for _ in range(512):
        if not client.raw(record(DATA, bytes(16384))):
            return


resumed("13-resumed")
resumed("13-psk-wrong-binder", lambda binders: [bytes(32)])
resumed("13-psk-unknown", known=False)
resumed("13-psk-not-last", alter=before_last)
resumed("13-psk-without-modes", alter=lambda hello: hello.drop(tls.PSK_MODES))
resumed("13-psk-no-binders", lambda binders: [])
resumed("13-psk-two-binders", lambda binders: binders * 2)
resumed("13-psk-no-identities", alter=no_identities)
resumed("13-psk-short-binder", lambda binders: [binders[0][:31]])
resumed("13-ticket-at-mutual", port="mutual")
resumed("13-early-data-skipped", early=early_request)
resumed("13-early-data-flood", early=early_flood)


@case("13-psk-plain-mode-only")
def plain_mode(server):
    ticket = first_visit(server, 13)

    def steps(client):
        hello = Hello(13).put(tls.PSK_MODES, vector(1, b"\0"))
        offer(hello, ticket)
        client.hello(hello)
        client.server_hello()
        if tls.PSK in client.answers:
            return "resumed"
        client.handshake_keys()
        client.flight()
        client.handshake(tls.FINISHED, client.verify_data())
        client.data_keys()
        said = client.request()
        return "answered in full" if said == "answered" else said

    return attempt(server, 13, steps)


@case("13-early-data-without-psk")
def early_data_without_psk(server):
    def steps(client):
        client.hello(Hello(13).put(tls.EARLY_DATA, b""))
        client.raw(record(DATA, bytes(100)))
        client.server_hello()
        client.handshake_keys()
        client.flight()
        client.handshake(tls.FINISHED, client.verify_data())
        client.data_keys()
        return client.request()

    return attempt(server, 13, steps)


def resumed12(name, first=lambda hello: None, second=lambda hello: None, known=True):
    def run(server):
        ticket, master, _ = first_visit(server, 12, first)

        def steps(client):
            hello = Hello(12).put(tls.TICKET, ticket if known else bytes(len(ticket)))
            second(hello)
            client.hello(hello)
            before = client.transcript
            client.server_hello()
            # After ServerHello comes either a certificate, or the end of an abbreviated handshake.
            while len(client.messages) < 4 and client.read is None:
                client.master = master
                client.blocks12()
                if not client.take() or client.fatal:
                    return None
            if client.messages[:1] == bytes([tls.CERTIFICATE]):
                kind = None
                while kind != tls.SERVER_HELLO_DONE:
                    kind, body = client.next_message()
                    if kind == tls.SERVER_KEY_EXCHANGE:
                        client.server_point = body[4 : 4 + body[3]]
                client.key_exchange12()
                client.change12()
                client.handshake(tls.FINISHED, client.verify_data())
                client.finish12()
                word = "in full"
            else:
                assert client.transcript.startswith(before)
                client.finish12()
                client.change12()
                client.handshake(tls.FINISHED, client.verify_data())
                word = "resumed"
            said = client.request()
            return f"answered {word}" if said == "answered" else said

        return attempt(server, 12, steps)

    case(name)(run)


resumed12("12-resumed")
resumed12("12-ticket-unknown", known=False)
resumed12("12-resumed-without-ems", second=lambda hello: hello.drop(tls.EMS))
resumed12("12-resumed-with-ems", first=lambda hello: hello.drop(tls.EMS))
