# SPDX-License-Identifier: Apache-2.0
"""Stores with copies on several nodes, written by real jobs: which node has what, which losses cost what, and what
repair brings back."""
import atexit
import itertools
import os
import pathlib
import random
import shutil
import subprocess
import tempfile
import time
import unittest

import tool
from tool import DAMAGE, OK, USAGE, ToolTest

RANKS = 4
_jobs = {}


def job_store(redundancy, program="HEAT2D"):
    """The store of a job on four nodes, made once; tests copy it. Ranks of HEAT2D have many blocks in common, those of
    PIC next to none."""
    if (redundancy, program) not in _jobs:
        place = pathlib.Path(tempfile.mkdtemp(prefix="belay-cli-", dir=tool.PLACE))
        atexit.register(shutil.rmtree, place, ignore_errors=True)
        environment = os.environ | {
            "BELAY_STORE": str(place / "store"), "BELAY_INTERVAL": "2 calls", "BELAY_RANKS_PER_NODE": "1",
            "BELAY_REDUNDANCY": redundancy, "BELAY_BLOCK": "4KiB", "TMPDIR": str(place),
            "OMPI_MCA_btl_vader_backing_directory": str(place)}
        size = {"HEAT2D": ["--rows", "200", "--cols", "256"], "PIC": ["--size", "32", "--particles", "2"]}[program]
        subprocess.run([os.environ["MPIEXEC"], "-n", str(RANKS), os.environ[program], *size, "--steps", "12"],
                       env=environment, check=True, timeout=60, stdout=subprocess.DEVNULL)
        _jobs[redundancy, program] = place / "store"
    return _jobs[redundancy, program]


class Losses(ToolTest):
    def check_against_real_losses(self, redundancy, losses, program="HEAT2D"):
        source = job_store(redundancy, program)
        said = self.run_json("check", "--losses", losses, store=source)["losses"]
        self.assertIsNone(said["sampled"])
        sets = list(itertools.combinations(sorted(p.name for p in source.glob("node-*")), losses))
        self.assertEqual(said["sets"], len(sets))
        deadly = {v["version"]: {tuple(pathlib.Path(n).name for n in loss["nodes"]) for loss in v["deadly"]}
                  for v in said["versions"]}
        for lost in sets:
            with self.subTest(lost=lost):
                store = self.copy(source, name="-".join((redundancy, program, *lost)))
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

    def test_each_loss_of_nodes_with_parity_is_judged_as_it_turns_out(self):
        for program in "HEAT2D", "PIC":
            self.assertFalse(any(self.check_against_real_losses("erasure:2+1", 1, program).values()))
        self.assertTrue(all(self.check_against_real_losses("erasure:2+1", 2, "PIC").values()))

    def test_parity_counts(self):
        store = self.copy(job_store("erasure:2+1", "PIC"))
        one = self.run_json("check", "--losses", 1, store=store)["losses"]["versions"]
        self.assertEqual([(v["survives"], v["promised"]) for v in one], [(True, True)] * len(one))
        two = self.run_json("check", "--losses", 2, store=store)["losses"]["versions"]
        self.assertFalse(any(v["survives"] for v in two))
        self.assertTrue(self.run_json("show", "latest", store=store)["safety"]["as_level"])
        shutil.rmtree(store / "node-1")
        none = self.run_json("check", "--losses", 0, store=store)["losses"]["versions"]
        self.assertTrue(all(v["survives"] for v in none), "parity gives what the node had")
        one = self.run_json("check", "--losses", 1, store=store, exit_code=DAMAGE)["losses"]["versions"]
        self.assertFalse(any(v["survives"] for v in one))

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

    def test_show_names_the_node_that_each_rank_wrote_on(self):
        store = self.copy(job_store("replicas:2", "PIC"))
        homes = [part["home"] for part in self.run_json("show", "latest", store=store)["parts"]]
        self.assertEqual(homes, [str(store / f"node-{rank}") for rank in range(RANKS)])
        text = self.run_ok("show", "latest", store=store)
        for rank in range(RANKS):
            self.assertRegex(text, rf"(?m)^ +{rank} .* {store}/node-{rank}$")
        shutil.rmtree(store / "node-2")
        self.assertIsNone(self.run_json("show", "latest", "--rank", 2, store=store)["parts"][0]["home"])
        self.assertRegex(self.run_ok("show", "latest", store=store),
                         rf"(?m)^ +2 .* {store}/node-[013] \(has the manifest\)$")

    def test_show_says_when_blocks_are_on_too_few_nodes(self):
        store = self.copy(job_store("replicas:2"))
        shutil.rmtree(store / "node-2")
        shown = self.run_json("show", "latest", store=store)
        self.assertFalse(shown["safety"]["as_level"])
        self.assertGreater(shown["safety"]["short_blocks"], 0)
        self.assertEqual(shown["safety"]["short_manifests"], 2)
        self.assertIn("2 manifests are on fewer nodes than replicas:2 says",
                      self.run_ok("show", "latest", store=store))


