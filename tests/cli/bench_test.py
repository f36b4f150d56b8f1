#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`belay bench`: figures that make sense, and the file that keeps them for the models."""
import json
import os
import signal
import subprocess
import time
import unittest

from tool_case import SECONDS, TOOL, ToolCase

FIGURES = {"scan", "hash_xxh3", "hash_md5", "hash_sha1", "hash_sha256", "copy", "write", "read",
           "fsync", "publish"}


class Bench(ToolCase):
    def test_figures_are_printed_and_kept_beside_the_nodes(self):
        store = self.top / "store"
        (store / "node-a").mkdir(parents=True)
        printed = self.run_json("bench", "--quick", "--json", "--store", store)
        kept = store / f"machine-{os.uname().nodename}.json"
        self.assertEqual(printed.pop("saved"), str(kept))
        self.assertEqual(json.loads(kept.read_text(encoding="utf-8")), printed)
        self.assertEqual(kept.stat().st_mode & 0o777, 0o600)
        self.assertEqual(sorted(path.name for path in store.iterdir()), [kept.name, "node-a"])
        self.assertEqual(printed["schema"], "belay/bench/1")
        self.assertLessEqual({"belay", "date", "host", "store", "quick", "machine"}, set(printed))
        self.assertLessEqual(FIGURES, set(printed["figures"]))
        for name, figure in printed["figures"].items():
            self.assertEqual(figure["unit"], "s" if name in ("fsync", "publish") else "bytes/s")
            self.assertGreaterEqual(figure["samples"], 1)
            self.assertGreater(figure["lowest"], 0)
            self.assertLessEqual(figure["lowest"], figure["median"])
            self.assertLessEqual(figure["median"], figure["highest"])
        # What no machine has the other way round.
        median = {name: figure["median"] for name, figure in printed["figures"].items()}
        self.assertGreater(median["hash_xxh3"], 2 * median["hash_md5"])
        self.assertGreater(median["scan"], 1e8)
        self.assertLess(median["fsync"], 10)

        self.run_json("bench", "--quick", "--json", "--store", store)
        self.assertEqual(sorted(path.name for path in store.iterdir()), [kept.name, "node-a"])

    def test_nothing_is_kept_if_asked_so_and_the_text_has_a_line_for_each_figure(self):
        done = self.run_tool("bench", "--quick", "--no-save", "--store", self.top / "store")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertLessEqual(FIGURES, {line.split()[0] for line in done.stdout.splitlines()})
        self.assertEqual(done.stderr, "")
        self.assertEqual(self.left_behind(), [])

    def test_a_place_that_cannot_be_used_is_an_error(self):
        (self.top / "file").write_text("here")
        done = self.run_tool("bench", "--quick", "--store", "file")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("not a directory", done.stderr)

    def test_an_interrupt_leaves_nothing(self):
        with subprocess.Popen([TOOL, "bench"], cwd=self.top, env=self.environment,
                              stderr=subprocess.PIPE, text=True) as tool:
            deadline = time.monotonic() + SECONDS
            while not self.left_behind() and time.monotonic() < deadline:
                time.sleep(0.01)
            tool.send_signal(signal.SIGINT)
            tool.communicate(timeout=SECONDS)
        self.assertEqual(tool.returncode, -signal.SIGINT)
        self.assertEqual(self.left_behind(), [])

    def test_a_terminal_shows_progress(self):
        code, seen = self.run_on_terminal("bench", "--quick", "--no-save")
        self.assertEqual(code, 0, seen)
        self.assertIn("round 1 of 3: read memory", seen)
        self.assertRegex(seen, r"\r\x1b\[Kfigure")

    def test_help_has_examples(self):
        self.assertIn("belay bench --quick", self.run_tool("bench", "--help").stdout)


if __name__ == "__main__":
    unittest.main()
