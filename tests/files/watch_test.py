# SPDX-License-Identifier: Apache-2.0
"""Watching a directory: complete steps, and nothing half-written, become versions."""
import contextlib
import fcntl
import random
import signal
import subprocess
import sys
import time
import unittest

import h5py
import numpy

from set_case import BUSY, TOOL, USAGE, SetCase, clean_environment, run, tree

RANDOM = numpy.random.default_rng(17)
PATTERN = "restart.{step}.{rank}.h5"

# Writes steps of several ranks as programs do: open, some writes, some pauses, close.
WRITER = r"""
import pathlib, random, sys, time
import h5py, numpy
top, record, ranks = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), 3
chance = random.Random(int(sys.argv[3]))
for step in range(10, 10 * int(sys.argv[4]) + 10, 10):
    for rank in range(ranks):
        path = top / f"restart.{step}.{rank}.h5"
        with h5py.File(path, "w") as file:
            for name in "abc":
                file[name] = numpy.random.default_rng(step + rank).random(20000)
                file.flush()
                time.sleep(chance.uniform(0, 0.004))
        (record / path.name).write_bytes(path.read_bytes())
    time.sleep(chance.uniform(0, 0.03))
"""


class Watch(SetCase):
    def write(self, step, ranks=2, marker=None):
        for rank in range(ranks):
            with h5py.File(self.files / f"restart.{step}.{rank}.h5", "w") as file:
                file["x"] = numpy.full(2000, step, "f8")
                file["y"] = RANDOM.random(2000)
        if marker:
            (self.files / marker).write_bytes(b"")

    def watch_once(self, *arguments):
        return self.run_json("watch", self.files, "--to", self.set, "--once", "--settle", "100ms", *arguments)

    def steps(self, said):
        return [version["step"] for version in said["versions"]]

    @contextlib.contextmanager
    def watching(self, *arguments):
        process = subprocess.Popen([TOOL, "watch", str(self.files), "--to", str(self.set), *arguments],
                                   env=clean_environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            yield process
        finally:
            process.kill()
            process.communicate()

    def wait_for_versions(self, count, seconds=20):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            done = run("list", "--store", self.set, "--json")
            if done.stdout.count(b'"whole"') >= count:
                return
            time.sleep(0.02)
        self.fail(f"not {count} versions after {seconds} s: {done.stdout} {done.stderr}")

    def test_steps_become_versions_in_their_order(self):
        for step in (100, 9, 30):
            self.write(step)
        said = self.watch_once("--pattern", PATTERN)
        self.assertEqual(self.steps(said), [9, 30, 100])
        self.assertEqual(sorted(tree(self.unpack("--version", "1"))), ["restart.9.0.h5", "restart.9.1.h5"])
        expected = {name: value for name, value in tree(self.files).items() if ".30." in name}
        self.assertEqual(tree(self.unpack("--version", "2")), expected)
        self.assertEqual(self.steps(self.watch_once("--pattern", PATTERN)), [])

    def test_regions_have_the_same_names_in_all_steps(self):
        self.write(10)
        self.write(20)
        self.watch_once("--pattern", PATTERN)
        self.assertIn("restart.{step}.0.h5:x", self.regions("1"))
        self.assertEqual(set(self.regions("1")), set(self.regions("2")))

    def test_names_that_mean_the_same_are_brought_together(self):
        for rank in range(2):
            with h5py.File(self.files / f"restart.1.{rank}.h5", "w") as file:
                file[f"t_{rank}"] = RANDOM.random(500)
                file[f"t_{rank}_old"] = RANDOM.random(500)
        self.watch_once("--pattern", PATTERN, "--match", "_[0-9]+(_old)?$=$1")
        names = [name.split(":")[1] for name in self.regions() if name.count("t_")]
        self.assertEqual(names, ["t_0", "t_1", "t_0_old", "t_1_old"])
        self.assertEqual(run("watch", self.files, "--to", self.set, "--once", "--match", "([=").returncode, USAGE)

    def test_a_step_with_too_few_files_waits_and_is_given_up_when_overtaken(self):
        self.write(10, ranks=3)
        self.write(20, ranks=2)
        self.assertEqual(self.steps(self.watch_once("--pattern", PATTERN, "--files", "3")), [10])
        self.write(30, ranks=3)
        time.sleep(0.15)
        self.assertEqual(self.steps(self.watch_once("--pattern", PATTERN, "--files", "3")), [30])

    def test_markers_decide(self):
        self.write(10, marker="done.10")
        self.write(20)
        options = ("--pattern", PATTERN, "--marker", "done.{step}")
        self.assertEqual(self.steps(self.watch_once(*options)), [10])
        (self.files / "done.20").write_bytes(b"")
        self.assertEqual(self.steps(self.watch_once(*options)), [20])
        self.assertEqual(run("watch", self.files, "--to", self.set, "--finished", "marker").returncode, USAGE)

    def test_a_file_that_is_open_is_not_packed(self):
        self.write(10)
        with self.watching("--pattern", PATTERN, "--files", "2", "--settle", "50ms") as process:
            self.wait_for_versions(1)
            with open(self.files / "restart.20.0.h5", "wb") as half:
                half.write(b"half")
                half.flush()
                (self.files / "restart.20.1.h5").write_bytes(b"whole")
                time.sleep(0.5)
                self.assertEqual(len(self.run_json("list", "--store", self.set)["versions"]), 1)
                half.write(b" and half")
            self.wait_for_versions(2)
            process.send_signal(signal.SIGTERM)
            out, errors = process.communicate(timeout=20)
            self.assertEqual((process.returncode, errors), (0, ""))
            self.assertIn("step 20: version 2", out)
        self.assertEqual(tree(self.unpack())["restart.20.0.h5"][0], b"half and half")

    def test_renamed_files_are_taken_at_once(self):
        with self.watching("--pattern", "f.{step}", "--finished", "rename", "--files", "1", "--settle", "1h"):
            for step in (1, 2, 3):
                (self.files / f"tmp.{step}").write_bytes(b"x" * step)
                (self.files / f"tmp.{step}").rename(self.files / f"f.{step}")
            self.wait_for_versions(3)

    def test_a_directory_for_each_step(self):
        for step in (1, 2):
            (self.files / f"step{step}/deep").mkdir(parents=True)
            (self.files / f"step{step}/deep/a").write_bytes(RANDOM.bytes(1000))
        with self.watching("--pattern", "step{step}/*/a", "--files", "1", "--settle", "50ms"):
            self.wait_for_versions(2)
            (self.files / "step3/deep").mkdir(parents=True)
            (self.files / "step3/deep/a").write_bytes(b"new")
            self.wait_for_versions(3)
        self.assertEqual(list(tree(self.unpack())), ["step3/deep/a"])

    def test_without_a_pattern_all_files_are_one_group(self):
        (self.files / "a").write_bytes(b"a")
        (self.files / "b").write_bytes(b"b")
        self.assertEqual(self.steps(self.watch_once()), [None])
        self.assertEqual(self.steps(self.watch_once()), [])
        (self.files / "b").write_bytes(b"other")
        self.assertEqual(self.steps(self.watch_once()), [None])
        self.assert_same(self.files, self.unpack())

    def test_a_restarted_program_writes_its_steps_again(self):
        for step in (10, 20, 30):
            self.write(step)
        self.watch_once("--pattern", PATTERN, "--keep", "1")
        self.write(20)
        self.assertEqual(self.steps(self.watch_once("--pattern", PATTERN, "--keep", "1"))[0], 20)

    def test_a_set_that_is_in_use_is_told(self):
        self.write(10)
        self.watch_once("--pattern", PATTERN)
        self.write(20)
        with open(next(self.set.rglob("lock")), "rb") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            done = run("watch", self.files, "--to", self.set, "--once", "--settle", "100ms", "--pattern", PATTERN)
        self.assertEqual(done.returncode, BUSY, done.stderr)
        self.assertIn(b"is in use", done.stderr)

    def test_files_that_go_before_they_are_packed_are_told(self):
        self.write(10)
        self.watch_once("--pattern", PATTERN)
        with open(next(self.set.rglob("lock")), "rb") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            with self.watching("--pattern", PATTERN, "--files", "2", "--settle", "100ms") as process:
                self.write(20)
                time.sleep(1)  # long enough to begin; then it waits for the set
                (self.files / "restart.20.1.h5").unlink()
                fcntl.flock(held, fcntl.LOCK_UN)
                self.assertIn("step 20 is not packed whole: files of it went", process.stderr.readline())
                self.write(30)
                self.wait_for_versions(2)

    def test_killed_at_random_instants_nothing_is_lost_or_half(self):
        record = self.top / "record"
        record.mkdir()
        steps = 12
        writer = subprocess.Popen([sys.executable, "-c", WRITER, self.files, record, "23", str(steps)])
        self.addCleanup(writer.kill)
        chance = random.Random(29)
        command = [TOOL, "watch", str(self.files), "--to", str(self.set), "--pattern", PATTERN, "--files", "3",
                   "--settle", "200ms"]
        while writer.poll() is None:
            watcher = subprocess.Popen(command, env=clean_environment(), stdout=subprocess.DEVNULL)
            time.sleep(chance.uniform(0, 0.15))
            watcher.kill()
            watcher.wait()
        self.assertEqual(writer.returncode, 0)
        self.run_json(*command[1:], "--once")
        expected = {path.name: path.read_bytes() for path in record.iterdir()}
        found = set()
        for version in self.run_json("list", "--store", self.set)["versions"]:
            self.assertIn(version["state"], ("whole", "incomplete"))
            if version["state"] == "incomplete":
                continue
            out = self.unpack("--version", f'{version["run"]}/{version["version"]}')
            content = {path: entry[0] for path, entry in tree(out).items()}
            self.assertEqual(len(content), 3)
            for path, data in content.items():
                self.assertTrue(data == expected[path], path)
            found.update(content)
        self.assertEqual(found, set(expected))
        self.assertEqual(run("check", "--store", self.set).returncode, 0)

    def test_nonsense_is_refused(self):
        for arguments in (["--pattern", "x.{time}"], ["--settle", "soon"], ["--finished", "maybe"]):
            self.assertEqual(run("watch", self.files, "--to", self.set, "--once", *arguments).returncode, USAGE)
        self.assertEqual(run("watch", self.top / "none", "--to", self.set, "--once").returncode, 3)


if __name__ == "__main__":
    unittest.main()
