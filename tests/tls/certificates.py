"""Cases about the certificates of clients, at the site with `client_auth`."""

import hashlib
import ssl

import ecdsa

import client as tls
from cases import attempt, case
from client import CERTIFICATE, CERTIFICATE_VERIFY, FINISHED, HANDSHAKE, message, u16s, vector

ECDSA_SHA256 = 0x0403


def der(server, name):
    return ssl.PEM_cert_to_DER_cert((server.folder / f"{name}.pem").read_text())


def entries13(*certificates):
    return vector(3, b"".join(vector(3, each) + vector(2, b"") for each in certificates))


def sign(server, name, data):
    key = ecdsa.SigningKey.from_pem((server.folder / f"{name}.key").read_text())
    return key.sign_deterministic(data, hashfunc=hashlib.sha256, sigencode=ecdsa.util.sigencode_der)


def visit13(name, chain, signer="client", context=None, over=b"client", scheme=ECDSA_SHA256, false=False):
    """Sends what `chain` gives as the certificate's entries, and a signature by `signer` where there is one."""

    def run(server):
        def steps(client):
            client.to_flight()
            sent = client.request_context if context is None else context
            client.handshake(CERTIFICATE, vector(1, sent) + chain(server))
            if signer:
                # RFC 8446 section 4.4.3.
                text = b" " * 64 + b"TLS 1.3, " + over + b" CertificateVerify\0"
                text += bytes(32) if false else client.hash()
                client.handshake(CERTIFICATE_VERIFY, u16s(scheme) + vector(2, sign(server, signer, text)))
            client.handshake(FINISHED, client.verify_data())
            client.data_keys()
            return client.request()

        return attempt(server, 13, steps, "mutual")

    case(f"13-{name}")(run)


def visit12(name, who, false=False, verifies=True):
    def run(server):
        def steps(client):
            client.to_flight()
            chain = vector(3, der(server, who)) if who else b""
            client.handshake(CERTIFICATE, vector(3, chain))
            client.key_exchange12()
            if who and verifies:
                # RFC 5246 section 7.4.8.
                text = bytes(100) if false else client.transcript
                client.handshake(CERTIFICATE_VERIFY, u16s(ECDSA_SHA256) + vector(2, sign(server, who, text)))
            client.change12()
            client.handshake(FINISHED, client.verify_data())
            client.finish12()
            return client.request()

        return attempt(server, 12, steps, "mutual")

    case(f"12-{name}")(run)


def of(name):
    return lambda server: entries13(der(server, name))


visit13("client-certificate", of("client"))
visit12("client-certificate", "client")
visit13("client-none", lambda server: entries13(), signer=None)
visit12("client-none", None)
visit13("client-other-authority", of("stranger"), "stranger")
visit12("client-other-authority", "stranger")
visit13("client-expired", of("expired"), "expired")
visit12("client-expired", "expired")
visit13("client-of-server", of("server-only"), "server-only")
visit13("client-garbage", lambda server: entries13(b"no certificate at all"))
visit13("client-empty-entry", lambda server: entries13(b""))
visit13("client-context", of("client"), context=b"abc")
visit13("client-wrong-signature", of("client"), false=True)
visit12("client-wrong-signature", "client", false=True)
visit13("client-signature-of-server", of("client"), over=b"server")
visit13("client-weak-signature", of("client"), scheme=0x0203)
visit13("no-certificate-verify", of("client"), signer=None)
visit12("no-certificate-verify", "client", verifies=False)
