#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Real jobs under mpirun on played nodes, whose directories are deleted or damaged: the job is
killed, nodes are lost, and it must end with the digest of an undisturbed run."""
import contextlib
import itertools
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

PROGRAM = os.environ["EXAMPLE"]
SECONDS = 60  # for one job; a hang is a failure
JOB = ["--rows", "200", "--cols", "256", "--steps", "40"]


class NodeLoss(unittest.TestCase):
    calm = {}  # by number of ranks: the digest of an undisturbed run

    def setUp(self):
        memory = pathlib.Path("/dev/shm")
        self.place = pathlib.Path(tempfile.mkdtemp(dir=memory if memory.is_dir() else None))
        self.addCleanup(shutil.rmtree, self.place, ignore_errors=True)

    def environment(self, store, redundancy, **more):
        return os.environ | {
            "BELAY_STORE": str(self.place / store), "BELAY_INTERVAL": "2 calls",
            "BELAY_RANKS_PER_NODE": "1", "BELAY_REDUNDANCY": redundancy, "BELAY_BLOCK": "4KiB",
            "TMPDIR": str(self.place), "OMPI_MCA_btl_vader_backing_directory": str(self.place),
        } | more

    def command(self, ranks, *more):
        return [os.environ["MPIEXEC"], "-n", str(ranks), PROGRAM, *JOB, *more]

    def run_job(self, store, redundancy, ranks, **more):
        return subprocess.run(self.command(ranks), env=self.environment(store, redundancy, **more),
                              capture_output=True, text=True, timeout=SECONDS, check=False)

    def digest(self, done):
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return re.search(r"^digest ([0-9a-f]{16})$", done.stdout, re.M)[1]

    def versions(self, store):
        """By version: the ranks of which some node has the manifest."""
        found = {}
        for file in (self.place / store).glob("node-*/manifest-*"):
            if name := re.fullmatch(r"manifest-\d+-(\d+)-(\d+)", file.name):
                found.setdefault(int(name[1]), set()).add(int(name[2]))
        return found

    def kill_after(self, store, redundancy, ranks, versions, during=lambda newest: None, **more):
        """Starts the job and kills all of its processes once so many versions are there."""
        with subprocess.Popen(self.command(ranks, "--pace", "20"),
                              env=self.environment(store, redundancy, **more),
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as launcher:
            deadline = time.monotonic() + SECONDS
            seen = set()
            while len(seen) < versions:
                seen |= {v for v, r in self.versions(store).items() if len(r) == ranks}
                during(len(seen))
                self.assertIsNone(launcher.poll(), "it ended before it could be killed")
                self.assertLess(time.monotonic(), deadline, "no new version")
                time.sleep(0.005)
            for process in self.descendants(launcher.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            launcher.wait(SECONDS)

    @staticmethod
    def descendants(process):
        """Children before their parents, `process` last."""
        found = []
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
            for thread in pathlib.Path(f"/proc/{process}/task").iterdir():
                for child in (thread / "children").read_text(encoding="ascii").split():
                    found += NodeLoss.descendants(int(child))
        return found + [process]

    def nodes(self, store):
        return sorted((self.place / store).glob("node-*"))

    def killed_job(self, redundancy, ranks, **more):
        """(digest of an undisturbed run, a store with several versions of a killed one)"""
        if ranks not in self.calm:
            self.calm[ranks] = self.digest(self.run_job("calm", "none", ranks))
        self.kill_after("killed", redundancy, ranks, 6, **more)
        return self.calm[ranks], self.place / "killed"

    def check_every_subset(self, redundancy, ranks, losses, dedup="collective", share=1):
        """Every `share`-th way to lose so many nodes."""
        calm, killed = self.killed_job(redundancy, ranks, BELAY_DEDUP=dedup)
        for lost in list(itertools.combinations(range(ranks), losses))[::share]:
            with self.subTest(lost=lost):
                shutil.rmtree(self.place / "trial", ignore_errors=True)
                shutil.copytree(killed, self.place / "trial")
                for node in lost:
                    shutil.rmtree(self.place / "trial" / f"node-{node}")
                done = self.run_job("trial", redundancy, ranks, BELAY_DEDUP=dedup)
                self.assertEqual(self.digest(done), calm)
                self.assertRegex(done.stdout, r"restored version [0-9]+ at step [1-9]")

    def test_two_replicas_survive_the_loss_of_any_node(self):
        self.check_every_subset("replicas:2", 4, 1)

    def test_three_replicas_survive_the_loss_of_any_two_nodes(self):
        self.check_every_subset("replicas:3", 4, 2)

    def test_four_and_two_survive_the_loss_of_any_two_nodes(self):
        self.check_every_subset("erasure:4+2", 6, 2)

    def test_four_and_two_survive_the_loss_of_any_node(self):
        self.check_every_subset("erasure:4+2", 7, 1, dedup="local", share=2)

    def test_two_and_one_survive_the_loss_of_any_node_without_dedup(self):
        self.check_every_subset("erasure:2+1", 4, 1, dedup="none")

    def test_six_and_three_survive_the_loss_of_three_nodes(self):
        self.check_every_subset("erasure:6+3", 9, 3, share=28)

    def check_losses_one_after_the_other(self, redundancy, ranks, together):
        calm, killed = self.killed_job(redundancy, ranks)
        for nodes in together:
            for node in nodes:
                shutil.rmtree(killed / f"node-{node}")
            with contextlib.suppress(AssertionError):  # it may be done before it is killed
                self.kill_after("killed", redundancy, ranks, 2 + len(self.versions("killed")))
        self.assertEqual(self.digest(self.run_job("killed", redundancy, ranks)), calm)

    def test_a_loss_after_the_healing_is_survived_again(self):
        self.check_losses_one_after_the_other("replicas:2", 4, [(1,), (2,), (0,)])

    def test_losses_after_the_healing_of_stripes_are_survived_again(self):
        self.check_losses_one_after_the_other("erasure:2+2", 4, [(1, 2), (0, 3)])

    def check_one_loss_more(self, redundancy, ranks, lost):
        _, killed = self.killed_job(redundancy, ranks)
        for node in lost:
            shutil.rmtree(killed / f"node-{node}")
        done = self.run_job("killed", redundancy, ranks)
        self.assertNotEqual(done.returncode, 0, done.stdout)
        self.assertRegex(done.stdout + done.stderr, r"no version .* can be restored")

    def test_one_loss_more_is_an_error_that_says_what_is_missing(self):
        self.check_one_loss_more("replicas:2", 4, (1, 2))

    def test_one_loss_more_than_parity_can_bear_is_an_error(self):
        self.check_one_loss_more("erasure:3+1", 4, (0, 2))

    def test_a_job_comes_back_on_other_nodes_and_with_an_empty_disk(self):
        calm, killed = self.killed_job("replicas:2", 4)
        (killed / "node-3").rename(killed / "elsewhere")
        shutil.rmtree(killed / "elsewhere")
        (killed / "node-0").rename(killed / "swap")
        (killed / "node-2").rename(killed / "node-0")
        (killed / "swap").rename(killed / "node-2")
        done = self.run_job("killed", "replicas:2", 4)
        self.assertEqual(self.digest(done), calm)
        self.assertRegex(done.stdout, r"restored version [0-9]+ at step [1-9]")

    def test_damaged_files_are_replaced_by_copies(self):
        self.check_damaged_nodes("replicas:2", 4, (1,))

    def test_damaged_files_are_rebuilt_from_parity(self):
        self.check_damaged_nodes("erasure:2+2", 4, (0, 2))

    def check_damaged_nodes(self, redundancy, ranks, nodes):
        calm, killed = self.killed_job(redundancy, ranks)
        for file in itertools.chain(*((killed / f"node-{n}").glob("*-*-*-*") for n in nodes)):
            data = bytearray(file.read_bytes())
            data[len(data) // 3::997] = bytes(len(data[len(data) // 3::997]))
            file.write_bytes(data)
        done = self.run_job("killed", redundancy, ranks)
        self.assertEqual(self.digest(done), calm)
        self.assertRegex(done.stdout, r"restored version [0-9]+ at step [1-9]")

    def check_loss_while_the_job_runs(self, redundancy, first, later):
        """Files of nodes `first` vanish between versions or during one, nodes `later` at the end."""
        lost = []

        def lose(newest):
            if newest == 2 and not lost:
                for node in first:
                    lost.append(node)
                    for file in (self.place / "killed" / f"node-{node}").glob("*-*-*-*"):
                        with contextlib.suppress(FileNotFoundError):
                            file.unlink()

        calm, killed = self.killed_job(redundancy, 4, during=lose)
        self.assertTrue(lost)
        for node in later:  # what was lost first must be safe again by now
            shutil.rmtree(killed / f"node-{node}")
        done = self.run_job("killed", redundancy, 4)
        self.assertEqual(self.digest(done), calm)
        self.assertRegex(done.stdout, r"restored version [0-9]+ at step [1-9]")

    def test_a_node_lost_while_the_job_runs_is_written_anew(self):
        self.check_loss_while_the_job_runs("replicas:2", (1,), (2,))

    def test_stripes_that_lose_nodes_while_the_job_runs_are_written_anew(self):
        self.check_loss_while_the_job_runs("erasure:2+2", (1, 3), (0, 2))

    def check_kill_during_a_restore(self, redundancy, lost):
        """The job is killed a little later each time, from its start until it has healed."""
        calm, killed = self.killed_job(redundancy, 4)
        for node in lost:
            shutil.rmtree(killed / f"node-{node}")
        before = max(self.versions("killed"))
        for attempt in range(6):
            with subprocess.Popen(self.command(4, "--pace", "20"),
                                  env=self.environment("killed", redundancy),
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as launcher:
                deadline = time.monotonic() + SECONDS
                # A lost node has its directory again when the job has opened the store.
                while not all((killed / f"node-{n}" / "lock").exists() for n in lost) \
                        or (attempt == 5 and max(self.versions("killed")) == before):
                    self.assertIsNone(launcher.poll(), "it ended before it could be killed")
                    self.assertLess(time.monotonic(), deadline, "no restore")
                    time.sleep(0.002)
                time.sleep(0.01 * attempt)
                for process in self.descendants(launcher.pid):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(process, signal.SIGKILL)
                launcher.wait(SECONDS)
            if attempt < 5:
                for node in lost:
                    (killed / f"node-{node}" / "lock").unlink(missing_ok=True)
        done = self.run_job("killed", redundancy, 4)
        self.assertEqual(self.digest(done), calm)
        self.assertRegex(done.stdout, r"restored version [0-9]+ at step [1-9]")

    def test_a_job_killed_during_the_restore_from_copies_restores_again(self):
        self.check_kill_during_a_restore("replicas:2", (1,))

    def test_a_job_killed_during_the_restore_from_parity_restores_again(self):
        self.check_kill_during_a_restore("erasure:2+2", (0, 3))

    def check_a_loss_in_each_of_two_sets(self, redundancy, ranks, share=1):
        """The plate begins with equal blocks on all ranks: of both sets, which are the nodes with
        even and with odd numbers. Every `share`-th way to lose one of each."""
        calm, killed = self.killed_job(redundancy, ranks)
        trial = self.place / "trial"
        pairs = itertools.product(range(0, ranks, 2), range(1, ranks, 2))
        for lost in list(pairs)[::share]:
            with self.subTest(lost=lost):
                shutil.rmtree(trial, ignore_errors=True)
                shutil.copytree(killed, trial)
                for node in lost:
                    shutil.rmtree(trial / f"node-{node}")
                done = self.run_job("trial", redundancy, ranks)
                self.assertEqual(self.digest(done), calm)
                self.assertRegex(done.stdout, r"restored version [0-9]+ at step [1-9]")

    def test_each_set_of_two_and_one_may_lose_a_node(self):
        self.check_a_loss_in_each_of_two_sets("erasure:2+1", 6)

    def test_each_set_of_three_and_one_may_lose_a_node(self):
        self.check_a_loss_in_each_of_two_sets("erasure:3+1", 8, share=5)

    def test_more_copies_than_nodes_are_refused_before_anything_is_written(self):
        done = self.run_job("refused", "replicas:5", 4)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("needs 5 nodes", done.stdout + done.stderr)
        self.assertFalse((self.place / "refused").exists())


if __name__ == "__main__":
    unittest.main()
