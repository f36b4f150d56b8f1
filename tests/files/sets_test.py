# SPDX-License-Identifier: Apache-2.0
"""A packed set as a store: versions, differences, bases, kills, full disks."""
import os
import random
import resource
import shutil
import subprocess
import time
import unittest

import h5py
import numpy

from set_case import BUSY, IO, NOT_FOUND, TOOL, USAGE, SetCase, clean_environment, run, tree

RANDOM = numpy.random.default_rng(11)


def write_restart(path, fields):
    with h5py.File(path, "w") as file:
        for name, data in fields.items():
            file[name] = data


class Versions(SetCase):
    def test_a_second_pack_stores_only_what_changed(self):
        fields = {name: RANDOM.random((256, 256)) for name in ("a", "b", "c")}
        write_restart(self.files / "r.h5", fields)
        first = self.pack()
        fields["b"][100, 100] += 1
        write_restart(self.files / "r.h5", fields)
        before = tree(self.files)
        second = self.pack()
        self.assertGreater(first["stored_bytes"], 8 * 256 * 256, "noise does not get smaller")
        self.assertEqual((first["version"], second["version"]), (1, 2))
        # One block of the variable, the skeleton with its times, and the table.
        self.assertLess(second["ledger"]["written_bytes"], 16384 + 8192 + 1024)
        self.assertLess(second["stored_bytes"], 48 << 10)
        self.assert_same(self.files, self.unpack("--version", "2"))
        self.assertEqual(before, tree(self.files))

    def test_equal_variables_of_different_files_lie_side_by_side(self):
        for rank in range(3):
            write_restart(self.files / f"r{rank}.h5", {"t": RANDOM.random(500), "p_7": RANDOM.random(500),
                                                       "p_12": RANDOM.random(500)})
        self.pack()
        names = [name for name in self.regions() if not name.endswith(":")]
        self.assertEqual(names[:6], [f"r{r}.h5:{v}" for v in ("p_12", "p_7") for r in range(3)])
        self.pack(self.files, "--match", "_[0-9]+$=")
        names = [name for name in self.regions() if not name.endswith(":")]
        self.assertEqual({name.split(":")[1][:2] for name in names[:6]}, {"p_"})
        self.assertEqual([name.split(".")[0] for name in names[:6]], ["r0", "r0", "r1", "r1", "r2", "r2"])
        done = run("pack", self.files, "-o", self.set, "--match", "([=")
        self.assertEqual(done.returncode, USAGE)

    def test_keep_retires_versions_of_earlier_calls(self):
        for number in range(6):
            write_restart(self.files / "r.h5", {"x": RANDOM.random(20000)})
            self.pack(self.files, "--keep", "2")
        listed = self.run_json("list", "--store", self.set)["versions"]
        self.assertLessEqual(len(listed), 3)
        self.assertEqual(listed[0]["version"], 6)
        self.assert_same(self.files, self.unpack())
        segments = sum(path.stat().st_size for path in self.set.rglob("segment-*"))
        self.assertLess(segments, 4 * 20000 * 8)

    def test_paths_are_relative_to_the_deepest_common_directory(self):
        for path in ("a/x/1.bin", "a/x/2.bin", "a/y/3.bin", "b/4.bin"):
            (self.files / path).parent.mkdir(parents=True, exist_ok=True)
            (self.files / path).write_bytes(path.encode())
        self.pack(self.files / "a/x/1.bin", self.files / "a/x/2.bin")
        self.assertEqual(sorted(tree(self.unpack())), ["1.bin", "2.bin"])
        self.pack(self.files / "a/x/1.bin", self.files / "a/y")
        self.assertEqual(sorted(tree(self.unpack())), ["x/1.bin", "y/3.bin"])
        self.pack(self.files / "a", self.files / "a/x/1.bin", "--relative-to", self.files)
        self.assertEqual(sorted(tree(self.unpack())), ["a/x/1.bin", "a/x/2.bin", "a/y/3.bin"])
        self.assertEqual(run("pack", self.files / "b", "-o", self.set, "--relative-to", self.files / "a").returncode, USAGE)
        done = run("pack", "4.bin", "../a/x/1.bin", "-o", self.set, cwd=self.files / "b")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(tree(self.unpack())), ["a/x/1.bin", "b/4.bin"])

    def test_links_and_pipes_in_a_directory_are_left_out(self):
        (self.files / "file").write_bytes(b"content")
        (self.files / "link").symlink_to("file")
        os.mkfifo(self.files / "pipe")
        done = run("pack", self.files, "-o", self.set)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b"left out", done.stderr)
        self.assertEqual(sorted(tree(self.unpack())), ["file"])
        self.pack(self.files / "link")  # but who is named is followed
        self.assertEqual(tree(self.unpack())["link"][0], b"content")
        self.assertEqual(run("pack", self.files / "pipe", "-o", self.set).returncode, USAGE)
        self.assertEqual(run("pack", self.files / "nothing", "-o", self.set).returncode, NOT_FOUND)

    def test_a_set_inside_the_packed_directory_does_not_pack_itself(self):
        (self.files / "file").write_bytes(b"content")
        self.set = self.files / "set"
        self.pack()
        self.assertEqual(self.pack()["files"], 1)

    def test_a_thousand_small_files_take_seconds(self):
        for number in range(1000):
            (self.files / f"{number:04}.dat").write_bytes(number.to_bytes(4, "little") * (number % 97))
        start = time.monotonic()
        self.assertEqual(self.assert_round_trip()["files"], 1000)
        self.assertLess(time.monotonic() - start, 20)

    def test_the_environment_does_not_turn_a_set_into_something_else(self):
        (self.files / "file").write_bytes(b"content" * 1000)
        odd = {"BELAY_LEVELS": "replicas:2:1", "BELAY_NODE": "odd", "BELAY_KEEP": "1", "BELAY_STORE": "/nowhere",
               "BELAY_APPLICATION": "other", "BELAY_BACKGROUND": "head", "BELAY_REDUNDANCY": "replicas:3"}
        done = subprocess.run([TOOL, "pack", self.files, "-o", self.set], env={**clean_environment(), **odd},
                              capture_output=True, timeout=30, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([path.name for path in self.set.iterdir()], ["node-files"])

    def test_a_store_of_a_program_is_no_set(self):
        golden = os.path.join(os.path.dirname(__file__), "..", "golden", "store-1")
        shutil.copytree(golden, self.set)
        (self.files / "file").write_bytes(b"content")
        done = run("pack", self.files, "-o", self.set)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(b"not a packed set", done.stderr)
        done = run("unpack", self.set, "--to", self.top / "out")
        self.assertEqual(done.returncode, USAGE)


class Bases(SetCase):
    def test_a_new_set_starts_from_another(self):
        fields = {"a": RANDOM.random(50000), "b": RANDOM.random(50000)}
        write_restart(self.files / "r.h5", fields)
        sunday = self.top / "sunday"
        self.run_json("pack", self.files, "-o", sunday)
        before = {path: path.read_bytes() for path in sunday.rglob("*-*") if path.is_file()}
        fields["b"][7] = 0
        write_restart(self.files / "r.h5", fields)
        packed = self.run_json("pack", self.files, "-o", f"{self.set}/", "--base", sunday)
        self.assertEqual(packed["version"], 2)
        self.assertLess(packed["stored_bytes"], 60000)
        self.assertEqual(before, {path: path.read_bytes() for path in sunday.rglob("*-*") if path.is_file()})
        shutil.rmtree(sunday)
        self.assert_same(self.files, self.unpack())
        self.unpack("--version", "1")
        self.assertEqual(run("check", "--store", self.set).returncode, 0)
        self.assertEqual(sorted(path.name for path in self.top.iterdir()), ["files", "out", "set"])

    def test_another_base_for_a_set_that_is_there_is_refused(self):
        (self.files / "file").write_bytes(b"content")
        other = self.top / "other"
        self.run_json("pack", self.files, "-o", other)
        self.pack()
        done = run("pack", self.files, "-o", self.set, "--base", other)
        self.assertEqual(done.returncode, USAGE)
        self.assertIn(b"leave out --base", done.stderr)
        self.assertEqual(self.pack(self.files, "--base", self.set)["version"], 2)
        self.assertEqual(run("pack", self.files, "-o", self.top / "new", "--base", self.top / "none").returncode, NOT_FOUND)
        self.assertFalse((self.top / "new").exists())


class Disturbed(SetCase):
    def test_killed_at_any_instant_the_set_stays_whole(self):
        fields = {name: RANDOM.random(200000) for name in "abcd"}
        write_restart(self.files / "r.h5", fields)
        self.pack()
        contents = [tree(self.files)]
        chance = random.Random(3)
        for number in range(25):
            fields["b"][number] += 1
            fields["d"] = RANDOM.random(200000)
            write_restart(self.files / "r.h5", fields)
            contents.append(tree(self.files))
            process = subprocess.Popen([TOOL, "pack", self.files, "-o", self.set], env=clean_environment(),
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(chance.uniform(0, 0.04))
            process.kill()
            process.wait()
        versions = self.run_json("list", "--store", self.set)["versions"]
        whole = [version for version in versions if version["state"] == "whole"]
        self.assertGreater(len(whole), 0)
        for version in whole:
            self.assertIn(tree(self.unpack("--version", f'{version["run"]}/{version["version"]}')), contents)
        packed = self.pack()
        self.assert_same(self.files, self.unpack())
        self.assertGreater(packed["version"], max(version["version"] for version in versions))
        self.assertEqual(run("check", "--store", self.set).returncode, 0)

    def test_a_full_disk_costs_the_new_version_only(self):
        write_restart(self.files / "r.h5", {"x": RANDOM.random(100)})
        self.pack()
        before = tree(self.files)
        write_restart(self.files / "r.h5", {"x": RANDOM.random(1_000_000)})
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
        done = run("pack", self.files, "-o", self.set, preexec_fn=limit)
        self.assertEqual(done.returncode, IO, done.stderr)
        self.assertIn(b"File too large", done.stderr)
        self.assertEqual(done.stderr.count(b"\n"), 1, done.stderr)
        self.assertEqual(done.stderr.count(b"elsewhere"), 1, done.stderr)
        self.assertEqual(before, tree(self.unpack()))
        self.assertEqual(run("check", "--store", self.set).returncode, 0)
        self.pack()
        self.assert_same(self.files, self.unpack())

    def test_a_file_that_changes_meanwhile_fails_the_version(self):
        path = self.files / "growing"
        path.write_bytes(b"start" * 1000)
        self.pack()
        path.write_bytes(RANDOM.bytes(200_000_000))
        for change in ("append", "cut", "mapped"):
            process = subprocess.Popen([TOOL, "pack", self.files, "-o", self.set], env=clean_environment(),
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.assertTrue(self.wait_for_segment(process))
            if change == "append":
                with open(path, "ab") as file:
                    file.write(b"more")
            elif change == "cut":
                os.truncate(path, 1000)
            else:
                path.write_bytes(RANDOM.bytes(1000))
            out, errors = process.communicate(timeout=60)
            self.assertEqual(process.returncode, BUSY, (change, out, errors))
            self.assertIn(b"changed while it was packed", errors)
            if change != "append":
                path.write_bytes(RANDOM.bytes(200_000_000))
        versions = self.run_json("list", "--store", self.set)["versions"]
        self.assertEqual([v["version"] for v in versions if v["state"] == "whole"], [1])
        self.assertEqual(tree(self.unpack())["growing"][0], b"start" * 1000)

    def wait_for_segment(self, process):
        """Until the new version is being captured."""
        before = set(self.set.rglob("segment-*"))
        while process.poll() is None:
            if set(self.set.rglob("segment-*")) - before:
                return True
        return False

    def test_two_at_once_come_one_after_the_other(self):
        (self.files / "file").write_bytes(RANDOM.bytes(1_000_000))
        both = [subprocess.Popen([TOOL, "pack", self.files, "-o", self.set], env=clean_environment(),
                                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for _ in range(3)]
        for process in both:
            errors = process.communicate(timeout=60)[1]
            self.assertEqual(process.returncode, 0, errors)
        self.assertEqual(len(self.run_json("list", "--store", self.set)["versions"]), 3)

    def test_a_damaged_table_does_not_keep_from_packing_anew(self):
        write_restart(self.files / "r.h5", {"x": RANDOM.random(1000)})
        self.pack()
        segment = next(self.set.rglob("segment-*"))
        segment.write_bytes(b"\0" * segment.stat().st_size)
        done = run("pack", self.files, "-o", self.set)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b"everything is stored anew", done.stderr)
        self.assert_same(self.files, self.unpack("--version", "2"))


if __name__ == "__main__":
    unittest.main()
