#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`belay rehearse` on programs that are right, and on programs with the usual mistakes."""
import json
import os
import shutil
import signal
import subprocess
import time
import unittest

from tool_case import SECONDS, TOOL, ToolCase

REHEARSED = os.environ["REHEARSED"]
FORGETFUL_HEAT2D = os.environ["FORGETFUL_HEAT2D"]
MPIEXEC = os.environ["MPIEXEC"]
EXAMPLES = os.environ["EXAMPLES"]


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


class RehearseCase(ToolCase):
    def rehearse(self, *command, expect, options=()):
        found = self.run_json("rehearse", "--json", *options, "--", *command, expect=expect)
        self.assertEqual(self.left_behind(), [], "scratch stores must be gone")
        return found

    def assert_numbers_match(self, found):
        """Numbers go on without a gap on both sides, and those after the restart are higher."""
        for before, after in zip(found["compared"], found["compared"][1:]):
            self.assertEqual(after["undisturbed"], before["undisturbed"] + 1)
            self.assertEqual(after["restarted"], before["restarted"] + 1)
        self.assertGreater(found["compared"][0]["restarted"], found["restored"] + 15)


class SoloPrograms(RehearseCase):
    def test_a_correct_program_is_the_same(self):
        found = self.rehearse(REHEARSED, expect=0)
        self.assertEqual(found["verdict"], "same")
        self.assertEqual(found["agreeing"], ["generator", "grid", "mesh", "step"])
        self.assertEqual(found["differences"], [])
        self.assertGreaterEqual(found["restored"], 3)
        self.assertGreaterEqual(len(found["compared"]), 5)
        self.assertEqual(found["compared"][0]["undisturbed"], found["restored"] + 1)
        self.assert_numbers_match(found)
        self.assertEqual([run["name"] for run in found["runs"]],
                         ["killed", "restarted", "undisturbed"])

    def test_the_quickstart_example_is_the_same(self):
        self.assertEqual(self.rehearse(f"{EXAMPLES}/quickstart", expect=0)["agreeing"], ["rod"])

    def test_a_forgotten_generator_is_found(self):
        found = self.rehearse(REHEARSED, "forget_generator", expect=1)
        self.assertEqual(found["verdict"], "differs")
        self.assertEqual(found["agreeing"], ["mesh", "step"])
        self.assertEqual([difference["region"] for difference in found["differences"]], ["grid"])
        difference = found["differences"][0]
        self.assertEqual(difference["kind"], "content")
        self.assertEqual(difference["undisturbed_version"], found["restored"] + 1)
        self.assertEqual(difference["restarted_version"], found["compared"][0]["restarted"])
        self.assertEqual(difference["blocks"], 10)
        self.assertLessEqual(difference["differing_blocks"], 2)
        self.assertIn("`grid`", found["explanation"])
        self.assertIn("baseline", [run["name"] for run in found["runs"]])

    def test_the_text_names_region_versions_rank_and_blocks(self):
        done = self.run_tool("rehearse", "--", REHEARSED, "forget_generator")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stdout, r"region `grid` differs first at version \d+ \(\d+ after the "
                                      r"restart; rank 0, .*\bblock")
        self.assertIn("regions that agree: mesh, step", done.stdout)
        self.assertIn("Is everything that `grid` is computed from protected?", done.stdout)
        self.assertEqual(done.stderr, "")

    def test_a_forgotten_counter_is_found(self):
        found = self.rehearse(REHEARSED, "forget_step", expect=1)
        self.assertEqual(found["agreeing"], ["generator", "grid"])
        self.assertEqual(found["differences"][0]["region"], "mesh")

    def test_a_restarted_program_that_goes_on_for_too_long_differs(self):
        # The forgotten counter shows first in what is saved; here it is not part of that.
        found = self.rehearse(REHEARSED, "forget_step", "forget_generator", "steps=7", expect=1)
        self.assertEqual(found["verdict"], "differs")

    def test_a_load_function_that_brings_back_too_little_shows_by_its_size(self):
        difference = self.rehearse(REHEARSED, "sloppy_journal", expect=1)["differences"][0]
        self.assertEqual((difference["region"], difference["kind"]), ("journal", "size"))
        self.assertLess(difference["restarted_bytes"], difference["undisturbed_bytes"])

    def test_a_region_that_is_protected_only_at_first_is_named(self):
        difference = self.rehearse(REHEARSED, "only_at_first", expect=1)["differences"][0]
        self.assertEqual((difference["region"], difference["kind"]), ("origin", "only_undisturbed"))

    def test_chance_is_told_from_a_forgotten_variable(self):
        found = self.rehearse(REHEARSED, "by_chance", expect=6)
        self.assertEqual(found["verdict"], "nondeterministic")
        self.assertEqual(found["unsteady"], ["generator", "grid"])
        self.assertIn("even between two undisturbed runs", found["explanation"])

    def test_a_baseline_run_is_made_when_asked_for(self):
        found = self.rehearse(REHEARSED, expect=0, options=["--baseline"])
        self.assertEqual(found["runs"][-1]["name"], "baseline")
        self.assertEqual(found["unsteady"], [])

    def test_a_program_that_does_not_restore_is_told_so(self):
        found = self.rehearse(REHEARSED, "no_restore", expect=1)
        self.assertEqual(found["verdict"], "not_restored")
        self.assertIn("has no parent", found["explanation"])

    def test_a_restart_that_fails_shows_what_the_program_printed(self):
        found = self.rehearse(REHEARSED, "fails_later", expect=1)
        self.assertEqual(found["verdict"], "restart_failed")
        self.assertEqual(found["runs"][-1]["status"], "exit code 7")
        self.assertIn("no licence", found["log"][-1])
        self.assertNotIn("\x1b", found["log"][-1])

    def test_what_is_no_text_in_a_log_or_command_does_no_harm(self):
        done = self.run_tool("rehearse", "--json", "--", "sh", "-c",
                             "printf 'a\\377\\033[2Jb\\302\\233c\\n'; exit 3", b"\xff")
        found = json.loads(done.stdout)
        self.assertEqual(found["log"], ["a\ufffd [2Jb\ufffd c"])

    def test_arguments_after_the_dashes_are_the_programs(self):
        found = self.rehearse("sh", "-c", "echo \"$@\"; exit 1", "sh", "version", "--json", "--",
                              "-n", expect=3)
        self.assertEqual(found["log"], ["version --json -- -n"])

    def test_a_program_that_fails_by_itself_is_not_judged(self):
        found = self.rehearse(REHEARSED, "fails", expect=3)
        self.assertEqual(found["verdict"], "program_failed")
        self.assertIn("no licence", found["log"][-1])

    def test_a_store_set_in_code_is_found_and_explained(self):
        own = self.top / "own"
        done = self.run_tool("rehearse", "--", REHEARSED, f"own_store={own}")
        self.assertEqual(done.returncode, 3, done.stdout)
        self.assertIn(f"opened the store {own} instead", done.stdout)
        self.assertEqual(self.left_behind(), ["own"])

    def test_few_versions_kept_in_code_do_no_harm(self):
        self.rehearse(REHEARSED, "own_keep", expect=0)

    def test_an_interval_set_in_code_is_explained(self):
        found = self.rehearse(REHEARSED, "own_interval", expect=1)
        self.assertIn("does not follow BELAY_INTERVAL", found["explanation"])

    def test_other_calls_after_a_restart_are_not_compared(self):
        found = self.rehearse(REHEARSED, expect=6, options=["--every", "3"])
        self.assertEqual(found["verdict"], "unequal_points")
        self.assertIn("--every 1", found["explanation"])

    def test_a_program_that_ends_too_early_is_told_so(self):
        found = self.rehearse(REHEARSED, "steps=2", expect=3)
        self.assertEqual(found["verdict"], "no_versions")
        self.assertIn("--kill-after", found["explanation"])

    def test_a_program_that_ends_during_the_rehearsal_is_compared_as_far_as_it_goes(self):
        found = self.rehearse(REHEARSED, "steps=12", expect=0, options=["--compare", "100"])
        self.assertEqual(found["compared"][-1]["undisturbed"], 12)

    def test_a_program_that_hangs_is_ended_in_time(self):
        start = time.monotonic()
        found = self.rehearse(REHEARSED, "hang", expect=3, options=["--timeout", "500ms"])
        self.assertLess(time.monotonic() - start, 10)
        self.assertEqual(found["runs"][0]["end"], "timeout")
        self.assertIn("took no version within 500ms", found["explanation"])

    def test_a_program_that_never_checkpoints_is_told_so(self):
        found = self.rehearse(REHEARSED, "no_checkpoint", expect=3, options=["--timeout", "500ms"])
        self.assertIn("though it opened the store", found["explanation"])

    def test_scratch_is_kept_where_it_is_asked_for(self):
        place = self.top / "scratch"
        place.mkdir()
        found = self.run_json("rehearse", "--json", "--scratch", place, "--keep-scratch", "--",
                              REHEARSED)
        kept = {path.name for path in (place / os.path.basename(found["scratch"])).iterdir()}
        self.assertLessEqual({"disturbed", "undisturbed", "killed.log", "restarted.log"}, kept)


