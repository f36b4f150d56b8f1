# SPDX-License-Identifier: Apache-2.0
"""What each command says about good stores, and about those that are empty, missing, foreign or locked."""
import os
import pty
import select
import signal
import subprocess
import time
import unittest

import numpy

import tool
from tool import BUSY, DAMAGE, GOLDEN, IO, NOT_FOUND, OK, USAGE, ToolTest, made_store, run

DTYPES = {"i8": "i1", "i16": "i2", "i32": "i4", "i64": "i8", "u8": "u1", "u16": "u2", "u32": "u4", "u64": "u8",
          "f32": "f4", "f64": "f8", "c64": "c8", "c128": "c16"}


def expected(version, rank, region, dtype=None):
    raw = (made_store() / "expected" / f"{version}-{rank}-{region}").read_bytes()
    return raw if dtype is None else numpy.frombuffer(raw, dtype)


class GoodStores(ToolTest):
    def test_list_has_the_newest_version_first(self):
        store = made_store() / "store"
        found = self.run_json("list", store=store)
        self.assertEqual([v["version"] for v in found["versions"]], [3, 2, 1])
        self.assertEqual({v["state"] for v in found["versions"]}, {"whole"})
        size = sum(p.stat().st_size for p in (made_store() / "expected").glob("3-*"))
        self.assertEqual(found["versions"][0]["protected_bytes"], size)
        lines = self.run_ok("list", store=store).splitlines()
        self.assertEqual([line.split()[0] for line in lines], ["VERSION", "3", "2", "1"])

    def test_a_number_in_several_runs_means_the_newest_and_run_slash_number_any(self):
        store = GOLDEN / "store-1"
        self.assertEqual(self.run_json("show", "2", store=store)["run"], 1)
        self.assertEqual(self.run_json("show", "2/3", store=store)["version"], 3)
        self.assertEqual(self.run_json("show", "latest", store=store)["version"], 3)
        self.assertIn("no version", self.error_of("show", "1/3", store=store, exit_code=NOT_FOUND))
        for odd in ["first", "", "-", "1/", "/1", "1/2/3", "99999999999999999999", "latest/1"]:
            done = run("show", "--json", "--", odd, store=None, env={"BELAY_STORE": str(store)})
            self.assertEqual(done.returncode, USAGE, odd)

    def test_show_says_which_bytes_of_which_region_and_rank_changed(self):
        shown = self.run_json("show", "2", store=made_store() / "store")
        self.assertEqual([p["rank"] for p in shown["parts"]], [0, 1])
        for part in shown["parts"]:
            for region in part["regions"]:
                if region["name"] not in DTYPES:
                    continue
                old, new = (expected(v, part["rank"], region["name"]) for v in (1, 2))
                changed = sum(old[i:i + 1536] != new[i:i + 1536] for i in range(0, len(new), 1536))
                self.assertEqual(region["changed_blocks"], changed, region)
                self.assertEqual(region["shape"], [30, 50])
                self.assertEqual(region["type"]["kind"], region["name"])
            ledger = part["ledger"]
            self.assertEqual(ledger["protected_bytes"], sum(ledger[k + "_bytes"] for k in (
                "untouched", "unchanged", "duplicate_here", "duplicate_elsewhere", "written")))
        self.assertEqual(len(self.run_json("show", "2", "--rank", 1, store=made_store() / "store")["parts"]), 1)
        self.error_of("show", "2", "--rank", 2, store=made_store() / "store", exit_code=NOT_FOUND)

    def test_every_hash_is_checked(self):
        for name in ["xxh3", "md5", "sha1", "sha256"]:
            found = self.run_json("check", store=made_store(name) / "store")
            self.assertEqual(found["flaws"], [])
            self.assertEqual(found["verified"]["files"], 12)

    def test_extracted_regions_load_in_numpy_with_type_and_shape(self):
        for region, dtype in DTYPES.items():
            out = self.place / f"{region}.npy"
            self.run_ok("extract", 2, region, "--rank", 1, "-o", out, store=made_store() / "store")
            loaded = numpy.load(out)
            self.assertEqual((loaded.dtype, loaded.shape), (numpy.dtype(dtype), (30, 50)))
            self.assertEqual(loaded.tobytes(), expected(2, 1, region))
            self.assertEqual(out.stat().st_mode & 0o777, 0o600)
        self.run_ok("extract", 3, "bodies", "--rank", 0, "-o", self.place / "b.npy", store=made_store() / "store")
        loaded = numpy.load(self.place / "b.npy")
        self.assertEqual((loaded.dtype, loaded.shape), (numpy.dtype("V16"), (40,)))
        self.assertEqual(loaded.tobytes(), expected(3, 0, "bodies"))

    def test_extract_leaves_files_alone_that_are_there(self):
        out = self.place / "step.npy"
        out.write_text("mine")
        arguments = ["extract", "latest", "step", "--rank", 0, "-o", out]
        self.error_of(*arguments, store=made_store() / "store", exit_code=USAGE)
        self.assertEqual(out.read_text(), "mine")
        self.run_ok(*arguments, "--force", store=made_store() / "store")
        self.assertEqual(numpy.load(out), 3)
        (self.place / "link").symlink_to(out)
        self.error_of(*arguments[:-1], self.place / "link", "--force", store=made_store() / "store", exit_code=USAGE)
        self.assertEqual(sorted(p.name for p in self.place.iterdir()), ["link", "step.npy"])

    def test_extract_writes_to_standard_output_and_raw(self):
        store = made_store() / "store"
        done = run("extract", 3, "f64", "--rank", 0, "--raw", "-o", "-", store=store)
        self.assertEqual((done.returncode, done.stdout), (OK, expected(3, 0, "f64")))
        message = self.error_of("extract", 3, "f64", store=store, exit_code=USAGE)
        self.assertIn("--rank", message)
        self.assertIn("step", self.error_of("extract", 3, "none", "--rank", 0, store=store, exit_code=NOT_FOUND))
        self.error_of("extract", 3, "f64", "--rank", 9, store=store, exit_code=NOT_FOUND)
        self.run_ok("extract", 3, "f64", "--rank", 0, store=store, cwd=self.place)
        self.assertEqual([p.name for p in self.place.iterdir()], ["f64-rank0.npy"])

    def test_diff_agrees_with_numpy(self):
        found = self.run_json("diff", 1, 2, store=made_store() / "store")
        self.assertEqual(len(found["regions"]), 30)
        for row in found["regions"]:
            if row["name"] not in DTYPES:
                continue
            old, new = (expected(v, row["rank"], row["name"], DTYPES[row["name"]]) for v in (1, 2))
            same = [x.tobytes() == y.tobytes() for x, y in zip(old, new)]
            self.assertEqual(row["differing_elements"], same.count(False))
            if old.dtype.kind in "iu":
                apart = [abs(int(x) - int(y)) for x, y in zip(old, new)]
                self.assertEqual((row["largest"], row["largest_at"]), (max(apart), apart.index(max(apart))))
                self.assertAlmostEqual(row["mean"], sum(apart) / len(apart), delta=1e-12 * row["mean"])
                continue
            wide = numpy.complex128 if old.dtype.kind == "c" else numpy.float64
            apart = numpy.abs(old.astype(wide) - new.astype(wide))
            apart[same] = 0
            self.assertEqual(row["nan_elements"], int(numpy.isnan(apart).sum()))
            self.assertEqual(row["largest_at"], int(numpy.nanargmax(apart)))
            self.assertAlmostEqual(row["largest"], float(numpy.nanmax(apart)), delta=1e-12)
            self.assertAlmostEqual(row["mean"], float(numpy.nanmean(apart)), delta=1e-12)

    def test_diff_of_a_version_with_itself_finds_nothing(self):
        for row in self.run_json("diff", 2, "latest", "--rank", 1, store=GOLDEN / "ranks-1")["regions"]:
            self.assertEqual((row["state"], row["changed_blocks"]), ("equal", 0))
        states = {r["name"]: r["state"] for r in self.run_json("diff", 1, 2, store=GOLDEN / "store-1")["regions"]}
        self.assertEqual((states["late"], states["kinds/i8"], states["zeros"]), ("new", "gone", "changed"))

    def test_stats_count_what_is_on_disk(self):
        store = made_store() / "store"
        found = self.run_json("stats", store=store)
        segments = sum(p.stat().st_size for p in store.rglob("segment-*"))
        self.assertEqual(found["files"]["segments"], {"count": 6, "bytes": segments})
        self.assertEqual(found["live_bytes"] + found["dead_bytes"], segments)
        # No two blocks are equal, so that the newest version needs exactly what it protects.
        self.assertEqual(found["live_bytes"], sum(h["ledger"]["protected_bytes"] for h in found["history"][:1]))
        self.assertLessEqual(found["live_bytes"], found["retained_bytes"])

    def test_times_of_a_version_are_told_as_the_slowest_ranks_and_as_a_sum(self):
        store = made_store() / "store"
        found = self.run_json("stats", store=store)
        for version in found["history"]:
            shown = self.run_json("show", version["version"], store=store)
            times = [part["ledger"]["blocking_ns"] for part in shown["parts"]]
            self.assertEqual(len(times), 2)
            for said in version, shown:
                self.assertEqual((said["blocking_max_ns"], said["ledger"]["blocking_ns"]), (max(times), sum(times)))

    def test_prune_keeps_what_it_says_and_what_that_needs(self):
        store = self.copy()
        before = tool.files_of(store)
        planned = self.run_json("prune", "--keep", 2, "--dry-run", store=store)
        self.assertEqual(tool.files_of(store), before)
        self.assertEqual(planned["removed_versions"], [{"run": 1, "version": 1}])
        self.assertEqual(self.run_json("prune", "--keep", 2, store=store)["removed_files"], planned["removed_files"])
        self.assertEqual([v["version"] for v in self.run_json("check", store=store)["versions"]], [3, 2])
        for rank in 0, 1:
            self.run_ok("extract", "latest", "c128", "--rank", rank, "-o", self.place / f"{rank}.npy", store=store)
            self.assertEqual(numpy.load(self.place / f"{rank}.npy").tobytes(), expected(3, rank, "c128"))
        self.error_of("prune", "--keep", 0, store=store, exit_code=USAGE)
        self.assertEqual(self.run_ok("prune", "--keep", 7, store=store), "nothing to prune\n")

    def test_several_stores_are_one(self):
        store = self.copy()
        (self.place / "other").mkdir()
        (store / "node-1").rename(self.place / "other" / "node-1")
        self.run_json("check", store=store, exit_code=DAMAGE)
        found = self.run_json("check", "--store", self.place / "other", store=store)
        self.assertEqual({v["state"] for v in found["versions"]}, {"whole"})
        # The same directory under two names is still one.
        (self.place / "again").symlink_to(store)
        self.run_json("prune", "--keep", 1, "--store", self.place / "other", "--store", self.place / "again",
                      store=store)

    def test_looking_changes_nothing(self):
        store = self.copy()
        before = tool.files_of(store)
        for command in tool.COMMANDS:
            if command != "prune":
                self.run_ok(*tool.arguments_of(command), store=store, cwd=self.place)
        self.assertEqual(tool.files_of(store), before)


