# SPDX-License-Identifier: Apache-2.0
"""Regions and variables as .npy and HDF5 files: of stores that programs wrote, and of packed sets."""
import pathlib
import shutil
import unittest

import h5py
import numpy

from set_case import DAMAGE, NOT_FOUND, OK, UNSUPPORTED, USAGE, SetCase, run

RANDOM = numpy.random.default_rng(31)

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "golden"


class ExtractHdf5(SetCase):
    def extract_all(self, store):
        out = self.top / "all.h5"
        said = self.run_json("extract", "latest", "--all", "--hdf5", out, "--force", "--store", store)
        self.assertEqual((said["format"], said["file"]), ("hdf5", str(out)))
        return h5py.File(out, "r"), said["datasets"]

    def test_every_region_of_every_rank_is_a_dataset_with_its_bytes(self):
        for name in ("store-1", "ranks-1", "stripes-2"):
            with self.subTest(name):
                store = shutil.copytree(GOLDEN / name, self.top / name)
                file, datasets = self.extract_all(store)
                self.assertGreater(len(datasets), 2)
                for entry in datasets:
                    rank = entry["dataset"].split("/")[0].removeprefix("rank-")
                    done = run("extract", "latest", entry["region"], "--rank", rank, "--raw", "-o", "-",
                               "--store", store)
                    self.assertEqual(done.returncode, OK, done.stderr)
                    dataset = file[entry["dataset"]]
                    self.assertEqual(numpy.asarray(dataset[()]).tobytes() if dataset.size else b"", done.stdout,
                                     entry)

    def test_packed_variables_have_the_right_values(self):
        values = {"be": numpy.arange(200, dtype=">f8"), "le": numpy.arange(200, dtype="<i2").reshape(10, 20),
                  "group/z": numpy.arange(100) * (1 + 2j), "group/bez": numpy.ones(100, ">c8") * 3j,
                  "group": None}
        with h5py.File(self.files / "f.h5", "w") as file:
            for name, data in values.items():
                if data is not None:
                    file[name] = data
        self.pack()
        file, _ = self.extract_all(self.set)
        for name, data in values.items():
            if data is None:
                continue
            dataset = file[f"rank-0/f.h5:{name}"]
            self.assertEqual((dataset.dtype, dataset.shape), (data.dtype, data.shape), name)
            self.assertTrue((dataset[()] == data).all(), name)

    def test_one_region_alone(self):
        with h5py.File(self.files / "f.h5", "w") as file:
            file["x"] = numpy.arange(100.0)
        self.pack()
        out = self.top / "x.h5"
        self.assertEqual(run("extract", "latest", "f.h5:x", "--hdf5", out, "--store", self.set).returncode, OK)
        with h5py.File(out, "r") as file:
            self.assertEqual(list(file["rank-0"]), ["f.h5:x"])
        self.assertEqual(run("extract", "latest", "f.h5:x", "--hdf5", out, "--store", self.set).returncode, USAGE)
        self.assertEqual(run("extract", "latest", "none", "--hdf5", self.top / "n", "--store", self.set).returncode, 3)
        for arguments in (["--all"], [], ["f.h5:x", "--all", "--hdf5", "y"], ["f.h5:x", "--raw", "--hdf5", "y"]):
            self.assertEqual(run("extract", "latest", *arguments, "--store", self.set).returncode, USAGE, arguments)
        self.assertEqual([path.name for path in self.top.glob("*.tmp")], [])


