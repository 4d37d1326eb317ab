"""The program under test, its certificates and what stands behind it; all in a temporary folder."""

import http.server
import os
import socket
import ssl
import subprocess
import threading
import time
from pathlib import Path

LARGE_BYTES = 20 * 1024 * 1024
START_SECONDS = 15
SITE = """https://localhost:{port} {{
	bind 127.0.0.1
	tls {certificate}{options}
	root {root}
	handle /upstream {{
		reverse_proxy 127.0.0.1:{upstream}
	}}
	file_server
}}
"""


def openssl(*words, folder, text=None):
    made = subprocess.run(["openssl", *words], cwd=folder, input=text, capture_output=True, text=True, timeout=30)
    if made.returncode != 0:
        raise RuntimeError(f"openssl {' '.join(words)}: {made.stderr}")


def make_authority(folder, name):
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "90",
            "-keyout", f"{name}.key", "-out", f"{name}.pem", "-subj", f"/CN={name}",
            "-addext", "keyUsage=critical,keyCertSign,cRLSign", folder=folder)


def make_leaf(folder, name, authority, kind, usage, dates=("-days", "90")):
    """A key and a certificate; `dates` may be in the past."""
    if kind == "rsa":
        openssl("genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", f"{name}.key", folder=folder)
    else:
        openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", f"{name}.key", folder=folder)
    openssl("req", "-new", "-key", f"{name}.key", "-subj", f"/CN={name}", "-out", f"{name}.csr", folder=folder)
    Path(folder, f"{name}.ext").write_text(
        "basicConstraints=critical,CA:FALSE\nkeyUsage=critical,digitalSignature\n"
        f"extendedKeyUsage={usage}\nsubjectAltName=DNS:localhost,IP:127.0.0.1\n")
    Path(folder, f"{name}.ca").mkdir()
    Path(folder, f"{name}.ca", "index").write_text("")
    Path(folder, f"{name}.ca", "conf").write_text(
        f"[ca]\ndefault_ca=d\n[d]\ndatabase={name}.ca/index\nnew_certs_dir={name}.ca\nrand_serial=yes\n"
        "default_md=sha256\npolicy=p\nunique_subject=no\n[p]\ncommonName=supplied\n")
    openssl("ca", "-batch", "-notext", "-config", f"{name}.ca/conf", "-cert", f"{authority}.pem", "-keyfile",
            f"{authority}.key", "-in", f"{name}.csr", "-out", f"{name}.pem", "-extfile", f"{name}.ext", *dates,
            folder=folder)


def make_certificates(folder):
    for name in ("ca", "other-ca"):
        make_authority(folder, name)
    make_leaf(folder, "ec", "ca", "ec", "serverAuth")
    make_leaf(folder, "rsa", "ca", "rsa", "serverAuth")
    make_leaf(folder, "client", "ca", "ec", "clientAuth")
    make_leaf(folder, "client-rsa", "ca", "rsa", "clientAuth")
    make_leaf(folder, "stranger", "other-ca", "ec", "clientAuth")
    make_leaf(folder, "server-only", "ca", "ec", "serverAuth")
    make_leaf(folder, "expired", "ca", "ec", "clientAuth",
              ("-startdate", "20200101000000Z", "-enddate", "20200401000000Z"))


class Upstream:
    """An HTTP server that counts the bodies that came whole, and those that were cut."""

    def __init__(self):
        self.whole = []
        self.cut = []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            timeout = 10

            def do_POST(self):
                length = int(self.headers.get("content-length", 0))
                body = self.rfile.read(length)
                (outer.whole if len(body) == length else outer.cut).append(len(body))
                self.send_response(200)
                self.send_header("content-length", "6")
                self.end_headers()
                self.wfile.write(b"hello\n")

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.handle_error = lambda *_: None
        self.port = self.server.server_port
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