class OtherStores(ToolTest):
    def each(self, exit_code, store, commands=None, **options):
        for command in commands or tool.COMMANDS:
            yield command, self.error_of(*tool.arguments_of(command), store=store, exit_code=exit_code,
                                         cwd=self.place, **options)

    def test_a_missing_store_is_not_found(self):
        for command, message in self.each(NOT_FOUND, self.place / "nowhere"):
            self.assertIn("nowhere", message, command)

    def test_a_directory_that_is_no_store_is_not_found(self):
        (self.place / "letters").write_text("dear")
        for command, message in self.each(NOT_FOUND, self.place):
            self.assertIn("not a store", message, command)

    def test_a_node_directory_is_pointed_out(self):
        for _, message in self.each(NOT_FOUND, self.copy() / "node-0"):
            self.assertIn("lies in", message)

    def test_an_empty_store_has_no_versions(self):
        (self.place / "empty" / "node-a").mkdir(parents=True)
        (self.place / "figures").mkdir()
        (self.place / "figures" / "machine-a.json").write_text("{}", encoding="utf-8")
        self.assertEqual(self.run_json("list", store=self.place / "figures")["versions"], [])
        store = self.place / "empty"
        for command in "list", "check", "stats", "prune":
            self.run_ok(*tool.arguments_of(command), store=store)
            self.run_json(*tool.arguments_of(command), store=store)
        self.assertEqual(self.run_ok("list", store=store), "no versions\n")
        for _, message in self.each(NOT_FOUND, store, ["show", "diff", "extract"]):
            self.assertIn("version", message)

    def test_the_environment_names_the_store(self):
        store = made_store() / "store"
        self.assertIn("whole", self.run_ok("list", env={"BELAY_STORE": str(store)}))
        self.assertIn("whole", self.run_ok("list", cwd=self.copy(name="belay-store").parent))

    def test_locked_stores_can_be_read_but_not_changed(self):
        store = self.copy()
        with tool.locked(store / "node-1"):
            for command in "list", "show", "check", "diff", "extract", "stats":
                self.run_ok(*tool.arguments_of(command), store=store, cwd=self.place)
            before = tool.files_of(store)
            for arguments in ["prune", "--keep", "1"], ["check", "--repair"]:
                message = self.error_of(*arguments, store=store, exit_code=BUSY)
                self.assertIn("host far-away pid 4711", message)
            after = tool.files_of(store)
            self.assertEqual({k: v for k, v in before.items() if "lock" not in k},
                             {k: v for k, v in after.items() if "lock" not in k})
        self.run_ok("prune", "--keep", "1", store=store)

    @unittest.skipUnless(os.getuid() == 0, "needs to become another user")
    def test_another_users_store_is_an_error_of_access(self):
        store = self.copy()
        self.place.chmod(0o755)
        for path in [store, *store.rglob("*")]:
            path.chmod(0o700 if path.is_dir() else 0o600)
        for command, message in self.each(IO, store, ["list", "show", "check", "stats", "prune"], user=65534):
            self.assertIn("Permission denied", message, command)

    def test_output_that_cannot_be_written_is_an_error(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([tool.TOOL, "list", "--store", made_store() / "store"], stdout=full,
                                  stderr=subprocess.PIPE, timeout=20, check=False)
        self.assertEqual(done.returncode, IO)

    def test_unknown_commands_and_options_are_named(self):
        done = run("lst")
        self.assertEqual(done.returncode, USAGE)
        self.assertIn(b'"lst"; did you mean list?', done.stderr)
        self.assertEqual(run().returncode, USAGE)
        self.assertEqual(run("list", "--jsn").returncode, USAGE)
        self.assertIn(b"--jsn", run("list", "--jsn").stderr)
        self.assertEqual(run("prune", "--keep", "-1", store=made_store() / "store").returncode, USAGE)


class Terminals(ToolTest):
    def on_terminal(self, *arguments, env=None):
        """What the tool draws on a terminal: standard output and standard error together."""
        main, second = pty.openpty()
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("BELAY_", "NO_COLOR"))}
        process = subprocess.Popen([tool.TOOL, *arguments, "--store", str(made_store() / "store")], stdout=second,
                                   stderr=second, stdin=subprocess.DEVNULL, env={**environment, **(env or {})})
        os.close(second)
        drawn = b""
        while select.select([main], [], [], 20)[0]:
            try:
                piece = os.read(main, 65536)
            except OSError:
                break
            if not piece:
                break
            drawn += piece
        os.close(main)
        self.assertEqual(process.wait(20), OK)
        return drawn

    def test_a_terminal_gets_colours_and_progress(self):
        drawn = self.on_terminal("check")
        self.assertIn(b"\033[32mwhole\033[0m", drawn)
        self.assertIn(b"check [", drawn)
        self.assertIn(b"\r\033[K", drawn)

    def test_colours_are_off_when_asked(self):
        for arguments, env in ((["list", "--color", "never"], {}), (["list"], {"NO_COLOR": "1"})):
            self.assertNotIn(b"\033[3", self.on_terminal(*arguments, env=env))
        self.assertIn(b"\033[32m", self.on_terminal("list", env={"NO_COLOR": ""}))

    def test_a_pipe_gets_neither(self):
        done = run("check", store=made_store() / "store")
        self.assertNotIn(b"\033", done.stdout + done.stderr)
        self.assertNotIn(b"\r", done.stdout + done.stderr)
        self.assertIn(b"\033[32m", run("list", "--color", "always", store=made_store() / "store").stdout)

    def test_json_on_a_terminal_is_only_json(self):
        drawn = self.on_terminal("check", "--json")
        self.assertNotIn(b"\033", drawn)
        self.assertTrue(drawn.startswith(b"{"))


class RunningJobs(ToolTest):
    def test_a_store_is_readable_while_a_job_writes_versions_quickly(self):
        store = self.place / "live"
        job = subprocess.Popen([os.environ["QUICKSTART"]], stdout=subprocess.DEVNULL,
                               env={**os.environ, "BELAY_STORE": str(store), "BELAY_INTERVAL": "1 calls"})
        try:
            deadline = time.monotonic() + 20
            while not list(store.rglob("settled")) and time.monotonic() < deadline:
                time.sleep(0.01)
            seen = set()
            while len(seen) < 8 and job.poll() is None:
                for command in "list", "check", "stats":
                    found = self.run_json(command, store=store)
                    self.assertEqual(found["flaws"], [], command)
                seen.add(self.run_json("show", "latest", store=store)["version"])
                self.run_ok("extract", "latest", "rod", "--raw", "-o", self.place / "rod", "--force", store=store)
                self.assertEqual((self.place / "rod").stat().st_size, 80008)
            self.assertGreater(len(seen), 2)
        finally:
            job.send_signal(signal.SIGKILL)
            job.wait(20)
        self.run_json("check", store=store)
        self.run_json("check", "--repair", store=store)


if __name__ == "__main__":
    unittest.main()