class ExtractVariables(SetCase):
    """Whatever a variable's layout, what comes out is what h5py reads from the original."""

    def write(self, name="f.h5", **options):
        return h5py.File(self.files / name, "w", **options)

    def assert_equal_to_original(self, names, path="f.h5"):
        whole, _ = self.extract_all()
        with h5py.File(self.files / path, "r") as original:
            for name in names:
                expected = original[name][()]
                for found in (self.extract(f"{path}:{name}"), whole[f"rank-0/{path}:{name}"][()]):
                    self.assertEqual((found.dtype, found.shape), (expected.dtype, expected.shape), name)
                    self.assertEqual(found.tobytes(), expected.tobytes(), name)
                shown = self.regions()[f"{path}:{name}"]
                self.assertEqual(tuple(shown["shape"]), expected.shape, name)

    def extract_all(self):
        out = self.top / "all.h5"
        said = self.run_json("extract", "latest", "--all", "--hdf5", out, "--force", "--store", self.set)
        return h5py.File(out, "r"), said

    def test_of_all_layouts_and_filters(self):
        layouts = {"contiguous": {}, "chunked": {"chunks": (7, 9)}, "one": {"chunks": (64, 64), "maxshape": (None, None)},
                   "deflate": {"chunks": (16, 10), "compression": "gzip"},
                   "shuffle": {"chunks": (5, 50), "compression": "gzip", "shuffle": True},
                   "fletcher": {"chunks": (33, 3), "fletcher32": True},
                   "all": {"chunks": (8, 8), "compression": "gzip", "shuffle": True, "fletcher32": True},
                   "scale": {"chunks": (8, 8), "scaleoffset": 0}}
        with self.write() as file:
            for kind in ("<f8", ">f8", "<f4", "<i2", ">i8", "u1", "<c16"):
                data = (RANDOM.random((64, 50)) * 100).astype(kind)
                for layout, options in layouts.items():
                    if layout == "scale" and numpy.dtype(kind).kind not in "iu":
                        continue
                    file.create_dataset(f"{layout}/{kind}", data=data, **options)
            names = []
            file.visititems(lambda name, what: names.append(name) if isinstance(what, h5py.Dataset) else None)
        self.pack()
        self.assert_equal_to_original(names)

    def test_of_odd_shapes(self):
        with self.write(userblock_size=2048, libver="latest") as file:
            file.create_dataset("row", data=RANDOM.random(1000), chunks=(7,))
            file.create_dataset("deep", data=RANDOM.random((3, 4, 5, 6, 7)), chunks=(2, 3, 2, 5, 4), compression="gzip")
            sparse = file.create_dataset("sparse", (100, 100), "f8", chunks=(10, 10), fillvalue=7.5)
            sparse[33:44, 5] = 1
            file.create_dataset("grown", data=numpy.arange(300).reshape(30, 10), maxshape=(None, 10), chunks=(4, 10))
            file["grown"].resize((13, 10))
            file.create_dataset("text", data=numpy.array([b"word", b"longer word"] * 50, "S12"), chunks=(9,))
        self.pack()
        self.assert_equal_to_original(["row", "deep", "sparse", "grown", "text"])

    def test_of_every_type(self):
        inner = numpy.dtype([("a", "<i2"), ("b", ">f8", (3,))])
        particle = numpy.dtype({"names": ["id", "in", "name", "flag", "z"],
                                "formats": ["<i8", (inner, (2,)), "S7", "u1", "<c16"],
                                "offsets": [0, 8, 61, 68, 72], "itemsize": 96})
        particles = numpy.zeros(300, particle)
        particles["id"], particles["name"] = numpy.arange(300), b"word"
        particles["in"]["b"] = RANDOM.random((300, 2, 3))
        with self.write() as file:
            file["compound"] = particles
            file.create_dataset("filtered", data=particles, chunks=(64,), compression="gzip")
            file["rows"] = particles["in"][:, 0].reshape(50, 6)
            file["half"] = RANDOM.random((40, 50)).astype("f2")
            bits = h5py.h5s.create_simple((300,))
            raw = h5py.h5d.create(file.id, b"bits", h5py.h5t.STD_B16LE, bits)
            raw.write(bits, bits, numpy.arange(300, dtype="u2"), h5py.h5t.STD_B16LE)
            file.create_dataset("choice", data=numpy.arange(300) % 3,
                                dtype=h5py.enum_dtype({"a": 0, "b": 1, "c": 2}, basetype="i2"))
        self.pack()
        self.assert_equal_to_original(["compound", "filtered", "rows", "half", "bits", "choice"])

    def test_whose_members_have_names_that_are_none_for_numpy_are_opaque(self):
        data = numpy.zeros(100, [("it's", "f8"), ("ä", "i4")])
        data["it's"] = RANDOM.random(100)
        with self.write() as file:
            file["odd"] = data
        self.pack()
        found = self.extract("f.h5:odd")
        self.assertEqual((found.dtype, found.tobytes()), (numpy.dtype("V12"), data.tobytes()))
        whole, _ = self.extract_all()
        self.assertEqual(whole["rank-0/f.h5:odd"].dtype, data.dtype)

    def test_that_only_point_to_elements_are_told(self):
        with self.write() as file:
            file["words"] = ["variable length"] * 50
            rows = file.create_dataset("rows", (40,), h5py.vlen_dtype("i4"))
            rows[3] = numpy.arange(10)
            file.create_dataset("links", (30,), h5py.ref_dtype)[...] = rows.ref
            pair = numpy.dtype([("x", "f8"), ("word", h5py.string_dtype())])
            file.create_dataset("pairs", (30,), pair)[0] = (1.5, "word")
        self.pack()
        for name in ("words", "rows", "links", "pairs"):
            done = run("extract", "latest", f"f.h5:{name}", "--store", self.set, "-o", self.top / "x.npy")
            self.assertEqual(done.returncode, UNSUPPORTED, (name, done.stderr))
            self.assertIn(b"belay unpack", done.stderr)
            self.assertFalse((self.top / "x.npy").exists())
        self.assert_region("f.h5:words", "opaque", (50,), "reference")

    def test_beside_so_many_other_bytes_that_these_are_in_parts(self):
        with self.write(userblock_size=1 << 28) as file:
            file["x"] = numpy.arange(500.0)
        with open(self.files / "f.h5", "ab") as file:
            file.write(b"behind all else")
        self.pack()
        whole, _ = self.extract_all()
        self.assertTrue((whole["rank-0/f.h5:x"][()] == numpy.arange(500.0)).all())
        self.assertGreater(whole["rank-0/f.h5:"].size, 1 << 28)

    def test_of_a_file_that_its_writer_never_closed(self):
        with self.write("closed.h5", libver="latest") as file:
            grown = file.create_dataset("x", (0, 50), "f8", maxshape=(None, 50), chunks=(10, 50))
            file.swmr_mode = True
            grown.resize((40, 50))
            grown[...] = numpy.arange(2000).reshape(40, 50)
            file.flush()
            (self.files / "f.h5").write_bytes((self.files / "closed.h5").read_bytes())
        packed = self.assert_round_trip()
        self.assertEqual((packed["variables"], packed["uncut"]), (2, []))
        self.assertTrue((self.extract("f.h5:x") == numpy.arange(2000).reshape(40, 50)).all())

    def test_of_a_set_of_many_files_each_gives_its_own(self):
        for rank in range(4):
            with self.write(f"r{rank}.h5") as file:
                file.create_dataset("x", data=numpy.full((50, 40), rank, "f8"), chunks=(16, 16), compression="gzip")
                file.create_dataset(f"only{rank}", data=numpy.arange(100.0) + rank, chunks=(30,))
        self.pack()
        for rank in range(4):
            self.assertTrue((self.extract(f"r{rank}.h5:x") == rank).all())
            self.assertTrue((self.extract(f"only{rank}") == numpy.arange(100.0) + rank).all())
        done = run("extract", "latest", "x", "--store", self.set)
        self.assertEqual(done.returncode, USAGE)
        self.assertIn(b"4 files have a variable", done.stderr)
        done = run("extract", "latest", "r1.h5:none", "--store", self.set)
        self.assertEqual(done.returncode, NOT_FOUND, done.stderr)

    def test_that_are_too_small_or_too_many_pieces_for_a_region_too(self):
        with self.write() as file:
            file["scalar"] = 2.5
            file["small"] = numpy.arange(3, dtype="i4")
            file.create_dataset("many", data=numpy.arange(20000, dtype="i4"), chunks=(1,))
            file["x"] = numpy.arange(500.0)
            file["link"] = h5py.SoftLink("/x")
            file["empty"] = numpy.zeros((0, 7))
        self.pack()
        with h5py.File(self.files / "f.h5", "r") as original:
            for name in ("scalar", "small", "many", "x", "link", "empty"):
                found = self.extract(f"f.h5:{name}")
                self.assertEqual((found.dtype, found.shape), (original[name].dtype, original[name].shape), name)
                self.assertTrue((found == original[name][()]).all(), name)

    def test_are_not_taken_for_parts_of_others(self):
        with self.write() as file:
            file["x"] = numpy.arange(3.0)
            file["x[0]"] = numpy.arange(100.0) + 7
        self.pack()
        self.assertEqual(self.extract("f.h5:x").tolist(), [0, 1, 2])
        self.assertEqual(self.extract("f.h5:x[0]").tolist(), (numpy.arange(100.0) + 7).tolist())

    def test_are_not_taken_from_other_files(self):
        secret = self.top / "secret"
        secret.write_bytes(b"secret!!" * 100)
        with self.write("other.h5") as file:
            file["far"] = RANDOM.random(500)
        with self.write() as file:
            file["link"] = h5py.ExternalLink(str(self.files / "other.h5"), "/far")
            file.create_dataset("raw", (100,), "f8", external=[(str(secret), 0, 800)])
            layout = h5py.VirtualLayout((500,), "f8")
            layout[:] = h5py.VirtualSource(str(self.files / "other.h5"), "far", (500,))
            file.create_virtual_dataset("virtual", layout)
        self.pack()
        for name in ("link", "raw", "virtual"):
            done = run("extract", "latest", f"f.h5:{name}", "--store", self.set, "-o", self.top / "stolen")
            self.assertIn(done.returncode, (NOT_FOUND, UNSUPPORTED), (name, done.stderr))
            self.assertFalse((self.top / "stolen").exists())

    def test_that_need_a_filter_which_is_not_there_are_told(self):
        with self.write() as file:
            file.create_dataset("lzf", data=numpy.arange(10000.0), chunks=(100,), compression="lzf")
            file["words"] = ["variable length"] * 50
            file["x"] = numpy.arange(100.0)
        self.pack()
        done = run("extract", "latest", "f.h5:lzf", "--store", self.set, "-o", self.top / "x.npy")
        self.assertEqual(done.returncode, UNSUPPORTED, done.stderr)
        self.assertIn(b"filter 32000", done.stderr)
        whole, _ = self.extract_all()  # but keep nothing else back
        self.assertTrue((whole["rank-0/f.h5:x"][()] == numpy.arange(100.0)).all())
        self.assertEqual(whole["rank-0/f.h5:lzf"].dtype, "u1")

    def test_that_are_damaged_are_not_written(self):
        with self.write() as file:
            file.create_dataset("x", data=RANDOM.random(5000), chunks=(1000,), fletcher32=True)
        content = bytearray((self.files / "f.h5").read_bytes())
        with h5py.File(self.files / "f.h5", "r") as file:
            content[file["x"].id.get_chunk_info(2).byte_offset + 5] ^= 1  # by the program that wrote it
        (self.files / "f.h5").write_bytes(content)
        self.assert_round_trip()
        done = run("extract", "latest", "f.h5:x", "--store", self.set, "-o", self.top / "x.npy")
        self.assertEqual(done.returncode, DAMAGE, done.stderr)
        self.assertEqual(sorted(path.name for path in self.top.iterdir()), ["files", "out", "set"])


if __name__ == "__main__":
    unittest.main()