class Onehop:
    """A running server. Its sites: `ec` and `rsa` with both versions, `new` with TLS 1.3 only, `mutual` with
    client_auth, `both` with both keys."""

    def __init__(self, program, folder):
        self.folder = Path(folder)
        make_certificates(self.folder)
        root = self.folder / "root"
        root.mkdir()
        (root / "hello.txt").write_text("hello\n")
        (root / "index.html").write_text("<!doctype html><title>hello</title><p>hello\n")
        (root / "large.bin").write_bytes(os.urandom(LARGE_BYTES))
        pairs = self.folder / "pairs"
        pairs.mkdir()
        for name in ("ec", "rsa"):
            text = (self.folder / f"{name}.pem").read_text() + (self.folder / f"{name}.key").read_text()
            (pairs / f"{name}.pem").write_text(text)
        self.upstream = Upstream()
        self.context = ssl.create_default_context(cafile=str(self.folder / "ca.pem"))
        for _ in range(3):
            if self._start(program):
                return
        raise RuntimeError(f"onehop did not start:\n{self.said()}")

    def _start(self, program):
        self.ports = free_ports("ec", "rsa", "new", "mutual", "both")
        ca = self.folder / "ca.pem"
        options = {
            "both": f"{{\n\t\tload {self.folder / 'pairs'}\n\t}}",
            "new": " {\n\t\tprotocols tls1.3\n\t}",
            "mutual": f" {{\n\t\tclient_auth {{\n\t\t\tmode require_and_verify\n\t\t\ttrust_pool file {ca}\n\t\t}}\n\t}}",
        }
        text = "{\n\tadmin off\n\tauto_https disable_redirects\n}\n"
        for name, port in self.ports.items():
            key = "rsa" if name == "rsa" else "ec"
            certificate = "" if name == "both" else f"{self.folder / key}.pem {self.folder / key}.key"
            text += SITE.format(port=port, certificate=certificate, options=options.get(name, ""),
                                root=self.folder / "root", upstream=self.upstream.port)
        (self.folder / "Onehopfile").write_text(text)
        self.log = self.folder / "stderr"
        home = {"HOME": str(self.folder), "XDG_DATA_HOME": str(self.folder), "XDG_CONFIG_HOME": str(self.folder)}
        with self.log.open("wb") as log:
            self.process = subprocess.Popen([program, "run", "Onehopfile"], cwd=self.folder, stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=log, env={**os.environ, **home})
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self.process.poll() is None:
            if " ready " in self.said():
                return True
            # The next look; the state is polled, with a deadline.
            time.sleep(0.02)
        self.stop()
        return False

    def said(self):
        return self.log.read_text(errors="replace")

    def trouble(self):
        """What is wrong with the server, or nothing."""
        if self.process.poll() is not None:
            return f"onehop ended with {self.process.returncode}"
        for line in self.said().splitlines():
            if "panicked" in line or "abort" in line:
                return f"onehop said: {line}"
        try:
            for port in (self.ports["ec"], self.ports["rsa"]):
                self.good_request(port)
        except (OSError, AssertionError) as error:
            return f"a good request afterwards: {error!r}"
        return None

    def good_request(self, port):
        with socket.create_connection(("127.0.0.1", port), timeout=5) as plain:
            with self.context.wrap_socket(plain, server_hostname="localhost") as tls:
                tls.sendall(b"GET /hello.txt HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                answer = b""
                while more := tls.recv(65536):
                    answer += more
        assert answer.startswith(b"HTTP/1.1 200") and answer.endswith(b"hello\n"), answer[:80]

    def resident_kib(self):
        """The server's memory, where the system tells it."""
        try:
            lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        except OSError:
            return 0
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))

    def stop(self):
        """Ends exactly the process that was started."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(10)


def free_ports(*names):
    sockets = {name: socket.socket() for name in names}
    for each in sockets.values():
        each.bind(("127.0.0.1", 0))
    ports = {name: each.getsockname()[1] for name, each in sockets.items()}
    for each in sockets.values():
        each.close()
    return ports
