#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the blocks of README.md and docs/guide/*.md. How to write them: see the head of snippets.py.

    snippets_test.py PAGE...          the pages, given as paths in the repository
    snippets_test.py --self-test      the mechanism itself: does it notice?

The environment says where things are: BELAY_SOURCE, BELAY_BUILD, CMAKE, CC, CXX.
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from snippets import Checker, Wrong

SOURCE = pathlib.Path(os.environ["BELAY_SOURCE"])
BUILD = pathlib.Path(os.environ["BELAY_BUILD"])


def install(scratch):
    prefix = scratch / "prefix"
    subprocess.run([os.environ["CMAKE"], "--install", str(BUILD), "--prefix", str(prefix)], check=True,
                   stdout=subprocess.DEVNULL, timeout=60)
    return prefix


def check_pages(pages):
    with tempfile.TemporaryDirectory(prefix="belay-guide-") as directory:
        scratch = pathlib.Path(directory)
        prefix = install(scratch)
        for number, page in enumerate(pages):
            place = scratch / f"page-{number}"
            place.mkdir()
            checked = Checker(SOURCE, prefix, place, BUILD / "bin").check_page(SOURCE / page)
            print(f"{page}: {checked} blocks are as they should be")


class Mechanism(unittest.TestCase):
    """Pages with one mistake each must be refused, the same pages without it accepted."""

    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory(prefix="belay-guide-")
        cls.addClassCleanup(scratch.cleanup)
        cls.scratch = pathlib.Path(scratch.name)
        cls.prefix = install(cls.scratch)
        cls.pages = 0

    def check(self, text):
        Mechanism.pages += 1
        place = self.scratch / f"place-{self.pages}"
        place.mkdir()
        page = self.scratch / "page.md"
        page.write_text(text, encoding="utf-8")
        return Checker(SOURCE, self.prefix, place).check_page(page)

    def refused(self, text, word):
        with self.assertRaises(Wrong) as caught:
            self.check(text)
        self.assertIn(word, str(caught.exception))

    def test_programs_are_compiled(self):
        self.assertEqual(self.check("```c\nint belay_is_nice;\n```\n"), 1)
        self.refused("text\n```c\nint x = belay_open();\n```\n", "page.md:2")
        self.refused("```cpp\nbelay::Session session;\n```\n", "error")

    def test_fragments_stand_inside_of_main(self):
        page = "<!-- test: inside\nint step = 0;\n-->\n```c\nstep = BELAY_OK;\n```\n"
        self.assertEqual(self.check(page), 1)
        self.refused(page.replace("int step = 0;", ""), "step")

    def test_scripts_share_a_directory_and_their_output_is_compared(self):
        page = "```sh\necho one > file\n```\n```sh\ncat file\n```\n<!-- test: output -->\n```\none\n```\n"
        self.assertEqual(self.check(page), 3)
        self.refused(page.replace("```\none", "```\ntwo"), "printed")
        self.refused("```sh\nfalse; true\n```\n", "exit code 1")
        self.assertEqual(self.check("<!-- test: fails -->\n```sh\nfalse\n```\n"), 1)
        self.refused("<!-- test: fails -->\n```sh\ntrue\n```\n", "must fail")

    def test_figures_may_be_others_but_words_may_not(self):
        page = "```sh\necho a; echo '  3  12.5 KiB whole'\n```\n<!-- test: like -->\n```\n...\n14 7 MiB whole\n```\n"
        self.assertEqual(self.check(page), 2)
        self.refused(page.replace("whole\n```\n", "damaged\n```\n"), "something else")
        self.refused(page.replace("...\n", ""), "something else")

    def test_options_are_options(self):
        self.assertEqual(self.check('```toml\nkeep = 3\n```\n'), 1)
        self.refused('```toml\nkep = 3\n```\n', "did you mean keep")

    def test_quoted_files_are_quoted_right(self):
        page = "<!-- test: from LICENSE -->\n```\nApache License\n```\n"
        self.assertEqual(self.check(page), 1)
        self.refused(page.replace("Apache L", "Another l"), "does not stand in")

    def test_comments_are_understood_or_refused(self):
        self.assertEqual(self.check("<!-- test: skip too slow -->\n```sh\nfalse\n```\n"), 0)
        self.refused("<!-- test: skip -->\n```sh\nfalse\n```\n", "without a reason")
        self.refused("<!-- test: ruN -->\n```sh\ntrue\n```\n", "is not one of")
        self.refused("<!-- test: run -->\n", "belong to no block")


if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        unittest.main(argv=sys.argv[:1])
    try:
        check_pages(sys.argv[1:])
    except Wrong as reason:
        sys.exit(str(reason))
