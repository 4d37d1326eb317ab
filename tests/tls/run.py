"""Runs the TLS cases of cases.md against a onehop: `run.py --onehop PATH [--only NAME] [--json FILE]`.

See README.md. The exit code is 1 where a case failed.
"""

import argparse
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

sys.dont_write_bytecode = True
try:
    import tlslite  # noqa: F401
except ImportError:
    sys.exit("tlslite-ng is not there: python3 -m venv VENV && VENV/bin/pip install tlslite-ng, then VENV/bin/python run.py")

import afterwards  # noqa: E402, F401
import certificates  # noqa: E402, F401
import flow  # noqa: E402, F401
import hellos  # noqa: E402, F401
import interop  # noqa: E402
from cases import CASES, differences, expectations, is_expected  # noqa: E402
from server import Onehop  # noqa: E402

CASE_SECONDS = 25




def out_of_time(*_):
    raise TimeoutError(f"the case took more than {CASE_SECONDS} seconds")


def run_case(server, name, difference, expected, section):
    begun = time.monotonic()
    signal.alarm(CASE_SECONDS)
    try:
        outcome = CASES[name](server)
    except interop.Skipped as reason:
        outcome = f"skipped: {reason}"
    except Exception as error:  # A case that breaks has failed; the others go on.
        outcome = f"{type(error).__name__}: {error}"
    finally:
        signal.alarm(0)
    detail = ""
    if isinstance(outcome, tuple):
        outcome, detail = outcome
    if outcome.startswith("skipped"):
        state = "skipped"
    elif is_expected(outcome, expected):
        state = "failed" if difference else "passed"
        outcome += ", which no longer differs: take it out of the last table" if difference else ""
    else:
        state = "differs" if outcome == difference else "failed"
    trouble = server.trouble()
    if trouble:
        state, outcome = "failed", f"{outcome}; then {trouble}"
    return {"case": name, "state": state, "outcome": outcome, "detail": detail, "expected": expected, "section": section,
            "seconds": round(time.monotonic() - begun, 3)}


def main():
    parser = argparse.ArgumentParser(description="TLS cases against onehop")
    parser.add_argument("--onehop", required=True, help="the program")
    parser.add_argument("--only", help="only cases with this in their names")
    parser.add_argument("--json", help="a file for the results")
    options = parser.parse_args()
    program = shutil.which(os.path.abspath(options.onehop))
    if program is None:
        parser.error(f"{options.onehop} is no program")
    rows = expectations()
    if rows.keys() != CASES.keys():
        sys.exit(f"cases.md and the code differ in {sorted(rows.keys() ^ CASES.keys())}")
    known = differences()
    if not known.keys() <= rows.keys():
        sys.exit(f"cases.md has differences without a case: {sorted(known.keys() - rows.keys())}")
    chosen = [name for name in rows if not options.only or options.only in name]
    signal.signal(signal.SIGALRM, out_of_time)
    begun = time.monotonic()
    results = []
    with tempfile.TemporaryDirectory(prefix="onehop-tls-") as folder:
        interop.prepare(folder, chosen)
        server = Onehop(program, folder)
        try:
            for name in chosen:
                result = run_case(server, name, known.get(name), *rows[name])
                results.append(result)
                line = f"{result['state']:8}{name}: {result['outcome']}"
                if result["state"] in ("failed", "differs"):
                    line += f" (expected: {result['expected']}; {result['section']})"
                print(line + (f" [{result['detail']}]" if result["detail"] else ""), flush=True)
                if server.process.poll() is not None:
                    print(server.said())
                    break
        finally:
            interop.finish()
            server.stop()
    count = {state: sum(result["state"] == state for result in results) for state in ("passed", "failed", "differs", "skipped")}
    seconds = time.monotonic() - begun
    missing = len(chosen) - len(results)
    print(f"{len(results)} cases: {count['passed']} passed, {count['failed']} failed, {count['differs']} differ as listed, "
          f"{count['skipped']} skipped" + (f", {missing} not run" if missing else "") + f", in {seconds:.0f} s")
    if options.json:
        Path(options.json).write_text(json.dumps({**count, "seconds": round(seconds, 1), "cases": results}, indent=1) + "\n")
    return 1 if count["failed"] or missing or not results else 0


if __name__ == "__main__":
    sys.exit(main())
