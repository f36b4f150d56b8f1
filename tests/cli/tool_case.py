# SPDX-License-Identifier: Apache-2.0
"""What the tests of doctor, bench and rehearse share: a directory, the tool, and terminals."""
import json
import os
import pathlib
import pty
import select
import shutil
import subprocess
import tempfile
import time
import unittest

TOOL = os.environ["BELAY_TOOL"]
SECONDS = 120  # for one call of the tool; a hang is a failure


def as_argument(value):
    return value if isinstance(value, bytes) else str(value)


class ToolCase(unittest.TestCase):
    def setUp(self):
        self.top = pathlib.Path(tempfile.mkdtemp(prefix="belay-cli-")).resolve()
        self.addCleanup(shutil.rmtree, self.top, ignore_errors=True)
        self.environment = {
            name: value for name, value in os.environ.items()
            if not name.startswith("BELAY_") and name != "NO_COLOR"
        }

    def run_tool(self, *arguments, before=(), **variables):
        """Runs the tool in the directory; `before` is a command that runs it."""
        return subprocess.run(
            [*before, TOOL, *map(as_argument, arguments)], cwd=self.top, capture_output=True,
            text=True, timeout=SECONDS, check=False, env={**self.environment, **variables})

    def run_json(self, *arguments, expect=0, **how):
        done = self.run_tool(*arguments, **how)
        self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        return json.loads(done.stdout)

    def run_on_terminal(self, *arguments, **variables):
        """Exit code and everything that a person would have seen, both streams."""
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            [TOOL, *map(str, arguments)], cwd=self.top, stdin=theirs, stdout=theirs, stderr=theirs,
            env={**self.environment, **variables})
        os.close(theirs)
        seen = b""
        deadline = time.monotonic() + SECONDS
        try:
            while time.monotonic() < deadline:
                if not select.select([ours], [], [], 1)[0]:
                    continue
                try:
                    part = os.read(ours, 65536)
                except OSError:  # the other end was closed
                    break
                if not part:
                    break
                seen += part
        finally:
            os.close(ours)
            if process.poll() is None and time.monotonic() >= deadline:
                process.kill()
        return process.wait(timeout=SECONDS), seen.decode()

    def left_behind(self):
        return sorted(path.name for path in self.top.iterdir())
