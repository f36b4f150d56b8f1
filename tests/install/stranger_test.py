#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A stranger's path, from the installed package alone: five lines are added to a solver, it is killed in the
middle, started again, and ends as if nothing had been."""
import os
import re
import shutil
import signal
import subprocess
import time
import unittest

from prefix import CXX, HERE, InstalledTest, environment, run

PATCH = HERE / "stranger" / "belay.patch"
SECONDS = 60


class Stranger(InstalledTest):

    def compile(self, name, flags):
        program = self.place / name
        run(CXX, "-std=c++20", "-O2", "-Wall", "-Wextra", "-Werror", self.place / "solver.cpp", *flags,
            "-o", program)
        return program

    def compile_before_and_after_the_patch(self):
        self.place = self.folder("stranger")
        shutil.copy(HERE / "stranger" / "solver.cpp", self.place)
        self.plain = self.compile("plain", [])
        run("patch", "--strip=1", "--input", PATCH, cwd=self.place)
        flags = run("pkg-config", "--cflags", "--libs", "belay",
                    env=environment(PKG_CONFIG_PATH=str(self.libraries / "pkgconfig"))).split()
        self.solver = self.compile("solver", [*flags, f"-Wl,-rpath,{self.libraries}"])

    def versions(self):
        """The numbers of the versions that exist, also while the solver writes and retires them."""
        names = [name for _, _, files in os.walk(self.place) for name in files]
        found = [re.fullmatch(r"manifest-\d+-(\d+)-\d+", name) for name in names]
        return [int(match.group(1)) for match in found if match]

    def run_until_killed(self, env):
        """Kills the solver in the middle, once a version exists. The sweep that it said last."""
        with subprocess.Popen([str(self.solver)], cwd=self.place, env=env, text=True,
                              stdout=subprocess.PIPE) as solver:
            deadline = time.monotonic() + SECONDS
            for line in solver.stdout:
                if re.fullmatch(r"sweep \d+\n", line) and self.versions():
                    break
                self.assertLess(time.monotonic(), deadline, "no version within the time")
            solver.send_signal(signal.SIGKILL)
            self.assertEqual(solver.wait(SECONDS), -signal.SIGKILL, "it had ended before it was killed")
            said = [line, *solver.stdout]
        return int(re.findall(r"sweep (\d+)\n", "".join(said))[-1])

    def test_five_lines_survive_a_kill(self):
        self.compile_before_and_after_the_patch()
        undisturbed = run(self.plain).splitlines()
        env = environment(BELAY_INTERVAL="30ms")
        killed_at = self.run_until_killed(env)
        restarted = run(self.solver, cwd=self.place, env=env).splitlines()
        start = int(re.fullmatch(r"starting after sweep (\d+)", restarted[0]).group(1))
        self.assertGreater(start, 0, "it began anew")
        self.assertLess(start, killed_at + 200)
        self.assertEqual(restarted[-1], undisturbed[-1])
        self.check_tool_shows_versions()

    def check_tool_shows_versions(self):
        tool = self.prefix / "bin" / "belay"
        self.assertIn("belay", run(tool, "version").lower())
        if re.search(r"^\s+list\b", run(tool, "--help"), re.MULTILINE):
            shown = run(tool, "list", "--store", self.place / "belay-store")
            self.assertIn(str(max(self.versions())), shown)

    def test_the_patch_is_five_lines_of_belay(self):
        lines = PATCH.read_text().splitlines()[2:]
        added = [line for line in lines if line.startswith("+")]
        self.assertFalse([line for line in lines if line.startswith("-")])
        self.assertEqual(len([line for line in added if line.endswith("// belay")]), 5)
        # Besides them the #include, an empty line, and what happens if there is no store.
        self.assertLessEqual(len(added), 8)
        self.assertEqual(len((HERE / "stranger" / "solver.cpp").read_text().splitlines()), 60)


if __name__ == "__main__":
    unittest.main()
