#!/usr/bin/env python3
"""Runs the packed app in a container of podman until it is told to end.

    PORT=8080 python3 container.py host         on the host's network
    PORT=8080 python3 container.py published    with a published port

The image is made at the first start and kept: `onehop-static pack --oci`, with the Node.js of this machine. Its tag names what
it was made of. `podman rmi --force $(podman images --quiet localhost/onehop-spa)` removes all of them.

Engines leave a container to the first process of the machine. Here it stays below this process, so that whoever measures
this process counts the container, too. What waits is a shell, which is smaller than Python.
"""

import ctypes
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
PACKED = ["pack.Onehopfile", "api", "dist"]
IMAGE = "localhost/onehop-spa"
# Debian's crun refuses some layouts of control groups that runc takes; some machines bound descriptors tightly.
ENGINE = ["--runtime", "runc", "--ulimit", "nofile=20000:20000", "--ulimit", "nproc=20000:20000"]
PR_SET_CHILD_SUBREAPER = 36  # prctl(2)

# Ends the container, and removes the tables of the packet filter that podman made for a published port: they would slow
# every later connection on this machine.
WAIT = """
name=$1 network=$2 before=$3
end() {
    podman rm --force --time 4 "$name" >/dev/null 2>&1
    test "$network" = host || nft list tables | while read -r _ table; do
        case "$before" in *"|$table|"*) ;; *) nft delete table $table ;; esac
    done
    exit 0
}
trap end TERM INT
while :; do sleep 3600 & wait $!; done
"""


def podman(*words):
    """Runs podman and gives its output; what it complains of goes to whoever started this program."""
    return subprocess.run(["podman", *words], check=True, stdout=subprocess.PIPE, text=True).stdout


def tables():
    """The packet filter's tables: `|ip nat|ip filter|`."""
    listed = subprocess.run(["nft", "list", "tables"], check=True, stdout=subprocess.PIPE, text=True).stdout
    return "|".join(["", *(line.removeprefix("table ") for line in listed.splitlines()), ""])


def image(program):
    """The image of the app as it is now; made where it is not there."""
    digest = hashlib.sha256(Path(program).read_bytes())
    for part in PACKED:
        place = FOLDER / part
        for file in [place] if place.is_file() else sorted(path for path in place.rglob("*") if path.is_file()):
            digest.update(str(file.relative_to(FOLDER)).encode() + b"\0" + file.read_bytes())
    name = f"{IMAGE}:{digest.hexdigest()[:16]}"
    if subprocess.run(["podman", "image", "exists", name], check=False).returncode != 0:
        with tempfile.TemporaryDirectory() as work:
            tar = os.path.join(work, "image.tar")
            words = [program, "pack", str(FOLDER / "pack.Onehopfile"), "--runtime", "node", "--oci", tar, "--tag", name]
            subprocess.run(words, check=True, cwd=work, stdout=subprocess.DEVNULL)
            podman("load", "--quiet", "--input", tar)
    return name


def main():
    """Starts the container, and becomes the shell that waits for the end."""
    network, port = sys.argv[1], int(os.environ["PORT"])
    program = os.environ.get("ONEHOP_STATIC") or shutil.which("onehop-static")
    if not program:
        sys.exit("onehop-static is not in PATH: it is the onehop that needs no libraries, as `cargo xtask dist` builds it")
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        sys.exit("the kernel refuses prctl(PR_SET_CHILD_SUBREAPER)")
    made = image(program)
    before = "" if network == "host" else tables()
    name = f"onehop-spa-{port}"
    cores = ",".join(str(core) for core in sorted(os.sched_getaffinity(0)))
    words = ["run", "--detach", "--rm", "--name", name, "--read-only", "--cpuset-cpus", cores, *ENGINE]
    if network == "host":
        words += ["--network", "host", made, "--listen", f"127.0.0.1:{port}"]
    else:
        words += ["--publish", f"127.0.0.1:{port}:8080", made]
    podman(*words)
    os.execvp("sh", ["sh", "-c", WAIT, "sh", name, network, before])


if __name__ == "__main__":
    main()
