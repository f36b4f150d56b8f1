#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Real jobs with heads on played nodes: stores go from jobs with heads to jobs without and back, and
a head is killed in the middle of a version. See heads_job.cpp."""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

PROGRAM = os.environ["PROGRAM"]
SECONDS = 60  # for one job; a hang is a failure
TIMEOUT = 2  # of the jobs


class Heads(unittest.TestCase):
    def setUp(self):
        memory = pathlib.Path("/dev/shm")
        self.place = pathlib.Path(tempfile.mkdtemp(dir=memory if memory.is_dir() else None))
        self.addCleanup(shutil.rmtree, self.place, ignore_errors=True)

    def run_job(self, nodes, ranks, heads, threads, *task, **more):
        """With `ranks` that compute and `heads` on each of `nodes`."""
        environment = os.environ | {
            "BELAY_STORE": str(self.place / "store"), "BELAY_REDUNDANCY": "replicas:2",
            "BELAY_RANKS_PER_NODE": str(ranks + heads), "BELAY_TIMEOUT": "30s",
            "BELAY_BACKGROUND": "head" if heads else "thread",
            "BELAY_HEADS_PER_NODE": str(max(heads, 1)), "BELAY_STAGING": "16MiB",
            "TMPDIR": str(self.place), "OMPI_MCA_btl_vader_backing_directory": str(self.place),
        } | more
        # Without a victim the launcher may end the job as it likes.
        recovery = ["--enable-recovery"] if len(task) > 2 else []
        command = [os.environ["MPIEXEC"], *recovery, "-n", str(nodes * (ranks + heads)), PROGRAM,
                   threads, *map(str, task)]
        return subprocess.run(command, env=environment, capture_output=True, text=True,
                              timeout=SECONDS, check=False)

    def expect_step(self, step, done, nodes, ranks, heads):
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        size = nodes * ranks
        expected = [f"rank {rank} of {size} has step {step}" for rank in range(size)]
        expected += ["a head has served"] * (nodes * heads)
        self.assertEqual(sorted(done.stdout.splitlines()), sorted(expected), done.stderr)

    def lose(self, node):
        shutil.rmtree(self.place / "store" / f"node-{node}")

    def test_a_store_goes_from_heads_to_threads_and_back(self):
        self.expect_step(3, self.run_job(4, 2, 1, "single", 1, 3), 4, 2, 1)
        self.lose(1)
        self.expect_step(5, self.run_job(4, 2, 0, "multiple", 4, 5), 4, 2, 0)
        self.lose(2)
        self.expect_step(7, self.run_job(4, 2, 1, "multiple", 6, 7), 4, 2, 1)

    def test_heads_make_parity_and_nodes_are_lost(self):
        settings = {"BELAY_REDUNDANCY": "erasure:2+1"}
        self.expect_step(3, self.run_job(4, 1, 1, "single", 1, 3, **settings), 4, 1, 1)
        self.lose(1)
        self.expect_step(5, self.run_job(4, 1, 1, "multiple", 4, 5, **settings), 4, 1, 1)
        self.lose(3)
        self.expect_step(6, self.run_job(4, 1, 0, "single", 6, 6, **settings), 4, 1, 0)

    def test_ten_versions_that_grow_and_carry_survive_lost_nodes(self):
        settings = {"BELAY_REDUNDANCY": "erasure:2+2", "BELAY_SEGMENTS": "3"}
        self.expect_step(10, self.run_job(4, 1, 1, "single", 1, 10, **settings), 4, 1, 1)
        self.lose(0)
        self.lose(2)
        self.expect_step(11, self.run_job(4, 1, 1, "single", 11, 11, **settings), 4, 1, 1)
        self.lose(1)
        self.lose(3)
        self.expect_step(12, self.run_job(4, 1, 0, "multiple", 12, 12, **settings), 4, 1, 0)

    def test_heads_bring_versions_to_the_global_tier_and_all_nodes_are_lost(self):
        settings = {"BELAY_LEVELS": "local:1,global:1", "BELAY_GLOBAL": str(self.place / "global")}
        self.expect_step(3, self.run_job(2, 2, 1, "single", 1, 3, **settings), 2, 2, 1)
        self.assertTrue(list((self.place / "global").glob("node-*/bundle-*")))
        shutil.rmtree(self.place / "store")
        self.expect_step(4, self.run_job(2, 2, 1, "single", 4, 4, **settings), 2, 2, 1)
        shutil.rmtree(self.place / "store")
        self.expect_step(5, self.run_job(2, 2, 0, "single", 5, 5, **settings), 2, 2, 0)

    def test_several_heads_on_a_node(self):
        self.expect_step(2, self.run_job(2, 3, 2, "single", 1, 2), 2, 3, 2)
        self.lose(0)
        self.expect_step(3, self.run_job(2, 3, 2, "single", 3, 3), 2, 3, 2)

    def test_a_head_is_killed_in_the_middle_of_a_version(self):
        for last, threads, redundancy in ((2, "single", "replicas:2"),
                                          (4, "multiple", "erasure:2+1")):
            done = self.run_job(4, 2, 1, threads, last - 1, last, 2, self.place / f"now-{last}",
                                BELAY_TIMEOUT=f"{TIMEOUT}s", BELAY_REDUNDANCY=redundancy)
            lost = re.findall(r"^rank (\d) lost a peer after ([0-9.]+) s$", done.stdout, re.M)
            self.assertEqual(sorted(rank for rank, _ in lost), [str(rank) for rank in range(8)],
                             done.stdout + done.stderr)
            # One call may wait for a head, the next for ranks; the machine may be busy.
            for _, seconds in lost:
                self.assertLess(float(seconds), 3 * TIMEOUT + 10)
            done = self.run_job(4, 2, 1, threads, last, last, BELAY_REDUNDANCY=redundancy)
            self.expect_step(last, done, 4, 2, 1)

    def test_too_few_ranks_are_one_error_on_all_before_anything_is_written(self):
        done = self.run_job(2, 1, 2, "single", 1, 1)
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(len(re.findall("has 3 ranks, of which 2 would be heads", done.stderr)), 6,
                         done.stderr)
        self.assertFalse((self.place / "store").exists())


if __name__ == "__main__":
    unittest.main()
