#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Real jobs whose ranks share files on the global tier: so many ranks into so many files, a kill,
the loss of all local disks, a restart from the tier, and the memory of whoever writes the files."""
import collections
import contextlib
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

from global_tier_test import descendants

SECONDS = 60  # for one job; a hang is a failure
RANKS = 8
JOB = [os.environ["EXAMPLE"], "--rows", "200", "--cols", "256", "--steps", "40"]
# Particles all over the place, so that no two blocks are equal: 40 MiB of them.
LARGE_JOB = [os.environ["LARGE_EXAMPLE"], "--size", "64", "--particles", "16", "--steps", "3"]
LARGE_RANKS = 4
MIB = 1 << 20
BESIDE = 1.5  # MiB of an aggregator that are no buffers and no tables


def environment(place, **more):
    return os.environ | {
        "BELAY_STORE": str(place / "local"), "BELAY_GLOBAL": str(place / "global"),
        "BELAY_LEVELS": "local:1,global:1", "BELAY_INTERVAL": "2 calls",
        "TMPDIR": str(place), "OMPI_MCA_btl_vader_backing_directory": str(place),
    } | more


def launch(place, ranks, job, options, output):
    return subprocess.Popen([os.environ["MPIEXEC"], "-n", str(ranks), *job],
                            env=environment(place, **options), stdout=output,
                            stderr=subprocess.STDOUT)


def finish(launcher):
    """The process is gone afterwards, come what may."""
    try:
        return launcher.wait(SECONDS)
    finally:
        if launcher.poll() is None:
            kill(launcher)


def kill(launcher):
    for process in descendants(launcher.pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    launcher.wait(SECONDS)


def files_of_versions(place):
    """How many files each version has on the global tier, by run and version."""
    count = collections.Counter()
    for file in (place / "global").glob("node-*/*"):
        if name := re.fullmatch(r"bundle-(\d+)-(\d+)-\d+", file.name):
            count[int(name[1]), int(name[2])] += 1
    return count


def files_of_ranks(place):
    """Files that single ranks have written."""
    return [file.name for file in (place / "global").glob("node-*/*")
            if file.name.startswith(("segment-", "manifest-", "copy-"))]


def peak_bytes(process):
    """Of resident memory, so far."""
    status = pathlib.Path(f"/proc/{process}/status").read_text(encoding="ascii")
    return int(re.search(r"^VmHWM:\s+(\d+) kB$", status, re.M)[1]) * 1024


def rank_of(process):
    variables = pathlib.Path(f"/proc/{process}/environ").read_bytes()
    return int(re.search(rb"\0OMPI_COMM_WORLD_RANK=(\d+)\0", variables)[1])


class Aggregate(unittest.TestCase):
    calm = None  # the digest of a job that nobody disturbs

    def setUp(self):
        memory = pathlib.Path("/dev/shm")
        self.place = pathlib.Path(tempfile.mkdtemp(dir=memory if memory.is_dir() else None))
        self.addCleanup(shutil.rmtree, self.place, ignore_errors=True)

    def run_job(self, **options):
        path = self.place / "output"
        with path.open("wb") as output, launch(self.place, RANKS, JOB, options, output) as launcher:
            code = finish(launcher)
        said = path.read_text(encoding="utf-8")
        self.assertEqual(code, 0, said)
        return said

    def kill_after(self, versions, files, **options):
        """Kills the job once so many versions have come to the global tier, whole."""
        whole = set()
        deadline = time.monotonic() + SECONDS
        job = [*JOB, "--pace", "20"]
        with launch(self.place, RANKS, job, options, subprocess.DEVNULL) as launcher:
            while len(whole) < versions and launcher.poll() is None and time.monotonic() < deadline:
                counted = files_of_versions(self.place)
                whole |= {version for version, count in counted.items() if count == files}
                self.assertLessEqual(max(counted.values(), default=0), files)
                time.sleep(0.005)
            ended = launcher.poll()
            kill(launcher)
        self.assertIsNone(ended, f"it ended with {len(whole)} versions of {files} files")
        self.assertEqual(len(whole), versions)

    def check_job(self, first, files, then, files_then):
        """A job that is killed with the options of `first` goes on with those of `then`."""
        self.learn_digest()
        self.kill_after(2, files, **first)
        shutil.rmtree(self.place / "local")
        said = self.run_job(**then)
        self.assertIn(self.calm, said)
        self.assertRegex(said, r"restored version [0-9]+ at step [1-9]")
        newest = max(files_of_versions(self.place).items())
        self.assertEqual((newest[0][0], newest[1]), (2, files_then))
        done = subprocess.run([os.environ["TOOL"], "check", "--store", self.place / "global"],
                              capture_output=True, text=True, timeout=SECONDS, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_four_ranks_share_a_file(self):
        options = {"BELAY_RANKS_PER_NODE": "4", "BELAY_AGGREGATE": "4", "BELAY_CODEC": "raw"}
        self.check_job(options, 2, options, 2)

    def test_four_ranks_share_a_file_over_nodes(self):
        # The program calls plain MPI_Init: members are asked inside collective calls.
        spread = {"BELAY_RANKS_PER_NODE": "1", "BELAY_AGGREGATE": "4", "BELAY_CODEC": "auto"}
        self.check_job(spread, 2, spread, 2)

    def test_ranks_share_no_file_over_nodes_unless_that_is_asked_for(self):
        said = self.run_job(BELAY_RANKS_PER_NODE="1")
        self.assertEqual(max(files_of_versions(self.place).items())[1], RANKS, said)

    def test_an_aggregator_that_dies_while_it_writes_leaves_what_was_there(self):
        spread = {"BELAY_RANKS_PER_NODE": "1", "BELAY_AGGREGATE": "4", "BELAY_CODEC": "raw"}
        said = self.run_job(BELAY_LEVELS="local:1")
        calm = re.search(r"^digest [0-9a-f]{16}$", said, re.M)[0]
        shutil.rmtree(self.place / "local")
        whole = self.kill_writer_of(4, **spread)
        shutil.rmtree(self.place / "local")
        said = self.run_job(**spread)
        restored = int(re.search(r"restored version ([0-9]+) at step [1-9]", said)[1])
        self.assertEqual(restored, whole)
        self.assertIn(calm, said)

    def kill_writer_of(self, rank, **options):
        """Kills the job when that rank writes a file, but the first two, beginning with the rank.
        The newest version of which all files are there."""
        mine = self.place / "global" / f"node-{rank}"
        deadline = time.monotonic() + SECONDS
        job = [*JOB, "--pace", "20"]
        with launch(self.place, RANKS, job, options, subprocess.DEVNULL) as launcher:
            half = 0
            while half <= 2 and launcher.poll() is None and time.monotonic() < deadline:
                names = [file.name for file in mine.glob("bundle-*.tmp")]
                half = max((int(name.split("-")[2]) for name in names), default=half)
            ended = launcher.poll()
            if ended is None:
                for process in descendants(launcher.pid)[:-1]:
                    with contextlib.suppress(OSError, TypeError):
                        if rank_of(process) == rank:
                            os.kill(process, signal.SIGKILL)
            kill(launcher)
        self.assertIsNone(ended, "it ended before the rank wrote")
        return max(version for (_, version), count in files_of_versions(self.place).items()
                   if count == 2)

    def test_nodes_of_unlike_size_and_a_restart_on_others(self):
        # Nodes of 3, 3 and 2 ranks, in sets of at most 2; then all ranks on one node.
        self.check_job({"BELAY_RANKS_PER_NODE": "3", "BELAY_AGGREGATE": "2", "BELAY_CODEC": "auto"},
                       4, {"BELAY_RANKS_PER_NODE": "8", "BELAY_CODEC": "auto"}, 1)

    def learn_digest(self):
        if Aggregate.calm is None:
            said = self.run_job(BELAY_LEVELS="local:1")
            Aggregate.calm = re.search(r"^digest [0-9a-f]{16}$", said, re.M)[0]
            shutil.rmtree(self.place / "local")

    def kill_within(self, seconds, **options):
        """Kills the job after so long, wherever it is by then."""
        job = [*JOB, "--pace", "20"]
        with launch(self.place, RANKS, job, options, subprocess.DEVNULL) as launcher:
            with contextlib.suppress(subprocess.TimeoutExpired):
                launcher.wait(seconds)
            kill(launcher)

    def check_without_disks(self, **options):
        self.learn_digest()
        options = {"BELAY_LEVELS": "global:1", "BELAY_AGGREGATE": "4"} | options
        self.kill_after(2, 2, **options)
        chance = random.Random(8)
        for _ in range(3):
            self.kill_within(chance.uniform(0.5, 2.0), **options)
        said = self.run_job(**options)
        self.assertIn(self.calm, said)
        self.assertRegex(said, r"restored version [0-9]+ at step [1-9]")
        self.assertEqual(max(files_of_versions(self.place).items())[1], 2)
        self.assertEqual(files_of_ranks(self.place), [])
        self.assertFalse((self.place / "local").exists())
        self.check_store()

    def check_store(self):
        for command in ("check", "list"):
            done = subprocess.run([os.environ["TOOL"], command, "--store", self.place / "global"],
                                  capture_output=True, text=True, timeout=SECONDS, check=False)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_without_disks_and_over_nodes(self):
        self.check_without_disks(BELAY_RANKS_PER_NODE="1", BELAY_CODEC="auto")

    def test_without_disks_and_over_nodes_with_threads_that_communicate(self):
        self.check_without_disks(BELAY_RANKS_PER_NODE="1", OMPI_MPI_THREAD_LEVEL="3")

    def test_without_disks_other_ranks_share_files_after_each_kill(self):
        self.learn_digest()
        sets = [(1, 4, 2), (2, 8, 1), (4, 2, 4), (1, 3, 3)]
        for node, ranks, files in sets:
            options = {"BELAY_LEVELS": "global:1", "BELAY_RANKS_PER_NODE": str(node),
                       "BELAY_AGGREGATE": str(ranks), "BELAY_KEEP": "1"}
            before = files_of_versions(self.place)
            self.kill_after_more(before, 2, files, **options)
            self.check_store()
        said = self.run_job(**options)
        self.assertIn(self.calm, said)
        self.assertRegex(said, r"restored version [0-9]+ at step [1-9]")
        self.check_store()

    def kill_after_more(self, before, versions, files, **options):
        """Kills the job once it has made so many versions of so many files."""
        mine = set()
        deadline = time.monotonic() + SECONDS
        job = [*JOB, "--pace", "40"]
        last_run = max((run for run, _ in before), default=0)
        with launch(self.place, RANKS, job, options, subprocess.DEVNULL) as launcher:
            while len(mine) < versions and launcher.poll() is None and time.monotonic() < deadline:
                mine |= {version for version, count in files_of_versions(self.place).items()
                         if version[0] > last_run and count == files}
                time.sleep(0.005)
            ended = launcher.poll()
            kill(launcher)
        self.assertIsNone(ended, f"it ended with {len(mine)} versions of {files} files")
        self.assertEqual(len(mine), versions)

    def test_without_disks_and_with_threads_that_communicate(self):
        self.check_without_disks(OMPI_MPI_THREAD_LEVEL="3")

    def test_without_disks_and_inside_checkpoint(self):
        self.check_without_disks(BELAY_BACKGROUND="inline", BELAY_RANKS_PER_NODE="4")

    def test_without_disks_and_where_only_the_program_may_communicate(self):
        self.check_without_disks()

    def test_without_disks_and_without_being_asked_each_rank_has_its_own_files(self):
        self.learn_digest()
        self.assertIn(self.calm, self.run_job(BELAY_LEVELS="global:1"))
        self.assertEqual(files_of_versions(self.place), {})
        self.assertFalse((self.place / "local").exists())

    def measure_peaks(self, job, **options):
        """The most memory that each rank had."""
        peaks = {}
        job = [*job, "--pace", "200"]
        with launch(self.place, LARGE_RANKS, job, options, subprocess.DEVNULL) as launcher:
            deadline = time.monotonic() + SECONDS
            while launcher.poll() is None and time.monotonic() < deadline:
                for process in descendants(launcher.pid)[:-1]:
                    with contextlib.suppress(OSError, TypeError):  # it ends just now
                        peak, rank = peak_bytes(process), rank_of(process)
                        peaks[rank] = max(peak, peaks.get(rank, 0))
                time.sleep(0.02)
            self.assertEqual(finish(launcher), 0)
        self.assertEqual(sorted(peaks), list(range(LARGE_RANKS)))
        return peaks

    def check_memory(self, staging, job=LARGE_JOB, **options):
        """Whoever writes the files stays within what it was given. The bytes of the files."""
        peaks = self.measure_peaks(job, BELAY_STAGING=f"{staging}MiB", **options)
        files = list((self.place / "global").glob("node-*/bundle-*"))
        written = sum(file.stat().st_size for file in files)
        for tier in ("local", "global"):
            shutil.rmtree(self.place / tier, ignore_errors=True)
        others = max(peaks[rank] for rank in range(1, LARGE_RANKS))
        # Beside it threads have stacks and heaps of their own, and codecs are called.
        self.assertLess(peaks[0] - others, (staging + BESIDE) * MIB, peaks)
        self.assertGreater(written, 24 * MIB)
        return written

    def test_whoever_writes_the_file_stays_within_the_memory_that_it_was_given(self):
        raw = self.check_memory(1, BELAY_CODEC="raw")
        auto = self.check_memory(1, BELAY_CODEC="auto")
        self.assertLess(auto, 0.95 * raw)

    def test_tables_of_many_blocks_are_within_that_memory(self):
        # 80 thousand blocks, of which tables for all ranks at once would take more.
        for options in ({}, {"BELAY_RANKS_PER_NODE": "1"}, {"BELAY_LEVELS": "global:1"}):
            with self.subTest(**options):
                self.check_memory(4, BELAY_BLOCK="512B", BELAY_CODEC="auto",
                                  BELAY_AGGREGATE=str(LARGE_RANKS), **options)

    def test_tables_of_one_rank_that_are_larger_than_that_memory_are_never_there_at_once(self):
        # 80 thousand blocks of each rank, whose tables would take 6 MiB.
        job = [os.environ["LARGE_EXAMPLE"], "--size", "128", "--particles", "16", "--steps", "3"]
        for options in ({}, {"BELAY_RANKS_PER_NODE": "1"}, {"BELAY_LEVELS": "global:1"}):
            with self.subTest(**options):
                self.check_memory(1, job, BELAY_BLOCK="512B", BELAY_CODEC="auto",
                                  BELAY_AGGREGATE=str(LARGE_RANKS), **options)


if __name__ == "__main__":
    unittest.main()
