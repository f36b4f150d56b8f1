# SPDX-License-Identifier: Apache-2.0
"""Stores with copies on several nodes, written by real jobs: which node has what, and which losses cost what."""
import atexit
import itertools
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import tool
from tool import DAMAGE, USAGE, ToolTest

RANKS = 4
_jobs = {}


def job_store(redundancy):
    """The store of a job on four nodes, made once; tests copy it."""
    if redundancy not in _jobs:
        place = pathlib.Path(tempfile.mkdtemp(prefix="belay-cli-", dir=tool.PLACE))
        atexit.register(shutil.rmtree, place, ignore_errors=True)
        environment = os.environ | {
            "BELAY_STORE": str(place / "store"), "BELAY_INTERVAL": "2 calls", "BELAY_RANKS_PER_NODE": "1",
            "BELAY_REDUNDANCY": redundancy, "BELAY_BLOCK": "4KiB", "TMPDIR": str(place),
            "OMPI_MCA_btl_vader_backing_directory": str(place)}
        subprocess.run([os.environ["MPIEXEC"], "-n", str(RANKS), os.environ["EXAMPLE"], "--rows", "200", "--cols",
                        "256", "--steps", "12"], env=environment, check=True, timeout=60, stdout=subprocess.DEVNULL)
        _jobs[redundancy] = place / "store"
    return _jobs[redundancy]


class Losses(ToolTest):
    def check_against_real_losses(self, redundancy, losses):
        source = job_store(redundancy)
        said = self.run_json("check", "--losses", losses, store=source)["losses"]
        self.assertIsNone(said["sampled"])
        sets = list(itertools.combinations(sorted(p.name for p in source.glob("node-*")), losses))
        self.assertEqual(said["sets"], len(sets))
        deadly = {v["version"]: {tuple(pathlib.Path(n).name for n in loss["nodes"]) for loss in v["deadly"]}
                  for v in said["versions"]}
        for lost in sets:
            with self.subTest(lost=lost):
                store = self.copy(source, name="-".join(lost))
                for node in lost:
                    shutil.rmtree(store / node)
                done = tool.run("check", "--json", store=store)
                whole = {v["version"] for v in tool.json.loads(done.stdout).get("versions", [])
                         if v["state"] == "whole"}
                self.assertEqual(whole, {v for v, sets_of_it in deadly.items() if lost not in sets_of_it})
        return deadly

    def test_each_loss_of_one_node_of_two_replicas_is_judged_as_it_turns_out(self):
        self.assertFalse(any(self.check_against_real_losses("replicas:2", 1).values()))

    def test_each_loss_of_two_nodes_of_two_replicas_is_judged_as_it_turns_out(self):
        self.assertTrue(all(self.check_against_real_losses("replicas:2", 2).values()))

    def test_each_loss_of_two_nodes_of_three_replicas_is_judged_as_it_turns_out(self):
        self.assertFalse(any(self.check_against_real_losses("replicas:3", 2).values()))

    def test_it_fails_only_where_a_level_promises_more(self):
        store = self.copy(job_store("replicas:2"))
        text = self.run_ok("check", "--losses", 1, store=store)
        self.assertRegex(text, r"version \d+: survives every loss of 1 node \(replicas:2\)")
        text = self.run_ok("check", "--losses", 2, store=store)
        self.assertRegex(text, r"version \d+: is lost with \{node-0, node-1\}: ")
        newest = self.run_json("list", store=store)["versions"][0]["version"]
        for copy in store.glob(f"node-*/manifest-*-{newest:010}-000002"):
            copy.rename(store / "kept")
            break
        text = self.run_ok("check", "--losses", 1, store=store, exit_code=DAMAGE)
        self.assertRegex(text, rf"version {newest}: is lost with \{{node-\d\}}: the manifest of rank 2")

    def test_a_store_without_copies_survives_nothing_and_promises_nothing(self):
        store = self.copy()
        lost = self.run_json("check", "--losses", 1, store=store)["losses"]
        self.assertTrue(lost["versions"])
        for version in lost["versions"]:
            self.assertEqual((version["level"], version["survives"], version["promised"]), ("local", False, False))
        self.assertIn("nodes cannot be lost", self.error_of("check", "--losses", 99, store=store, exit_code=USAGE))
        self.assertEqual(tool.run("check", "--losses", "-1", store=store).returncode, USAGE)
        self.assertEqual(tool.run("check", "--losses", "1", "--repair", store=store).returncode, USAGE)


class Show(ToolTest):
    def test_list_and_show_say_the_level(self):
        store = job_store("replicas:3")
        self.assertIn("replicas:3", self.run_ok("list", store=store))
        for version in self.run_json("list", store=store)["versions"]:
            self.assertEqual((version["level"], version["global"], version["dump"]), ("replicas:3", False, False))
        self.assertEqual(self.run_json("show", "latest", store=store)["level"], "replicas:3")

    def test_show_counts_the_files_of_each_node(self):
        store = job_store("replicas:2")
        shown = self.run_json("show", "latest", store=store)
        self.assertEqual([node["node"] for node in shown["nodes"]], ["0", "1", "2", "3"])
        needed = {s["file"][len("segment"):] for part in shown["parts"] for s in part["segments"]}
        for node in shown["nodes"]:
            for kind in "segment", "copy":
                files = [f for f in pathlib.Path(node["directory"]).glob(f"{kind}-*") if f.name[len(kind):] in needed]
                listed = node["segments" if kind == "segment" else "copies"]
                self.assertEqual(listed["count"], len(files))
                self.assertEqual(listed["bytes"], sum(f.stat().st_size for f in files))
                self.assertEqual(listed["ranks"], sorted({int(f.name.split("-")[-1]) for f in files}))
        self.assertEqual(sum(node["manifests"]["count"] for node in shown["nodes"]), 2 * RANKS)
        blocks = sum(region["blocks"] for part in shown["parts"] for region in part["regions"])
        self.assertEqual(sum(entry["count"] for entry in shown["safety"]["blocks"]), blocks)
        self.assertTrue(shown["safety"]["as_level"])
        self.assertRegex(self.run_ok("show", "latest", store=store), r"node-0 +2 ")

    def test_show_says_when_blocks_are_on_too_few_nodes(self):
        store = self.copy(job_store("replicas:2"))
        shutil.rmtree(store / "node-2")
        shown = self.run_json("show", "latest", store=store)
        self.assertFalse(shown["safety"]["as_level"])
        self.assertGreater(shown["safety"]["short_blocks"], 0)
        self.assertEqual(shown["safety"]["short_manifests"], 2)
        self.assertIn("2 manifests are on fewer nodes than replicas:2 says",
                      self.run_ok("show", "latest", store=store))


if __name__ == "__main__":
    unittest.main()
