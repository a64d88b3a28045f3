"""Hosts that tests/cluster/emulate makes up, for the benches beside this file."""
import os
import signal
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DATA = os.path.join(os.environ.get("BPT_TEST_DATA", os.path.join(ROOT, "..", "shared", "data")), "fashion-mnist")
EMULATE = os.path.join(ROOT, "tests", "cluster", "emulate")
NAMES = "abcdefghijklmnop"


def stop(number, _):
    for again in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(again, signal.SIG_IGN)
    sys.exit(128 + number)  # through every "with", which ends what was started


def prepare():
    """For a bench that starts jobs: they may be root's, and end where the bench is told to stop."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")


def run(command):
    """@return standard output. Ends this program where the command fails; 77: the machine does not permit it"""
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True) as process:
        try:
            out, err = process.communicate()
        except BaseException:  # told to stop: what was started ends what it has started
            process.terminate()
            process.communicate()
            raise
    if process.returncode == 77:
        print(err.strip(), file=sys.stderr)
        sys.exit(77)
    if process.returncode != 0:
        sys.exit(f"exit status {process.returncode}: {' '.join(command)}\n{err}")
    return out


def need_data():
    if not os.path.isdir(DATA):
        print(f"no data in {DATA}: set BPT_TEST_DATA", file=sys.stderr)
        sys.exit(77)


def ingest_fashion(build, dataset):
    for split, name in (("train", "train"), ("test", "t10k")):
        files = [os.path.join(DATA, f"{name}-{part}-ubyte.gz") for part in ("images-idx3", "labels-idx1")]
        run([os.path.join(build, "tools", "bpt-ingest"), "idx", *files, "--out", dataset, "--split", split])


def hosts_of(cores):
    """@param cores of each host, e.g. [0.9, 0.45]. @return what emulate's --hosts takes"""
    return ",".join(f"{name}:cpu={c:g}" for name, c in zip(NAMES, cores))
