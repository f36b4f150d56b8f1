# SPDX-License-Identifier: Apache-2.0
"""Real files of all kinds come back byte for byte, and their variables are found."""
import subprocess
import time
import unittest

import h5py
import numpy

from classic_netcdf import classic
from set_case import NOT_FOUND, SetCase, run

RANDOM = numpy.random.default_rng(7)


class Hdf5(SetCase):
    def file(self, name="f.h5", **options):
        return h5py.File(self.files / name, "w", **options)

    def test_contiguous_datasets_are_regions_with_type_and_shape(self):
        with self.file() as file:
            for kind in "i1 i2 i4 i8 u1 u2 u4 u8 f4 f8 c8 c16".split():
                file[kind] = numpy.ones((20, 30), kind)
            file["group/deep/field"] = RANDOM.random((4, 5, 6))
        packed = self.assert_round_trip()
        self.assertEqual((packed["variables"], packed["uncut"]), (13, []))
        for kind in "i1 i2 i4 i8 u1 u2 u4 u8 f4 f8 c8 c16".split():
            self.assert_region(f"f.h5:{kind}", f"{kind[0]}{8 * int(kind[1:])}", (20, 30))
        self.assert_region("f.h5:group/deep/field", "f64", (4, 5, 6))

    def test_big_endian_datasets_say_so(self):
        with self.file() as file:
            file["x"] = numpy.arange(100, dtype=">f8")
            file["n"] = numpy.arange(100, dtype=">i4")
            file["z"] = numpy.ones(100, ">c16")
        self.assert_round_trip()
        self.assert_region("f.h5:x", "f64", (100,), "big-endian")
        self.assert_region("f.h5:n", "i32", (100,), "big-endian")
        self.assert_region("f.h5:z", "c128", (100,), "big-endian")

    def test_chunks_are_gathered_in_the_order_of_the_array(self):
        data = RANDOM.random((40, 60))
        with self.file() as file:
            chunked = file.create_dataset("x", (40, 60), "f8", chunks=(20, 30))
            chunked[20:, :] = data[20:, :]  # written out of order
            chunked[:20, :] = data[:20, :]
            ragged = file.create_dataset("ragged", data=data, chunks=(16, 16))
            self.assertEqual(ragged.id.get_num_chunks(), 12)
        self.assert_round_trip()
        for name in ("x", "ragged"):
            self.assert_region(f"f.h5:{name}", "f64", (40, 60))
            self.assertTrue((self.extract(f"f.h5:{name}") == data).all())

    def test_filtered_chunks_are_shown_as_the_array_that_they_are(self):
        data = numpy.arange(10000.0).reshape(100, 100)
        with self.file() as file:
            file.create_dataset("deflate", data=data, chunks=(25, 25), compression="gzip")
            file.create_dataset("shuffle", data=data, chunks=(25, 25), compression="gzip", shuffle=True)
            file.create_dataset("fletcher", data=data, chunks=(25, 25), fletcher32=True)
            file.create_dataset("lzf", data=data, chunks=(25, 25), compression="lzf")
        packed = self.assert_round_trip()
        self.assertEqual(packed["variables"], 4)
        for name in ("deflate", "shuffle", "fletcher", "lzf"):
            self.assert_region(f"f.h5:{name}", "f64", (100, 100))
        self.assertEqual(self.regions()["f.h5:fletcher"]["bytes"], 16 * (25 * 25 * 8 + 4))

    def test_a_user_block_shifts_everything(self):
        data = RANDOM.random((50, 50))
        with self.file(userblock_size=1024) as file:
            file["x"] = data
            file.create_dataset("chunked", data=data, chunks=(50, 25))
        with open(self.files / "f.h5", "r+b") as file:
            file.write(b"#!/bin/sh\n" * 100)
        packed = self.assert_round_trip()
        self.assertEqual(packed["variables"], 2)
        for name in ("x", "chunked"):
            self.assertTrue((self.extract(f"f.h5:{name}") == data).all(), name)

    def test_compounds_strings_enumerations_and_arrays_have_a_region(self):
        with self.file() as file:
            file["particle"] = numpy.zeros(50, [("x", "f8"), ("id", "i4")])
            file["text"] = numpy.array([b"word"] * 50, "S12")
            file["words"] = ["variable length"] * 50
            file["enum"] = numpy.zeros(200, h5py.enum_dtype({"A": 0, "B": 1}, "i2"))
            file.create_dataset("array", (50,), numpy.dtype("(3,4)f4"))[...] = numpy.ones((50, 3, 4), "f4")
        self.assert_round_trip()
        self.assert_region("f.h5:particle", "opaque", (50,), "compound")
        self.assert_region("f.h5:text", "opaque", (50,), "string")
        self.assert_region("f.h5:enum", "i16", (200,))
        self.assert_region("f.h5:array", "f32", (50, 3, 4))

    def test_links_attributes_and_odd_datasets_stay_whole(self):
        with self.file("other.h5") as file:
            file["far"] = RANDOM.random(500)
        with self.file() as file:
            file["x"] = RANDOM.random(500)
            file["hard"] = file["x"]
            file["soft"] = h5py.SoftLink("/x")
            file["dangling"] = h5py.SoftLink("/nowhere")
            file["external"] = h5py.ExternalLink("other.h5", "/far")
            file["x"].attrs["units"] = "K"
            file.attrs["large"] = numpy.ones(4000)
            file["empty"] = numpy.zeros((0, 7))
            file["nothing"] = h5py.Empty("f8")
            file["scalar"] = 3.5
            file.create_dataset("never written", (1000,), "f8")
            file.create_dataset("never chunked", (1000,), "f8", chunks=(10,))
            file.create_dataset("elsewhere", (100,), "f8", external=[("raw.bin", 0, 800)])
            compact = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            compact.set_layout(h5py.h5d.COMPACT)
            h5py.h5d.create(file.id, b"compact", h5py.h5t.NATIVE_DOUBLE, h5py.h5s.create_simple((50,)), compact)
            layout = h5py.VirtualLayout((2, 500), "f8")
            layout[0] = h5py.VirtualSource("other.h5", "far", (500,))
            file.create_virtual_dataset("virtual", layout)
        packed = self.assert_round_trip()
        self.assertEqual(sorted(name for name, region in self.regions().items()
                                if name.startswith("f.h5:") and not region.get("in_skeleton")),
                         ["f.h5:", "f.h5:hard"])  # x, by the first of its names
        self.assertEqual(packed["variables"], 2)

    def test_names_of_variables_may_be_long_and_odd(self):
        with self.file("a:b.h5") as file:
            for name in ("täglich", "line\nbreak", "x" * 300, "b.h5:c", "with space"):
                file[name] = RANDOM.random(100)
        with self.file("ä" * 120) as file:
            file["y" * 100] = RANDOM.random(100)
        packed = self.assert_round_trip()
        self.assertEqual(packed["variables"], 6)
        self.assertEqual(len(self.regions()), 6 + 2 + 1)
        self.assertIn("a:b.h5:täglich", self.regions())

    def test_many_chunks_do_not_take_for_ever(self):
        with self.file() as file:
            some = file.create_dataset("some", (4000,), "i4", chunks=(8,))
            some[...] = numpy.arange(4000)
            file.create_dataset("too many", data=numpy.arange(20000, dtype="i4"), chunks=(1,))
        start = time.monotonic()
        packed = self.assert_round_trip()
        self.assertLess(time.monotonic() - start, 20)
        self.assertEqual(packed["variables"], 1)
        self.assert_region("f.h5:some", "i32", (4000,))

    def test_many_chunks_are_found_in_any_format(self):
        data = numpy.cumsum(RANDOM.random((20000, 64)), axis=1)
        for path, options in {"old.h5": {"userblock_size": 512}, "new.h5": {"libver": "latest"}}.items():
            with h5py.File(self.files / path, "w", **options) as file:
                file.create_dataset("x", data=data, chunks=(1, 64))
                holes = file.create_dataset("holes", (20000, 4), "f8", chunks=(2, 4), compression="gzip")
                holes[::3] = 7.5
        with self.file() as file:
            far = file.create_dataset("far", (1 << 40,), "f4", chunks=(64,))
            for place in range(0, 1 << 40, 1 << 29):
                far[place] = 1.5
        start = time.monotonic()
        packed = self.assert_round_trip()
        self.assertLess(time.monotonic() - start, 20)
        self.assertEqual(packed["variables"], 5)
        for path in ("old.h5", "new.h5"):
            self.assert_region(f"{path}:x", "f64", (20000, 64))
            self.assertTrue((self.extract(f"{path}:x") == data).all())
            self.assertTrue((self.extract(f"{path}:holes")[::3] == 7.5).all())

    def test_the_newest_file_format_is_read(self):
        with self.file(libver="latest") as file:
            file["x"] = RANDOM.random(500)
            grown = file.create_dataset("grown", (0, 10), "f8", maxshape=(None, 10), chunks=(5, 10))
            for rows in range(5, 105, 5):
                grown.resize((rows, 10))
                grown[rows - 5:] = rows
        self.assertEqual(self.assert_round_trip()["variables"], 2)
        self.assert_region("f.h5:grown", "f64", (100, 10))


