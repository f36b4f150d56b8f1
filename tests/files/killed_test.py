# SPDX-License-Identifier: Apache-2.0
"""The real tool, killed at its n-th system call of a kind; files_faults_test does it for every operation of a set."""
import shutil
import subprocess
import unittest

import h5py
import numpy

from set_case import IO, OK, SECONDS, TOOL, SetCase, clean_environment, run, tree

RANDOM = numpy.random.default_rng(41)
CALLS = ["openat", "pwrite64", "fsync", "fdatasync", "rename", "renameat2", "link", "unlink", "mkdir", "flock"]
PLACES = (1, 3)
STRACE = ["strace", "-f", "-qq", "-o", "/dev/null"]


def can_trace():
    try:
        return subprocess.run([*STRACE, "true"], capture_output=True, timeout=SECONDS, check=False).returncode == 0
    except OSError:
        return False


def disturbed(what, *arguments):
    """The tool with one system call as strace's inject= says."""
    command = [*STRACE, "-e", f"trace={what.partition(':')[0]}", "-e", f"inject={what}", TOOL, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, timeout=SECONDS, env=clean_environment(), check=False)


@unittest.skipUnless(can_trace(), "tracing is not permitted here")
class Killed(SetCase):
    def setUp(self):
        super().setUp()
        self.base = self.top / "base"
        self.old, self.kills = self.top / "old", 0
        self.write(self.old)
        self.write(self.files)
        self.run_json("pack", self.old, "-o", self.base)

    def write(self, directory):
        directory.mkdir(exist_ok=True)
        with h5py.File(directory / "r.h5", "w") as file:
            file["a"] = numpy.arange(5000.0)
            file["b"] = RANDOM.random(5000)

    def assert_whole(self, sets):
        """Every version of these sets that can be seen is one of those that were packed."""
        for place in sets:
            self.assertEqual(run("check", "--store", place).returncode, OK, place)
            for version in self.run_json("list", "--store", place)["versions"]:
                if version["state"] == "incomplete":
                    continue
                self.assertEqual(version["state"], "whole")
                out = self.top / "out"
                self.run_json("unpack", place, "--to", out, "--force", "--version",
                              f'{version["run"]}/{version["version"]}')
                self.assertIn(tree(out), (tree(self.old), tree(self.files)))
                shutil.rmtree(out)

    def kill_everywhere(self, place, arguments):
        for call in CALLS:
            for count in PLACES:
                with self.subTest(f"{call} {count}"):
                    shutil.rmtree(self.set, ignore_errors=True)
                    if place != self.base:
                        shutil.copytree(self.base, self.set)
                    done = disturbed(f"{call}:signal=SIGKILL:when={count}", *arguments)
                    self.assertIn(done.returncode, (OK, IO, -9, 137), done.stderr)
                    self.kills += done.returncode != OK
                    self.assert_whole([self.base, *([self.set] if self.set.exists() else [])])
                    again = run(*arguments)
                    self.assertEqual(again.returncode, OK, again.stderr)
                    self.assertEqual(tree(self.unpack()), tree(self.files))
                    self.assertEqual([path.name for path in self.top.iterdir() if "tmp" in path.name], [])
        self.assertGreater(self.kills, 8)

    def test_a_differential_pack_leaves_what_was_there(self):
        self.kill_everywhere(self.set, ["pack", self.files, "-o", self.set])

    def test_a_pack_from_a_base_leaves_that_and_nothing_half(self):
        self.kill_everywhere(self.base, ["pack", self.files, "-o", self.set, "--base", self.base])

    def test_a_watcher_leaves_what_was_there(self):
        self.kill_everywhere(self.set, ["watch", self.files, "--to", self.set, "--once", "--settle", "1ms", "--keep", "1"])


if __name__ == "__main__":
    unittest.main()
