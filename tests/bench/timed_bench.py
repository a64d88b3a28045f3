"""bpt-train --bench for the benches of a GPU that is at hand for minutes: within a time, and nothing stays."""
import json
import signal
import subprocess
import sys
import tempfile


class Failed(Exception):
    """The program failed, or was not done in time."""


def stop(number, _):
    for again in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(again, signal.SIG_IGN)
    sys.exit(128 + number)  # through every "with", which ends what was started


def end_with_what_runs():
    """Where the bench is told to stop, so is what it has started."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)


def bench(command, limit_s):
    """@return what bpt-train says at its end, and its standard error"""
    with tempfile.TemporaryFile("w+") as out:  # a pipe's reader would want processor time
        try:
            done = subprocess.run(command, stdout=out, stderr=subprocess.PIPE, text=True, timeout=limit_s)
        except subprocess.TimeoutExpired as late:
            raise Failed(f"{' '.join(command)} was not done in {limit_s:g} s") from late
        if done.returncode != 0:
            raise Failed(f"{' '.join(command)} failed:\n{done.stderr.strip()}")
        out.seek(0)
        return json.loads(out.read().splitlines()[-1]), done.stderr


class Rows:
    """A file with a line of JSON for each row, there as soon as the row is."""

    def __init__(self, path):
        """@param path None: none is kept"""
        self.path = path
        if path:
            open(path, "w").close()

    def add(self, row):
        if self.path:
            with open(self.path, "a") as file:
                file.write(json.dumps(row) + "\n")
