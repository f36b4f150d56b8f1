# SPDX-License-Identifier: Apache-2.0
"""What the tests of pack, unpack and watch share: a directory, the tool, and comparing files."""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import numpy

TOOL = os.environ["BELAY_TOOL"]
OK, DAMAGE, USAGE, NOT_FOUND, BUSY, IO, UNSUPPORTED = range(7)
SECONDS = 60  # for one call of the tool; a hang is a failure
PLACE = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def clean_environment():
    return {name: value for name, value in os.environ.items() if not name.startswith("BELAY_")}


def run(*arguments, **options):
    return subprocess.run([TOOL, *map(str, arguments)], capture_output=True, timeout=SECONDS,
                          stdin=subprocess.DEVNULL, env=clean_environment(), check=False, **options)


def tree(directory):
    """Every file with all that unpack must bring back."""
    found = {}
    for path in sorted(pathlib.Path(directory).rglob("*")):
        if path.is_file() and not path.is_symlink():
            status = path.stat()
            found[str(path.relative_to(directory))] = (path.read_bytes(), status.st_mode, status.st_mtime_ns)
    return found


class SetCase(unittest.TestCase):
    def setUp(self):
        self.top = pathlib.Path(tempfile.mkdtemp(prefix="belay-files-", dir=PLACE)).resolve()
        self.addCleanup(shutil.rmtree, self.top, ignore_errors=True)
        self.files = self.top / "files"
        self.files.mkdir()
        self.set = self.top / "set"

    def run_json(self, *arguments, exit_code=OK, **options):
        done = run(*arguments, "--json", **options)
        self.assertEqual(done.returncode, exit_code, (arguments, done.stdout, done.stderr))
        return json.loads(done.stdout)

    def pack(self, *arguments, **options):
        return self.run_json("pack", *(arguments or [self.files]), "-o", self.set, **options)

    def unpack(self, *arguments, name="out", exit_code=OK):
        out = self.top / name
        shutil.rmtree(out, ignore_errors=True)
        self.run_json("unpack", self.set, "--to", out, *arguments, exit_code=exit_code)
        return out

    def assert_same(self, one, other):
        first, second = tree(one), tree(other)
        self.assertEqual(sorted(first), sorted(second))
        for path, (content, *rest) in first.items():
            self.assertTrue(content == second[path][0], f"{path} has other bytes")
            self.assertEqual(rest, list(second[path][1:]), f"{path}: mode, time")

    def assert_refused(self, code, words, *arguments, **options):
        """One line, with these words; nothing is made."""
        before = sorted(path.name for path in self.top.iterdir())
        done = run(*arguments, **options)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertIn(words, done.stderr.decode())
        self.assertEqual(done.stderr.count(b"\n"), 1, done.stderr)
        self.assertEqual(before, sorted(path.name for path in self.top.iterdir()))

    def assert_round_trip(self, *arguments):
        """Packs all files, unpacks and compares; what pack said."""
        packed = self.pack(*arguments)
        self.assert_same(self.files, self.unpack())
        return packed

    def extract(self, name):
        """A variable of the newest version, as NumPy reads it."""
        out = self.top / "out.npy"
        done = run("extract", "latest", name, "--store", self.set, "-o", out, "--force")
        self.assertEqual(done.returncode, OK, done.stderr)
        return numpy.load(out)

    def regions(self, version="latest"):
        """Of the set, by name."""
        shown = self.run_json("show", version, "--store", self.set)
        return {region["name"]: region for region in shown["parts"][0]["regions"]}

    def assert_region(self, name, kind, shape, type_name=""):
        region = self.regions()[name]
        self.assertEqual((region["type"]["kind"], region["shape"], region["type"]["name"]),
                         (kind, list(shape), type_name), name)
