#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Reads a store as docs/format.md describes it, and nothing else: a second opinion on the format.

usage: read_store.py STORE

Prints JSON: the run records, and for each version and rank what its manifest says, with the SHA-256 of every
region's content. Every checksum and fingerprint is verified. Exit code 0: all is well, 1: damage, which includes
versions of which a part is missing, 2: usage.
Needs python3-xxhash.
"""
import hashlib
import json
import pathlib
import re
import struct
import sys

import xxhash

HASHES = ["xxh3", "md5", "sha1", "sha256"]
KINDS = ["bytes", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f32", "f64", "c64", "c128", "opaque",
         "serialized"]
LEDGER = ["version", "protected_bytes", "untouched_bytes", "unchanged_bytes", "duplicate_here_bytes",
          "duplicate_elsewhere_bytes", "written_bytes", "carried_bytes", "encoded_bytes", "file_bytes", "settle_ns",
          "detect_ns", "stage_ns", "wait_ns", "blocking_ns", "durable_ns"]
FILE_NAME = re.compile(r"(segment|manifest)-([0-9]+)-([0-9]+)-([0-9]+)\Z|(run)-([0-9]+)\Z")


class Damage(Exception):
    """What is wrong with a file or a version."""


def require(holds, message):
    if not holds:
        raise Damage(message)


def sum64(data):
    return xxhash.xxh3_64_intdigest(data)


def sum128(data, seed=0):
    """XXH3-128 as 16 bytes: low half first, both little-endian."""
    return xxhash.xxh3_128_intdigest(data, seed).to_bytes(16, "little")


def fingerprint(block, hash_name, seed):
    if hash_name == "xxh3":
        return sum128(block, seed)
    return hashlib.new(hash_name, struct.pack("<Q", seed) + block).digest()[:16]


def round_up(n, alignment):
    return -(-n // alignment) * alignment


class Fields:
    """Takes fields from the front of bytes."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        require(count <= len(self.data) - self.at, "the file ends too early")
        self.at += count
        return self.data[self.at - count:self.at]

    def unpack(self, layout):
        values = struct.unpack("<" + layout, self.take(struct.calcsize("<" + layout)))
        return values[0] if len(values) == 1 else values

    def zeros(self, count):
        require(not any(self.take(count)), "reserved bytes or padding are not zero")

    def start(self, magic):
        require(self.take(8) == magic, f"the magic is not {magic.decode()}")
        version = self.unpack("I")
        require(version == 1, f"format version {version}; this reads version 1")

    def id128(self):
        return self.take(16)[::-1].hex()

    def name(self, length, what, may_be_empty=False):
        try:
            text = self.take(length).decode("utf-8")
        except UnicodeDecodeError as error:
            raise Damage(f"the name of {what} is not UTF-8") from error
        require(text or may_be_empty, f"the name of {what} is empty")
        require(not any(ord(c) < 0x20 or 0x7F <= ord(c) <= 0x9F for c in text), f"the name of {what} has controls")
        return text


def read_origin(fields):
    origin = {"store": fields.id128()}
    origin["seed"], origin["run"], origin["version"], origin["rank"], origin["ranks"] = fields.unpack("QQQII")
    require(origin["rank"] < origin["ranks"], "the rank is not less than ranks")
    return origin


def read_hash(fields, block_bytes):
    kind = fields.unpack("B")
    require(kind < len(HASHES), f"hash {kind} is unknown")
    require(512 <= block_bytes <= 4194304, f"block size {block_bytes}")
    return HASHES[kind]


def read_run_record(data):
    fields = Fields(data)
    fields.start(b"BELAYRUN")
    require(fields.unpack("I") == len(data), "the size is not the one written")
    record = {"store": fields.id128()}
    record["seed"], record["run"], record["ranks"], application, host = fields.unpack("QQIBB")
    fields.zeros(2)
    record["pid"], record["time_ns"] = fields.unpack("Qq")
    record["application"] = fields.name(application, "the application")
    record["host"] = fields.name(host, "the host", may_be_empty=True)
    require(fields.unpack("Q") == sum64(data[:-8]), "the checksum does not match")
    require(fields.at == len(data) and record["ranks"] > 0, "the fields do not add up")
    return record


def read_segment(data):
    """The origin, the verified blocks by (fingerprint, length), and how many others there are."""
    fields = Fields(data[:128])
    fields.start(b"BELAYSEG")
    block_bytes = fields.unpack("I")
    segment = {"origin": read_origin(fields), "block_bytes": block_bytes, "hash": read_hash(fields, block_bytes)}
    fields.zeros(55)
    header_sum = fields.unpack("Q")
    require(header_sum == sum64(data[:120]), "the header's checksum does not match")

    footer_at = len(data) - 64
    require(footer_at >= 128, "the file is too short")
    footer = Fields(data[footer_at:])
    footer.start(b"GESYALEB")
    footer.zeros(4)
    index_at, extents, entries, index_sum, same_header_sum, footer_sum = footer.unpack("QQQQQQ")
    require(footer_sum == sum64(data[footer_at:-8]), "the footer's checksum does not match")
    require(same_header_sum == header_sum, "header and footer are of different files")
    require(index_at >= 128 and round_up(index_at + 40 * extents + 20 * entries + 64, 4096) == len(data),
            "the size is not the one that the footer says")
    require(index_sum == sum64(data[index_at:footer_at]), "the index's checksum does not match")
    segment["blocks"], segment["bad_blocks"] = {}, 0
    for name, length, at in read_index(data, index_at, footer_at, extents, entries, block_bytes):
        content = data[at:at + length]
        if fingerprint(content, segment["hash"], segment["origin"]["seed"]) == name:
            segment["blocks"][name, length] = content
        else:
            segment["bad_blocks"] += 1
    return segment


