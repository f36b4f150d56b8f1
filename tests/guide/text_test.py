#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the guide says without code: every message that troubleshooting.md explains is one that the sources can still
say, every link leads somewhere, and the index has every page.

The environment says where they are: BELAY_SOURCE.
"""
import os
import pathlib
import re
import unittest

SOURCE = pathlib.Path(os.environ["BELAY_SOURCE"])
GUIDE = SOURCE / "docs/guide"
LINK = re.compile(r"\]\(([^)#:]+)\)")
LITERALS = re.compile(r'"(?:[^"\\\n]|\\.)*"(?:\s*"(?:[^"\\\n]|\\.)*")*')
SYSTEM = re.compile(r"^[A-Z][\w /-]+ \((.*)\)$")  # what strerror() says, and then Belay's advice


def texts_of(source):
    """The string literals of a source file, those that stand side by side joined."""
    for literal in LITERALS.findall(source):
        text = re.sub(r'"\s*"', "", literal)[1:-1]
        yield text.replace('\\"', '"')


def messages_of(page):
    return [line.removeprefix("### ") for line in page.splitlines() if line.startswith("### ")]


def is_said(message, texts):
    """Some text has the message's words, in their order, in one piece between the gaps."""
    parts = [part.strip() for part in SYSTEM.sub(r"\1", message).split("...")]
    parts = [part for part in parts if re.search(r"\w", part)]
    if sum(map(len, parts)) < 10:
        return False
    pattern = re.compile(".*?".join(map(re.escape, parts)), re.DOTALL)
    return any(pattern.search(text) for text in texts)


class Messages(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.texts = []
        for directory in ("src", "tools", "include"):
            for path in (SOURCE / directory).rglob("*.[ch]pp"):
                if not path.name.endswith("_test.cpp"):
                    cls.texts += texts_of(path.read_text(encoding="utf-8"))

    def test_every_heading_is_a_message_of_the_sources(self):
        page = (GUIDE / "troubleshooting.md").read_text(encoding="utf-8")
        messages = messages_of(page)
        self.assertGreater(len(messages), 100)
        self.assertEqual([message for message in messages if not is_said(message, self.texts)], [])
        self.assertEqual(len(set(messages)), len(messages), "a message is explained twice")

    def test_what_nobody_says_is_noticed(self):
        self.assertTrue(is_said("the store was written by ... ranks, this job has ...", self.texts))
        self.assertFalse(is_said("the store was written by ... ranks, and this job has ...", self.texts))
        self.assertFalse(is_said("...", self.texts))


class Links(unittest.TestCase):

    def links_of(self, page):
        return LINK.findall(page.read_text(encoding="utf-8"))

    def test_every_link_leads_to_a_page_that_is_installed_with_the_guide(self):
        pages = sorted(GUIDE.glob("*.md"))
        lost = [(page.name, link) for page in pages for link in self.links_of(page) if GUIDE / link not in pages]
        self.assertEqual(lost, [])

    def test_the_index_has_every_page(self):
        self.assertEqual(sorted(self.links_of(GUIDE / "README.md")),
                         sorted(page.name for page in GUIDE.glob("*.md") if page.name != "README.md"))


if __name__ == "__main__":
    unittest.main()