KINDS = ("segment-", "copy-", "shard-", "manifest-")


def files_that_matter(store):
    """Segments, copies, shards and manifests with their content. Records name the process that wrote them."""
    return {str(p.relative_to(store)): p.read_bytes() for p in sorted(store.glob("node-*/*"))
            if p.name.startswith(KINDS)}


class Parity(ToolTest):
    def everything(self, store):
        """What extract gives of each version, and what diff says between them."""
        content = {}
        for version in self.run_json("list", store=store)["versions"]:
            number = version["version"]
            for part in self.run_json("show", number, store=store)["parts"]:
                for region in part["regions"]:
                    out = store.parent / "extracted"
                    self.run_ok("extract", number, region["name"], "--rank", part["rank"], "--output", out,
                                "--force", store=store)
                    content[number, part["rank"], region["name"]] = out.read_bytes()
        newest, other = sorted({number for number, _, _ in content}, reverse=True)[:2]
        difference = self.run_json("diff", other, newest, store=store)
        return content, {key: difference[key] for key in difference if key not in ("stores", "store")}

    def test_regions_are_read_through_stripes_after_losses(self):
        for redundancy, program, lost in (("erasure:2+1", "PIC", [1]), ("erasure:2+1", "HEAT2D", [0]),
                                          ("erasure:2+2", "PIC", [0, 3])):
            with self.subTest(redundancy=redundancy, program=program):
                store = self.copy(job_store(redundancy, program), name=f"{redundancy}-{program}")
                before = self.everything(store)
                for node in lost:
                    shutil.rmtree(store / f"node-{node}")
                self.assertEqual(self.everything(store), before)

    def test_damage_beside_a_lost_node_is_got_round_where_parity_suffices(self):
        store = self.copy(job_store("erasure:2+2", "PIC"))
        before = self.everything(store)
        shutil.rmtree(store / "node-1")
        choose = random.Random(11)
        for file in (store / "node-2").glob("segment-*"):
            damage(file, choose)
        checked = self.run_json("check", store=store, exit_code=DAMAGE)
        self.assertEqual({v["state"] for v in checked["versions"]}, {"whole"})
        self.assertTrue(any("stripe gives" in flaw["reason"] for flaw in checked["flaws"]), checked["flaws"])
        self.assertEqual(self.everything(store), before)

    def test_check_finds_each_damaged_and_missing_shard(self):
        choose = random.Random(5)
        source = job_store("erasure:2+1", "PIC")
        for number, name in enumerate(sorted(n for n in files_that_matter(source) if "/shard-" in n)[:6]):
            store = self.copy(source, name=str(number))
            damage(store / name, choose)
            checked = self.run_json("check", store=store, exit_code=DAMAGE)
            self.assertEqual([(pathlib.Path(f["directory"]).name + "/" + f["file"]) for f in checked["flaws"]], [name])
            self.assertEqual({v["state"] for v in checked["versions"]}, {"whole"})
            (store / name).unlink()
            checked = self.run_json("check", store=store)
            self.assertEqual([f["file"] for f in checked["replaced"]], [pathlib.Path(name).name])

    def test_show_and_stats_count_shards(self):
        store = job_store("erasure:2+1", "PIC")
        there = [p for p in store.glob("node-*/shard-*")]
        counted = self.run_json("stats", store=store)["files"]["shards"]
        self.assertEqual(counted, {"count": len(there), "bytes": sum(p.stat().st_size for p in there)})
        newest = self.run_json("list", store=store)["versions"][0]["version"]
        for node in self.run_json("show", newest, store=store)["nodes"]:
            own = list(pathlib.Path(node["directory"]).glob(f"shard-*-{newest:010}-*"))
            self.assertGreaterEqual(node["shards"]["count"], len(own))
            self.assertEqual(node["shards"]["ranks"], [0, 1, 2, 3])

    def test_prune_keeps_and_removes_stripes_as_a_whole(self):
        store = self.copy(job_store("erasure:2+1", "PIC"))
        before = {p.name for p in store.glob("node-*/shard-*")}
        self.run_ok("prune", "--keep", 1, store=store)
        self.assertEqual(self.run_json("check", store=store)["leftovers"], [])
        after = files_that_matter(store)
        shards = {pathlib.Path(n).name for n in after if "/shard-" in n}
        self.assertLess(shards, before)
        for name in shards:  # every member of its version is still there, needed by manifests or not
            version = name.split("-")[2]
            members = {n for n in files_that_matter(job_store("erasure:2+1", "PIC")) if f"/segment-000001-{version}" in n}
            self.assertLessEqual(members, set(after))
        shutil.rmtree(store / "node-2")
        self.assertEqual({v["state"] for v in self.run_json("check", store=store)["versions"]}, {"whole"})


