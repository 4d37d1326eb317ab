"""Real clients: each gets a small file and one of 20 MiB, byte by byte. What is not installed is skipped, with the reason."""

import hashlib
import json
import os
import re
import shutil
import signal
import ssl
import subprocess
import urllib.request
from pathlib import Path

from cases import case

HERE = Path(__file__).parent
CLIENT_SECONDS = 20
SUITES13 = ("TLS_AES_256_GCM_SHA384", "TLS_AES_128_GCM_SHA256", "TLS_CHACHA20_POLY1305_SHA256")
SUITES12 = ("AES256-GCM-SHA384", "AES128-GCM-SHA256", "CHACHA20-POLY1305")
GO = {}


class Skipped(Exception):
    """The client is not here."""


def prepare(folder, chosen):
    """Compiles the Go program beside the other cases."""
    if not any(name.startswith("go-") for name in chosen) or not shutil.which("go"):
        return
    GO["program"] = Path(folder) / "go-clients"
    GO["build"] = subprocess.Popen(["go", "build", "-o", str(GO["program"]), str(HERE / "clients.go")], cwd=folder,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True)


def finish():
    """Ends the compiler, where it is still on its way."""
    build = GO.get("build")
    if build and build.poll() is None:
        os.killpg(build.pid, signal.SIGKILL)
        build.wait(5)


def command(*words, data=b""):
    if not shutil.which(words[0]):
        raise Skipped(f"{words[0]} is not installed")
    done = subprocess.run([str(word) for word in words], input=data, capture_output=True, timeout=CLIENT_SECONDS)
    return done.returncode, done.stdout, done.stderr.decode(errors="replace")


def large_digest(server):
    return hashlib.sha256((server.folder / "root" / "large.bin").read_bytes()).hexdigest()


def url(server, site, path):
    return f"https://localhost:{server.ports[site]}/{path}"


# curl

def curl(server, site, path, *options):
    code, body, said = command("curl", "--silent", "--show-error", "--fail", "--cacert", server.folder / "ca.pem", *options,
                               url(server, site, path))
    assert code == 0, said
    return body


def check_curl(server, site, *options):
    assert curl(server, site, "hello.txt", *options) == b"hello\n"
    assert hashlib.sha256(curl(server, site, "large.bin", *options)).hexdigest() == large_digest(server), "a wrong body"


def curl_case(name, site, *options):
    def run(server):
        check_curl(server, site, *options)
        return "works"

    case(name)(run)


for kind in ("ec", "rsa"):
    curl_case(f"curl-tls12-{kind}", kind, "--tls-max", "1.2")
    curl_case(f"curl-tls13-{kind}", kind, "--tlsv1.3")


@case("curl-client-certificate")
def curl_certificate(server):
    for name in ("client", "client-rsa"):
        for version in (("--tls-max", "1.2"), ("--tlsv1.3",)):
            check_curl(server, "mutual", *version, "--cert", server.folder / f"{name}.pem",
                       "--key", server.folder / f"{name}.key")
    return "works"


# openssl

def s_client(server, site, *options, path="hello.txt"):
    request = f"GET /{path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()
    words = ["openssl", "s_client", "-connect", f"127.0.0.1:{server.ports[site]}", "-servername", "localhost", "-CAfile",
             server.folder / "ca.pem", "-verify_return_error", "-ign_eof", *options]
    code, out, said = command(*words, data=request)
    return code, out, said


def check_openssl(server, site, *options, large=False):
    code, out, said = s_client(server, site, *options)
    assert code == 0 and b"HTTP/1.1 200" in out and b"\r\n\r\nhello\n" in out, f"{options}: {said[-300:]}"
    if large:
        code, body, said = s_client(server, site, *options, "-quiet", path="large.bin")
        found = hashlib.sha256(body.split(b"\r\n\r\n", 1)[-1]).hexdigest()
        assert code == 0 and found == large_digest(server), f"{options}: a wrong body of {len(body)} bytes; {said[-300:]}"
    return out.decode(errors="replace")


def openssl_case(name, *runs, large=False):
    def run(server):
        for site, *options in runs:
            check_openssl(server, site, *options, large=large)
        return "works"

    case(name)(run)


openssl_case("openssl-tls12", ("ec", "-tls1_2"), ("rsa", "-tls1_2"), large=True)
openssl_case("openssl-tls13", ("ec", "-tls1_3"), ("rsa", "-tls1_3"), large=True)
for group, name in {"p256": "P-256", "p384": "P-384", "x25519": "X25519"}.items():
    # In TLS 1.2 the list says which curves a certificate may have, too (RFC 8422 section 5.1): RSA, then.
    openssl_case(f"openssl-{group}", ("rsa", "-tls1_2", "-groups", name), ("ec", "-tls1_3", "-groups", name), large=True)
