# SPDX-License-Identifier: Apache-2.0
"""Damage is found, named and counted; repair leaves a store that opens, and never less than is whole."""
import random
import shutil
import unittest

import tool
from tool import DAMAGE, GOLDEN, OK, UNSUPPORTED, ToolTest, made_store, run

DAMAGES = 300
SEED = 20261116


def flip(data, choose):
    data[choose.randrange(len(data))] ^= 1 << choose.randrange(8)
    return data


def cut(data, choose):
    return data[:choose.randrange(len(data))]


def overwrite(data, choose):
    start = choose.randrange(len(data)) // 512 * 512
    data[start:start + 512] = bytes([choose.choice([0, 255])]) * len(data[start:start + 512])
    return data


def extend(data, choose):
    return data + bytes(choose.randrange(1, 5000))


class Damager:
    """One random damage to a store; `hit` are the files that no longer are what they were."""

    def __init__(self, choose):
        self.choose = choose

    @staticmethod
    def is_missed(store, file):
        """Does anything tell that the file was there? Not of the mark of close(); and the one manifest of an old
        version of a single rank may as well have been retired."""
        return not file.name.startswith("closed") and (store.resolve().name != "solo" or "manifest" not in file.name)

    def damage(self, store):
        files = sorted(p for p in store.rglob("*") if p.is_file() and p.name != "lock")
        kind = self.choose.choice([flip, flip, flip, flip, cut, overwrite, extend, "remove", "swap"])
        if kind == "remove":
            file = self.choose.choice([f for f in files if self.is_missed(store, f)])
            # Any node's mark is as good as another's.
            hit = list(store.rglob("settled")) if file.name == "settled" else [file]
            for one in hit:
                one.unlink()
            return "remove", hit
        if kind == "swap":
            one, two = self.choose.sample(files, 2)
            first, second = one.read_bytes(), two.read_bytes()
            one.write_bytes(second)
            two.write_bytes(first)
            # Records of one run say the same.
            return "swap", [one, two] if first != second and not first[:8] == second[:8] == b"BELAYRUN" else []
        file = self.choose.choice(files)
        before = file.read_bytes()
        after = bytes(kind(bytearray(before), self.choose))
        file.write_bytes(after)
        return kind.__name__, [file] if after != before else []


class RandomDamage(ToolTest):
    def test_check_finds_each_of_300_random_damages_and_names_file_region_and_rank(self):
        choose = random.Random(SEED)
        damager = Damager(choose)
        sources = [made_store() / "store", GOLDEN / "ranks-1", GOLDEN / "store-1"]
        kinds = {}
        for number in range(DAMAGES):
            source = choose.choice(sources)
            store = self.copy(source, name="solo" if source.name == "store-1" else "ranks")
            what, hit = damager.damage(store)
            if not hit:
                shutil.rmtree(store)
                continue
            kinds[what] = kinds.get(what, 0) + 1
            with self.subTest(number=number, what=what, hit=[str(f.relative_to(store)) for f in hit]):
                done = run("check", "--json", store=store)
                found = tool.json.loads(done.stdout)
                later = any(f["code"] == "unsupported" for f in found["flaws"])  # a flip made it a later format's
                self.assertIn(done.returncode, [DAMAGE, UNSUPPORTED] if later else [DAMAGE])
                self.check_flaws(store, found, hit)
                if number % 4 == 0 and not later:
                    self.check_repair(store, found)
            shutil.rmtree(store)
        self.assertEqual(len(kinds), 6, kinds)

    def check_flaws(self, store, found, hit):
        flawed = {f["file"] for f in found["flaws"]}
        # Two records that changed places both say what the other should: either one names the damage.
        named = [f for f in hit if f.name in flawed]
        self.assertTrue(named, found["flaws"])
        for file in hit:
            kind = file.name.split("-")[0]
            if kind not in ("manifest", "segment"):
                continue
            self.assertIn(file.name, flawed)
            rank = int(file.name.rsplit("-", 1)[1])
            flaws = [f for f in found["flaws"] if f["file"] == file.name]
            if kind == "manifest":
                self.assertEqual({f["rank"] for f in flaws}, {rank})
            for flaw in flaws:
                if "version" in flaw and kind == "segment":
                    self.assertEqual(flaw["rank"], rank)
                    self.assertTrue(flaw["region"])
                    self.assertGreater(flaw["blocks"], 0)
        damaged = {(f["run"], f["version"]) for f in found["flaws"] if "version" in f}
        for version in found["versions"]:
            self.assertEqual(version["state"] == "damaged", (version["run"], version["version"]) in damaged)

    def check_repair(self, store, found):
        """What was whole stays whole; where something was, the store is clean afterwards."""
        whole = [(v["run"], v["version"]) for v in found["versions"] if v["state"] == "whole"]
        done = tool.run("check", "--repair", "--json", store=store)
        after = tool.json.loads(done.stdout)
        self.assertEqual([(v["run"], v["version"]) for v in after["versions"] if v["state"] == "whole"], whole)
        harmless = all("no version needs it" in f["reason"] for f in after["flaws"])
        if whole and not harmless:
            self.assertEqual(done.returncode, OK, after)
            self.assertEqual(after["flaws"], [])
        if not whole:
            self.assertEqual(done.returncode, DAMAGE)
            self.assertTrue(after["repair"]["refused"])


