# SPDX-License-Identifier: Apache-2.0
"""The table of contents of a packed set, read by docs/format.md alone, section "Packed sets"."""
import struct


class Reader:
    def __init__(self, table):
        self.table, self.at = table, 0

    def take(self, layout):
        values = struct.unpack_from("<" + layout, self.table, self.at)
        self.at += struct.calcsize("<" + layout)
        return values if len(values) > 1 else values[0]

    def text(self, length):
        self.at += length
        return self.table[self.at - length:self.at]


def read_array(reader):
    kind, size = reader.take("BI")
    name = reader.text(reader.take("B"))
    return {"kind": kind, "bytes": size, "name": name, "shape": [reader.take("Q") for _ in range(reader.take("B"))]}


def read_region(reader):
    region = {"region": reader.text(reader.take("B")), "variable": reader.text(reader.take("H"))}
    region["series"] = [reader.take("QQQI") for _ in range(reader.take("I"))]
    region["array"] = read_array(reader) if reader.take("B") else None
    return region


def read_in_skeleton(reader):
    return {"name": reader.text(reader.take("B")), "variable": reader.text(reader.take("H")),
            "bytes": reader.take("Q"), "array": read_array(reader)}


def read_file(reader):
    file = {"path": reader.text(reader.take("H"))}
    file["size"], file["mode"], file["mtime"], file["atime"], file["format"] = reader.take("QIqqB")
    file["digest"] = reader.text(16)
    file["regions"] = [read_region(reader) for _ in range(reader.take("I"))]
    file["in_skeleton"] = [read_in_skeleton(reader) for _ in range(reader.take("I"))]
    return file


def read_table(table):
    """Of version 3."""
    reader = Reader(table)
    assert (reader.text(8), reader.take("I")) == (b"BELAYFIL", 3)
    has_step, step = reader.take("IQ")
    files = [read_file(reader) for _ in range(reader.take("I"))]
    assert reader.at == len(table), "nothing may follow"
    return {"step": step if has_step else None, "files": files}
