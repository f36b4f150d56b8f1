# SPDX-License-Identifier: Apache-2.0
"""What the tests of the tool share: running it, and stores to run it on."""
import atexit
import contextlib
import fcntl
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
GOLDEN = HERE.parent / "golden"
TOOL = os.environ["BELAY_TOOL"]
OK, DAMAGE, USAGE, NOT_FOUND, BUSY, IO, UNSUPPORTED = range(7)
COMMANDS = ["list", "show", "check", "diff", "extract", "stats", "prune"]

# Stores are made and damaged by the hundred: in memory where that can be.
PLACE = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None

_made = {}


def made_store(hash_name="xxh3"):
    """A directory with `store` and `expected`, made once for each hash; tests copy it."""
    if hash_name not in _made:
        directory = pathlib.Path(tempfile.mkdtemp(prefix="belay-cli-", dir=PLACE))
        atexit.register(shutil.rmtree, directory, ignore_errors=True)
        subprocess.run([os.environ["MAKE_CLI_STORE"], directory, hash_name], check=True, timeout=60)
        _made[hash_name] = directory
    return _made[hash_name]


def run(*arguments, store=None, timeout=20, **options):
    """The finished process; its output is bytes."""
    command = [TOOL, *map(str, arguments)]
    if store is not None:
        command += ["--store", str(store)]
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("BELAY_", "NO_COLOR"))}
    environment.update(options.pop("env", {}))
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                          timeout=timeout, env=environment, **options)


@contextlib.contextmanager
def locked(directory, owner="host far-away pid 4711 job 1"):
    """The lock of a node's directory, as a running job holds it."""
    with open(directory / "lock", "w", encoding="utf-8") as lock:
        lock.write(owner)
        lock.flush()
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def files_of(store):
    """What is in a store, with content and time: equal before and after means untouched."""
    return {str(p.relative_to(store)): (p.read_bytes(), p.stat().st_mtime_ns)
            for p in sorted(store.rglob("*")) if p.is_file()}


class ToolTest(unittest.TestCase):
    def setUp(self):
        self.place = pathlib.Path(tempfile.mkdtemp(prefix="belay-cli-", dir=PLACE))
        self.addCleanup(shutil.rmtree, self.place, ignore_errors=True)

    def copy(self, source=None, name="store"):
        store = self.place / name
        shutil.copytree(source or made_store() / "store", store)
        return store

    def run_ok(self, *arguments, store=None, exit_code=OK, **options):
        """Standard output as text."""
        done = run(*arguments, store=store, **options)
        self.assertEqual(done.returncode, exit_code, (arguments, done.stdout, done.stderr))
        return done.stdout.decode()

    def run_json(self, *arguments, store=None, exit_code=OK, **options):
        document = json.loads(self.run_ok(*arguments, "--json", store=store, exit_code=exit_code, **options))
        if "error" not in document:
            self.assertEqual(document["schema"], f"belay/{arguments[0]}/1")
        return document

    def error_of(self, *arguments, store=None, exit_code=OK, **options):
        """The message, which must be the same with --json."""
        done = run(*arguments, store=store, **options)
        self.assertEqual(done.returncode, exit_code, (arguments, done.stdout, done.stderr))
        self.assertEqual(done.stdout, b"")
        document = self.run_json(*arguments, store=store, exit_code=exit_code, **options)
        message = document["error"]["message"]
        self.assertIn(message, done.stderr.decode())
        return message


def arguments_of(command):
    """A call of the command that needs no particular region or file."""
    return {"show": ["show", "latest"], "diff": ["diff", "1", "latest"],
            "extract": ["extract", "latest", "step", "--rank", "0", "--raw", "--force", "-o", "out.bin"],
            "prune": ["prune", "--keep", "1"]}.get(command, [command])