openssl_case("openssl-both-keys", ("both", "-tls1_3"), ("both", "-tls1_2"),
             ("both", "-tls1_3", "-sigalgs", "rsa_pss_rsae_sha256"), ("both", "-tls1_2", "-cipher", "ECDHE-RSA-AES128-GCM-SHA256"), large=True)
openssl_case("openssl-both-keys-x25519", ("both", "-tls1_2", "-groups", "X25519"))
openssl_case("openssl-retry", ("ec", "-tls1_3", "-groups", "P-521:P-256"), large=True)
openssl_case("openssl-rsa-only", ("rsa", "-tls1_3", "-sigalgs", "rsa_pss_rsae_sha256"),
             ("rsa", "-tls1_2", "-sigalgs", "RSA+SHA256"), ("rsa", "-tls1_2", "-cipher", "ECDHE-RSA-AES128-GCM-SHA256"),
             large=True)
openssl_case("openssl-suites", *(("ec", "-tls1_3", "-ciphersuites", suite) for suite in SUITES13),
             *(("ec", "-tls1_2", "-cipher", f"ECDHE-ECDSA-{suite}") for suite in SUITES12),
             *(("rsa", "-tls1_2", "-cipher", f"ECDHE-RSA-{suite}") for suite in SUITES12))


@case("openssl-rsa-only-at-ec")
def rsa_only_at_ec(server):
    for options in (("-tls1_3", "-sigalgs", "rsa_pss_rsae_sha256"), ("-tls1_2", "-cipher", "ECDHE-RSA-AES128-GCM-SHA256")):
        code, out, said = s_client(server, "ec", *options)
        if code == 0 or b"HTTP/" in out or "handshake failure" not in said:
            return f"{options}: {code}, {said[-200:]}"
    return "works"


def openssl_resumed(name, version):
    def run(server):
        session = server.folder / f"{name}.session"
        for site in ("ec", "rsa"):
            first = check_openssl(server, site, version, "-sess_out", session)
            again = check_openssl(server, site, version, "-sess_in", session, large=True)
            if not re.search("^New, ", first, re.M) or not re.search("^Reused, ", again, re.M):
                return "not resumed"
        return "works"

    case(name)(run)


openssl_resumed("openssl-tls12-resumed", "-tls1_2")
openssl_resumed("openssl-tls13-resumed", "-tls1_3")


# Python

def python_case(name, version):
    def run(server):
        context = ssl.create_default_context(cafile=str(server.folder / "ca.pem"))
        context.minimum_version = context.maximum_version = version
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
        for site in ("ec", "rsa"):
            with opener.open(url(server, site, "hello.txt"), timeout=CLIENT_SECONDS) as answer:
                assert answer.status == 200 and answer.read() == b"hello\n"
            with opener.open(url(server, site, "large.bin"), timeout=CLIENT_SECONDS) as answer:
                assert hashlib.sha256(answer.read()).hexdigest() == large_digest(server), "a wrong body"
        return "works"

    case(name)(run)


python_case("python-tls12", ssl.TLSVersion.TLSv1_2)
python_case("python-tls13", ssl.TLSVersion.TLSv1_3)


# Programs that say in a line of JSON what came of it.

def told(server, name, *program):
    environment = [f"ec={server.ports['ec']}", f"rsa={server.ports['rsa']}", f"ca={server.folder / 'ca.pem'}",
                   f"digest={large_digest(server)}", f"certificate={server.folder / 'ec.pem'}"]
    code, out, said = command(*program, name, *environment)
    try:
        result = json.loads(out.splitlines()[-1])
    except (IndexError, ValueError):
        return f"exit code {code}: {said[-300:]}"
    if "skipped" in result:
        raise Skipped(result["skipped"])
    return ("works", result["detail"]) if result["ok"] else f"failed: {result['detail']}"


def node_case(name):
    case(name)(lambda server: told(server, name, "node", HERE / "clients.mjs"))


def go_case(name):
    def run(server):
        if "build" not in GO:
            raise Skipped("go is not installed")
        _, said = GO["build"].communicate(timeout=CLIENT_SECONDS) if GO["build"].stderr else (None, "")
        GO["build"].stderr = None
        assert GO["build"].returncode == 0, said
        return told(server, name, GO["program"])

    case(name)(run)


for name in ("node-keep-alive", "node-tls12", "node-resumed", "node-large", "chromium"):
    node_case(name)
for name in ("go-default", "go-tls12", "go-classic", "go-resumed", "go-large"):
    go_case(name)
