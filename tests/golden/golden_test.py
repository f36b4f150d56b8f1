#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the golden stores. MAKE_STORE, DUMP_STORE and INSPECT_STORE in the environment are the programs of this folder.

To make a golden store anew, where docs/format.md says that its bytes may change:
  rm -r tests/golden/store-1 && build/release/bin/make_store store-1 tests/golden/store-1
"""
import itertools
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import tempfile
import unittest

import read_additions
import read_store

HERE = pathlib.Path(__file__).resolve().parent
DOCUMENT = HERE.parent.parent / "docs" / "format.md"
# Name -> ranks, application.
STORES = {"store-1": (1, "golden"), "ranks-1": (3, "golden"), "example-1": (1, "heat"), "codecs-3": (1, "golden")}
WITH_BUNDLES = "bundles-3"
# How small a compressor makes its bytes is its own affair, and that of its version.
FREE = ["codecs-3"]
WITH_COPIES = "copies-2"
WITH_STRIPES = "stripes-2"
# A structure that no golden store has, but payloads that payload_test.py reads; and fields that are equal to the next one
# wherever a golden store has them.
IN_NO_STORE = ["quiet that leaves groups out"]
EQUAL = {"shard's description": ["k"], "rider's head": ["s"], "manifest": ["level", "level_k"],
         "ledger": ["settle_ns", "detect_ns", "stage_ns", "wait_ns", "blocking_ns"]}
DAMAGES = 200
SEED = 1


def files_of(store):
    return sorted(p.relative_to(store) for p in store.rglob("*") if p.is_file())


def dump(name, stores):
    """What the library finds in copies of the golden store `name`: one description for each."""
    ranks, application = STORES[name]
    command = [os.environ["DUMP_STORE"], str(ranks), application, *map(str, stores)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True, timeout=100)
    return [json.loads(line) for line in done.stdout.splitlines()]


def inspect(stores):
    """What the tool's way of reading finds in each: the versions that are whole, and the number of flaws."""
    command = [os.environ["INSPECT_STORE"], *map(str, stores)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True, timeout=100)
    return [json.loads(line) for line in done.stdout.splitlines()]


def describe(store):
    """What read_store.py finds: (versions that exist, in the form of dump_store; everything it complains about)."""
    found = read_store.describe(store)
    versions = []
    for version in found["versions"]:
        if version["errors"]:
            continue
        ranks = {str(r["rank"]): {"time_ns": r["time_ns"], "written_bytes": r["ledger"]["written_bytes"],
                                  "regions": r["regions"]} for r in version["ranks"]}
        versions.append({"run": version["run"], "version": version["version"],
                         "parent": version["ranks"][0]["parent_version"], "ranks": ranks})
    return versions, found["errors"] + [e for v in found["versions"] for e in v["errors"]]


def misprints(structure, rows):
    """What is wrong, and rows in which it is: each field in turn is at another offset, or has changed places."""
    for i, (offset, *field) in enumerate(rows):
        if offset != "...":
            yield f"{field[1]} moved", [*rows[:i], (str(int(offset) + 1), *field), *rows[i + 1:]]
        if i + 1 < len(rows) and field[1] not in EQUAL.get(structure, []):
            next_offset, *next_field = rows[i + 1]
            yield f"{field[1]} swapped", [*rows[:i], (offset, *next_field), (next_offset, *field), *rows[i + 2:]]


