# SPDX-License-Identifier: Apache-2.0
"""Names that try to escape, given to the tool: the store's, regions', and those of programs' options."""
import os
import unittest

import tool
from tool import IO, NOT_FOUND, USAGE, ToolTest, made_store, run

# NUL ends an argument and a variable: what follows it nobody can give.
HOSTILE = {"upwards": "../../x", "absolute": "/no/such/x", "300 bytes": "x" * 300, "control": "a\x1b[31m\nb\x7f",
           "not UTF-8": b"\xff\xfe"}

UNPRINTABLE = rb"[\x00-\x08\x0b-\x1f\x7f\xff]"


class NamesOfStores(ToolTest):
    def each_command(self, exits, **how):
        """Every command fails like this, says why, and leaves nothing behind."""
        for command in [*tool.COMMANDS, "bench", "doctor"]:
            arguments = {"bench": ["bench", "--quick"]}.get(command, tool.arguments_of(command))
            done = run(*arguments, cwd=self.place, timeout=60, **how)
            self.assertIn(done.returncode, exits, (command, done.stdout, done.stderr))
            self.assertNotRegex(done.stdout + done.stderr, UNPRINTABLE, command)
            self.assertTrue(done.stderr or command == "doctor", command)
        self.assertEqual(os.listdir(self.place), [])

    def test_a_path_upwards_or_absolute_that_is_not_there_is_not_found(self):
        for name in "no/../../no/x", "/no/such/x":
            for command in tool.COMMANDS:
                self.assertIn("no", self.error_of(*tool.arguments_of(command), store=name, exit_code=NOT_FOUND))

    def test_a_name_of_300_bytes_is_refused_by_every_command(self):
        self.each_command([IO], store=HOSTILE["300 bytes"])

    def test_a_name_of_300_bytes_in_the_environment_is_refused_by_every_command(self):
        self.each_command([IO], env={"BELAY_STORE": HOSTILE["300 bytes"]})

    def test_control_characters_and_what_is_no_text_are_shown_harmlessly(self):
        for kind in "control", "not UTF-8":
            for command in tool.COMMANDS:
                for how in {"store": HOSTILE[kind]}, {"env": {"BELAY_STORE": HOSTILE[kind]}}:
                    if "store" in how and kind == "not UTF-8":
                        how = {"store": os.fsdecode(HOSTILE[kind])}
                    for json in [], ["--json"]:
                        done = run(*tool.arguments_of(command), *json, **how)
                        self.assertEqual(done.returncode, NOT_FOUND, (command, done.stderr))
                        self.assertNotRegex(done.stderr, UNPRINTABLE, command)
                        self.assertNotRegex(done.stdout, UNPRINTABLE.replace(rb"\x7f", b""), command)
                        self.assertNotIn(b"\nb", done.stderr)


class NamesOfRegions(ToolTest):
    def test_a_region_that_no_rank_has_is_not_found_whatever_its_name(self):
        for kind, name in HOSTILE.items():
            with self.subTest(kind=kind):
                done = run("extract", "latest", os.fsdecode(name), "--rank", 0, store=made_store() / "store",
                           cwd=self.place)
                self.assertEqual(done.returncode, NOT_FOUND, done.stderr)
                self.assertNotRegex(done.stderr, UNPRINTABLE)
                self.assertEqual(os.listdir(self.place), [])


class NamesInOptions(ToolTest):
    """Of the environment and of the file: `doctor` says what open() would refuse, and programs are refused."""

    def told(self, **environment):
        done = run("doctor", cwd=self.place, env=environment, timeout=60)
        self.assertEqual(done.returncode, USAGE, (environment, done.stdout))
        self.assertNotRegex(done.stdout + done.stderr, UNPRINTABLE)

    def refused(self, **environment):
        program = tool.subprocess.run([os.environ["QUICKSTART"]], cwd=self.place, env={**os.environ, **environment},
                                      capture_output=True, timeout=60, check=False)
        self.assertEqual(program.returncode, 1)
        self.assertRegex(program.stderr, rb"must be|must not|UTF-8")
        self.assertNotRegex(program.stderr, UNPRINTABLE)
        self.assertFalse((self.place / "belay-store").exists())

    def test_applications_of_300_bytes_or_with_control_characters_are_refused(self):
        for kind in "300 bytes", "control", "not UTF-8":
            self.refused(BELAY_APPLICATION=HOSTILE[kind])
        self.told(BELAY_APPLICATION=HOSTILE["control"])

    def test_nodes_that_are_paths_or_of_300_bytes_or_with_control_characters_are_refused(self):
        for name in HOSTILE.values():
            self.refused(BELAY_NODE=name)
        self.told(BELAY_NODE=HOSTILE["upwards"])

    def test_names_with_nul_or_control_characters_in_a_file_are_refused(self):
        for option in "application", "node", "store":
            for text in r"a\u0000b", r"a\u001b[31m":
                (self.place / "belay.toml").write_text(f'{option} = "{text}"\n', encoding="utf-8")
                self.refused(BELAY_CONFIG="belay.toml")
            self.told(BELAY_CONFIG="belay.toml")


if __name__ == "__main__":
    unittest.main()
