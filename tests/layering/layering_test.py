#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Small made-up trees, each with one breach that layering.py must name, or with none."""

import tempfile
import unittest
from pathlib import Path

import layering

LICENCE = f"// {layering.SPDX}\n"


class Layering(unittest.TestCase):
    def breaches(self, files):
        """What the check says about a tree of `files`: path -> text after the licence line."""
        with tempfile.TemporaryDirectory() as name:
            root = Path(name)
            (root / "src").mkdir()
            for path, text in files.items():
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(text if text.startswith("raw:") else LICENCE + text)
            return layering.breaches(root)

    def assert_clean(self, files):
        self.assertEqual(self.breaches(files), [])

    def assert_breach(self, path, text, words):
        found = self.breaches({path: text})
        self.assertEqual(len(found), 1, found)
        self.assertTrue(found[0].startswith(path + ":"), found[0])
        self.assertIn(words, found[0])

    def test_a_tree_that_obeys_has_no_breach(self):
        self.assert_clean({
            "include/belay/a.hpp": "#include <belay/b.hpp>\n#include <vector>\n",
            "include/belay/mpi.hpp": "#include <belay/a.hpp>\n#include <mpi.h>\n",
            "include/belay/belay.h": "#include <stdint.h>\n",
            "src/base/nouns.hpp": "#include <belay/a.hpp>\n",
            "src/os/files.cpp": '#include "base/nouns.hpp"\n#include "os/files.hpp"\n#include <fcntl.h>\n',
            "src/store/tier.cpp": '#include "format/names.hpp"\n#include "os/files.hpp"\n',
            "src/comm/group_mpi.cpp": "#include <mpi.h>\n",
            "src/comm/group_test.cpp": '#include "conformance/checks.hpp"\n',
            "src/vote/vote.cpp": '#include "store/tier.hpp"\n#include "catalog/catalog.hpp"\n',
            "src/session/open_mpi.cpp": '#include <belay/mpi.hpp>\n#include <mpi.h>\n#include "vote/vote.hpp"\n',
            "examples/heat.cpp": "#include <belay/mpi.hpp>\n#include <mpi.h>\n",
            "tests/crash/kill_test.cpp": '#include "session/seams.hpp"\n',
        })

    def test_base_knows_nothing_else(self):
        self.assert_breach("src/base/a.hpp", '#include "os/files.hpp"\n', "src/base may not include src/os")

    def test_os_includes_no_stage(self):
        self.assert_breach("src/os/a.cpp", '#include "store/tier.hpp"\n', "src/os may not include")

    def test_stages_do_not_include_each_other(self):
        for stage in layering.STAGES:
            for other in layering.STAGES - {stage}:
                if other not in layering.EXCEPTIONS.get(stage, set()):
                    self.assert_breach(f"src/{stage}/a.cpp", f'#include "{other}/b.hpp"\n',
                                       f"src/{stage} may not include src/{other}")

    def test_vote_does_not_include_session(self):
        self.assert_breach("src/vote/a.cpp", '#include "session/b.hpp"\n', "may not include src/session")

    def test_session_does_not_include_tools(self):
        self.assert_breach("src/session/a.cpp", '#include "tools/b.hpp"\n', "may not include src/tools")

    def test_unit_tests_obey_like_the_code_beside_them(self):
        self.assert_breach("src/os/a_test.cpp", '#include "store/tier.hpp"\n', "may not include src/store")
        self.assert_breach("src/os/a.cpp", '#include "conformance/b.hpp"\n', "may not include src/conformance")

    def test_a_breach_behind_spaces_is_seen_and_its_line_named(self):
        found = self.breaches({"src/base/a.hpp": '\n  #  include "vote/b.hpp"\n'})
        self.assertEqual([breach.split(": ")[0] for breach in found], ["src/base/a.hpp:3"])

    def test_relative_includes_do_not_slip_through(self):
        self.assert_breach("src/base/a.hpp", '#include "../os/files.hpp"\n', "is relative")
        self.assert_breach("src/base/a.hpp", '#include "nouns.hpp"\n', "is relative")

    def test_mpi_stays_in_its_places(self):
        self.assert_breach("src/session/pipeline.cpp", "#include <mpi.h>\n", "<mpi.h> belongs in")
        self.assert_breach("src/os/a.cpp", "#include <mpi.h>\n", "<mpi.h> belongs in")
        self.assert_breach("src/session/pipeline.cpp", "#include <belay/mpi.hpp>\n", "brings in MPI")
        self.assert_breach("include/belay/belay.hpp", "#include <mpi.h>\n", "only belay/mpi.hpp")

    def test_public_headers_stand_alone(self):
        self.assert_breach("include/belay/a.hpp", '#include "base/nouns.hpp"\n', "write <belay/...>")
        self.assert_breach("include/belay/a.hpp", "#include <fmt/format.h>\n", "only <belay/...>")
        self.assert_breach("include/belay/a.hpp", "#include <unistd.h>\n", "only <belay/...>")

    def test_examples_and_benchmarks_use_the_public_api(self):
        self.assert_breach("examples/a.cpp", '#include "session/seams.hpp"\n', "public API only")
        self.assert_breach("bench/a.cpp", '#include "os/files.hpp"\n', "public API only")

    def test_a_folder_without_a_rule_is_a_breach(self):
        self.assert_breach("src/misc/a.cpp", "#include <vector>\n", "has no entry")

    def test_every_file_has_its_licence(self):
        self.assert_breach("src/base/a.hpp", "raw: no licence\n", "is not the licence")

    def test_names_are_unique_in_src(self):
        found = self.breaches({"src/base/a.hpp": "", "src/os/a.hpp": "", "tests/crash/a.hpp": ""})
        self.assertEqual(len(found), 1, found)
        self.assertIn("the same name", found[0])

    def test_long_files_are_breaches(self):
        self.assert_clean({"src/base/a.hpp": "\n" * (layering.MAX_LINES - 1)})
        self.assert_breach("src/base/a.hpp", "\n" * layering.MAX_LINES, "make it two files")


if __name__ == "__main__":
    unittest.main()
