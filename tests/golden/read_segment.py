# SPDX-License-Identifier: Apache-2.0
"""Segments, copies and bundles, section 4 of docs/format.md. Extents with codecs are decoded by read_payload.py."""
import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "conformance"))
import read_payload  # noqa: E402
from read_fields import Reader, fingerprint, key_of, require, round_up, sum64  # noqa: E402

ABSENT = 0xFFFFFFFF  # the entry of a block that is not in a bundle
LAST_CODEC = 9


def read_segment(data):
    """The header, with the blocks by (fingerprint, length) and the number of those that are damaged."""
    segment, footer = Reader(data).decode("segment_header"), Reader(data, len(data) - 64).decode("segment_footer")
    require(segment["checksum"] == sum64(data[:120]), "the header's checksum does not match")
    require(footer["checksum"] == sum64(data[-64:-8]), "the footer's checksum does not match")
    require((footer["header_checksum"], footer["format"]) == (segment["checksum"], segment["format"]),
            "header and footer are of different files")
    index = Reader(data, footer["index_offset"])
    end = index.at + 40 * footer["extents"] + 20 * footer["entries"]
    require(index.at >= 128 and round_up(end + 64, 4096) == len(data), "a wrong size")
    require(footer["index_checksum"] == sum64(data[index.at:-64]), "the index's checksum does not match")
    extents = index.decode_all("extent", footer["extents"])
    segment["entries"] = [tuple(entry.values()) for entry in index.decode_all("entry", footer["entries"])]
    index.zeros_until(len(data) - 64)
    check_extents(segment, extents, footer["index_offset"])
    segment.update(blocks={}, bad_blocks=0)
    for extent in extents:
        content, entries = Reader(content_of(extent, data)), segment["entries"][extent["first_entry"]:]
        for block, length in entries[:extent["entries"]] if extent["codec"] != 1 else []:
            raw = content.data[content.at:content.at + length]
            content.at += length
            if fingerprint(raw, segment["hash"], segment["seed"]) == block:
                segment["blocks"][block, length] = raw
            else:
                segment["bad_blocks"] += 1
    return segment


def check_extents(segment, extents, index_offset):
    codecs = [extent["codec"] for extent in extents]
    require(segment["format"] == 3 or segment["rider_bytes"] == 0, "a rider in a segment")
    require((1 in codecs) == (segment["format"] == 2), "absent extents make format 2, and nothing else does")
    require(segment["format"] != 2 or all(a != b for a, b in zip(codecs, codecs[1:])), "two extents alike")
    end, next_entry = 128 + segment["rider_bytes"], 0
    for offset, encoded_bytes, raw_bytes, first, count, codec in (extent.values() for extent in extents):
        raw, absent = codec == 0 and encoded_bytes == raw_bytes, codec == 1 and encoded_bytes == 0 and offset == end
        encoded = segment["format"] == 3 and 2 <= codec <= LAST_CODEC and 0 < encoded_bytes < raw_bytes <= 64 << 20
        require(raw or absent or encoded, "an extent is neither raw nor absent nor encoded")
        require(end <= offset and offset + encoded_bytes <= index_offset, "an extent overlaps or leaves the payload")
        lengths = [length for _, length in segment["entries"][first:first + count]]
        require(first == next_entry and 0 < count == len(lengths), "an extent's entries are wrong")
        require(all(1 <= length <= segment["block_bytes"] for length in lengths), "a block has no such length")
        require(sum(lengths) == raw_bytes, "an extent's blocks do not fill it")
        end, next_entry = offset + encoded_bytes, first + count
    require(next_entry == len(segment["entries"]), "entries belong to no extent")


def content_of(extent, data):
    """Raw; nothing where it cannot be decoded: its blocks are damaged then."""
    payload = data[extent["offset"]:extent["offset"] + extent["encoded_bytes"]]
    try:
        return payload if extent["codec"] < 2 else read_payload.decode(extent["codec"], payload, extent["raw_bytes"])
    except (read_payload.Damage, LookupError, ValueError, ArithmeticError, struct.error):
        return b""


def read_bundle(data):
    """As read_segment(), with the copies of segments and the bytes of manifests that are in it."""
    bundle, reader = read_segment(data), Reader(data, 128)
    rider = reader.decode("rider")
    require(bundle["format"] == rider["format"] == 3, "a bundle is of format 3")
    segments = reader.decode_all("rider_segment", rider["segments"])
    manifests = reader.decode_all("rider_manifest", rider["manifests"])
    reader.check_sum(128)
    for listed in ([key_of(segment) for segment in segments], [manifest["rank"] for manifest in manifests]):
        require(all(a < b for a, b in zip(listed, listed[1:])), "the rider is out of order")
    bundle["copies"] = []
    for segment in segments:
        start, held = reader.at, {}
        for block, length, entry in (b.values() for b in reader.decode_all("rider_block", segment["blocks"])):
            require(entry == ABSENT or bundle["entries"][entry:entry + 1] == [(block, length)], "no such entry")
            if entry != ABSENT and (block, length) in bundle["blocks"]:
                held[block, length] = bundle["blocks"][block, length]
        reader.check_sum(start)
        bundle["copies"].append({**bundle, **segment, "blocks": held, "file_bytes": 0})
    reader.at = round_up(reader.at, 4096)
    bundle["manifests"] = [(manifest["rank"], reader.take(manifest["bytes"])) for manifest in manifests]
    require(reader.at == 128 + bundle["rider_bytes"], "the rider has another length")
    return bundle
