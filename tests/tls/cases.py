"""The table of cases: their names in the code, and what cases.md expects of them."""

import re
from pathlib import Path

from client import Client, Ended, Hello

CASES = {}


def case(name):
    """Registers `function(server)`, which gives the outcome as cases.md words it."""

    def register(function):
        assert name not in CASES, name
        CASES[name] = function
        return function

    return register


def attempt(server, version, steps, port="ec"):
    """The outcome of a connection on which `steps` are done; they may say it themselves, with a detail in a pair."""
    with Client(server.ports[port], version) as client:
        try:
            said = steps(client)
        except Ended:
            said = None
        return said if isinstance(said, (str, tuple)) else client.finish_reading()


def with_hello(server, version, change, port="ec", record_version=0x0301):
    """The outcome of a handshake and a request with a ClientHello that `change` has changed."""

    def steps(client):
        hello = Hello(version)
        change(hello)
        client.to_done(hello, record_version)
        return client.request()

    return attempt(server, version, steps, port)


def table_rows(width):
    """The rows of cases.md that have so many cells, by case."""
    rows = {}
    for line in Path(__file__).with_name("cases.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("| ") and len(cells) == width and cells[0] != "case" and not cells[0].startswith("---"):
            assert cells[0] not in rows, f"{cells[0]} stands in cases.md twice"
            rows[cells[0]] = cells
    return rows


def expectations():
    """Each case's expected outcomes and its section, in the order of cases.md."""
    return {name: (cells[2], cells[3]) for name, cells in table_rows(4).items()}


def differences():
    """The outcomes that are known to differ."""
    return {name: cells[1] for name, cells in table_rows(3).items()}


def is_expected(outcome, expected):
    for part in expected.split(" or "):
        if part == outcome:
            return True
        is_alert = re.fullmatch(r"alert \w+", outcome)
        if part == "refused" and (outcome == "closed" or is_alert):
            return True
        if part.startswith("alert ") and is_alert and outcome[6:] in part[6:].split(", "):
            return True
    return False
