#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`belay doctor` on good places and on bad ones: read-only, full, forbidden, missing, taken."""
import os
import re
import subprocess
import tempfile
import time
import unittest

from tool_case import SECONDS, TOOL, ToolCase

PLACE = ["store", "file_system", "space", "inodes", "owner", "permissions", "direct_io", "locks",
         "rename", "write", "fsync"]
MACHINE = ["kernel", "page_tracking", "max_map_count", "huge_pages", "vectors", "processors",
           "memory"]
# A mount name space of its own: what is mounted there goes with the process.
ALONE = ["unshare", "--mount"] if os.getuid() == 0 else ["unshare", "--map-root-user", "--mount"]
CAN_MOUNT = subprocess.run([*ALONE, "sh", "-c", "mount -t tmpfs none /mnt"], check=False,
                           capture_output=True, timeout=SECONDS).returncode == 0


class DoctorCase(ToolCase):
    def examine(self, *arguments, expect=0, **how):
        """The checks by name; of several with one name the last."""
        found = self.run_json("doctor", "--json", *arguments, expect=expect, **how)
        self.assertEqual(found["usable"], expect == 0)
        for check in found["checks"]:
            self.assertEqual(set(check), {"name", "health", "found", "fix"})
            self.assertEqual(check["fix"] is None, check["health"] == "ok", check)
        self.assertFalse([name for name in self.left_behind() if "doctor" in name])
        return {check["name"]: check for check in found["checks"]}


class Places(DoctorCase):
    def test_a_good_place_has_every_check_and_is_left_as_it_was(self):
        checks = self.examine("--store", self.top)
        self.assertEqual(list(checks)[:len(PLACE)], PLACE)
        self.assertLessEqual({*MACHINE, "mpirun", "options"}, set(checks))
        for name in ("store", "permissions", "locks", "rename", "owner"):
            self.assertEqual(checks[name]["health"], "ok", checks[name])
        self.assertEqual(self.left_behind(), [])

    def test_a_missing_store_is_tried_in_its_nearest_parent_and_not_made(self):
        checks = self.examine("--store", self.top / "not" / "there")
        self.assertIn(f"a first open() makes it in {self.top}", checks["store"]["found"])
        self.assertEqual(self.left_behind(), [])

    def test_the_store_comes_from_the_environment_if_it_is_not_named(self):
        checks = self.examine(BELAY_STORE=str(self.top / "from-variable"))
        self.assertIn("from-variable", checks["store"]["found"])
        self.assertIn("BELAY_STORE", checks["options"]["found"])

    def test_a_file_in_the_way_is_named(self):
        (self.top / "file").write_text("here")
        for store in ("file", "file/store"):
            check = self.examine("--store", store, expect=5)["store"]
            self.assertEqual(check["health"], "fail")
            self.assertIn(str(self.top / "file"), check["found"])

    def test_memory_is_a_warning(self):
        if not os.path.isdir("/dev/shm"):
            self.skipTest("no /dev/shm")
        with tempfile.TemporaryDirectory(dir="/dev/shm") as place:
            check = self.examine("--store", place)["file_system"]
            self.assertEqual(check["health"], "warn")
            self.assertIn("lost with the node", check["found"])
            self.assertEqual(os.listdir(place), [])

    def test_a_place_of_others_is_no_permission(self):
        place = self.top / "closed"
        place.mkdir(mode=0o500)
        before = []
        if os.getuid() == 0:  # whom no mode stops
            os.chmod(self.top, 0o755)
            before = ["setpriv", "--reuid", "65534", "--clear-groups", "--regid", "65534"]
            tried = subprocess.run([*before, TOOL, "version"], check=False, capture_output=True,
                                   timeout=SECONDS)
            if tried.returncode != 0:
                self.skipTest("nobody may run the tool here")
            os.chmod(place, 0o555)
        check = self.examine("--store", place, before=before, expect=5)["permissions"]
        self.assertIn("Permission denied", check["found"])
        self.assertIn("BELAY_STORE", check["fix"])

    def test_a_store_that_others_may_write_to_is_a_warning(self):
        os.chmod(self.top, 0o777)
        check = self.examine("--store", self.top)["owner"]
        self.assertEqual(check["health"], "warn")
        self.assertEqual(check["fix"], f"chmod go-w {self.top}")

    @unittest.skipUnless(CAN_MOUNT, "mounting is not allowed here")
    def test_a_read_only_place_fails(self):
        checks = self.examine("--store", self.top / "mounted", expect=5,
                              before=self.mounted("mount -o remount,ro,bind mounted"))
        self.assertIn("read-only", checks["file_system"]["found"])
        self.assertIn("Read-only", checks["permissions"]["found"])
        self.assertNotIn("write", checks)

    @unittest.skipUnless(CAN_MOUNT, "mounting is not allowed here")
    def test_a_full_place_fails(self):
        checks = self.examine("--store", self.top / "mounted", expect=5,
                              before=self.mounted("head -c 2M /dev/zero > mounted/fill || true"))
        self.assertEqual(checks["space"]["health"], "fail")
        self.assertIn("No space left", checks["write"]["found"])
        self.assertIn("free space", checks["write"]["fix"])

    @unittest.skipUnless(CAN_MOUNT, "mounting is not allowed here")
    def test_a_place_without_inodes_fails(self):
        checks = self.examine("--store", self.top / "mounted", expect=5,
                              before=self.mounted("for i in 1 2 3 4 5 6 7 8 9 10 11 12; do "
                                                  "touch mounted/$i; done 2>/dev/null || true"))
        self.assertEqual(checks["inodes"]["health"], "fail")

    def mounted(self, then):
        """A command before the tool: with a file system of 1 MiB and 8 files at `mounted`."""
        (self.top / "mounted").mkdir()
        script = ("mount -t tmpfs -o size=1m,nr_inodes=8 none mounted && mount --bind mounted "
                  f"mounted && {then} && exec \"$@\"")
        return [*ALONE, "sh", "-c", script, "sh"]