class Repair(ToolTest):
    def damage(self, name, store, node="node-0", at=300):
        path = store / node / name
        data = bytearray(path.read_bytes())
        data[at] ^= 1
        path.write_bytes(data)

    def test_repair_moves_damaged_versions_away_and_keeps_the_rest(self):
        store = self.copy()
        self.damage("segment-000001-0000000002-000000", store)
        # An old temporary and a segment that no manifest names: a killed job's.
        (store / "node-0" / "manifest-000001-0000000001-000000.tmp").write_bytes(b"")
        done = self.run_json("check", "--repair", store=store)
        self.assertEqual([v["version"] for v in done["versions"]], [3, 1])  # 3 has new blocks in all places of 2's
        moved = {s["file"] for s in done["repair"]["steps"] if s["action"] == "moved to quarantine"}
        self.assertEqual(moved, {f"{kind}-000001-000000000{v}-00000{r}"
                                 for kind in ("manifest", "segment") for v in (2,) for r in (0, 1)})
        removed = [s["file"] for s in done["repair"]["steps"] if s["action"] == "removed"]
        self.assertEqual(removed, ["manifest-000001-0000000001-000000.tmp"])
        self.assertEqual(self.run_json("check", "--repair", store=store)["repair"]["steps"], [])
        self.run_ok("extract", "latest", "f64", "--rank", 1, "-o", self.place / "x", store=store)

    def test_what_is_damaged_in_a_bundle_is_made_again_beside_it(self):
        for kind, at in ("manifest", 4200), ("copy", 12300):
            good = self.copy(GOLDEN / "bundles-3", name=f"good-{kind}")
            store = self.copy(GOLDEN / "bundles-3", name=f"bad-{kind}")
            self.damage("bundle-000001-0000000003-000000", store, at=at)
            done = self.run_json("check", "--repair", "--store", good, store=store)
            self.assertEqual({v["state"] for v in done["versions"]}, {"whole"})
            steps = {(s["action"], s["file"].split("-")[0]) for s in done["repair"]["steps"]}
            self.assertIn(("made again", kind), steps)
            shutil.rmtree(good)
            self.assertEqual(self.run_json("check", store=store)["flaws"], [])

    def test_the_number_of_a_version_that_went_is_remembered(self):
        store = self.copy()
        for mark in store.rglob("closed-*"):
            mark.unlink()
        self.damage("segment-000001-0000000003-000000", store)
        self.run_json("check", "--repair", store=store)
        traces = [p.name for p in store.rglob("*0000000003*") if p.parent.name != "quarantine"]
        self.assertEqual(traces, ["manifest-000001-0000000003-000000.tmp"])
        before = tool.files_of(store)
        self.run_json("check", "--repair", store=store)
        self.assertEqual({k: v for k, v in tool.files_of(store).items() if "lock" not in k},
                         {k: v for k, v in before.items() if "lock" not in k})

    def test_without_a_whole_version_nothing_is_touched(self):
        store = self.copy()
        for version in 1, 2, 3:
            self.damage(f"manifest-000001-000000000{version}-000001", store, "node-1")
        before = tool.files_of(store)
        found = self.run_json("check", "--repair", store=store, exit_code=DAMAGE)
        self.assertIn("no version is whole", found["repair"]["refused"][0])
        self.assertEqual({k: v for k, v in tool.files_of(store).items() if "lock" not in k},
                         {k: v for k, v in before.items() if "lock" not in k})
        self.error_of("show", "latest", store=store, exit_code=DAMAGE)

    def test_a_lost_node_is_damage_and_not_a_first_start(self):
        for source in made_store() / "store", GOLDEN / "ranks-1":
            store = self.copy(source, name=source.parent.name)
            shutil.rmtree(store / "node-1")
            for command in "list", "check":
                self.run_json(command, store=store, exit_code=DAMAGE)
            self.run_json("check", "--repair", store=store, exit_code=DAMAGE)
            self.assertTrue(list(store.rglob("settled")))
            self.error_of("show", "latest", store=store, exit_code=DAMAGE)

    def test_marks_and_records_are_made_again(self):
        store = self.copy()
        self.damage("settled", store, at=20)
        self.damage("run-000001", store, "node-1", at=50)
        found = self.run_json("check", "--repair", store=store)
        made = {s["file"] for s in found["repair"]["steps"] if s["action"] == "made again"}
        self.assertEqual(made, {"settled", "run-000001"})
        self.assertEqual({v["state"] for v in found["versions"]}, {"whole"})

    def test_what_a_job_was_killed_over_is_no_damage(self):
        store = self.copy()
        for mark in store.rglob("closed-*"):
            mark.unlink()
        (store / "node-1" / "manifest-000001-0000000003-000001").unlink()
        states = [v["state"] for v in self.run_json("check", store=store)["versions"]]
        self.assertEqual(states, ["incomplete", "whole", "whole"])
        self.assertEqual(self.run_json("show", "latest", store=store)["version"], 2)
        self.assertEqual(self.run_json("prune", "--keep", 1, store=store)["removed_versions"],
                         [{"run": 1, "version": 1}])

    def test_another_stores_files_are_named_and_left_alone(self):
        store = self.copy()
        stranger = GOLDEN / "example-1" / "node-n17"
        shutil.copytree(stranger, store / "node-n17")
        before = tool.files_of(store)
        for arguments in ["check"], ["list"], ["check", "--repair"]:
            found = self.run_json(*arguments, store=store, exit_code=DAMAGE)
            self.assertIn("another store", str(found["flaws"]))
            self.assertTrue(any("node-n17" in f["directory"] for f in found["flaws"]))
        self.error_of("prune", "--keep", "1", store=store, exit_code=DAMAGE)
        self.assertEqual({k: v for k, v in tool.files_of(store).items() if "lock" not in k},
                         {k: v for k, v in before.items() if "lock" not in k})

    def test_damage_in_one_region_leaves_the_others_extractable(self):
        store = self.copy()
        self.damage("segment-000001-0000000003-000000", store, at=200)
        found = self.run_json("check", store=store, exit_code=DAMAGE)
        hit = {f["region"] for f in found["flaws"]}
        self.assertEqual(len(hit), 1)
        for region in ["f64", "c128", "u8", *hit]:
            done = run("extract", 3, region, "--rank", 0, "-o", self.place / f"{region}.npy", store=store)
            self.assertEqual(done.returncode, DAMAGE if region in hit else OK)
        self.assertFalse((self.place / f"{hit.pop()}.npy").exists())
        self.assertFalse(list(self.place.glob("*.tmp")))

    def test_copies_make_good_what_a_lost_node_had(self):
        store = self.place / "copies"
        for lost in ("node-0", "node-1"):
            shutil.copytree(GOLDEN / "copies-2", store)
            before = self.run_json("list", store=store)["versions"]
            shutil.rmtree(store / lost)
            for command in (["show", "2"], ["stats"], ["diff", "1", "2"], ["prune", "--keep", "1", "--dry-run"]):
                self.run_json(*command, store=store)
            self.assertEqual(self.run_json("list", store=store)["versions"], before)
            found = self.run_json("check", store=store)
            self.assertEqual([v["state"] for v in found["versions"]], ["whole", "whole"])
            self.assertEqual(found["flaws"], [])
            self.assertEqual({f["code"] for f in found["replaced"]}, {"missing"})
            (store / ("node-1" if lost == "node-0" else "node-0") / found["replaced"][0]["file"].replace("segment", "copy")).unlink()
            damaged = self.run_json("check", store=store, exit_code=DAMAGE)
            self.assertIn("damaged", {v["state"] for v in damaged["versions"]})
            shutil.rmtree(store)

    def test_damage_in_a_bundle_is_told_with_its_name_and_nothing_is_put_beside_it(self):
        pristine = self.run_json("check", store=GOLDEN / "bundles-3")
        self.assertEqual((pristine["flaws"], pristine["replaced"]), ([], []))
        choose = random.Random(SEED)
        parts = set()
        for number in range(24):
            store = self.copy(GOLDEN / "bundles-3", name="bundles")
            hit = choose.choice(sorted(store.glob("node-*/bundle-*-000000000[23]-*")))
            hit.write_bytes(flip(bytearray(hit.read_bytes()), choose))
            done = run("check", "--json", store=store)
            flaws = tool.json.loads(done.stdout)["flaws"]
            self.assertEqual({f["file"] for f in flaws}, {hit.name} if done.returncode == DAMAGE else set())
            parts |= {f.get("part", "").split("-")[0] for f in flaws}
            text = run("check", store=store)
            self.assertEqual(hit.name.encode() in text.stderr, bool(flaws), text.stderr)
            if number % 4 == 0:
                run("check", "--repair", store=store)
                self.assertFalse(list(store.rglob("segment-*")) + list(store.rglob("copy-*")))
                self.run_json("check", store=store, exit_code=OK)
            shutil.rmtree(store)
        self.assertLessEqual({"manifest", "copy"}, parts)

    def test_files_of_a_later_format_are_unsupported_and_stay(self):
        store = self.copy()
        path = store / "node-0" / "manifest-000001-0000000003-000000"
        data = bytearray(path.read_bytes())
        data[8] = 7
        path.write_bytes(data)
        self.run_json("check", store=store, exit_code=UNSUPPORTED)
        self.run_json("check", "--repair", store=store, exit_code=UNSUPPORTED)
        self.assertEqual(path.read_bytes(), data)


if __name__ == "__main__":
    unittest.main()
