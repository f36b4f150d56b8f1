# SPDX-License-Identifier: Apache-2.0
"""Variables that are not worth a region of their own: show lists them, and extract gives all that it lists."""
import pathlib
import re
import shutil
import subprocess
import unittest

import h5py
import numpy

from classic_netcdf import classic
from read_table import read_table
from set_case import DAMAGE, OK, UNSUPPORTED, USAGE, SetCase, run

RANDOM = numpy.random.default_rng(41)
HERE = pathlib.Path(__file__).resolve().parent


def compact(file, name, data):
    properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    properties.set_layout(h5py.h5d.COMPACT)
    space = h5py.h5s.create_simple(data.shape)
    dataset = h5py.h5d.create(file.id, name.encode(), h5py.h5t.py_create(data.dtype), space, properties)
    dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, data)


def datasets_of(file):
    """Everything in it that lies in it, by name."""
    found = {}

    def visit(name, what):
        if isinstance(what, h5py.Dataset) and not what.is_virtual and not what.external:
            found[name] = what
    file.visititems(visit)
    return found


class SmallCase(SetCase):
    def write(self, path="f.h5", **options):
        return h5py.File(self.files / path, "w", **options)

    def in_skeleton(self, version="latest"):
        return {name: region for name, region in self.regions(version).items() if region.get("in_skeleton")}

    def extract_all(self, exit_code=OK):
        out = self.top / "all.h5"
        done = run("extract", "latest", "--all", "--hdf5", out, "--force", "--store", self.set)
        self.assertEqual(done.returncode, exit_code, done.stderr)
        return h5py.File(out, "r"), done.stderr.decode()

    def shown_text(self):
        """Lines of regions, by the name in quotes."""
        done = run("show", "latest", "--store", self.set)
        self.assertEqual(done.returncode, OK, done.stderr)
        lines = done.stdout.decode().split("Regions\n")[1].splitlines()[1:]
        return {re.match(r'  ("(?:[^"\\]|\\.)*")', line).group(1): line.split() for line in lines}

    def assert_all_listed(self, path="f.h5"):
        """Every dataset of the file is listed as what it is, and extract gives its elements."""
        whole, _ = self.extract_all()
        shown = self.regions()
        with h5py.File(self.files / path, "r") as original:
            datasets = datasets_of(original)
            self.assertEqual(sorted(name for name in shown if name.startswith(f"{path}:")),
                             sorted([f"{path}:"] + [f"{path}:{name}" for name in datasets]))
            for name, dataset in datasets.items():
                expected = dataset[...] if dataset.shape is not None else numpy.zeros(0, dataset.dtype)
                region = shown[f"{path}:{name}"]
                self.assertEqual(tuple(region["shape"]), expected.shape, name)
                self.assertEqual(region["type"]["bytes"], dataset.dtype.itemsize, name)
                self.assertEqual(region["bytes"], dataset.id.get_storage_size(), name)
                for found in (self.extract(f"{path}:{name}"), whole[f"rank-0/{path}:{name}"][...]):
                    self.assertEqual((found.dtype, found.shape), (dataset.dtype, expected.shape), name)
                    self.assertEqual(found.tobytes(), expected.tobytes(), name)


