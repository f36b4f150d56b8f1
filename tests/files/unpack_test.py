# SPDX-License-Identifier: Apache-2.0
"""Unpacking: what is brought back, what is refused, what survives damage."""
import os
import resource
import stat
import unittest

import h5py
import numpy

from set_case import DAMAGE, IO, NOT_FOUND, OK, USAGE, SetCase, run, tree

RANDOM = numpy.random.default_rng(5)


class Unpack(SetCase):
    def test_modes_and_times_come_back(self):
        for number, mode in enumerate((0o600, 0o644, 0o755, 0o400, 0o444, 0o660)):
            path = self.files / f"f{number}"
            path.write_bytes(b"x" * number)
            os.chmod(path, mode)
            os.utime(path, ns=(1_000_000_000_123_456_789 + number, 1_500_000_000_987_654_321 - number))
        os.utime(self.files / "f0", ns=(-1_500_000_000, -2_500_000_000))  # before 1970
        self.pack()
        out = self.unpack()
        self.assertEqual((out / "f3").stat().st_atime_ns, 1_000_000_000_123_456_792)  # before it is read
        self.assert_same(self.files, out)
        self.assertEqual((out / "f0").stat().st_mtime_ns, -2_500_000_000)

    def test_setuid_does_not_come_back(self):
        path = self.files / "program"
        path.write_bytes(b"#!/bin/sh\n")
        os.chmod(path, 0o4755)
        self.pack()
        self.assertEqual(stat.S_IMODE((self.unpack() / "program").stat().st_mode), 0o755)

    def test_files_that_are_there_stay_unless_forced(self):
        for name in ("a", "sub/b"):
            (self.files / name).parent.mkdir(exist_ok=True)
            (self.files / name).write_bytes(b"new " + name.encode())
        self.pack()
        out = self.top / "out"
        out.mkdir()
        (out / "a").write_bytes(b"old")
        done = run("unpack", self.set, "--to", out)
        self.assertEqual(done.returncode, USAGE)
        self.assertIn(b"use --force", done.stderr)
        self.assertEqual((out / "a").read_bytes(), b"old")
        self.assertEqual((out / "sub/b").read_bytes(), b"new sub/b")
        self.assertEqual(run("unpack", self.set, "--to", out, "--force").returncode, OK)
        self.assert_same(self.files, out)
        self.assertEqual([p.name for p in out.rglob(".belay*")], [])

    def test_links_in_the_way_are_not_followed(self):
        (self.files / "sub").mkdir()
        (self.files / "sub/file").write_bytes(b"content")
        (self.files / "top").write_bytes(b"content")
        self.pack()
        outside = self.top / "outside"
        outside.mkdir()
        out = self.top / "out"
        out.mkdir()
        (out / "sub").symlink_to(outside)
        (out / "top").symlink_to(outside / "target")
        done = run("unpack", self.set, "--to", out, "--force")
        self.assertEqual(done.returncode, USAGE, done.stderr)
        self.assertEqual(list(outside.iterdir()), [])
        link = self.top / "named"
        link.symlink_to(outside)  # but who names a link means it
        self.assertEqual(run("unpack", self.set, "--to", link).returncode, OK)
        self.assert_same(self.files, outside)

    def test_one_damaged_region_costs_its_file_only(self):
        for rank in range(4):
            with h5py.File(self.files / f"r{rank}.h5", "w") as file:
                # Noise in bytes is stored as it is.
                file["x"] = numpy.frombuffer(RANDOM.bytes(240000), "u1")
                file["y"] = numpy.frombuffer(RANDOM.bytes(240000), "u1")
        self.pack()
        segment = next(self.set.rglob("segment-*"))
        wanted = h5py.File(self.files / "r2.h5", "r")["x"][20000:20100].tobytes()
        content = bytearray(segment.read_bytes())
        content[content.index(wanted)] ^= 1
        segment.write_bytes(content)
        out = self.top / "out"
        said = self.run_json("unpack", self.set, "--to", out, exit_code=DAMAGE)
        self.assertEqual([failure["path"] for failure in said["failures"]], ["r2.h5"])
        self.assertEqual(said["files"], 3)
        expected = tree(self.files)
        del expected["r2.h5"]
        self.assertEqual(tree(out), expected)

    def test_a_lost_segment_leaves_what_others_hold(self):
        (self.files / "old").write_bytes(RANDOM.bytes(100_000))
        (self.files / "new").write_bytes(b"short")
        self.pack()
        first = set(self.set.rglob("segment-*"))
        (self.files / "new").write_bytes(RANDOM.bytes(100_000))
        self.pack()
        for path in first:
            path.unlink()
        out = self.top / "out"
        said = self.run_json("unpack", self.set, "--version", "2", "--to", out, exit_code=DAMAGE)
        self.assertEqual([failure["path"] for failure in said["failures"]], ["old"])
        self.assertEqual((out / "new").read_bytes(), (self.files / "new").read_bytes())

    def test_what_is_not_there_is_said(self):
        self.assertEqual(run("unpack", self.top / "none").returncode, NOT_FOUND)
        (self.files / "a").write_bytes(b"a")
        self.pack()
        self.assertEqual(run("unpack", self.set, "--version", "9").returncode, NOT_FOUND)

    @unittest.skipUnless(os.geteuid() == 0, "only root can become somebody else")
    def test_a_directory_that_cannot_be_made_is_told(self):
        (self.files / "a").write_bytes(b"a")
        self.pack()
        closed = self.top / "closed"
        closed.mkdir(mode=0o755)
        self.top.chmod(0o755)
        for path in self.set.rglob("*"):
            path.chmod(0o755)
        self.set.chmod(0o755)
        self.assert_refused(IO, "Permission denied", "unpack", self.set, "--to", closed / "out", user=65534,
                            group=65534, extra_groups=[])

    def test_a_full_disk_leaves_no_half_file(self):
        (self.files / "large").write_bytes(RANDOM.bytes(3_000_000))
        (self.files / "small").write_bytes(b"small")
        self.pack()
        out = self.top / "out"
        done = run("unpack", self.set, "--to", out, preexec_fn=self.limit_files)
        self.assertEqual(done.returncode, 5, done.stderr)
        self.assertEqual(sorted(tree(out)), ["small"])

    @staticmethod
    def limit_files():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))


if __name__ == "__main__":
    unittest.main()
