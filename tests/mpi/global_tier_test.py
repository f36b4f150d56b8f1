#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Real jobs under mpirun with a global tier: the job is killed, local disks are deleted, and it must
come back from what is left, wherever its ranks run, and end with the digest of an undisturbed run."""
import contextlib
import json
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
TOOL = os.environ["TOOL"]
SECONDS = 60  # for one job; a hang is a failure
RANKS = 4
JOB = ["--rows", "200", "--cols", "256", "--steps", "60"]
LEVELS = "local:1,replicas:2:2,global:3"


def environment(place, levels=LEVELS, **more):
    return os.environ | {
        "BELAY_STORE": str(place / "local"), "BELAY_GLOBAL": str(place / "global"),
        "BELAY_LEVELS": levels, "BELAY_INTERVAL": "2 calls", "BELAY_BLOCK": "4KiB",
        "TMPDIR": str(place), "OMPI_MCA_btl_vader_backing_directory": str(place),
    } | more


def command(nodes, *more):
    """`nodes` is a shell expression of the rank."""
    script = f"BELAY_NODE=n$(({nodes.replace('rank', '$OMPI_COMM_WORLD_RANK')})) exec \"$0\" \"$@\""
    return [os.environ["MPIEXEC"], "-n", str(RANKS), "sh", "-c", script, PROGRAM, *JOB, *more]


def run_job(place, nodes="rank", levels=LEVELS):
    return subprocess.run(command(nodes), env=environment(place, levels), capture_output=True,
                          text=True, timeout=SECONDS, check=False)


def descendants(process):
    """Children before their parents, `process` last."""
    found = []
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
        for thread in pathlib.Path(f"/proc/{process}/task").iterdir():
            for child in (thread / "children").read_text(encoding="ascii").split():
                found += descendants(int(child))
    return found + [process]


def whole_versions(directory):
    found = {}
    for file in directory.glob("node-*/*"):
        # On the global tier each rank is a set of its own here: every node has one.
        if name := re.fullmatch(r"(?:manifest|bundle)-\d+-(\d+)-(\d+)", file.name):
            found.setdefault(int(name[1]), set()).add(int(name[2]))
    return {version for version, ranks in found.items() if len(ranks) == RANKS}


def kill_after(place, directory, versions, levels=LEVELS):
    """Starts the job and kills all of its processes once so many versions are in the directory."""
    with subprocess.Popen(command("rank", "--pace", "20"), env=environment(place, levels),
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as launcher:
        deadline = time.monotonic() + SECONDS
        seen = set()
        while len(seen) < versions:
            seen |= whole_versions(directory)
            if launcher.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"it ended with {len(seen)} versions")
            time.sleep(0.005)
        for process in descendants(launcher.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        launcher.wait(SECONDS)


class GlobalTier(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        memory = pathlib.Path("/dev/shm")
        cls.root = pathlib.Path(tempfile.mkdtemp(dir=memory if memory.is_dir() else None))
        cls.addClassCleanup(shutil.rmtree, cls.root, ignore_errors=True)
        for name in ("calm", "killed"):
            (cls.root / name).mkdir()
        done = run_job(cls.root / "calm")
        assert done.returncode == 0, done.stdout + done.stderr
        cls.calm = re.search(r"^digest ([0-9a-f]{16})$", done.stdout, re.M)[1]
        kill_after(cls.root / "killed", cls.root / "killed" / "global", 3)

    def setUp(self):
        self.place = self.root / "trial"
        shutil.rmtree(self.place, ignore_errors=True)
        for part in ("local", "global"):
            shutil.copytree(self.root / "killed" / part, self.place / part)

    def expect_the_same_end(self, nodes="rank", levels=LEVELS):
        done = run_job(self.place, nodes, levels)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn(f"digest {self.calm}", done.stdout)
        self.assertRegex(done.stdout, r"restored version [0-9]+ at step [1-9]")
        return done

    def test_all_local_disks_deleted(self):
        shutil.rmtree(self.place / "local")
        self.expect_the_same_end()

    def test_half_of_the_local_disks_deleted(self):
        for node in (0, 2):
            shutil.rmtree(self.place / "local" / f"node-n{node}")
        self.expect_the_same_end()

    def test_other_nodes_and_empty_disks(self):
        shutil.rmtree(self.place / "local")
        self.expect_the_same_end("7 + rank / 2")

    def test_the_same_nodes_in_another_order(self):
        shutil.rmtree(self.place / "local" / "node-n1")
        self.expect_the_same_end(f"{RANKS - 1} - rank")

    def test_damage_on_every_local_disk(self):
        for file in (self.place / "local").glob("node-*/segment-*"):
            data = bytearray(file.read_bytes())
            data[300:-70:997] = bytes(len(data[300:-70:997]))
            file.write_bytes(data)
        self.expect_the_same_end()

    def test_without_local_disks(self):
        levels = "global:1"
        shutil.rmtree(self.place)
        self.place.mkdir()
        kill_after(self.place, self.place / "global", 4, levels)
        self.assertFalse((self.place / "local").exists())
        self.expect_the_same_end("rank + 2", levels)
        self.assertFalse((self.place / "local").exists())

    def tool(self, *arguments):
        done = subprocess.run([TOOL, *arguments, "--store", str(self.place / "global"), "--json"],
                              capture_output=True, text=True, timeout=SECONDS, check=False)
        return done.returncode, done.stdout, done.stderr

    def test_the_tool_reads_the_tier_as_a_store(self):
        shutil.rmtree(self.place / "local")
        code, out, err = self.tool("list")
        self.assertEqual(code, 0, out + err)
        versions = [each for each in json.loads(out)["versions"] if each["state"] == "whole"]
        self.assertTrue(versions, out)
        code, out, err = self.tool("check")
        self.assertEqual(code, 0, out + err)
        code, out, err = self.tool("show", str(versions[0]["version"]))
        self.assertEqual(code, 0, out + err)


if __name__ == "__main__":
    unittest.main()