class Options(DoctorCase):
    def test_unknown_names_are_warnings_with_the_nearest_match(self):
        check = self.examine(BELAY_BLOK="4KiB")["options"]
        self.assertEqual(check["health"], "warn")
        self.assertIn("did you mean BELAY_BLOCK?", check["found"])

    def test_every_wrong_value_is_told(self):
        (self.top / "belay.toml").write_text("late = 'never'\n")
        done = self.run_tool("doctor", BELAY_KEEP="many", BELAY_HASH="crc32",
                             BELAY_CONFIG="belay.toml")
        self.assertEqual(done.returncode, 2, done.stdout)
        for part in ("BELAY_KEEP", "BELAY_HASH", "belay.toml:1:8"):
            self.assertRegex(done.stdout, rf"(?m)^fail  options .*{re.escape(part)}")
        self.assertIn("not usable", done.stdout)

    def test_a_configuration_file_that_is_not_there_fails(self):
        check = self.examine(BELAY_CONFIG="none.toml", expect=2)["options"]
        self.assertIn("none.toml", check["found"])

    def test_options_that_exclude_each_other_fail(self):
        check = self.examine(BELAY_NODE="a", BELAY_RANKS_PER_NODE="2", expect=2)["options"]
        self.assertIn("unset one of them", check["found"])


class Mpi(DoctorCase):
    def test_without_mpirun_a_place_is_still_usable(self):
        check = self.examine(PATH="/nonexistent")["mpirun"]
        self.assertEqual(check["found"], "not found in PATH")

    @unittest.skipUnless(os.environ["FORGETFUL_HEAT2D"], "this build has no MPI")
    def test_the_thread_level_is_told(self):
        self.assertRegex(self.examine()["mpi"]["found"],
                         "thread level (single|funneled|serialized|multiple)")

    @unittest.skipUnless(os.environ["FORGETFUL_HEAT2D"] and os.geteuid() == 0, "only root is refused")
    def test_an_mpirun_that_refuses_root_is_told_with_what_permits_it(self):
        check = self.examine(OMPI_ALLOW_RUN_AS_ROOT="", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="")["mpi"]
        self.assertEqual(check["health"], "warn")
        self.assertIn("refuses to start programs of root", check["found"])
        variables = check["fix"].partition("export ")[2]
        self.assertEqual(variables, "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")
        permitted = dict(variable.split("=") for variable in variables.split())
        self.assertEqual(self.examine(**permitted)["mpi"]["health"], "ok")

    def test_an_mpirun_that_hangs_does_not_keep_the_doctor(self):
        program = self.top / "mpirun"
        program.write_text("#!/bin/sh\nexec sleep 600\n")
        program.chmod(0o755)
        start = time.monotonic()
        check = self.examine(PATH=f"{self.top}:/usr/bin:/bin")["mpirun"]
        self.assertLess(time.monotonic() - start, 12)
        self.assertEqual(check["health"], "warn")


class Terminal(DoctorCase):
    def test_colours_are_for_terminals_that_want_them(self):
        code, seen = self.run_on_terminal("doctor")
        self.assertEqual(code, 0, seen)
        self.assertIn("\x1b[32mok  \x1b[0m  store", seen)
        self.assertIn("\r\x1b[K", seen)
        for arguments, variables in ((["--color", "never"], {}), ([], {"NO_COLOR": "1"})):
            _, seen = self.run_on_terminal("doctor", *arguments, **variables)
            self.assertNotIn("\x1b[3", seen)
        plain = self.run_tool("doctor")
        self.assertNotIn("\x1b", plain.stdout + plain.stderr)
        self.assertIn("\x1b[32m", self.run_tool("doctor", "--color", "always").stdout)

    def test_help_has_examples(self):
        self.assertIn("belay doctor --store", self.run_tool("doctor", "--help").stdout)


if __name__ == "__main__":
    unittest.main()