def read_index(data, index_at, footer_at, extents, entries, block_bytes):
    """(fingerprint, length, offset in the file) of each block."""
    index = Fields(data[index_at:footer_at])
    table = [index.unpack("QQQQIHH") for _ in range(extents)]
    listed = [(index.take(16), index.unpack("I")) for _ in range(entries)]
    index.zeros(footer_at - index_at - index.at)
    blocks, end, next_entry = [], 128, 0
    for offset, encoded, raw, first, count, codec, reserved in table:
        require(codec == 0 and reserved == 0 and encoded == raw, "an extent is not raw")
        require(offset >= end and offset + encoded <= index_at, "an extent overlaps or leaves the payload")
        require(count >= 1 and first == next_entry and first + count <= entries, "an extent's entries are wrong")
        at, end, next_entry = offset, offset + encoded, first + count
        for name, length in listed[first:next_entry]:
            require(1 <= length <= block_bytes, f"a block of {length} bytes")
            blocks.append((name, length, at))
            at += length
        require(at == end, "an extent's blocks do not fill it")
    require(next_entry == entries, "entries belong to no extent")
    return blocks


def read_manifest(data):
    fields = Fields(data)
    fields.start(b"BELAYMAN")
    block_bytes, size = fields.unpack("IQ")
    require(size == len(data) and size % 4096 == 0, "the size is not the one written")
    footer = Fields(data[-32:])
    require(footer.take(8) == b"NAMYALEB" and footer.unpack("Q") == size, "the footer is wrong")
    require(footer.take(16) == sum128(data[:-16]), "the checksum does not match")
    manifest = {"origin": read_origin(fields), "block_bytes": block_bytes}
    parent_run, parent_version, manifest["time_ns"] = fields.unpack("QQq")
    manifest["parent"] = {"run": parent_run, "version": parent_version}
    manifest["ledger"] = dict(zip(LEDGER, fields.unpack("16Q")))
    blocks, regions, segments = fields.unpack("QII")
    manifest["hash"] = read_hash(fields, block_bytes)
    application = fields.unpack("B")
    fields.zeros(14)
    manifest["application"] = fields.name(application, "the application")
    require(segments <= 250, f"{segments} segments")
    manifest["segments"] = [read_segment_ref(fields) for _ in range(segments)]
    ids = {(s["run"], s["version"], s["rank"]) for s in manifest["segments"]}
    require(len(ids) == segments, "a segment is listed twice")
    manifest["regions"] = [read_region(fields) for _ in range(regions)]
    require(len({r["name"] for r in manifest["regions"]}) == regions, "a region is listed twice")
    require(sum(round_up(r["bytes"], block_bytes) // block_bytes for r in manifest["regions"]) == blocks,
            "the regions' blocks are not those listed")
    fields.zeros(-fields.at % 16)
    manifest["fingerprints"] = fields.take(16 * blocks)
    manifest["holders"] = fields.take(blocks)
    require(all(holder < segments for holder in manifest["holders"]), "a holder is not in the list of segments")
    require(round_up(fields.at + 32, 4096) == size, "the file is longer than its contents")
    fields.zeros(size - 32 - fields.at)
    return manifest


def read_segment_ref(fields):
    run, version, file_bytes, rank = fields.unpack("QQQI")
    fields.zeros(4)
    return {"run": run, "version": version, "rank": rank, "file_bytes": file_bytes}


def read_region(fields):
    size, element_bytes, kind, dimensions, name, type_name = fields.unpack("QIBBBB")
    require(kind < len(KINDS) and element_bytes > 0, f"elements of kind {kind} and {element_bytes} bytes")
    shape = list(struct.unpack(f"<{dimensions}Q", fields.take(8 * dimensions)))
    return {"name": fields.name(name, "a region"), "kind": KINDS[kind], "element_bytes": element_bytes,
            "type_name": fields.name(type_name, "a type", may_be_empty=True), "shape": shape, "bytes": size}


class Store:
    """All files of all nodes, decoded; what cannot be is in `errors`."""

    def __init__(self, path):
        self.errors, self.runs, self.settled, self.segments, self.manifests = [], [], [], {}, {}
        unread = {}
        nodes = sorted(p for p in path.glob("node-*") if p.is_dir())
        if not nodes:
            self.errors.append(f"{path}: no directory of a node")
        for file in (f for node in nodes for f in sorted(node.iterdir()) if f.is_file()):
            try:
                self.add(file)
            except (Damage, OSError) as error:
                unread[file.name] = f"{file.relative_to(path)}: {error}"
        self.errors += [text for name, text in unread.items() if not self.is_unlisted_segment(name)]

    def add(self, file):
        if file.name == "settled":
            self.settled.append(read_run_record(file.read_bytes()))
            return
        match = FILE_NAME.match(file.name)
        if not match or file.name != canonical_name(match):
            return
        data = file.read_bytes()
        if match[5]:
            record = read_run_record(data)
            require(record["run"] == int(match[6]), "the record is of another run than its name")
            self.runs.append(record)
            return
        read, files = (read_segment, self.segments) if match[1] == "segment" else (read_manifest, self.manifests)
        decoded = read(data)
        origin, key = decoded["origin"], tuple(int(match[i]) for i in (2, 3, 4))
        require((origin["run"], origin["version"], origin["rank"]) == key, "the origin is not that of the name")
        decoded["file_bytes"] = len(data)
        files.setdefault(key, decoded)
        require(not decoded.get("bad_blocks"), f"{decoded.get('bad_blocks')} blocks do not match their fingerprints")

    def is_unlisted_segment(self, name):
        """A segment that no manifest lists may be unfinished."""
        match = FILE_NAME.match(name)
        listed = {(s["run"], s["version"], s["rank"]) for m in self.manifests.values() for s in m["segments"]}
        return match and match[1] == "segment" and tuple(int(match[i]) for i in (2, 3, 4)) not in listed

    def check_identity(self):
        records = [m["origin"] for m in [*self.segments.values(), *self.manifests.values()]]
        records += self.runs + self.settled
        if len({(r["store"], r["seed"]) for r in records}) > 1:
            self.errors.append("files of different stores are mixed")
        if self.settled and not self.manifests:
            self.errors.append("a version existed, but none is left")

    def content(self, manifest, region, first_block):
        """The region's bytes, of verified blocks only."""
        parts = []
        for start in range(0, region["bytes"], manifest["block_bytes"]):
            block = first_block + start // manifest["block_bytes"]
            length = min(manifest["block_bytes"], region["bytes"] - start)
            name = manifest["fingerprints"][16 * block:16 * block + 16]
            holder = manifest["segments"][manifest["holders"][block]]
            segment = self.segments.get((holder["run"], holder["version"], holder["rank"]))
            where = f"block {block} in segment {holder['run']}-{holder['version']}-{holder['rank']}"
            require(segment, f"{where}: there is no such segment")
            require(segment["file_bytes"] == holder["file_bytes"], f"{where}: the file has another size")
            same = segment["hash"] == manifest["hash"] and segment["origin"]["seed"] == manifest["origin"]["seed"]
            require(same, f"{where}: hash or seed is another")
            content = segment["blocks"].get((name, length))
            require(content is not None, f"{where}: it is not there, or not what its fingerprint says")
            parts.append(content)
        return b"".join(parts)

    def describe_rank(self, manifest):
        shown = {k: v for k, v in manifest.items() if k not in ("fingerprints", "holders", "file_bytes")}
        shown["blocks"], shown["errors"], first_block = len(manifest["holders"]), [], 0
        for region in shown["regions"]:
            try:
                region["sha256"] = hashlib.sha256(self.content(manifest, region, first_block)).hexdigest()
            except Damage as error:
                region["sha256"] = None
                shown["errors"].append(f"region {region['name']}: {error}")
            first_block += -(-region["bytes"] // manifest["block_bytes"])
        return shown

    def describe(self):
        self.check_identity()
        versions = []
        for run, version in sorted({key[:2] for key in self.manifests}):
            ranks = [self.describe_rank(m) for k, m in sorted(self.manifests.items()) if k[:2] == (run, version)]
            expected = ranks[0]["origin"]["ranks"]
            errors = [f"rank {r['origin']['rank']}: {e}" for r in ranks for e in r["errors"]]
            if [r["origin"]["rank"] for r in ranks] != list(range(expected)):
                errors.append(f"manifests of {len(ranks)} ranks of {expected}")
            if any(r["origin"]["ranks"] != expected for r in ranks):
                errors.append("the ranks disagree on their number")
            versions.append({"run": run, "version": version, "exists": not errors, "ranks": ranks, "errors": errors})
        return {"runs": self.runs, "settled": self.settled, "versions": versions, "errors": self.errors}


def canonical_name(match):
    if match[5]:
        return f"run-{int(match[6]):06}"
    return f"{match[1]}-{int(match[2]):06}-{int(match[3]):010}-{int(match[4]):06}"


def main(arguments):
    if len(arguments) != 1 or not pathlib.Path(arguments[0]).is_dir():
        print(__doc__, file=sys.stderr)
        return 2
    described = Store(pathlib.Path(arguments[0])).describe()
    json.dump(described, sys.stdout, indent=2)
    print()
    return 1 if described["errors"] or any(v["errors"] for v in described["versions"]) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
