# SPDX-License-Identifier: Apache-2.0
"""What the tests of the installed package share: a prefix that was installed and then moved.

The environment says where things are: BELAY_SOURCE, BELAY_BUILD, CMAKE, CC, CXX, and with MPI MPIEXEC.
"""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = pathlib.Path(os.environ["BELAY_SOURCE"])
BUILD = pathlib.Path(os.environ["BELAY_BUILD"])
CMAKE = os.environ["CMAKE"]
CC = os.environ["CC"]
CXX = os.environ["CXX"]
MPIEXEC = os.environ.get("MPIEXEC")
RANKS = 2


def environment(**more):
    """That of this process without Belay's variables, and with what Open MPI wants from root."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("BELAY_")}
    kept.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                OMPI_MCA_rmaps_base_oversubscribe="1")
    return {**kept, **more}


def run(*command, cwd=None, env=None, timeout=100, fails=False):
    """The standard output of a command that must succeed, or all that it says if it must fail."""
    done = subprocess.run([str(part) for part in command], cwd=cwd, env=env or environment(), text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout, check=False)
    everything = f"{done.stdout}{done.stderr}"
    if (done.returncode != 0) != fails:
        raise AssertionError(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{everything}")
    return everything if fails else done.stdout


class InstalledTest(unittest.TestCase):
    """`prefix` is an installed Belay that does not lie where it was installed."""

    @classmethod
    def setUpClass(cls):
        cls.scratch = pathlib.Path(tempfile.mkdtemp(prefix="belay-install-"))
        cls.addClassCleanup(shutil.rmtree, cls.scratch)
        cls.original = cls.scratch / "original"
        run(CMAKE, "--install", BUILD, "--prefix", cls.original)
        cls.prefix = cls.scratch / "moved" / "there"
        cls.prefix.parent.mkdir()
        cls.original.rename(cls.prefix)

    @property
    def libraries(self):
        return next(self.prefix.rglob("libbelay.a")).parent

    def without_shared_libraries(self):
        """A copy of the prefix as a build with BUILD_SHARED_LIBS=OFF would have installed it."""
        copy = self.scratch / "static"
        shutil.copytree(self.prefix, copy, symlinks=True)
        for shared in [*copy.rglob("lib*.so*"), *copy.rglob("Belay*SharedTargets*.cmake")]:
            shared.unlink()
        return copy

    def folder(self, name):
        made = self.scratch / name
        made.mkdir(parents=True)
        return made

    def check_counts_starts(self, program, env=None):
        """Two starts of one process: the second finds what the first saved."""
        place = self.folder(f"run-{pathlib.Path(program).name}-{len(list(self.scratch.iterdir()))}")
        found = [run(program, cwd=place, env=env) for _ in range(2)]
        self.assertEqual(found, ["1\n", "2\n"])

    def check_counts_starts_on_ranks(self, program, env=None):
        place = self.folder(f"run-{pathlib.Path(program).name}-{len(list(self.scratch.iterdir()))}")
        found = [run(MPIEXEC, "-n", RANKS, program, cwd=place, env=env) for _ in range(2)]
        self.assertEqual(found, [f"{RANKS}\n", f"{2 * RANKS}\n"])
