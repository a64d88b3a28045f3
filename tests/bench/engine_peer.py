"""PyTorch as tests/bench/engine asks it: a process of its own for each network, number of threads and precision."""
import json
import os
import select
import signal
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
LAYOUTS = ("nchw", "nhwc")


def has_torch(folder):
    """Whether a virtual environment is there and has PyTorch."""
    python = os.path.join(folder, "bin", "python")
    return os.path.exists(python) and subprocess.run([python, "-c", "import torch"], capture_output=True).returncode == 0


class Peer:
    """Keeps its networks warm between questions. Leaves no process behind, compilers included."""

    def __init__(self, venv, cache, network, threads, precision, limit_s):
        self.command = [os.path.join(venv, "bin", "python"), os.path.join(HERE, "engine_torch.py"), network,
                        str(threads), precision]
        # A pool of compiling processes would stay beside what is measured.
        self.environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "TORCHINDUCTOR_CACHE_DIR": cache,
                            "TORCHINDUCTOR_COMPILE_THREADS": "1", "TMPDIR": cache}
        self.limit_s = limit_s
        self.process = None
        self.failed = {}  # (layout, mode): why it is not asked again
        self.version = "unknown"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def start(self):
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True, env=self.environment,
                                        start_new_session=True)

    def stop(self):
        if not self.process:
            return
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        self.process = None

    def answer(self):
        if not select.select([self.process.stdout], [], [], self.limit_s)[0]:
            return {"error": f"no answer in {self.limit_s} s"}
        line = self.process.stdout.readline()
        return json.loads(line) if line else {"error": f"ended with status {self.process.wait()}"}

    def images_per_s(self, layout, mode, seconds):
        """None where PyTorch cannot: the reason is in failed."""
        if (layout, mode) in self.failed:
            return None
        if not self.process:
            self.start()
        try:
            self.process.stdin.write(f"{layout} {mode} {seconds}\n")
            self.process.stdin.flush()
            answer = self.answer()
        except BrokenPipeError:
            answer = {"error": f"ended with status {self.process.wait()}"}
        if "error" in answer:
            self.failed[layout, mode] = answer["error"]
            self.stop()  # it may still be busy, or out of memory
            return None
        self.version = answer["torch"]
        return answer["images_per_s"]
