# SPDX-License-Identifier: Apache-2.0
"""Regions as datasets of HDF5 files: of stores that programs wrote, and of packed sets."""
import pathlib
import shutil
import unittest

import h5py
import numpy

from set_case import OK, USAGE, SetCase, run

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


if __name__ == "__main__":
    unittest.main()