CDL = """netcdf sample {{
dimensions: time = UNLIMITED; x = 20; y = 15; word = 9;
variables:
  double temperature(time, y, x); temperature:units = "K";
  float pressure(y, x); short flags(time, x); char label(time, word); byte mask(y, x);
  int count(x); double lonely(time);
  :title = "a test";
data:
  pressure = {pressure};
  temperature = {temperature};
  flags = {flags};
  label = "one", "two", "three";
  mask = {mask};
  count = {count};
  lonely = 1, 2, 3;
}}
"""


def numbers(count):
    return ", ".join(map(str, range(count)))


class Netcdf(SetCase):
    def generate(self, kind, text=None, name="sample.nc"):
        source = self.top / "sample.cdl"
        source.write_text(text or CDL.format(
            pressure=numbers(300), temperature=numbers(900), flags=numbers(60),
            mask=", ".join(str(i % 100) for i in range(300)), count=numbers(20)))
        subprocess.run(["ncgen", "-k", kind, "-o", self.files / name, source], check=True, timeout=30)

    def test_classic_files_are_cut_with_their_records(self):
        for kind, magic in (("classic", 1), ("64-bit offset", 2), ("64-bit data", 5)):
            with self.subTest(kind):
                self.generate(kind)
                self.assertEqual((self.files / "sample.nc").read_bytes()[:4], b"CDF" + bytes([magic]))
                packed = self.assert_round_trip()
                self.assertEqual((packed["variables"], packed["uncut"]), (4, []))
                self.assert_region("sample.nc:temperature", "f64", (3, 15, 20), "big-endian")
                self.assert_region("sample.nc:pressure", "f32", (15, 20), "big-endian")
                self.assert_region("sample.nc:flags", "i16", (3, 20), "big-endian")
                self.assert_region("sample.nc:mask", "i8", (15, 20))
                self.assertTrue((self.extract("sample.nc:temperature").ravel() == numpy.arange(900)).all())
                self.assertTrue((self.extract("sample.nc:flags").ravel() == numpy.arange(60)).all())
                # Too small for regions of their own.
                self.assertEqual(self.extract("sample.nc:count").tolist(), list(range(20)))
                self.assertEqual(self.extract("sample.nc:lonely").tolist(), [1, 2, 3])
                done = run("extract", "latest", "sample.nc:none", "--store", self.set)
                self.assertEqual(done.returncode, NOT_FOUND, done.stderr)

    def test_a_single_record_variable_is_not_padded(self):
        text = ("netcdf s { dimensions: t = UNLIMITED; x = 3; variables: short s(t, x); data: s = "
                + numbers(3 * 101) + "; }")
        self.generate("classic", text)
        self.assert_round_trip()
        self.assert_region("sample.nc:s", "i16", (101, 3), "big-endian")
        self.assertTrue((self.extract("sample.nc:s").ravel() == numpy.arange(303)).all())

    def test_netcdf_4_is_hdf5(self):
        self.generate("netCDF-4")
        self.assert_round_trip()
        self.assert_region("sample.nc:pressure", "f32", (15, 20))
        self.generate("netCDF-4 classic model")
        self.assert_round_trip()

    def test_a_variable_without_records_is_an_empty_array(self):
        cdl = "netcdf e { dimensions: t = UNLIMITED; x = 9; variables: double r(t, x); int i(x); data: i = 1; }"
        self.generate("classic", cdl, "e.nc")
        self.pack()
        found = self.extract("e.nc:r")
        self.assertEqual((found.shape, found.dtype), ((0, 9), numpy.dtype(">f8")))

    def test_records_of_one_variable_are_one_piece_however_many(self):
        data = numpy.arange(1_200_000, dtype=">i4")
        (self.files / "s.nc").write_bytes(classic([(b"a", 4, 4)], data.size, data.tobytes()))
        self.assertEqual(self.assert_round_trip()["variables"], 1)
        self.assertTrue((self.extract("s.nc:a") == data).all())

    def test_variables_in_any_number_of_pieces_can_be_had(self):
        records = numpy.zeros(600_000, [("a", ">i4"), ("b", ">f8")])
        records["a"], records["b"] = numpy.arange(600_000), RANDOM.random(600_000)
        (self.files / "s.nc").write_bytes(classic([(b"a", 4, 4), (b"b", 6, 8)], 600_000, records.tobytes()))
        self.assertEqual(self.assert_round_trip()["variables"], 0)
        for name in "ab":
            self.assertTrue((self.extract(f"s.nc:{name}") == records[name]).all(), name)

    def test_a_file_without_variables_or_records_is_packed(self):
        self.generate("classic", "netcdf empty { }", "empty.nc")
        self.generate("classic", "netcdf e { dimensions: t = UNLIMITED; x = 50; variables: int a(t, x); }", "none.nc")
        self.assertEqual(self.assert_round_trip()["variables"], 0)