class Damager:
    """Damages one file of a store, chosen and hit at random."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def damage(self, store):
        file = store / self.random.choice(files_of(store))
        kind = self.random.choice([self.flip, self.flip, self.flip, self.overwrite, self.cut, self.extend,
                                   self.remove, self.swap])
        kind(file)
        return f"{kind.__name__} {file.relative_to(store)}"

    def at(self, data):
        return self.random.randrange(len(data))

    def flip(self, file):
        data = bytearray(file.read_bytes())
        data[self.at(data)] ^= 1 << self.random.randrange(8)
        file.write_bytes(data)

    def overwrite(self, file):
        data = bytearray(file.read_bytes())
        start = self.at(data) // 512 * 512
        data[start:start + 512] = bytes([self.random.choice([0, 255])]) * len(data[start:start + 512])
        file.write_bytes(data)

    def cut(self, file):
        data = file.read_bytes()
        file.write_bytes(data[:self.at(data)])

    def extend(self, file):
        file.write_bytes(file.read_bytes() + bytes(self.random.choice([1, 4096])))

    def remove(self, file):
        file.unlink()

    def swap(self, file):
        other = self.random.choice([f for f in file.parent.iterdir() if f != file])
        mine, others = file.read_bytes(), other.read_bytes()
        file.write_bytes(others)
        other.write_bytes(mine)


class GoldenStores(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        memory = "/dev/shm"  # where syncing costs nothing
        scratch = tempfile.TemporaryDirectory(prefix="belay-golden-", dir=memory if os.access(memory, os.W_OK) else None)
        self.addCleanup(scratch.cleanup)
        self.scratch = pathlib.Path(scratch.name)

    def copy(self, name, place):
        return shutil.copytree(HERE / name, self.scratch / place)

    def test_both_readers_find_the_same_in_the_checked_in_stores(self):
        for name in STORES:
            with self.subTest(name):
                versions, complaints = describe(HERE / name)
                self.assertEqual(complaints, [])
                self.assertTrue(versions)
                self.assertEqual(dump(name, [self.copy(name, name)]), [{"versions": versions, "error": ""}])

    def test_stores_made_anew_have_the_checked_in_bytes(self):
        for name in [*STORES, WITH_COPIES, WITH_STRIPES]:
            if name in FREE:
                continue
            with self.subTest(name):
                made = self.scratch / name
                subprocess.run([os.environ["MAKE_STORE"], name, str(made)], check=True, timeout=60)
                self.assertEqual(files_of(made), files_of(HERE / name), self.changed(name))
                for file in files_of(made):
                    new, old = (made / file).read_bytes(), (HERE / name / file).read_bytes()
                    differ = next((i for i, (a, b) in enumerate(zip(new, old)) if a != b), min(len(new), len(old)))
                    self.assertTrue(new == old, f"{file} differs from byte {differ} on. {self.changed(name)}")

    @staticmethod
    def changed(name):
        return (f"The library writes {name} with other bytes than before. If the format changed: raise the format "
                "version, describe it in docs/format.md, keep this store as it is and add one of the new version. If "
                "only the choice of what to write changed (dedup, carry, retention), make the store anew.")

    def test_the_example_of_the_document_is_a_checked_in_store(self):
        text = DOCUMENT.read_text(encoding="utf-8").split("\n## 7. ")[1]
        node = HERE / "example-1" / "node-n17"
        shown = re.findall(r"^`([a-z]+-[0-9-]+)`.*?```\n(.*?)```", text, re.MULTILINE | re.DOTALL)
        self.assertEqual(sorted(name for name, _ in shown), sorted(f.name for f in node.iterdir() if f.name != "settled" and not f.name.startswith("closed-")))
        for name, dumped in shown:
            self.assertEqual(self.undump(dumped), (node / name).read_bytes(), name)
        self.assertEqual((node / "settled").read_bytes(), (node / "run-000001").read_bytes())

    @staticmethod
    def undump(text):
        """The bytes that `hexdump -C` showed."""
        data, repeat = b"", False
        for line in text.splitlines():
            if line == "*":
                repeat = True
                continue
            offset, _, rest = line.partition("  ")
            while repeat and len(data) < int(offset, 16):
                data += data[-16:]
            repeat = False
            data += bytes.fromhex(rest.partition("|")[0])
        return data

    def test_the_reader_understands_each_row_of_the_structures_of_the_document(self):
        tables = dict(read_store.TABLE.findall(read_store.DOCUMENT))
        self.assertEqual(len(tables), DOCUMENT.read_text(encoding="utf-8").count("| offset | type |"))
        for structure, rows in tables.items():
            self.assertEqual(len(read_store.STRUCTURES[structure]), rows.count("\n"), structure)

    def test_a_wrong_row_in_a_structure_of_the_document_is_noticed(self):
        stores = [HERE / name for name in ("example-1", WITH_BUNDLES, WITH_STRIPES, WITH_COPIES, *FREE, "store-1")]
        intact = {store: read_store.describe(store) for store in stores}
        for structure in set(read_store.STRUCTURES) - set(IN_NO_STORE):
            rows = read_store.STRUCTURES[structure]
            self.addCleanup(read_store.STRUCTURES.update, {structure: rows})
            for misprint, wrong in misprints(structure, rows):
                with self.subTest(structure=structure, misprint=misprint):
                    read_store.STRUCTURES[structure] = wrong
                    self.assertTrue(any(self.differs(store, intact[store]) for store in stores))
            read_store.STRUCTURES[structure] = rows
        self.assertEqual(read_store.describe(stores[0]), intact[stores[0]])

    @staticmethod
    def differs(store, intact):
        try:
            return read_store.describe(store) != intact
        except (LookupError, TypeError):  # a field that is not there, or is of another type
            return True

    def test_the_reader_by_itself_tells_by_its_exit_code_whether_all_is_well(self):
        damaged = self.copy("store-1", "damaged")
        Damager(SEED).cut(damaged / "node-golden-host" / "manifest-000002-0000000003-000000")
        foreign = self.copy("store-1", "mixed")
        shutil.copy(HERE / "ranks-1" / "node-0" / "run-000001", foreign / "node-golden-host")
        (self.scratch / "empty").mkdir()
        for store, code, text in [(HERE / "store-1", 0, '"errors": []'), (damaged, 1, "000003-000000: the magic"),
                                  (foreign, 1, "mixed"), (self.scratch / "empty", 1, "no directory of a node"),
                                  (self.scratch / "absent", 2, "usage: ")]:
            with self.subTest(store.name):
                done = subprocess.run(["/usr/bin/python3", "-B", str(HERE / "read_store.py"), str(store)],
                                      capture_output=True, text=True, check=False, timeout=60)
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertTrue(text in (done.stdout if code != 2 else done.stderr), text)
                self.assertNotIn("Traceback", done.stderr)

    def test_an_unfinished_segment_that_no_manifest_lists_is_no_damage(self):
        store = self.copy("store-1", "unfinished")
        node = store / "node-golden-host"
        whole = (node / "segment-000001-0000000001-000000").read_bytes()
        (node / "segment-000002-0000000004-000000").write_bytes(whole[:4096])
        versions, complaints = describe(store)
        self.assertEqual(complaints, [])
        self.assertEqual(versions, describe(HERE / "store-1")[0])
        self.assertEqual(dump("store-1", [store]), [{"versions": versions, "error": ""}])

    def test_damage_is_noticed_by_both_readers_or_changes_nothing(self):
        names = ["store-1", "ranks-1", "codecs-3"]
        damager = Damager(SEED)
        for name in names:
            intact, _ = describe(HERE / name)
            copies = [self.copy(name, f"{name}-{i}") for i in range(DAMAGES // len(names))]
            damages = [damager.damage(store) for store in copies]
            python = [describe(store) for store in copies]  # first: opening a store writes to it
            losses = sum(versions != intact for versions, _ in python)
            self.assertGreater(losses, len(copies) // 2, "most damage should cost a version")
            for damage, (versions, complaints), library in zip(damages, python, dump(name, copies)):
                with self.subTest(store=name, damage=damage):
                    self.assertEqual(library["versions"], versions)
                    self.assertTrue(all(version in intact for version in versions))
                    removed = damage.startswith("remove")  # nobody can tell a lost manifest from a retired one
                    self.assertTrue(versions == intact or complaints or removed)
                    self.assertEqual(library["error"], "")

    def test_a_store_with_copies_is_read_alike_with_any_node_lost(self):
        intact, complaints = describe(HERE / WITH_COPIES)
        self.assertEqual((len(intact), complaints), (2, []))
        stores = [self.copy(WITH_COPIES, f"without-{node}") for node in ("none", "node-0", "node-1")]
        for store in stores[1:]:
            shutil.rmtree(store / store.name.removeprefix("without-"))
        for store, found in zip(stores, inspect(stores)):
            with self.subTest(store.name):
                self.assertEqual(describe(store), (intact, []))
                self.assertEqual(found, {"versions": intact, "flaws": 0})

    def test_damage_of_a_store_with_copies_is_noticed_by_both_readers_or_changes_nothing(self):
        damager = Damager(SEED)
        intact, _ = describe(HERE / WITH_COPIES)
        stores = [self.copy(WITH_COPIES, f"copies-{i}") for i in range(DAMAGES // 2)]
        # A second damage may hit both copies of the same thing.
        damages = [[damager.damage(store) for _ in range(1 + i % 2)] for i, store in enumerate(stores)]
        costs = 0
        for damage, store, found in zip(damages, stores, inspect(stores)):
            with self.subTest(damage=damage):
                versions, complaints = describe(store)
                self.assertEqual(found["versions"], versions)
                self.assertTrue(versions == intact or complaints or any(d.startswith("remove") for d in damage))
                if len(damage) == 1:
                    self.assertEqual(versions, intact, "any one file may be lost")
                costs += versions != intact
        self.assertGreater(costs, 0, "some damage should cost a version")

    def test_stores_with_codecs_made_anew_say_the_same(self):
        for name in [*FREE, WITH_BUNDLES]:
            with self.subTest(name):
                made = self.scratch / name
                subprocess.run([os.environ["MAKE_STORE"], name, str(made)], check=True, timeout=60)
                self.assertEqual(describe(made), describe(HERE / name))
                self.assertEqual(describe(made)[1], [])

    def test_a_store_with_bundles_is_read_alike_and_damage_noticed(self):
        intact, complaints = describe(HERE / WITH_BUNDLES)
        self.assertEqual((len(intact), complaints), (2, []))
        self.assertFalse(list(HERE.glob(f"{WITH_BUNDLES}/*/manifest-*")), "manifests are in bundles")
        damager = Damager(SEED)
        stores = [self.copy(WITH_BUNDLES, f"bundles-{i}") for i in range(60)]
        for store in stores[1:]:
            damager.flip(damager.random.choice(sorted(store.glob("node-*/bundle-*"))))
        costs = 0
        for store, found in zip(stores, inspect(stores)):
            versions, complaints = describe(store)
            self.assertTrue(all(version in intact for version in versions))
            self.assertEqual(found["versions"], versions)
            self.assertTrue(versions == intact or complaints)
            costs += versions != intact
        self.assertGreater(costs, 10, "some damage should cost a version")

    def test_the_formula_of_the_document_gives_the_shards_of_a_store_with_stripes(self):
        store = HERE / WITH_STRIPES
        intact, complaints = describe(store)
        self.assertEqual((len(intact), complaints), (2, []))
        found, _ = read_store.read_files(store)
        self.assertEqual(len(found["shard"]), 16)
        self.assertTrue(any(m["gap_bytes"] for shard in found["shard"].values() for m in shard["members"]), "no gap")
        for shard in found["shard"].values():
            self.assertTrue(shard["parity"])
            self.assertEqual(read_additions.parity_of(shard, found), shard["parity"])

    def test_each_damaged_byte_of_a_shard_is_noticed_by_both_readers(self):
        damager = Damager(SEED)
        intact, _ = describe(HERE / WITH_STRIPES)
        stores = [self.copy(WITH_STRIPES, f"stripes-{i}") for i in range(40)]
        for store in stores:
            damager.flip(damager.random.choice(sorted(store.glob("node-*/shard-*"))))
        for store, found in zip(stores, inspect(stores)):
            versions, complaints = describe(store)
            self.assertEqual((versions, len(complaints)), (intact, 1))
            self.assertEqual(found, {"versions": intact, "flaws": 1})

    def test_a_store_with_stripes_is_read_with_any_two_nodes_lost(self):
        intact, _ = describe(HERE / WITH_STRIPES)
        losses = list(itertools.combinations(range(4), 2))
        stores = [self.copy(WITH_STRIPES, f"without-{a}-{b}") for a, b in losses]
        for store, lost in zip(stores, losses):
            for node in lost:
                shutil.rmtree(store / f"node-{node}")
        self.assertEqual(inspect(stores), [{"versions": intact, "flaws": 0}] * len(losses))


if __name__ == "__main__":
    unittest.main()