class Hdf5(SmallCase):
    def fill(self, file):
        file["x"] = RANDOM.random(500)
        file["scalar"] = 2.5
        file["small"] = numpy.arange(3, dtype="i4")
        file["group/deep/big-endian"] = numpy.arange(4, dtype=">f8")
        file["complex"] = numpy.ones((2, 2), "c16") * (1 + 2j)
        file["word"] = numpy.bytes_("fixed")
        file["words"] = numpy.array([b"a", b"longer"], "S7")
        file["pair"] = numpy.array([(1, 2.5), (3, 4.5)], [("a", "i4"), ("b", "f8")])
        file["choice"] = numpy.zeros(5, h5py.enum_dtype({"a": 0, "b": 1}, "i2"))
        file["half"] = numpy.ones(7, "f2")
        compact(file, "compact", numpy.arange(50.0))
        compact(file, "compact too", numpy.arange(6, dtype="u1").reshape(2, 3))
        file.create_dataset("tiny chunks", data=numpy.arange(20000, dtype="i4"), chunks=(1,))
        file.create_dataset("few chunks", data=numpy.arange(9, dtype="i2"), chunks=(2,))
        file.create_dataset("filtered", data=numpy.zeros((300, 20)), chunks=(300, 20), compression="gzip")
        file["empty"] = numpy.zeros((0, 7))
        file["nothing"] = h5py.Empty("f8")
        file.create_dataset("never written", (1000,), "f8", fillvalue=7.5)
        file.create_dataset("never chunked", (1000,), "f4", chunks=(10,))

    def test_every_dataset_is_listed_and_can_be_had(self):
        for options in ({}, {"libver": "latest", "userblock_size": 1024}):
            with self.subTest(options):
                with self.write(**options) as file:
                    self.fill(file)
                packed = self.assert_round_trip()
                self.assertEqual((packed["variables"], packed["uncut"]), (1, []))
                self.assert_all_listed()
        listed = self.in_skeleton()
        self.assertEqual(len(listed), 18)
        self.assertNotIn("f.h5:x", listed)
        small = listed["f.h5:small"]
        self.assertEqual((small["type"], small["shape"], small["bytes"]),
                         ({"kind": "i32", "bytes": 4, "name": ""}, [3], 12))
        self.assertEqual((small["blocks"], small["written_bytes"], small["changed_bytes"]), (0, 0, None))
        self.assertNotIn("encoding", small)
        self.assert_region("f.h5:group/deep/big-endian", "f64", (4,), "big-endian")
        self.assert_region("f.h5:word", "opaque", (), "string")

    def test_people_see_where_they_are(self):
        with self.write() as file:
            self.fill(file)
            file["line\nbreak \x1b[31m"] = 1
        self.pack()
        lines = self.shown_text()
        self.assertEqual(lines['"f.h5:small"'], ['"f.h5:small"', "0", "i32", "3", "12", "B", "-", "-", "in", "skeleton"])
        self.assertIn("single", lines['"f.h5:scalar"'])
        self.assertNotIn("skeleton", lines['"f.h5:x"'])
        self.assertNotIn(b"\x1b", run("show", "latest", "--store", self.set).stdout)
        odd = next(name for name in self.in_skeleton() if "line" in name)
        for name in (odd, "f.h5:line\nbreak \x1b[31m"):
            self.assertEqual(self.extract(name), 1)

    def test_those_that_only_point_to_elements_are_listed_and_told(self):
        with self.write() as file:
            file["title"] = "of variable length"
            file["x"] = numpy.arange(100.0)
            file["small"] = 1.5
        self.pack()
        self.assert_region("f.h5:title", "opaque", (), "reference")
        self.assertEqual(self.in_skeleton()["f.h5:title"]["bytes"], 16)
        done = run("extract", "latest", "f.h5:title", "--store", self.set, "-o", self.top / "title.npy")
        self.assertEqual(done.returncode, UNSUPPORTED, done.stderr)
        whole, said = self.extract_all()
        self.assertIn('"f.h5:title" is left out', said)
        self.assertNotIn("f.h5:title", whole["rank-0"])
        self.assertEqual(whole["rank-0/f.h5:small"][()], 1.5)

    def test_what_lies_in_other_files_is_not_listed(self):
        with self.write() as file:
            file["x"] = numpy.arange(100.0)
            file.create_dataset("elsewhere", (10,), "f8", external=[("raw.bin", 0, 80)])
            layout = h5py.VirtualLayout((5,), "f8")
            layout[:] = h5py.VirtualSource("other.h5", "far", (5,))
            file.create_virtual_dataset("virtual", layout)
        self.pack()
        self.assertEqual(self.in_skeleton(), {})

    def test_a_name_that_looks_like_a_part_of_another_is_none(self):
        with self.write() as file:
            file["x"] = numpy.arange(3.0)
            file["x[0]"] = numpy.arange(100.0) + 7
        self.pack()
        self.assert_all_listed()

    def test_the_variable_alone_will_do_if_one_file_has_it(self):
        for rank in range(2):
            with self.write(f"r{rank}.h5") as file:
                file["step"] = 40 + rank
                file[f"only{rank}"] = numpy.arange(rank + 1)
                file["x"] = numpy.arange(2.0 if rank else 200.0)
        self.pack()
        self.assertEqual(self.extract("only1").tolist(), [0, 1])
        for name in ("step", "x"):  # once in a region, once in a skeleton
            done = run("extract", "latest", name, "--store", self.set)
            self.assertEqual(done.returncode, USAGE)
            self.assertIn(b"2 files have a variable", done.stderr)
        self.assertEqual([int(self.extract(f"r{rank}.h5:step")) for rank in range(2)], [40, 41])

    def test_damage_of_other_variables_does_not_keep_them_back(self):
        with self.write() as file:
            file["large"] = RANDOM.random(1 << 18)
            file["small"] = 2.5
        self.pack()
        segment = next(self.set.rglob("segment-*"))
        content = bytearray(segment.read_bytes())
        content[len(content) // 2] ^= 1
        segment.write_bytes(content)
        self.assertEqual(run("extract", "latest", "f.h5:large", "--store", self.set).returncode, DAMAGE)
        self.assertEqual(self.extract("f.h5:small"), 2.5)


def numbers(count):
    return ", ".join(map(str, range(count)))


CDL = ("netcdf s { dimensions: t = UNLIMITED; x = 5; y = 60; word = 4; variables: double field(t, y); int few(x); "
       "double lonely(t); char label(t, word); byte b(x); short s; float f(t, x); data: field = " + numbers(180)
       + "; few = " + numbers(5) + '; lonely = 1, 2, 3; label = "one", "two", "six"; b = 9, 8, 7, 6, 5; s = 77; f = '
       + numbers(15) + "; }")
VALUES = {"few": numpy.arange(5, dtype=">i4"), "lonely": numpy.array([1, 2, 3], ">f8"),
          "label": numpy.frombuffer(b"one\0two\0six\0", "u1").reshape(3, 4), "b": numpy.array([9, 8, 7, 6, 5], "i1"),
          "s": numpy.array(77, ">i2"), "f": numpy.arange(15, dtype=">f4").reshape(3, 5),
          "field": numpy.arange(180, dtype=">f8").reshape(3, 60)}


class Netcdf(SmallCase):
    def generate(self, kind, text=CDL):
        (self.top / "s.cdl").write_text(text)
        subprocess.run(["ncgen", "-k", kind, "-o", self.files / "s.nc", self.top / "s.cdl"], check=True, timeout=30)

    def test_every_variable_of_a_classic_file_is_listed_and_can_be_had(self):
        for kind in ("classic", "64-bit offset", "64-bit data"):
            with self.subTest(kind):
                self.generate(kind)
                self.assertEqual(self.assert_round_trip()["variables"], 1)
                self.assertEqual(sorted(self.in_skeleton()), sorted(f"s.nc:{name}" for name in VALUES if name != "field"))
                whole, _ = self.extract_all()
                for name, expected in VALUES.items():
                    self.assertEqual(tuple(self.regions()[f"s.nc:{name}"]["shape"]), expected.shape, name)
                    self.assertEqual(self.regions()[f"s.nc:{name}"]["bytes"], expected.nbytes, name)
                    for found in (self.extract(f"s.nc:{name}"), whole[f"rank-0/s.nc:{name}"][...]):
                        self.assertEqual((found.dtype, found.shape), (expected.dtype, expected.shape), name)
                        self.assertEqual(found.tobytes(), expected.tobytes(), name)

    def test_every_variable_of_a_netcdf_4_file_is_listed_and_can_be_had(self):
        for kind in ("netCDF-4", "netCDF-4 classic model"):
            with self.subTest(kind):
                self.generate(kind)
                self.assert_round_trip()
                self.assert_all_listed("s.nc")
                for name in ("few", "lonely", "b", "s", "f"):
                    self.assertTrue((self.extract(f"s.nc:{name}") == VALUES[name]).all(), name)

    def test_variables_without_records_are_listed_as_empty(self):
        self.generate("classic", "netcdf e { dimensions: t = UNLIMITED; x = 9; variables: double r(t, x); int i; data: i = 1; }")
        self.pack()
        self.assertEqual({name: (region["shape"], region["bytes"]) for name, region in self.in_skeleton().items()},
                         {"s.nc:r": ([0, 9], 0), "s.nc:i": ([], 4)})
        self.assertEqual(self.extract("s.nc:r").shape, (0, 9))

    def test_variables_in_too_many_pieces_are_listed_and_can_be_had(self):
        records = numpy.zeros(600_000, [("a", ">i4"), ("b", ">f8")])
        records["a"], records["b"] = numpy.arange(600_000), RANDOM.random(600_000)
        (self.files / "s.nc").write_bytes(classic([(b"a", 4, 4), (b"b", 6, 8)], 600_000, records.tobytes()))
        self.assertEqual(self.assert_round_trip()["variables"], 0)
        self.assertEqual({name: region["bytes"] for name, region in self.in_skeleton().items()},
                         {"s.nc:a": 2_400_000, "s.nc:b": 4_800_000})
        for name in "ab":
            self.assertTrue((self.extract(f"s.nc:{name}") == records[name]).all(), name)

    def test_what_is_not_in_the_file_is_not_listed(self):
        (self.files / "s.nc").write_bytes(classic([(b"a", 4, 4), (b"b", 4, 4)], 3, bytes(20)))
        self.assert_round_trip()
        self.assertEqual(list(self.in_skeleton()), ["s.nc:a"])

    def test_of_a_name_that_is_there_twice_one_is_listed(self):
        (self.files / "s.nc").write_bytes(classic([(b"a", 4, 4), (b"a", 4, 4)], 3, numpy.arange(6, dtype=">i4").tobytes()))
        self.assert_round_trip()
        self.assertEqual(list(self.in_skeleton()), ["s.nc:a"])
        self.assertEqual(self.extract("s.nc:a").tolist(), [0, 2, 4])

    def test_a_table_does_not_grow_without_bounds(self):
        count = 70_000
        variables = [(b"%06d" % i, 4, 4) for i in range(count)] + [(b"large", 4, 400)]
        data = numpy.arange(count, dtype=">i4").tobytes() + bytes(400)
        (self.files / "s.nc").write_bytes(classic(variables, 1, data))
        self.assertEqual(self.assert_round_trip()["variables"], 1)
        self.assertEqual(len(self.in_skeleton()), (1 << 16) - 1)
        self.assertEqual(self.extract("s.nc:000007").tolist(), [7])
        self.assertEqual(self.extract("s.nc:069999").tolist(), [69999])  # though it has no line


class Versions(SmallCase):
    def write_step(self, step, path="r.h5"):
        with self.write(path) as file:
            file["field"] = numpy.arange(5000.0)
            file["step"] = step
            compact(file, "table", numpy.arange(20.0) * step)

    def test_each_has_its_own(self):
        for step in (1, 2, 3):
            self.write_step(step)
            self.assert_round_trip()
        base, self.set = self.set, self.top / "next"
        self.write_step(4)
        self.assertEqual(self.pack(self.files, "--base", base)["version"], 4)
        self.assert_same(self.files, self.unpack())
        for version in (1, 2, 3, 4):
            self.assertEqual(sorted(self.in_skeleton(str(version))), ["r.h5:step", "r.h5:table"])
            out = self.top / "step.npy"
            done = run("extract", version, "r.h5:step", "--store", self.set, "-o", out, "--force")
            self.assertEqual((done.returncode, int(numpy.load(out))), (OK, version), done.stderr)

    def test_of_watched_steps_have_the_names_of_their_regions(self):
        for step in (10, 20):
            self.write_step(step, f"restart.{step}.0.h5")
        self.run_json("watch", self.files, "--to", self.set, "--once", "--settle", "100ms", "--files", "1",
                      "--pattern", "restart.{step}.{rank}.h5")
        alias = "restart.{step}.0.h5"
        self.assertEqual(sorted(self.in_skeleton()), [f"{alias}:step", f"{alias}:table"])
        self.assertIn(f"{alias}:field", self.regions())
        for name in (f"{alias}:step", "restart.20.0.h5:step", "step"):
            self.assertEqual(self.extract(name), 20)

    def test_the_table_is_as_the_document_says(self):
        self.write_step(7)
        self.pack()
        done = run("extract", "latest", "belay.files", "--raw", "-o", "-", "--store", self.set)
        table = read_table(done.stdout)
        file, = table["files"]
        self.assertEqual((file["path"], file["size"]), (b"r.h5", (self.files / "r.h5").stat().st_size))
        self.assertEqual([region["variable"] for region in file["regions"]], [b"", b"field"])
        self.assertEqual(file["in_skeleton"], [
            {"name": b"r.h5:step", "variable": b"step", "bytes": 8,
             "array": {"kind": 4, "bytes": 8, "name": b"", "shape": []}},
            {"name": b"r.h5:table", "variable": b"table", "bytes": 160,
             "array": {"kind": 10, "bytes": 8, "name": b"", "shape": [20]}}])

    def test_sets_from_before_are_read_and_gone_on_with(self):
        shutil.copytree(HERE / "set-2", self.set)
        self.assertEqual(self.in_skeleton(), {})
        self.assertEqual(self.extract("f.h5:small").tolist(), [0, 1, 2])
        self.assertEqual(self.extract("c.nc:b").tolist(), [1, 2, 3])
        self.assertTrue((self.extract("f.h5:deflate") == numpy.arange(600.0).reshape(20, 30)).all())
        out = self.unpack()
        shutil.copytree(out, self.files, dirs_exist_ok=True)
        packed = self.assert_round_trip()
        self.assertEqual(packed["version"], 2)
        self.assertLess(packed["ledger"]["written_bytes"], 2000, "only the table is new")
        self.assertEqual(sorted(self.in_skeleton()), ["c.nc:b", "f.h5:small"])


if __name__ == "__main__":
    unittest.main()