def damage(file, choose):
    data = bytearray(file.read_bytes())
    for _ in range(choose.choice([1, 1, 40])):
        data[choose.randrange(len(data))] ^= 1 << choose.randrange(8)
    if choose.random() < 0.2:
        del data[choose.randrange(len(data)):]
    file.write_bytes(data)


class Repair(ToolTest):
    def repair(self, store, exit_code=OK):
        return self.run_json("check", "--repair", store=store, exit_code=exit_code)

    def assert_same(self, store, source):
        repaired, original = files_that_matter(store), files_that_matter(source)
        self.assertEqual(sorted(repaired), sorted(original))
        self.assertEqual([name for name in original if repaired[name] != original[name]], [])

    def test_a_lost_node_comes_back_byte_for_byte(self):
        for redundancy, losses, program in (("replicas:2", 1, "PIC"), ("replicas:3", 2, "PIC"),
                                            ("erasure:2+1", 1, "PIC"), ("erasure:2+1", 1, "HEAT2D")):
            source = job_store(redundancy, program)
            for node in range(RANKS):
                with self.subTest(redundancy=redundancy, program=program, node=node):
                    store = self.copy(source, name=f"{redundancy}-{program}-{node}")
                    shutil.rmtree(store / f"node-{node}")
                    self.repair(store)
                    self.assert_same(store, source)
                    self.assertEqual(self.run_json("check", store=store)["flaws"], [])
                    self.run_ok("check", "--losses", losses, store=store)

    def test_two_lost_nodes_of_three_replicas_are_safe_again(self):
        store = self.copy(job_store("replicas:3", "PIC"))
        shutil.rmtree(store / "node-1")
        shutil.rmtree(store / "node-2")
        self.run_ok("check", "--losses", 2, store=store, exit_code=DAMAGE)
        self.repair(store)
        self.run_ok("check", "--losses", 2, store=store)

    def test_two_lost_nodes_with_two_shards_are_safe_again(self):
        source = job_store("erasure:2+2", "PIC")
        store = self.copy(source)
        shutil.rmtree(store / "node-0")
        shutil.rmtree(store / "node-3")
        self.repair(store)
        self.run_ok("check", "--losses", 2, store=store)
        original, repaired = files_that_matter(source), files_that_matter(store)
        for name, content in original.items():
            if "manifest" not in name:  # copies of manifests may come to other nodes
                self.assertEqual(repaired[name], content, name)

    def test_several_files_of_each_stripe_come_back_byte_for_byte(self):
        choose = random.Random(8)
        source = job_store("erasure:2+2", "PIC")
        for number in range(4):
            store = self.copy(source, name=str(number))
            for name in files_that_matter(source):
                # Each codeword has k parts left: two nodes lose what they have, be it in another way.
                if name.startswith(("node-0/s", "node-2/s")) and choose.random() < 0.8:
                    (store / name).unlink() if choose.random() < 0.5 else damage(store / name, choose)
            self.repair(store)
            self.assert_same(store, source)

    def test_missing_and_damaged_files_come_back_byte_for_byte(self):
        self.check_single_files("replicas:2", 15)

    def test_missing_and_damaged_files_of_stripes_come_back_byte_for_byte(self):
        self.check_single_files("erasure:2+1", 15)

    def check_single_files(self, redundancy, count):
        choose = random.Random(20261116)
        source = job_store(redundancy, "PIC")
        names = list(files_that_matter(source))
        for number, name in enumerate(choose.sample(names, count)):
            with self.subTest(name=name, number=number):
                store = self.copy(source, name=str(number))
                if number % 3 == 0:
                    (store / name).unlink()
                else:
                    damage(store / name, choose)
                repair = self.repair(store)["repair"]
                self.assertIn("made again", [step["action"] for step in repair["steps"]])
                self.assert_same(store, source)
                shutil.rmtree(store)

    def test_a_node_of_which_every_file_is_damaged_comes_back_byte_for_byte(self):
        for redundancy in "replicas:2", "erasure:2+1":
            with self.subTest(redundancy=redundancy):
                self.check_damaged_node(redundancy)

    def check_damaged_node(self, redundancy):
        choose = random.Random(7)
        source = job_store(redundancy, "PIC")
        store = self.copy(source, name=redundancy)
        hit = [p for p in (store / "node-1").iterdir() if p.name.startswith(KINDS)]
        damaged = {}
        for file in hit:
            damage(file, choose)
            damaged[file.name] = file.read_bytes()
        self.repair(store)
        self.assert_same(store, source)
        for file in (store / "node-1" / "quarantine").iterdir():
            self.assertEqual(file.read_bytes(), damaged[file.name], "what was damaged is kept as it was")

    def test_nothing_is_done_where_nothing_is_wrong(self):
        for redundancy in "replicas:2", "erasure:2+1", "erasure:2+2":
            store = self.copy(job_store(redundancy, "PIC"), name=redundancy)
            before = files_that_matter(store)
            self.assertEqual(self.repair(store)["repair"], {"steps": [], "refused": []})
            self.assertEqual(files_that_matter(store), before)

    def test_a_node_without_a_number_is_made_anew_by_hand_first(self):
        source = self.copy(job_store("replicas:2", "PIC"), name="named")
        for node in source.glob("node-*"):
            node.rename(source / ("node-" + "abcd"[int(node.name[5:])]))
        store = self.copy(source)
        shutil.rmtree(store / "node-b")
        refused = self.repair(store)["repair"]["refused"]
        self.assertIn("nothing here says on which node rank 1 was", refused[0])
        store = self.copy(source, name="again")
        shutil.rmtree(store / "node-b")
        (store / "node-b").mkdir(mode=0o700)
        self.repair(store)
        self.assert_same(store, source)

    def test_blocks_that_ranks_have_in_common_are_on_enough_nodes_again(self):
        source = job_store("replicas:2")
        for node in range(RANKS):
            with self.subTest(node=node):
                store = self.copy(source, name=str(node))
                shutil.rmtree(store / f"node-{node}")
                self.repair(store)
                self.assertEqual(self.run_json("check", store=store)["flaws"], [])
                self.run_ok("check", "--losses", 1, store=store)

    def test_a_repair_that_is_killed_costs_nothing_and_can_be_done_again(self):
        choose = random.Random(3)
        source = job_store("replicas:2", "PIC")
        killed = 0
        for number in range(10):
            store = self.copy(source, name=str(number))
            for file in (store / "node-2").iterdir():
                if file.name.startswith(("segment-", "copy-", "manifest-")):
                    damage(file, choose)
            with subprocess.Popen([tool.TOOL, "check", "--repair", "--store", store], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL) as process:
                time.sleep(choose.uniform(0.005, 0.06))
                process.kill()
                killed += process.wait(20) < 0
            versions = tool.json.loads(tool.run("list", "--json", store=store).stdout)["versions"]
            self.assertEqual([v["state"] for v in versions], ["whole"] * len(versions))
            self.repair(store)
            self.assert_same(store, source)
            shutil.rmtree(store)
        self.assertGreater(killed, 4, "most of them must be hit before they end")


if __name__ == "__main__":
    unittest.main()
