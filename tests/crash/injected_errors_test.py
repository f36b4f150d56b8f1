#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Lets strace make system calls of a real program fail, hang, or be its last, and starts it again.

Whatever happens, the program ends by itself with success or with a clear error, and the next start brings back a
version that existed, with the right content: the newest that the program was told of, or one after it.
"""
import argparse
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

SECONDS = 30  # for one run; a hang is a failure
SKIPPED = 77
LAST_STEP = 7
# Which of these the C library makes differs from system to system.
CALLS = ["pwrite64", "fdatasync", "fsync", "rename", "renameat2", "ftruncate", "close", "openat", "unlink",
         "newfstatat", "statx", "getdents64", "flock", "utimensat", "mkdir"]
CALLS_OF_A_RESTART = ["pread64", "openat", "fstat", "newfstatat", "getdents64"]
MOST_OF_A_CALL = 7
STRACE = ["strace", "-f", "-qq"]
CODES = ("io", "no_space", "corruption", "busy", "not_found", "unsupported", "invalid_argument")


def inject(injection):
    """The command that runs another one with this disturbance."""
    call = injection.partition(":")[0]
    return [*STRACE, "-o", "/dev/null", "-e", f"trace={call}", "-e", f"inject={injection}"]


class Bench:
    def __init__(self, program, top):
        self.program, self.top, self.failures = program, top, []
        self.runs = self.errors = self.kills = self.resumed = 0

    def run(self, store, background, injection=None):
        command = [self.program, str(store), background]
        if injection:
            command = [*inject(injection), *command]
        return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)

    def make_store(self, number, prepared):
        store = self.top / f"store-{number}"
        if prepared:
            shutil.copytree(prepared, store)
        return store

    def calls_of_the_store(self, call, prepared=None):
        """The places of those among all calls of that name which touch the store; `inline`, so that there is one
        thread."""
        store, log = self.make_store(0, prepared), self.top / "log"
        command = [*STRACE, "-y", "-o", str(log), "-e", f"trace={call}", self.program, str(store), "inline"]
        subprocess.run(command, capture_output=True, timeout=SECONDS, check=True)
        shutil.rmtree(store)
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
        places = [place for place, line in enumerate(lines, 1) if str(store) in line]
        step = max(1, len(places) / MOST_OF_A_CALL)
        return [places[int(i * step)] for i in range(min(len(places), MOST_OF_A_CALL))]

    def disturb(self, background, injection, honest=True, prepared=None):
        """One disturbed run and the start after it. Not `honest`: the kernel said that it did what it did not do.
        `prepared`: a store to begin with."""
        self.runs += 1
        store = self.make_store(self.runs, prepared)
        what = f"{injection} ({background})"
        try:
            first = self.run(store, background, injection)
            second = self.run(store, "thread")
        except subprocess.TimeoutExpired:
            self.failures.append(f"{what}: hangs")
            return
        finally:
            shutil.rmtree(store, ignore_errors=True)
        self.judge_end(what, first)
        told = max(map(int, re.findall(r"exists (\d+)", first.stdout)), default=0)
        started = re.search(r"started (\d+)", second.stdout)
        if second.returncode != 0 or not started:
            self.failures.append(f"{what}: the next start fails ({second.returncode}): {second.stderr}")
        elif honest and int(started[1]) < told:
            self.failures.append(f"{what}: step {told} existed, but step {started[1]} came back")
        else:
            self.resumed += 0 < int(started[1]) < LAST_STEP

    def judge_end(self, what, done, prefix=f"({'|'.join(CODES)}): "):
        if "SIGKILL" in what and done.returncode in (-signal.SIGKILL, 128 + signal.SIGKILL):
            self.kills += 1
        elif done.returncode == 1:
            self.errors += 1
            if not re.match(prefix + ".{20}", done.stderr):
                self.failures.append(f"{what}: the error is not clear: {done.stderr}")
        elif done.returncode != 0:
            self.failures.append(f"{what}: ends with {done.returncode}: {done.stderr}")


def play(bench):
    for call in CALLS:
        for place in bench.calls_of_the_store(call):
            for disturbance in ("error=EIO", "error=ENOSPC", "signal=SIGKILL"):
                bench.disturb("inline", f"{call}:{disturbance}:when={place}")
    # On the worker's thread, where only it makes these calls; from the n-th on, or now and then.
    for call in ("pwrite64", "fdatasync"):
        for when in ("1", "2", "3", "5", "8+", "2+3"):
            for disturbance in ("error=EIO", "delay_enter=20ms:signal=SIGKILL"):
                bench.disturb("thread", f"{call}:{disturbance}:when={when}")
        bench.disturb("thread", f"{call}:error=EINTR:when=1+2")
    for when in ("1", "3", "6", "10"):
        bench.disturb("thread", f"pwrite64:retval=0:when={when}")
        bench.disturb("thread", f"pwrite64:retval=4096:when={when}", honest=False)


def play_restarts(bench):
    """The same for a program that comes back in the middle."""
    prepared = bench.top / "prepared"
    bench.run(prepared, "inline", "rename:signal=SIGKILL:when=6")
    for call in CALLS_OF_A_RESTART:
        for place in bench.calls_of_the_store(call, prepared):
            for disturbance in ("error=EIO", "signal=SIGKILL", *(["retval=0"] if call == "pread64" else [])):
                bench.disturb("inline", f"{call}:{disturbance}:when={place}", prepared=prepared)
    bench.disturb("inline", "pread64:error=EINTR:when=9+2", prepared=prepared)


def play_quickstart(bench, program):
    """The example as it is: a second start comes to the same end."""

    def run(store, *prefix):
        bench.runs += 1
        return subprocess.run([*prefix, program], capture_output=True, text=True, timeout=SECONDS, check=False,
                              env={**os.environ, "BELAY_STORE": str(store), "BELAY_INTERVAL": "20000 calls"})

    undisturbed = run(bench.top / "quickstart").stdout.splitlines()[-1]
    for number, injection in enumerate(("fdatasync:error=EIO:when=4+", "rename:signal=SIGKILL:when=3")):
        store = bench.top / f"quickstart-{number}"
        bench.judge_end(f"quickstart: {injection}", run(store, *inject(injection)), prefix="quickstart: ")
        again = run(store)
        if again.stdout.splitlines()[-1:] != [undisturbed] or "starting at step 0" in again.stdout:
            bench.failures.append(f"quickstart: {injection}: the next start: {again.stdout}{again.stderr}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    parser.add_argument("--quickstart", required=True)
    arguments = parser.parse_args()
    probe = [*STRACE, "-o", "/dev/null", "-e", "inject=fsync:error=EIO", "true"]
    if shutil.which("strace") is None or subprocess.run(probe, capture_output=True, check=False).returncode != 0:
        print("skipped: strace is not installed, or tracing is not permitted here")
        return SKIPPED
    memory = pathlib.Path("/dev/shm")
    top = pathlib.Path(tempfile.mkdtemp(prefix="belay-test-", dir=memory if memory.is_dir() else None))
    bench = Bench(arguments.program, top)
    try:
        play(bench)
        play_restarts(bench)
        play_quickstart(bench, arguments.quickstart)
    finally:
        shutil.rmtree(top, ignore_errors=True)
    print(*bench.failures, sep="\n")
    print(f"{bench.runs} runs: {bench.errors} with errors, {bench.kills} killed, {bench.resumed} resumed in the "
          f"middle, {len(bench.failures)} failures")
    # A sample in which nothing happened would prove nothing.
    happened = min(bench.errors, bench.kills, bench.resumed) >= bench.runs // 10
    return 0 if happened and not bench.failures else 1


if __name__ == "__main__":
    sys.exit(main())