class Damaged(SetCase):
    """Whatever is wrong with a file, its bytes come back."""

    def sample(self):
        path = self.top / "sample.h5"
        with h5py.File(path, "w") as file:
            file["x"] = numpy.arange(3000.0)
            file.create_dataset("c", data=numpy.arange(3000.0), chunks=(100,), compression="gzip")
        return path.read_bytes()

    def test_cut_files_are_packed_whole(self):
        content = self.sample()
        for size in (0, 1, 7, 8, 100, 600, 2048, len(content) // 2, len(content) - 1):
            (self.files / f"{size}.h5").write_bytes(content[:size])
        packed = self.assert_round_trip()
        self.assertEqual(packed["files"], 9)
        self.assertTrue(any("the HDF5 library cannot open it" in entry["reason"] for entry in packed["uncut"]))

    def test_flipped_bytes_in_headers_do_no_harm(self):
        content = self.sample()
        for seed in range(150):
            random = numpy.random.default_rng(seed)
            damaged = bytearray(content)
            for place in random.integers(0, 4000, 8):
                damaged[place] = random.integers(0, 256)
            (self.files / f"{seed}.h5").write_bytes(damaged)
        self.assert_round_trip()

    def test_damaged_netcdf_headers_do_no_harm(self):
        source = self.top / "s.cdl"
        source.write_text("netcdf s { dimensions: t = UNLIMITED; x = 40; variables: double a(t, x); int b(x); "
                          "data: a = " + numbers(400) + "; b = " + numbers(40) + "; }")
        for kind in ("classic", "64-bit offset", "64-bit data"):
            subprocess.run(["ncgen", "-k", kind, "-o", self.top / "s.nc", source], check=True, timeout=30)
            content = (self.top / "s.nc").read_bytes()
            for seed in range(60):
                random = numpy.random.default_rng(seed)
                damaged = bytearray(content)
                for place in random.integers(3, 180, 3):
                    damaged[place] = random.choice([0, 1, 127, 255])
                (self.files / f"{kind}-{seed}.nc").write_bytes(damaged)
            (self.files / f"{kind}-cut.nc").write_bytes(content[:90])
        self.assert_round_trip()

    def test_garbage_empty_and_sparse_files_are_packed(self):
        (self.files / "empty").write_bytes(b"")
        (self.files / "garbage").write_bytes(RANDOM.bytes(100_000))
        (self.files / "signature").write_bytes(b"\x89HDF\r\n\x1a\n" + RANDOM.bytes(5000))
        (self.files / "magic").write_bytes(b"CDF\x01" + b"\xff" * 500)
        with open(self.files / "sparse", "wb") as file:
            file.seek(30_000_000)
            file.write(b"end")
        packed = self.assert_round_trip()
        self.assertEqual(packed["variables"], 0)
        self.assertLess((self.top / "out" / "sparse").stat().st_blocks * 512, 20_000_000)


if __name__ == "__main__":
    unittest.main()
