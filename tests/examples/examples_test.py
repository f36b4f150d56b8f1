#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The example that the environment variable EXAMPLE names, under real mpirun: it checks its own
result, and the digest that it prints depends on every bit of its state."""
import contextlib
import os
import pathlib
import random
import re
import shutil
import signal
import struct
import subprocess
import tempfile
import time
import unittest
import zlib

EXAMPLE = os.environ["EXAMPLE"]
NAME = os.path.basename(EXAMPLE)
SECONDS = 60  # for one job; a hang is a failure
JOBS = {  # small, but long enough for every check
    "cg": ["--size", "8"],
    "heat2d": ["--rows", "61", "--cols", "67", "--steps", "120"],
    "hydro": ["--size", "20"],
    "pic": ["--size", "24", "--particles", "3", "--steps", "120"],
}
OTHER_SIZE = {"cg": ["--size", "9"], "heat2d": ["--cols", "68"], "hydro": ["--size", "21"],
              "pic": ["--size", "24"]}
TOO_SMALL = {"cg": ["--size", "0"], "heat2d": ["--rows", "2"], "hydro": ["--size", "7"],
             "pic": ["--size", "15"]}
SHAPES = {"cg": (16, 8), "heat2d": (61, 67), "hydro": (20, 20), "pic": (24, 24)}  # on 4 ranks
CHECKS = {"cg": 3, "heat2d": 2, "hydro": 3, "pic": 6}


class Examples(unittest.TestCase):
    def setUp(self):
        memory = pathlib.Path("/dev/shm")
        self.place = pathlib.Path(tempfile.mkdtemp(dir=memory if memory.is_dir() else None))
        self.addCleanup(shutil.rmtree, self.place, ignore_errors=True)

    def environment(self, store):
        # A killed Open MPI leaves its files behind: they go with this test's.
        return os.environ | {"BELAY_STORE": str(self.place / store), "BELAY_INTERVAL": "3 calls",
                             "TMPDIR": str(self.place),
                             "OMPI_MCA_btl_vader_backing_directory": str(self.place)}

    def command(self, ranks, *more):
        launch = [os.environ["MPIEXEC"], "-n", str(ranks)] if ranks > 1 else []
        size = [] if set(more) & set(JOBS[NAME][::2]) else JOBS[NAME]
        return [*launch, EXAMPLE, *size, *more]

    def run_job(self, store, ranks, *more):
        return subprocess.run(self.command(ranks, *more), env=self.environment(store),
                              capture_output=True, text=True, timeout=SECONDS, check=False)

    def finish(self, store, ranks, *more):
        """Runs to the end; returns (the digest, all that was printed)."""
        done = self.run_job(store, ranks, *more)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return re.search(r"^digest ([0-9a-f]{16})$", done.stdout, re.M)[1], done.stdout

    def existing_version(self, store, ranks):
        """The highest version with a manifest of every rank, or 0."""
        votes = {}
        for file in (self.place / store).glob("node-*/manifest-*"):
            if name := re.fullmatch(r"manifest-\d+-(\d+)-\d+", file.name):
                votes[int(name[1])] = votes.get(int(name[1]), 0) + 1
        return max((version for version, count in votes.items() if count == ranks), default=0)

    def kill_after(self, store, ranks, versions):
        """Starts the job and sends SIGKILL to all of its processes once it has taken so many
        versions. Numbers jump after a kill, so they are counted from the first new one."""
        former = self.existing_version(store, ranks)
        first = None
        with subprocess.Popen(self.command(ranks, "--pace", "30"), env=self.environment(store),
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as launcher:
            deadline = time.monotonic() + SECONDS
            while True:
                newest = self.existing_version(store, ranks)
                first = first or (newest if newest > former else None)
                if first and newest >= first + versions - 1:
                    break
                self.assertIsNone(launcher.poll(), "it ended before it could be killed")
                self.assertLess(time.monotonic(), deadline, "no new version")
                time.sleep(0.005)
            for process in self.descendants(launcher.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            self.assertNotEqual(launcher.wait(SECONDS), 0)

    @staticmethod
    def descendants(process):
        """Children before their parents, `process` last."""
        found = []
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
            for thread in pathlib.Path(f"/proc/{process}/task").iterdir():
                for child in (thread / "children").read_text(encoding="ascii").split():
                    found += Examples.descendants(int(child))
        return found + [process]

    def assert_checked(self, said):
        self.assertEqual(len(re.findall(r"^check: .*: ok$", said, re.M)), CHECKS[NAME], said)

    def test_a_run_killed_twice_ends_bit_for_bit_alike(self):
        seed = random.randrange(1 << 32)
        chance = random.Random(seed)
        for ranks in (4, 3):
            with self.subTest(f"{ranks} ranks, seed {seed}"):
                undisturbed, said = self.finish(f"calm-{ranks}", ranks)
                self.assertIn("starting at step 0", said)
                self.assert_checked(said)
                store = f"killed-{ranks}"
                # The first version of each run is of its first step; cg takes about ten in all.
                self.kill_after(store, ranks, chance.randrange(2, 5))
                self.kill_after(store, ranks, chance.randrange(1, 4))
                disturbed, said = self.finish(store, ranks)
                self.assertRegex(said, r"restored version [0-9]+ at step [1-9]")
                self.assertEqual(disturbed, undisturbed)
                self.assert_checked(said)

    def test_pictures_show_the_field(self):
        rows, cols = SHAPES[NAME]
        self.finish("store", 4, "--picture", str(self.place / "field.npy"))
        self.finish("store", 4, "--picture", str(self.place / "field.png"))
        values, shape = self.read_npy()
        self.assertEqual(shape, (rows, cols))
        scale = 512 // max(rows, cols)
        pixels = self.read_png(cols * scale, rows * scale)
        brightness = [luminance(pixels[y * scale][3 * x * scale:3 * x * scale + 3])
                      for y in range(rows) for x in range(cols)]
        by_value = [bright for _, bright in sorted(zip(values, brightness))]
        for seen, wanted in zip(by_value, sorted(by_value)):
            self.assertAlmostEqual(seen, wanted, delta=1)  # colours are whole numbers
        self.assertGreater(by_value[-1], by_value[0] + 200)

    def read_npy(self):
        file = (self.place / "field.npy").read_bytes()
        self.assertEqual(file[:8], b"\x93NUMPY\x01\x00")
        length = struct.unpack("<H", file[8:10])[0]
        self.assertEqual((10 + length) % 64, 0)
        header = file[10:10 + length].decode("ascii")
        shape = tuple(map(int, re.search(r"'descr': '<f8', .*'shape': \((\d+), (\d+)\)", header).groups()))
        return struct.unpack(f"<{shape[0] * shape[1]}d", file[10 + length:]), shape

    def read_png(self, width, height):
        """The rows of an 8-bit RGB picture without interlace."""
        file = (self.place / "field.png").read_bytes()
        self.assertEqual(file[:8], b"\x89PNG\r\n\x1a\n")
        at, packed = 8, b""
        while at < len(file):
            length, kind = struct.unpack(">I4s", file[at:at + 8])
            if kind == b"IHDR":
                self.assertEqual(struct.unpack(">IIBB", file[at + 8:at + 18]), (width, height, 8, 2))
            elif kind == b"IDAT":
                packed += file[at + 8:at + 8 + length]
            at += length + 12
        return unfiltered(zlib.decompress(packed), 3 * width)

    def test_wrong_command_lines_say_what_is_wrong(self):
        for ranks, wrong, words in ((3, TOO_SMALL[NAME], TOO_SMALL[NAME][0]),
                                    (1, ["--steps", "-1"], "--steps"),
                                    (1, ["--picture", "field.gif"], ".png or .npy"),
                                    (1, ["--no-such"], "--no-such")):
            done = self.run_job("store", ranks, *wrong)
            self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
            self.assertIn(words, done.stderr)
            self.assertEqual(done.stderr.count(f"{NAME}: "), 1, "by one rank only")
            self.assertFalse((self.place / "store").exists())

    def test_one_process_needs_no_mpirun_and_refuses_a_checkpoint_of_another_size(self):
        _, said = self.finish("store", 1)
        self.assert_checked(said)
        done = self.run_job("store", 1, *OTHER_SIZE[NAME])
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("give the same --", done.stderr)


def luminance(colour):
    return 0.2126 * colour[0] + 0.7152 * colour[1] + 0.0722 * colour[2]


def unfiltered(stream, stride):
    """Undoes the filters of PNG, three bytes a pixel."""
    rows, former = [], bytes(stride)
    for start in range(0, len(stream), stride + 1):
        kind, row = stream[start], bytearray(stream[start + 1:start + 1 + stride])
        for i in range(stride):
            left = row[i - 3] if i >= 3 else 0
            up, corner = former[i], former[i - 3] if i >= 3 else 0
            guess = left + up - corner
            nearest = min((left, up, corner), key=lambda near: abs(guess - near))
            row[i] = (row[i] + (0, left, up, (left + up) // 2, nearest)[kind]) & 255
        rows.append(row)
        former = row
    return rows


if __name__ == "__main__":
    unittest.main()
