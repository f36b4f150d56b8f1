# SPDX-License-Identifier: Apache-2.0
"""The help of every command is what is written down in golden/.

To write it down anew: BELAY_TOOL=... MAKE_CLI_STORE= /usr/bin/python3 help_test.py --write
"""
import re
import sys
import unittest

from tool import HERE, OK, run

GOLDEN_HELP = HERE / "golden"


def commands():
    """All commands, as the tool itself lists them."""
    text = run("--help").stdout.decode()
    return re.findall(r"^  ([a-z][a-z-]*)  ", text[text.index("Subcommands:"):], re.MULTILINE)


def pages():
    return {"belay": [], **{f"belay-{name}": [name] for name in commands()}}


class Help(unittest.TestCase):
    def test_every_command_has_its_golden_help(self):
        found = pages()
        self.assertGreater(len(found), 7)
        for page, arguments in found.items():
            with self.subTest(page):
                done = run(*arguments, "--help")
                self.assertEqual((done.returncode, done.stderr), (OK, b""))
                self.assertEqual(done.stdout.decode(), (GOLDEN_HELP / f"{page}.txt").read_text(encoding="utf-8"))

    def test_every_golden_help_is_of_a_command(self):
        self.assertEqual({p.stem for p in GOLDEN_HELP.glob("*.txt")}, set(pages()))

    def test_every_command_shows_examples_of_itself(self):
        for name in commands():
            text = run(name, "--help").stdout.decode()
            examples = text[text.index("Examples:"):].splitlines()[1:]
            self.assertTrue(any(f"belay {name}" in line for line in examples), name)

    def test_every_command_is_in_the_document_of_json(self):
        document = (HERE.parent.parent / "docs" / "json.md").read_text(encoding="utf-8")
        for name in commands():
            self.assertIn(f"`belay/{name}/1`", document)


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        GOLDEN_HELP.mkdir(exist_ok=True)
        for page_name, call in pages().items():
            (GOLDEN_HELP / f"{page_name}.txt").write_bytes(run(*call, "--help").stdout)
    else:
        unittest.main()
