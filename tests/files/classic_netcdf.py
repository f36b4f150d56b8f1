# SPDX-License-Identifier: Apache-2.0
"""netCDF files written by hand, with more variables or records than ncgen has patience for."""
import struct


def classic(variables, records, data):
    """A netCDF file of record variables, of 100 numbers in each if the name is "large", else of one: name, nc_type,
    bytes of a record."""
    head = b"CDF\2" + struct.pack(">III", records, 10, 2) + struct.pack(">I4sII4sI", 1, b"t", 0, 1, b"x", 100) + bytes(8)
    head += struct.pack(">II", 11, len(variables))
    begin = len(head) + sum(len(name) + -len(name) % 4 + 36 + 4 * (name == b"large") for name, _, _ in variables)
    for name, kind, size in variables:
        head += struct.pack(">I", len(name)) + name + bytes(-len(name) % 4)
        head += struct.pack(">III", 2, 0, 1) if name == b"large" else struct.pack(">II", 1, 0)
        head += struct.pack(">8xIIQ", kind, size, begin)
        begin += size
    return head + data
