#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Reads a store as docs/format.md describes it, and nothing else: a second opinion on the format.

usage: read_store.py STORE

Prints as JSON the run records, every manifest, and the SHA-256 of every region. All is verified. Exit code 0: all is
well, 1: damage, which includes versions of which a part is missing, 2: usage. Needs python3-xxhash. Extents with codecs
are decoded by read_payload.py, a reader of its own.
"""
import hashlib
import json
import pathlib
import re
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "conformance"))
import read_payload  # noqa: E402
from xxhash import xxh3_64_intdigest as sum64, xxh3_128_intdigest

# The tables of the document: a layout of the struct module, and the names of its fields.
RUN_RECORD = "<8sII16sQQIBB2sQq", "magic format size store seed run ranks application host reserved pid time_ns"
SEGMENT_HEADER = ("<8sII16sQQQIIB7sQ40sQ",
                  "magic format block_bytes store seed run version rank ranks hash reserved rider_bytes spare checksum")
RIDER = "<8sI4sQQ", "magic format reserved segments manifests"
RIDER_SEGMENT = "<QQIIQ", "run version rank block_bytes blocks"
RIDER_MANIFEST = "<I4sQ", "rank reserved bytes"
RIDER_BLOCK = "<16sII", "fingerprint length entry"
SEGMENT_FOOTER = ("<8sI4sQQQQQQ",
                  "magic format reserved index_offset extents entries index_checksum header_checksum checksum")
EXTENT = "<QQQQIH2s", "offset encoded_bytes raw_bytes first_entry entries codec reserved"
ENTRY = "<16sI", "fingerprint length"
MANIFEST_HEADER = ("<8sIIQ16sQQQIIQQq128sQIIBB4B10s",
                   "magic format block_bytes size store seed run version rank ranks parent_run parent_version time_ns "
                   "ledger blocks regions segments hash application level level_a level_b flags reserved")
LEDGER = ("<16Q", "version protected_bytes untouched_bytes unchanged_bytes duplicate_here_bytes "
          "duplicate_elsewhere_bytes written_bytes carried_bytes encoded_bytes file_bytes settle_ns detect_ns stage_ns "
          "wait_ns blocking_ns durable_ns")
SHARD = ("<8sII16sQQQIIQIIIBB10s", "magic format number store seed run version rank ranks parity_bytes seat index seats "
         "members shards reserved")
SHARD_FOOTER = "<8sQQQ16sQQ", "magic begin size checksum reserved file_bytes own_checksum"
MEMBER = "<I4sQQQ", "rank reserved file_bytes gap_begin gap_bytes"
SEGMENT = "<QQQIHBB", "run version file_bytes rank copies nodes shards"
REGION = "<QIBBBB", "bytes element_bytes kind dimensions name type_name"
MANIFEST_FOOTER = "<8sQ16s", "magic size checksum"
HASHES = ["xxh3", "md5", "sha1", "sha256"]
ANY_RANK = 0xFFFFFFFF
LAST_CODEC = 9
KINDS = "bytes i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 c64 c128 opaque serialized".split()
SIX, TEN = "([0-9]{6}|[1-9][0-9]{6,})", "([0-9]{10}|[1-9][0-9]{10,})"
NAME = re.compile(f"(settled)|(run)-{SIX}|(closed|retired)-{SIX}-{TEN}|"
                  f"(segment|copy|shard|bundle|manifest)-{SIX}-{TEN}-{SIX}")


class Damage(Exception):
    """What is wrong with a file or a version."""


def require(holds, message):
    if not holds:
        raise Damage(message)


def fingerprint(block, hash_name, seed):
    if hash_name == "xxh3":
        return xxh3_128_intdigest(block, seed).to_bytes(16, "little")
    return hashlib.new(hash_name, struct.pack("<Q", seed) + block).digest()[:16]


def round_up(n, unit):
    return -(-n // unit) * unit


class Reader:
    """Takes structures from `data`, one after the other."""

    def __init__(self, data, at=0):
        self.data, self.at = data, at

    def take(self, count):
        require(0 <= self.at <= len(self.data) - count, "the file ends too early")
        self.at += count
        return self.data[self.at - count:self.at]

    def decode(self, table, magic=None):
        layout, names = table
        if magic:
            start = self.data[max(self.at, 0):][:12]
            require(start[:8] == magic, f"the magic is not {magic.decode()}")
            known = "format" not in names or start[8:] in (b"\1\0\0\0", b"\2\0\0\0", b"\3\0\0\0")
            require(known, "the format version is not known")
        fields = dict(zip(names.split(), struct.unpack(layout, self.take(struct.calcsize(layout)))))
        require(not any(fields.pop("reserved", b"") + fields.pop("spare", b"")), "reserved bytes are not zero")
        fields = {name: value for name, value in fields.items() if name != "magic"}
        if "store" in fields:
            fields["store"] = fields["store"][::-1].hex()
        if "hash" in fields:
            require(fields["rank"] < fields["ranks"], "the rank is not less than ranks")
            require(512 <= fields["block_bytes"] <= 4194304, f"block size {fields['block_bytes']}")
            require(fields["hash"] < len(HASHES), f"hash {fields['hash']} is unknown")
            fields["hash"] = HASHES[fields["hash"]]
        return fields

    def zeros_until(self, end):
        require(not any(self.take(end - self.at)), "padding is not zero")

    def name(self, length, least=1):
        try:
            text = self.take(length).decode("utf-8")
        except UnicodeDecodeError as error:
            raise Damage("a name is not UTF-8") from error
        require(length >= least and not re.search("[\0-\x1f\x7f-\x9f]", text), "a name is empty or has controls")
        return text


def read_record(data):
    reader = Reader(data)
    record = reader.decode(RUN_RECORD, b"BELAYRUN")
    require(record.pop("size") == len(data) == 80 + record["application"] + record["host"], "the size is wrong")
    require(sum64(data[:-8]) == int.from_bytes(data[-8:], "little"), "the checksum does not match")
    record.update(application=reader.name(record["application"]), host=reader.name(record["host"], least=0))
    require(record["ranks"] > 0 and record.pop("format") == 1, "a run of no ranks, or not of format 1")
    return record


def read_segment(data):
    """The header, with the blocks by (fingerprint, length) and the number of those that are damaged."""
    segment = Reader(data).decode(SEGMENT_HEADER, b"BELAYSEG")
    require(segment["checksum"] == sum64(data[:120]), "the header's checksum does not match")
    footer = Reader(data, len(data) - 64).decode(SEGMENT_FOOTER, b"GESYALEB")
    index, extents, entries = footer["index_offset"], footer["extents"], footer["entries"]
    require(footer["checksum"] == sum64(data[-64:-8]), "the footer's checksum does not match")
    require(index >= 128 and round_up(index + 40 * extents + 20 * entries + 64, 4096) == len(data), "a wrong size")
    require(footer["index_checksum"] == sum64(data[index:-64]), "the index's checksum does not match")
    require(footer["header_checksum"] == segment["checksum"] and footer["format"] == segment["format"], "header and footer are of different files")
    reader = Reader(data, index)
    extents = [reader.decode(EXTENT) for _ in range(extents)]
    entries = [reader.decode(ENTRY) for _ in range(entries)]
    reader.zeros_until(len(data) - 64)
    segment.update(blocks={}, bad_blocks=0, entries=[tuple(entry.values()) for entry in entries])
    at, first = 128 + segment["rider_bytes"], 0
    codecs = [extent["codec"] for extent in extents]
    require(segment["format"] == 3 or segment["rider_bytes"] == 0, "a rider in a segment")
    require((1 in codecs) == (segment["format"] == 2), "absent extents make format 2, and nothing else does")
    require(segment["format"] != 2 or all(a != b for a, b in zip(codecs, codecs[1:])), "two extents alike")
    for extent in extents:
        absent = extent["codec"] == 1 and extent["encoded_bytes"] == 0 and extent["offset"] == at
        raw = extent["codec"] == 0 and extent["encoded_bytes"] == extent["raw_bytes"]
        encoded = (segment["format"] == 3 and 2 <= extent["codec"] <= LAST_CODEC
                   and 0 < extent["encoded_bytes"] < extent["raw_bytes"] <= 64 << 20)
        require(raw or absent or encoded, "an extent is neither raw nor absent nor encoded")
        end, last = extent["offset"] + extent["encoded_bytes"], first + extent["entries"]
        require(at <= extent["offset"] and end <= index, "an extent overlaps or leaves the payload")
        require(extent["first_entry"] == first < last <= len(entries), "an extent's entries are wrong")
        content, at = extent_content(extent, data[extent["offset"]:end]), 0
        require(sum(entry["length"] for entry in entries[first:last]) == extent["raw_bytes"], "blocks do not add up")
        for block, length in (entry.values() for entry in entries[first:last]):
            require(1 <= length <= segment["block_bytes"], f"a block of {length} bytes")
            if absent:
                continue
            raw_block, at = content[at:at + length], at + length
            if fingerprint(raw_block, segment["hash"], segment["seed"]) == block:
                segment["blocks"][block, length] = raw_block
            else:
                segment["bad_blocks"] += 1
        require(absent or at == extent["raw_bytes"], "an extent's blocks do not fill it")
        at, first = end, last
    require(first == len(entries), "entries belong to no extent")
    return segment


def extent_content(extent, payload):
    """Raw; without the bytes that it should have where it cannot be decoded: its blocks are damaged then."""
    if extent["codec"] < 2:
        return payload
    try:
        return read_payload.decode(extent["codec"], payload, extent["raw_bytes"])
    except (read_payload.Damage, IndexError, struct.error):
        return b""


def read_bundle(data):
    """As read_segment(), with the copies of segments and the bytes of manifests that are in it."""
    bundle = read_segment(data)
    reader = Reader(data, 128)
    rider = reader.decode(RIDER, b"BELAYRDR")
    segments = [reader.decode(RIDER_SEGMENT) for _ in range(rider["segments"])]
    manifests = [reader.decode(RIDER_MANIFEST) for _ in range(rider["manifests"])]
    require(bundle["format"] == rider["format"] == 3, "a bundle is of format 3")
    require(int.from_bytes(reader.take(8), "little") == sum64(data[128:reader.at - 8]), "the rider's checksum is wrong")
    for listed in ([key_of(segment) for segment in segments], [manifest["rank"] for manifest in manifests]):
        require(all(a < b for a, b in zip(listed, listed[1:])), "the rider is out of order")
    bundle["copies"] = []
    for segment in segments:
        start = reader.at
        blocks = [tuple(reader.decode(RIDER_BLOCK).values()) for _ in range(segment["blocks"])]
        require(int.from_bytes(reader.take(8), "little") == sum64(data[start:reader.at - 8]), "blocks of the rider")
        there = [(block, length, entry) for block, length, entry in blocks if entry != ANY_RANK]
        require(all(e < len(bundle["entries"]) and bundle["entries"][e] == (b, n) for b, n, e in there), "no such entry")
        held = {(b, n): bundle["blocks"][b, n] for b, n, _ in there if (b, n) in bundle["blocks"]}
        bundle["copies"].append({**bundle, **segment, "format": 2, "blocks": held, "bad_blocks": 0, "file_bytes": 0})
    reader.at = round_up(reader.at, 4096)
    bundle["manifests"] = [(manifest["rank"], reader.take(manifest["bytes"])) for manifest in manifests]
    require(reader.at == 128 + bundle["rider_bytes"], "the rider has another length")
    return bundle


def read_shard(data):
    footer = Reader(data, len(data) - 64).decode(SHARD_FOOTER, b"DHSYALEB")
    begin, end = footer["begin"], footer["begin"] + footer["size"]
    require(footer["own_checksum"] == sum64(data[-64:-8]), "the footer's checksum does not match")
    require(footer["file_bytes"] == len(data) == round_up(end + 64, 4096), "a wrong size")
    require(footer["checksum"] == sum64(data[begin:end]), "the description's checksum does not match")
    reader = Reader(data, begin)
    shard = reader.decode(SHARD, b"BELAYSHD")
    parity, k, m, n = data[:shard["parity_bytes"]], shard["members"], shard["shards"], shard["seats"]
    require(shard["format"] == 2 and shard["rank"] == 0 < shard["ranks"], "a shard of a rank, or of format 1")
    require(k > 0 < m and n >= k + m and shard["seat"] < n and shard["index"] < m, "a seat or shard that is none")
    require(round_up(shard["parity_bytes"], 64) == begin, "the description is not behind the parity")
    table = [reader.decode(MEMBER) for _ in range(n)]
    ranks = [member["rank"] for member in table if member["rank"] != ANY_RANK]
    require(len(set(ranks)) == len(ranks) and max(ranks, default=-1) < shard["ranks"], "a rank twice, or none")
    for member in table:
        rank, size, gap, length = member.values()
        require(gap + length <= size and size % 4096 == 0 and (size > 0) == (rank != ANY_RANK), "no such member")
    for at in range(0, len(parity), 65536):
        sum_of_unit = int.from_bytes(reader.take(8), "little")
        require(sum_of_unit == sum64(parity[at:at + 65536]), f"the parity at byte {at} does not match its checksum")
    require(reader.at == end, "the description has another length")
    reader.zeros_until(len(data) - 64)
    Reader(data, len(parity)).zeros_until(begin)
    return {**shard, "rank": 256 * shard["number"] + shard["index"], "table": table, "parity": parity}


EXP = [1]
while len(EXP) < 255:
    EXP.append(EXP[-1] << 1 ^ (0x11D if EXP[-1] & 128 else 0))
LOG = {power: exponent for exponent, power in enumerate(EXP)}


def times(content, numerator, denominator):
    """Each byte times numerator / denominator in GF(2^8)."""
    shift = LOG[numerator] - LOG[denominator]
    return content.translate(bytes([0] + [EXP[(LOG[x] + shift) % 255] for x in range(1, 256)]))


def parity_of(shard, segments):
    """What the formula of the document makes of the members; None if one is missing."""
    k, n, i = shard["members"], shard["seats"], shard["index"]
    codeword, chunks = (shard["seat"] - k - i) % n, []
    for j in range(k):
        rank, size, gap, length = shard["table"][(codeword + j) % n].values()
        segment = segments.get((shard["run"], shard["version"], rank), {"data": b""})
        if len(segment["data"]) != size:
            return None
        member = segment["data"][:gap] + segment["data"][gap + length:]
        c = round_up(-(-len(member) // k), 64)
        chunks.append(times(member[j * c:(j + 1) * c], k ^ j, (k + i) ^ j))
    parity = 0
    for chunk in chunks:
        parity ^= int.from_bytes(chunk, "little")
    return parity.to_bytes(max(map(len, chunks)), "little")


def read_manifest(data):
    reader = Reader(data)
    manifest = reader.decode(MANIFEST_HEADER, b"BELAYMAN")
    footer = Reader(data, len(data) - 32).decode(MANIFEST_FOOTER, b"NAMYALEB")
    require(manifest.pop("size") == footer["size"] == len(data), "the size is not the one written")
    require(footer["checksum"] == fingerprint(data[:-16], "xxh3", 0), "the checksum does not match")
    blocks, block_bytes = manifest["blocks"], manifest["block_bytes"]
    manifest["ledger"] = Reader(manifest["ledger"]).decode(LEDGER)
    manifest["application"] = reader.name(manifest["application"])
    manifest["segments"] = [reader.decode(SEGMENT) for _ in range(manifest["segments"])]
    manifest["regions"] = [read_region(reader) for _ in range(manifest["regions"])]
    listed = [*map(key_of, manifest["segments"]), *(region["name"] for region in manifest["regions"])]
    require(len(set(listed)) == len(listed), "a segment or a region is listed twice")
    require(sum(-(-r["bytes"] // block_bytes) for r in manifest["regions"]) == blocks, "regions have other blocks")
    holding = check_segments(manifest)
    reader.zeros_until(round_up(reader.at, 16))
    manifest["fingerprints"], manifest["holders"] = reader.take(16 * blocks), reader.take(blocks)
    require(max(manifest["holders"], default=-1) < holding, "a holder is not in the list")
    require(round_up(reader.at + 32, 4096) == len(data), "the file is longer than its contents")
    reader.zeros_until(len(data) - 32)
    return manifest


def check_segments(manifest):
    """How many segments come first, which hold blocks; after them may come those of other ranks."""
    segments, rank = manifest["segments"], manifest["rank"]
    holds = [segment["rank"] in (rank, ANY_RANK) for segment in segments]
    holding = sum(holds)
    elsewhere = [segment for segment in segments if segment["rank"] == ANY_RANK]
    require(holding <= 250 and all(holds[:holding]), f"{holding} segments hold blocks, or not the first ones")
    require(all(key_of(s)[:2] != (0, 0) and s["file_bytes"] == s["copies"] == 0 for s in elsewhere), "nowhere")
    for other in segments[holding:]:
        require(other["rank"] < manifest["ranks"], "a segment of a rank that does not exist")
        require(key_of(other)[:2] in {key_of(s)[:2] for s in segments[:holding]}, "no blocks of that version are held")
    uses = (not all(holds) or elsewhere or manifest["level"] or manifest["flags"]
            or any(s["copies"] or s["nodes"] or s["shards"] for s in segments))
    require(manifest["format"] == (2 if uses else 1), "the format is not that of the contents")
    return holding


def read_region(reader):
    region = reader.decode(REGION)
    require(region["kind"] < len(KINDS) and region["element_bytes"] > 0, "elements that do not exist")
    shape = list(struct.unpack(f"<{region['dimensions']}Q", reader.take(8 * region.pop("dimensions"))))
    region.update(kind=KINDS[region["kind"]], name=reader.name(region["name"]), shape=shape)
    return {**region, "type_name": reader.name(region["type_name"], least=0)}


def key_of(origin):
    return origin["run"], origin["version"], origin["rank"]


def read_files(store):
    """Contents by kind and numbers of the name (or path), and what is wrong. Other names are ignored."""
    kinds = "run settled closed segment copy shard bundle manifest".split()
    found, errors = {kind: {} for kind in kinds}, []
    for file in sorted(file for file in store.glob("node-*/*") if file.is_file()):
        match = NAME.fullmatch(file.name)
        kind, *key = filter(None, match.groups()) if match else [None]
        key = tuple(map(int, key))
        if not kind or kind == "retired" or any(n >> bits for n, bits in zip(key, (64, 64, 32))):
            continue
        try:
            read = {"segment": read_segment, "copy": read_segment, "shard": read_shard, "bundle": read_bundle,
                    "manifest": read_manifest}.get(kind, read_record)
            content = {**read(data := file.read_bytes()), "file_bytes": len(data)}
            if kind == "segment":
                content["data"] = data
            require(max(key[:2], default=0) <= 1 << 62, "no run or version has such a number")
            origin = key_of(content) if len(key) == 3 else (content["run"], *key[1:])
            require(not key or origin == key, "the content is of another file than the name")
            require(kind != "segment" or content["format"] != 2, "a segment that lacks blocks")
            require(kind not in ("segment", "copy") or content["rider_bytes"] == 0, "a rider in a segment")
            if kind == "bundle":
                open_bundle(file, key, content, found)
            found[kind].setdefault(key if kind in ("segment", "manifest") else file, content)
            require(not content.get("bad_blocks"), "blocks do not match their fingerprints")
        except (Damage, OSError) as error:
            errors.append((kind, key, f"{file.relative_to(store)}: {error}"))
    # A segment that no manifest lists may be unfinished.
    listed = {key_of(segment) for manifest in found["manifest"].values() for segment in manifest["segments"]}
    none = [] if any(store.glob("node-*")) else ["there is no directory of a node"]
    return found, none + [text for kind, key, text in errors if kind not in ("segment", "copy") or key in listed]


def open_bundle(file, key, bundle, found):
    """What is in a bundle counts as if it were in files."""
    for copy in bundle.pop("copies"):
        found["copy"][file, key_of(copy)] = copy
    retired = file.with_name("retired" + file.name[len("bundle"):file.name.rindex("-")])
    for rank, data in [] if retired.exists() else bundle["manifests"]:
        manifest = {**read_manifest(data), "file_bytes": len(data)}
        require(key_of(manifest) == (*key[:2], rank), "a manifest of another version or rank")
        found["manifest"].setdefault(key_of(manifest), manifest)


def sources(holder, listed, found):
    """Files that may have the blocks of a holding segment: itself, its copies, and others that are listed."""
    def fits(content, copy):
        if holder["rank"] == ANY_RANK or (key_of(content) != key_of(holder) and key_of(content) in listed):
            return key_of(content)[:2] == key_of(holder)[:2]
        return key_of(content) == key_of(holder) and (copy or content["file_bytes"] == holder["file_bytes"])
    return ([s for s in found["segment"].values() if fits(s, False)] +
            [c for c in found["copy"].values() if fits(c, True)])


def region_content(manifest, region, number, found):
    """The blocks of a region, the first of which is the `number`-th of the manifest."""
    for start in range(0, region["bytes"], manifest["block_bytes"]):
        holder = manifest["segments"][manifest["holders"][number]]
        where = f"block {number} in segment {key_of(holder)}"
        files = sources(holder, set(map(key_of, manifest["segments"])), found)
        require(files, f"{where}: missing or of another size")
        files = [f for f in files if all(f[k] == manifest[k] for k in ("store", "seed", "hash"))]
        require(files, f"{where}: of another store or hash")
        length = min(manifest["block_bytes"], region["bytes"] - start)
        block = manifest["fingerprints"][16 * number:16 * number + 16], length
        content = next((f["blocks"][block] for f in files if block in f["blocks"]), None)
        require(content is not None, f"{where}: it is not there, or not what its fingerprint says")
        yield content
        number += 1


def describe_rank(manifest, found):
    shown = {k: v for k, v in manifest.items() if k not in ("fingerprints", "holders", "file_bytes")}
    number, shown["errors"] = 0, []
    for region in shown["regions"]:
        try:
            content = b"".join(region_content(manifest, region, number, found))
            region["sha256"] = hashlib.sha256(content).hexdigest()
        except Damage as error:
            region["sha256"] = None
            shown["errors"].append(f"rank {manifest['rank']}: region {region['name']}: {error}")
        number += -(-region["bytes"] // manifest["block_bytes"])
    return shown


def describe(store):
    """Everything that the store holds, as main() prints it."""
    found, errors = read_files(store)
    if len({(content["store"], content["seed"]) for contents in found.values() for content in contents.values()}) > 1:
        errors.append("files of different stores are mixed")
    for file, shard in found["shard"].items():
        if parity_of(shard, found["segment"]) not in (None, shard["parity"]):
            errors.append(f"{file.relative_to(store)}: the parity is not that of the members")
    versions = []
    for run, version in sorted({key[:2] for key in found["manifest"]}):
        manifests = [m for key, m in sorted(found["manifest"].items()) if key[:2] == (run, version)]
        ranks = [describe_rank(manifest, found) for manifest in manifests]
        wrong = [error for rank in ranks for error in rank["errors"]]
        if [(r["rank"], r["ranks"]) for r in ranks] != [(rank, len(ranks)) for rank in range(len(ranks))]:
            wrong.append(f"{len(ranks)} manifests are not those of all ranks")
        versions.append({"run": run, "version": version, "exists": not wrong, "ranks": ranks, "errors": wrong})
    if found["settled"] and all(version["errors"] for version in versions):
        errors.append("a version existed, but none is left")
    return {"runs": [*found["run"].values()], "settled": [*found["settled"].values()], "versions": versions,
            "errors": errors}


def main(arguments):
    if len(arguments) != 1 or not pathlib.Path(arguments[0]).is_dir():
        print(__doc__, file=sys.stderr)
        return 2
    found = describe(pathlib.Path(arguments[0]))
    print(json.dumps(found, indent=2))
    return 1 if found["errors"] or any(version["errors"] for version in found["versions"]) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
