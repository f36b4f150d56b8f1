# SPDX-License-Identifier: Apache-2.0
"""Who may read what: stores and all that programs and the tool make, whatever the umask; stores of other users."""
import os
import stat
import subprocess
import unittest

import tool
from tool import IO, ToolTest

MANIFEST = "node-0/manifest-000001-0000000003-000000"
NOBODY = 65534
MASKS = 0o000, 0o077
needs_root = unittest.skipUnless(os.getuid() == 0, "needs to become another user")


class Modes(ToolTest):
    def expect_private(self, top):
        """0600 for each file below, 0700 for each directory."""
        seen = 0
        for path in [top, *top.rglob("*")]:
            mode = path.lstat().st_mode
            self.assertEqual(stat.S_IMODE(mode), 0o700 if stat.S_ISDIR(mode) else 0o600, path)
            seen += 1
        return seen

    def test_umask_000_and_077_a_programs_store_is_its_owners_alone(self):
        for mask in MASKS:
            with self.subTest(mask=oct(mask)):
                place = self.place / f"{mask:o}"
                done = start_program(place, umask=mask)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertGreaterEqual(self.expect_private(place / "store"), 20)

    def test_umask_000_and_077_what_repair_makes_is_its_owners_alone(self):
        for mask in MASKS:
            with self.subTest(mask=oct(mask)):
                store = self.copy(name=f"{mask:o}")
                for path in [store, *store.rglob("*")]:
                    path.chmod(0o700 if path.is_dir() else 0o600)
                (store / MANIFEST).write_bytes(b"damaged")
                (store / "node-0/settled").unlink()
                (store / "node-1/run-000001").unlink()
                (store / "node-1/lock").unlink()
                self.assertEqual(self.run_json("check", "--repair", store=store, umask=mask)["flaws"], [])
                self.assertTrue((store / "node-0/quarantine").is_dir())
                self.assertTrue((store / "node-1/run-000001").exists())
                self.run_ok("prune", "--keep", 1, store=store, umask=mask)
                self.expect_private(store)

    def test_umask_000_and_077_what_extract_and_bench_write_is_its_owners_alone(self):
        for mask in MASKS:
            with self.subTest(mask=oct(mask)):
                place = self.place / f"{mask:o}"
                place.mkdir(mode=0o700)
                self.run_ok("extract", "latest", "f64", "--rank", 0, store=tool.made_store() / "store", cwd=place,
                            umask=mask)
                self.run_ok("bench", "--quick", store="store", cwd=place, umask=mask, timeout=60)
                self.assertEqual(self.expect_private(place), 4)


def start_program(place, **how):
    """Three versions of a job of two ranks in place/store."""
    return subprocess.run([os.environ["MAKE_CLI_STORE"], place], capture_output=True, timeout=60, check=False,
                          text=True, **how)


def give_away(top):
    for path in [top, *top.rglob("*")]:
        os.chown(path, NOBODY, NOBODY, follow_symlinks=False)


@needs_root
class OtherUsers(ToolTest):
    def setUp(self):
        super().setUp()
        self.place.chmod(0o755)
        self.assertEqual(start_program(self.place).returncode, 0)
        self.store = self.place / "store"

    def changing(self):
        return ["prune", "--keep", "1"], ["check", "--repair"]

    def test_a_user_cannot_open_roots_store(self):
        before = tool.files_of(self.store)
        for mode in 0o700, 0o755:  # of the store; the directories of its nodes stay closed
            self.store.chmod(mode)
            done = start_program(self.place, user=NOBODY, group=NOBODY, extra_groups=[])
            self.assertEqual(done.returncode, 1)
            self.assertIn("Permission denied (check owner and mode", done.stderr)
            self.assertIn(str(self.store), done.stderr)
        self.assertEqual(tool.files_of(self.store), before)

    def test_a_users_tool_cannot_look_at_roots_store(self):
        before = tool.files_of(self.store)
        for mode in 0o700, 0o755:
            self.store.chmod(mode)
            for arguments in [*map(tool.arguments_of, tool.COMMANDS), *self.changing()]:
                message = self.error_of(*arguments, store=self.store, exit_code=IO, cwd="/", user=NOBODY)
                self.assertIn("Permission denied (check owner and mode", message, arguments)
        self.assertEqual(tool.files_of(self.store), before)

    def test_root_cannot_open_a_users_store_where_the_user_could_not_read_the_files(self):
        give_away(self.store)
        before = tool.files_of(self.store)
        done = start_program(self.place)
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"node-0: belongs to user {NOBODY}", done.stderr)
        self.assertEqual(tool.files_of(self.store), before)
        self.run_ok("check", store=self.store, user=NOBODY)

    def test_roots_tool_looks_at_a_users_store_and_changes_nothing(self):
        give_away(self.store)
        before = tool.files_of(self.store)
        for command in tool.COMMANDS:
            if command != "prune":
                self.run_ok(*tool.arguments_of(command), store=self.store, cwd=self.place)
        for arguments in self.changing():
            message = self.error_of(*arguments, store=self.store, exit_code=IO)
            self.assertIn(f"run as user {NOBODY}", message)
        self.assertEqual(tool.files_of(self.store), before)
        self.assertEqual({path.stat().st_uid for path in self.store.rglob("*")}, {NOBODY})


if __name__ == "__main__":
    unittest.main()
