#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The program and the Slurm script of docs/guide/batch.md, with a small stand-in for Slurm: the job is told by signal
that its time is up, is killed, and ends with the result of a job that was left alone.

The environment says where things are: BELAY_SOURCE, BELAY_BUILD, CMAKE, CC, CXX.
"""
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

from snippets import Checker, blocks_of
from snippets_test import SOURCE, install

SECONDS = 60
STEPS = 4000
SRUN = f"""#!/bin/sh
echo $$ > srun.pid
exec mpirun -n "$SLURM_NTASKS" "$@" {STEPS}
"""
SCONTROL = """#!/bin/sh
echo "$@" >> scontrol.log
"""


class Batch(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory(prefix="belay-batch-")
        cls.addClassCleanup(scratch.cleanup)
        cls.place = pathlib.Path(scratch.name)
        checker = Checker(SOURCE, install(cls.place), cls.place)
        for block in blocks_of(SOURCE / "docs/guide/batch.md"):
            for name in block.directives.get("save", []):
                (cls.place / name).write_text(block.text, encoding="utf-8")
        checker.execute("mpicxx", "-std=c++20", "-O2", "-I", checker.prefix / "include", "solver.cpp",
                        "-L", checker.libraries, "-lbelay_mpi", "-lbelay", "-o", "solver")
        for name, text in (("srun", SRUN), ("scontrol", SCONTROL)):
            (cls.place / name).write_text(text, encoding="utf-8")
            (cls.place / name).chmod(0o755)
        cls.environment = {**checker.environment, "PATH": f"{cls.place}:{checker.environment['PATH']}",
                           "BELAY_INTERVAL": "200 calls", "SLURM_NTASKS": "2", "SLURM_NTASKS_PER_NODE": "1"}

    def start(self, job):
        (self.place / "srun.pid").unlink(missing_ok=True)
        environment = {**self.environment, "SLURM_JOB_ID": job, "SLURM_SUBMIT_DIR": str(self.place)}
        return subprocess.Popen(["bash", "job.sh"], cwd=self.place, env=environment, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def end(self, script):
        """What it printed, its exit code, and how often it has asked for a requeue until now."""
        printed = script.communicate(timeout=SECONDS)[0]
        log = self.place / "scontrol.log"
        return printed, script.returncode, log.read_text().splitlines() if log.exists() else []

    def manifests_of(self, job):
        return {path.name for path in self.place.glob(f"stores/{job}/node-*/manifest-*") if path.suffix != ".tmp"}

    def wait_for_versions(self, script, job, there):
        """The process behind srun, once both ranks have voted for two versions that were not there before."""
        deadline = time.monotonic() + SECONDS
        seen = set()
        while len(seen) < 4:
            seen |= self.manifests_of(job) - there
            self.assertIsNone(script.poll(), "it ended too early")
            self.assertLess(time.monotonic(), deadline, "no version within the time")
            time.sleep(0.02)
        return int((self.place / "srun.pid").read_text())

    def interrupt(self, job, number):
        """Sends the signal while the job computes; what the script printed, its code, and the requeues."""
        there = self.manifests_of(job)
        script = self.start(job)
        os.kill(self.wait_for_versions(script, job, there), number)
        return self.end(script)

    def test_a_job_goes_on_after_signal_and_kill_to_the_same_result(self):
        printed, code, requeues = self.end(self.start("1"))
        self.assertEqual((code, requeues), (0, []), printed)
        result = [line for line in printed.splitlines() if line.startswith("result")]
        self.assertEqual(len(result), 2, printed)

        printed, code, requeues = self.interrupt("2", signal.SIGUSR1)
        self.assertEqual((code, requeues), (0, ["requeue 2"]), printed)
        self.assertIn("ended with 85 after version", printed)
        self.assertNotIn("result", printed)

        printed, code, requeues = self.interrupt("2", signal.SIGKILL)
        self.assertEqual((code, requeues), (0, ["requeue 2", "requeue 2"]), printed)
        self.assertNotIn("from step 0\n", printed, "it began anew")

        printed, code, requeues = self.end(self.start("2"))
        self.assertEqual((code, len(requeues)), (0, 2), printed)
        self.assertNotIn("from step 0\n", printed, "it began anew")
        self.assertEqual([line for line in printed.splitlines() if line.startswith("result")], result)

    def test_a_job_that_gets_no_further_is_not_started_again(self):
        (self.place / "stores").mkdir(exist_ok=True)
        (self.place / "stores" / "3").write_text("in the way", encoding="utf-8")
        printed, code, requeues = self.end(self.start("3"))
        self.assertEqual(code, 1, printed)
        self.assertIn("got no further", printed)
        self.assertNotIn("requeue 3", requeues)

    def test_the_script_is_one_that_bash_and_shellcheck_accept(self):
        subprocess.run(["bash", "-n", "job.sh"], cwd=self.place, check=True, timeout=SECONDS)
        if shutil.which("shellcheck"):
            subprocess.run(["shellcheck", "job.sh"], cwd=self.place, check=True, timeout=SECONDS)


if __name__ == "__main__":
    unittest.main()
