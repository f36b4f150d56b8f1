# SPDX-License-Identifier: Apache-2.0
"""Decodes extents as section 8 of docs/format.md describes them, and nothing else: a second opinion on the codecs.
LZ4 blocks are decoded here; frames of Zstandard by its library. What cannot be decoded is a ValueError, LookupError or
ArithmeticError."""
import ctypes
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "golden"))
from read_store import Reader, require  # noqa: E402

RAW, LZ4, SHUFFLE_LZ4, SHUFFLE_ZSTD, DELTA1_ZSTD, DELTA2_ZSTD, LORENZO_ZSTD, ZSTD_LONG = 0, 2, 3, 4, 5, 6, 7, 8
DELTA3_ZSTD, DELTA1_BITS, DELTA2_BITS, DELTA3_BITS, LORENZO_BITS, CONTEXT_BITS = 9, 10, 11, 12, 13, 14
ZSTD = ctypes.CDLL("libzstd.so.1")
ZSTD.ZSTD_decompress.restype = ctypes.c_size_t
ZSTD.ZSTD_decompress.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]


def zstd_frame(data, size):
    content = ctypes.create_string_buffer(size)
    require(ZSTD.ZSTD_decompress(content, size, data, len(data)) == size, "not a frame of the right size")
    return content.raw


def lz4_block(data, size):
    out, at = bytearray(), 0

    def length(nibble):
        nonlocal at
        total, more = nibble, nibble == 15
        while more:
            total, more = total + data[at], data[at] == 255
            at += 1
        return total

    while at < len(data):
        token = data[at]
        at += 1
        literals = length(token >> 4)
        out += data[at:at + literals]
        at += literals
        if at == len(data):
            break
        distance = data[at] | data[at + 1] << 8
        at += 2
        for _ in range(length(token & 15) + 4):
            out.append(out[-distance])
    require(len(out) == size, "not a block of the right size")
    return bytes(out)


def from_residuals(body, number, strides, order):
    count, mask = len(body) // number, (1 << 8 * number) - 1
    folded = [int.from_bytes(body[i * number:(i + 1) * number], "little") for i in range(count)]
    values = [value >> 1 ^ (mask if value & 1 else 0) for value in folded]
    for stride in strides:
        for i in range(stride, count):
            values[i] = values[i] + values[i - stride] & mask
    return b"".join(value.to_bytes(number, order) for value in values)


def from_contexts(body, number, stride, order):
    count, mask = len(body) // number, (1 << 8 * number) - 1
    bits = min(max(count.bit_length(), 8), 16)
    table, values, differences = [0] * (1 << bits), [], []
    for i in range(count):
        folded = int.from_bytes(body[i * number:(i + 1) * number], "little")
        context = differences[i - stride] if i >= stride else 0
        place = ((context >> 3 * number) * 0x9E3779B97F4A7C15 & (1 << 64) - 1) >> 64 - bits
        table[place] = table[place] + (folded >> 1 ^ (mask if folded & 1 else 0)) & mask
        differences.append(table[place])
        values.append((values[i - stride] if i >= stride else 0) + table[place] & mask)
    return b"".join(value.to_bytes(number, order) for value in values)


def take_plane(codec, reader, size):
    plane = reader.take(reader.decode("u32"))
    if len(plane) == 1:
        return plane * size
    if len(plane) == size:
        return plane
    return (lz4_block if codec in (LZ4, SHUFFLE_LZ4) else zstd_frame)(plane, size)


def take_leads(codec, reader, numbers, number):
    """Residuals by their leads, and the bits that follow them."""
    leads = take_plane(codec, reader, numbers)
    require(max(leads) < 16 * number, "a lead is of no number")
    below = [lead // 2 - 1 if lead > 3 else 0 for lead in leads]
    bits, at, body = reader.take((sum(below) + 7) // 8), 0, bytearray()
    for lead, count in zip(leads, below):
        high = lead if lead < 4 else 2 + lead % 2
        low = int.from_bytes(bits[at // 8:(at + count + 7) // 8], "little") >> at % 8 & (1 << count) - 1
        body += (high << count | low).to_bytes(number, "little")
        at += count
    require(at % 8 == 0 or bits[-1] >> at % 8 == 0, "bits follow the last")
    return body


def planes(codec, data, raw_bytes):
    reader = Reader(data)
    header = reader.decode("planes' header")
    record, number, strides = header["record"], header["number"], header["strides"]
    tail = reader.take(raw_bytes % record)
    records, body = raw_bytes // record, bytearray(raw_bytes // record * record)
    if strides and codec >= DELTA1_BITS:
        body = take_leads(codec, reader, len(body) // number, number)
    else:
        for place in range(record if records else 0):
            body[place::record] = take_plane(codec, reader, records)
    require(reader.at == len(data), "bytes follow the last plane")
    order = "big" if header["big_endian"] else "little"
    if strides and codec == CONTEXT_BITS:
        body = from_contexts(body, number, strides[0], order)
    elif strides:
        body = from_residuals(body, number, strides, order)
    return bytes(body) + tail


def loud(codec, data, raw_bytes):
    """Planes, with the quiet groups that were left out."""
    if data[0] == 0:
        return planes(codec, data[1:], raw_bytes)
    reader = Reader(data)
    quiet = reader.decode("quiet that leaves groups out")
    require(quiet["kept"] <= raw_bytes, "more is kept than there is")
    kept_map = zstd_frame(quiet["map"], (raw_bytes // 64 + 7) // 8)
    kept, raw, at = planes(codec, data[reader.at:], quiet["kept"]), bytearray(), 0
    for group in range(raw_bytes // 64):
        if kept_map[group // 8] >> group % 8 & 1:
            raw += kept[at:at + 64]
            at += 64
        else:
            for _ in range(64):
                raw.append(raw[-quiet["step"]])
    require(len(kept) - at == raw_bytes % 64, "not what the map says")
    return bytes(raw + kept[at:])


def decode(codec, data, raw_bytes):
    if raw_bytes == 0 or codec == RAW:
        require(len(data) == raw_bytes, "of another size")
        return data
    return zstd_frame(data, raw_bytes) if codec == ZSTD_LONG else loud(codec, data, raw_bytes)
