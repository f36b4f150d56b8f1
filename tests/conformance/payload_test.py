#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""payload_test.py WRITE_PAYLOADS: what the codecs write is what docs/format.md says."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

import read_payload


class Payloads(unittest.TestCase):
    def test_are_read_by_a_reader_of_the_document(self):
        with tempfile.TemporaryDirectory() as directory:
            subprocess.run([sys.argv[1], directory], check=True, timeout=60)
            payloads = sorted(pathlib.Path(directory).glob("*.*"))
            self.assertEqual(len(payloads), 14 * 9)
            for payload in payloads:
                raw = payload.with_suffix("").read_bytes()
                with self.subTest(payload.name):
                    decoded = read_payload.decode(int(payload.suffix[1:]), payload.read_bytes(), len(raw))
                    self.assertTrue(decoded == raw)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
