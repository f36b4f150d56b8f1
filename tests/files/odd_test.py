# SPDX-License-Identifier: Apache-2.0
"""What people do by mistake, and files that nobody expects: one clear message, or the right result."""
import fcntl
import os
import pathlib
import shutil
import unittest

from set_case import BUSY, IO, NOT_FOUND, USAGE, SetCase, run, tree

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "golden"
NOBODY = 65534


class OddFiles(SetCase):
    def test_equal_names_in_different_directories_stay_apart(self):
        for name in ("a", "b"):
            (self.files / name).mkdir()
            (self.files / name / "same").write_text(name)
        self.pack(self.files / "a/same", self.files / "b/same", self.files / "a/../b/same")
        self.assertEqual(sorted(tree(self.unpack())), ["a/same", "b/same"])

    def test_names_may_be_any_bytes(self):
        for name in (b"new\nline", "ünï".encode(), b"bad\xff\xfe", b"..x", b"-o", b" ", b"a:b", b"\x1b[31m"):
            with open(os.fsencode(self.files) + b"/" + name, "wb") as file:
                file.write(name)
        self.assertEqual(self.assert_round_trip()["files"], 8)
        self.assertNotIn(b"\x1b", run("show", "latest", "--store", self.set).stdout)

    def test_empty_and_sparse_files_come_back_as_they_were(self):
        (self.files / "empty").write_bytes(b"")
        with open(self.files / "sparse", "wb") as file:
            file.truncate(40 << 20)
            file.seek(17 << 20)
            file.write(b"island")
        self.assert_round_trip()
        self.assertLess((self.top / "out/sparse").stat().st_blocks * 512, 9 << 20)
        self.assertLess(sum(path.stat().st_size for path in self.set.rglob("*") if path.is_file()), 1 << 20)

    def test_two_thousand_files_take_seconds(self):
        for number in range(2000):
            (self.files / f"f{number}").write_text(str(number))
        self.assertEqual(self.assert_round_trip()["files"], 2000)

    def test_an_empty_directory_is_nothing_to_pack(self):
        self.assert_refused(USAGE, "no files to pack", "pack", self.files, "-o", self.set)


class OddPlaces(SetCase):
    def setUp(self):
        super().setUp()
        (self.files / "file").write_bytes(b"content")

    def test_what_is_no_set_is_not_packed_into(self):
        other = shutil.copytree(GOLDEN / "store-1", self.top / "other")
        plain = self.top / "plain"
        plain.write_bytes(b"")
        for words, name in (("a store of application", other), ("not a directory", plain), ("empty", "")):
            self.assert_refused(USAGE, words, "pack", self.files, "-o", name)
        self.assert_refused(USAGE, "a store of application", "watch", self.files, "--to", other, "--once")
        self.assert_refused(USAGE, "lies in the set", "pack", self.files, "-o", self.files)
        self.assertEqual(sorted(path.name for path in self.files.iterdir()), ["file"])

    def test_what_is_no_set_is_no_base_and_not_unpacked(self):
        other = shutil.copytree(GOLDEN / "store-1", self.top / "other")
        for words, name in (("nothing is there", self.top / "none"), ("not a directory", self.files / "file"),
                            ("no directory node-", self.files)):
            self.assert_refused(NOT_FOUND, words, "pack", self.files, "-o", self.set, "--base", name)
            self.assert_refused(NOT_FOUND, words, "unpack", name, "--to", self.top / "out")
        self.assert_refused(USAGE, "not a packed set", "pack", self.files, "-o", self.set, "--base", other)
        self.assert_refused(USAGE, "not made by `belay pack`", "unpack", other, "--to", self.top / "out")

    def test_a_base_that_is_being_written_is_told(self):
        self.pack()
        with open(next(self.set.rglob("lock")), "rb") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            self.assert_refused(BUSY, "--base", "pack", self.files, "-o", self.top / "new", "--base", self.set)

    @unittest.skipUnless(os.geteuid() == 0, "only root can become somebody else")
    def test_what_may_not_be_read_or_written_is_told(self):
        closed = self.top / "closed"
        closed.mkdir(mode=0o755)
        (self.files / "unreadable").write_bytes(b"secret")
        (self.files / "unreadable").chmod(0)
        self.top.chmod(0o777)
        somebody = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        self.assert_refused(IO, "unreadable: Permission denied", "pack", self.files, "-o", self.set, **somebody)
        self.assert_refused(IO, "Permission denied", "pack", self.files / "file", "-o", closed / "set", **somebody)
        (self.files / "unreadable").unlink()
        (self.files / "sub").mkdir(mode=0)
        self.assert_refused(IO, "sub: Permission denied", "pack", self.files, "-o", self.set, **somebody)


if __name__ == "__main__":
    unittest.main()