class Wrong(RehearseCase):
    def test_what_cannot_be_run_is_not_found(self):
        done = self.run_tool("rehearse", "--", "./not-there")
        self.assertEqual(done.returncode, 3)
        self.assertIn("run ./not-there: No such file", done.stderr)
        self.assertEqual(self.left_behind(), [])

    def test_wrong_use_is_refused(self):
        for arguments in (["rehearse"], ["rehearse", "--timeout", "soon", "--", REHEARSED],
                          ["rehearse", "--kill-after", "0", "--", REHEARSED]):
            done = self.run_tool(*arguments)
            self.assertEqual(done.returncode, 2, arguments)
        self.assertEqual(self.left_behind(), [])

    def test_a_scratch_directory_that_is_not_there_is_named(self):
        done = self.run_tool("rehearse", "--scratch", self.top / "none", "--", REHEARSED)
        self.assertEqual(done.returncode, 3)
        self.assertIn("--scratch", done.stderr)

    def test_help_has_examples(self):
        self.assertIn("belay rehearse -- ./solver", self.run_tool("rehearse", "--help").stdout)


class Processes(RehearseCase):
    def wait_for_pids(self, path, count):
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            pids = path.read_text(encoding="utf-8").split() if path.exists() else []
            if len(pids) >= count:
                return pids
            time.sleep(0.01)
        self.fail("the program did not start")

    def test_nothing_that_the_program_started_is_left(self):
        pids = self.top / "pids"
        done = self.run_tool("rehearse", "--", REHEARSED, f"children={pids}")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        started = pids.read_text(encoding="utf-8").split()
        self.assertGreaterEqual(len(started), 9)
        self.assertEqual([pid for pid in started if is_running(pid)], [])

    def test_children_that_were_there_before_are_left_alone(self):
        with subprocess.Popen(["sh", "-c", f"sleep 60 & echo $! > before; exec '{TOOL}' rehearse -- "
                               f"'{REHEARSED}'"], cwd=self.top, env=self.environment,
                              stdout=subprocess.PIPE) as shell:
            shell.stdout.readline()  # said when everything that is to be killed has been
            before = (self.top / "before").read_text(encoding="utf-8").strip()
            self.assertTrue(is_running(before))
            os.kill(int(before), signal.SIGKILL)
            shell.communicate(timeout=SECONDS)
            self.assertEqual(shell.returncode, 0)

    def test_an_interrupt_leaves_no_process_and_no_scratch(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            pids = self.top / f"pids-{number}"
            with subprocess.Popen([TOOL, "rehearse", "--", REHEARSED, "hang", f"children={pids}"],
                                  cwd=self.top, env=self.environment, stderr=subprocess.PIPE,
                                  text=True) as tool:
                started = self.wait_for_pids(pids, 3)
                self.assertEqual(len([pid for pid in started if is_running(pid)]), 3)
                tool.send_signal(number)
                _, said = tool.communicate(timeout=SECONDS)
            self.assertEqual(tool.returncode, -number, said)
            self.assertIn("interrupted", said)
            self.assertEqual([pid for pid in started if is_running(pid)], [])
            self.assertNotIn("rehearsal", " ".join(self.left_behind()))

    def test_a_program_goes_with_a_tool_that_is_killed(self):
        path = self.top / "pid"
        with subprocess.Popen([TOOL, "rehearse", "--", REHEARSED, "hang", f"pid={path}"],
                              cwd=self.top, env=self.environment) as tool:
            (pid,) = self.wait_for_pids(path, 1)
            tool.kill()
        deadline = time.monotonic() + SECONDS
        while is_running(pid) and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertFalse(is_running(pid))

    def test_a_terminal_shows_progress_and_then_only_the_result(self):
        code, seen = self.run_on_terminal("rehearse", "--", REHEARSED, "slow")
        self.assertEqual(code, 0, seen)
        self.assertIn("\r\x1b[Kkilled run: ", seen)
        self.assertIn("\r\x1b[Kundisturbed run: ", seen)
        self.assertRegex(seen, r"\r\x1b\[Krehearsal of ")
        code, seen = self.run_on_terminal("rehearse", "--json", "--", REHEARSED)
        self.assertNotIn("\x1b", seen)


@unittest.skipUnless(FORGETFUL_HEAT2D, "this build has no MPI")
class MpiPrograms(RehearseCase):
    def setUp(self):
        super().setUp()
        # Open MPI's shared memory and directories lie here, so that leftovers are seen.
        self.leftovers = self.top.with_name(self.top.name + "-mpi")
        self.leftovers.mkdir()
        self.addCleanup(shutil.rmtree, self.leftovers, ignore_errors=True)
        for variable in ("btl_vader_backing_directory", "orte_tmpdir_base"):
            self.environment[f"OMPI_MCA_{variable}"] = str(self.leftovers)

    def tearDown(self):
        files = [path for path in self.leftovers.rglob("*") if not path.is_dir()]
        self.assertEqual(files, [], "mpirun did not clear up after its killed ranks")

    def test_a_variable_forgotten_in_heat2d_is_found_with_its_rank_and_block(self):
        found = self.rehearse(MPIEXEC, "-n", "2", FORGETFUL_HEAT2D, "--rows", "172", "--cols", "254",
                              "--steps", "100000", expect=1)
        self.assertEqual(found["agreeing"], ["step"])
        difference = found["differences"][0]
        self.assertEqual((difference["region"], difference["rank"]), ("field", 1))
        # (86 + 2) x 256 cells of 8 bytes on each rank, the flame in the middle of them.
        self.assertEqual(difference["blocks"], 11)
        self.assertEqual((difference["first_block"], difference["last_block"]), (5, 5))
        self.assertEqual(difference["undisturbed_version"], found["restored"] + 1)
        self.assert_numbers_match(found)

    def test_the_heat2d_example_is_the_same(self):
        # heat2d checkpoints at the start of a step: it saves what it has just restored once more.
        found = self.rehearse(MPIEXEC, "-n", "2", f"{EXAMPLES}/heat2d", "--rows", "64", "--cols",
                              "64", "--steps", "100000", expect=0)
        self.assertEqual(found["agreeing"], ["field", "step"])
        self.assertEqual(found["compared"][0]["undisturbed"], found["restored"])
        self.assertGreaterEqual(len(found["compared"]), 6)


if __name__ == "__main__":
    unittest.main()
