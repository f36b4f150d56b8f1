#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Reads a store as docs/format.md describes it, and nothing else: a second opinion on the format.

usage: read_store.py STORE

Prints as JSON the run records, every manifest, and the SHA-256 of every region. All is verified. Exit code 0: all is
well, 1: damage, which includes versions of which a part is missing, 2: usage. Needs python3-xxhash. Structures are
decoded by the tables of the document. What came later (codecs, shards, bundles) is in read_additions.py.
"""
import hashlib
import json
import pathlib
import re
import sys

from xxhash import xxh3_64_intdigest as sum64, xxh3_128_intdigest as sum128

DOCUMENT = (pathlib.Path(__file__).resolve().parents[2] / "docs" / "format.md").read_text(encoding="utf-8")
TABLE = re.compile(r"^\| offset \| type \| field of (?:an?|the) (.+) \|\n\|[-|]+\n((?:\|.*\n)+)", re.M)
ROW = re.compile(r"^\| (\d+|\.\.\.) \| (.+?) \| `(\w+)`(?:: `([A-Z]+)`)?"  # offset, type, name, what the magic is
                 r"(?:, (\d+)(?: to (\d+))?|, at least (\d+)|, less than `(\w+)`)?.* \|$", re.M)  # limits
STRUCTURES = {structure: ROW.findall(rows) for structure, rows in TABLE.findall(DOCUMENT)}
HASHES = re.findall(r"^\| \d+ \| (\w+)", DOCUMENT.split("| value | hash |")[1].split("\n\n")[0], re.M)
KINDS = re.findall(r"\d+ (\w+)", DOCUMENT.split("\nKinds: ")[1].split(".")[0])
SIX, TEN = "([0-9]{6}|[1-9][0-9]{6,})", "([0-9]{10}|[1-9][0-9]{10,})"
NAME = re.compile(f"(settled)|(run)-{SIX}|(closed)-{SIX}-{TEN}|(segment|copy|shard|bundle|manifest)-{SIX}-{TEN}-{SIX}")
ELSEWHERE = 0xFFFFFFFF  # the rank of blocks that other ranks stored
CODECS = {}  # by number, what decodes (payload, raw_bytes)
FOLLOW_UPS = []  # what looks at all files together: takes (store, found), gives errors


def require(holds, message):
    if not holds:
        raise ValueError(message)


def key_of(origin):
    return origin["run"], origin["version"], origin["rank"]


def fingerprint(block, hash_name="xxh3", seed=0):
    if hash_name == "xxh3":
        return sum128(block, seed).to_bytes(16, "little")
    return hashlib.new(hash_name, seed.to_bytes(8, "little") + block).digest()[:16]


class Reader:
    """Takes from `data` one thing after the other."""

    def __init__(self, data, at=0):
        self.data, self.at = data, at

    def take(self, count):
        require(0 <= self.at <= len(self.data) - count, "the file ends too early")
        self.at += count
        return self.data[self.at - count:self.at]

    def finish(self, footer_bytes):
        """Takes the zeros up to the footer; the file ends at the next multiple of 4096."""
        require(not any(self.take(-(self.at + footer_bytes) % 4096)), "padding is not zero")
        require(self.at + footer_bytes == len(self.data), "the size is not that of the contents")

    def decode(self, kind, fields=None):
        """What is here, of a type as the document has them; `fields` has the lengths that it names."""
        count, times, unit = kind.rpartition(" times ")
        if times:
            return [self.decode(unit, fields) for _ in range(fields[count.strip("`")])]
        if kind in STRUCTURES:
            return self.decode_structure(kind)
        if kind.startswith("up to a multiple of "):
            return self.take(-self.at % int(kind.split()[5]))
        if kind[1:].isdecimal():
            return int.from_bytes(self.take(int(kind[1:]) // 8), "little", signed=kind[0] == "i")
        name, length, none = re.fullmatch(r"(name of )?`?(\w+)`? bytes(, or none)?", kind).groups()
        content = self.take(int(length) if length.isdecimal() else fields[length])
        if not name:
            return content
        text = content.decode("utf-8")
        require((text or none) and not re.search("[\0-\x1f\x7f-\x9f]", text), "a name is empty or has controls")
        return text

    def decode_structure(self, structure):
        """The fields by name, without those that only say how long another is."""
        start, fields, rows = self.at, {}, STRUCTURES[structure]
        for offset, kind, name, magic, *_ in rows:
            at, where = self.at, f"{structure}: {name}"
            require(offset in ("...", str(at - start)), f"{where} is not at {offset}")
            fields[name] = value = self.decode(kind, fields)
            require(name != "magic" or value == magic.encode(), f"the magic is not {magic}")
            require(name != "reserved" or not any(value), f"{where} bytes are not zero")
            require(name != "checksum" or value == sum64(self.data[start:at]), f"{where} does not match")
        for _, _, name, _, low, high, least, bound in rows:
            value, where = fields[name], f"{structure}: {name}"
            require(not low or int(low) <= value <= int(high or low), f"{where} is not in {low} to {high or low}")
            require(not least or int(least) <= value, f"{where} is not at least {least}")
            require(not bound or value < fields[bound], f"{where} is not less than {bound}")
        left_out = {"magic", "reserved", *re.findall("`(.+?)`", " ".join(row[1] for row in rows))}
        return {name: value for name, value in fields.items() if name not in left_out}


def read_record(data):
    reader = Reader(data)
    record = reader.decode("run record")
    require(record["file_bytes"] == reader.at == len(data), "the size is not the one written")
    return record


def read_segment(data):
    """The header, with the entries, the blocks by entry, and whether there are damaged ones."""
    segment, footer = Reader(data).decode("segment header"), Reader(data, len(data) - 64).decode("segment footer")
    index = Reader(data, footer["index_offset"])
    require((footer["format"], footer["header_checksum"], footer["index_checksum"]) ==
            (segment["format"], segment["checksum"], sum64(data[index.at:-64])), "the footer is of another file")
    extents = index.decode("`extents` times extent", footer)
    entries = [tuple(entry.values()) for entry in index.decode("`entries` times entry", footer)]
    index.finish(footer_bytes=64)
    segment.update(data=data, file_bytes=len(data), entries=entries)
    blocks = list(blocks_of(segment, extents, footer["index_offset"]))
    segment["blocks"] = {entry: block for entry, block, verified in blocks if verified}
    return {**segment, "damaged": not all(verified for _, _, verified in blocks)}


def blocks_of(segment, extents, index_offset):
    """Of each block that is in the extents, which are checked: entry, content, and whether the fingerprint is right."""
    codecs = [extent["codec"] for extent in extents]
    require((1 in codecs) == (segment["format"] == 2), "absent extents make format 2, and nothing else does")
    require(segment["format"] != 2 or all(a != b for a, b in zip(codecs, codecs[1:])), "two extents alike")
    require(sum(extent["entries"] for extent in extents) == len(segment["entries"]), "entries belong to no extent")
    end, next_entry = 128 + segment["rider_bytes"], 0
    for extent in extents:
        begin, codec, encoded_bytes, raw_bytes = map(extent.get, ("offset", "codec", "encoded_bytes", "raw_bytes"))
        raw, absent = codec == 0 and encoded_bytes == raw_bytes, codec == 1 and encoded_bytes == 0 and begin == end
        encoded = segment["format"] == 3 and codec in CODECS and 0 < encoded_bytes < raw_bytes <= 64 << 20
        require(raw or absent or encoded, "an extent is neither raw nor absent nor encoded")
        require(end <= begin and begin + encoded_bytes <= index_offset, "an extent overlaps or leaves the payload")
        require(extent["first_entry"] == next_entry, "an extent's entries are not those behind the last one's")
        entries = segment["entries"][next_entry:next_entry + extent["entries"]]
        end, next_entry = begin + encoded_bytes, next_entry + extent["entries"]
        require(all(1 <= length <= segment["block_bytes"] for _, length in entries), "a block has no such length")
        require(sum(length for _, length in entries) == raw_bytes, "an extent's blocks do not fill it")
        payload = segment["data"][begin:end]
        content = memoryview(CODECS[codec](payload, raw_bytes) if encoded else payload)
        for name, length in entries if not absent else []:
            block, content = content[:length], content[length:]
            yield (name, length), block, fingerprint(block, HASHES[segment["hash"]], segment["seed"]) == name


def read_manifest(data):
    reader, footer = Reader(data), Reader(data, len(data) - 32).decode("manifest footer")
    require(footer["file_checksum"] == fingerprint(data[:-16]), "the checksum does not match")
    manifest = reader.decode("manifest")
    reader.finish(footer_bytes=32)
    require(manifest["file_bytes"] == footer["file_bytes"] == len(data), "the size is not the one written")
    check_segments(manifest)
    names = [region["name"] for region in manifest["regions"]]
    require(len(set(names)) == len(names), "a region is listed twice")
    blocks = sum(-(-region["bytes"] // manifest["block_bytes"]) for region in manifest["regions"])
    require(blocks == len(manifest["holders"]), "the regions have another number of blocks")
    return manifest


def check_segments(manifest):
    """First come those that hold blocks, after them those of other ranks."""
    segments = manifest["segments"]
    holding = [segment for segment in segments if segment["rank"] in (manifest["rank"], ELSEWHERE)]
    elsewhere, others = [s for s in holding if s["rank"] == ELSEWHERE], segments[len(holding):]
    require(len(set(map(key_of, segments))) == len(segments), "a segment is listed twice")
    require(len(holding) <= 250 and holding == segments[:len(holding)], "too many hold blocks, or not the first ones")
    require(max(manifest["holders"], default=-1) < len(holding), "a holder is not in the list")
    require(all(key_of(s)[:2] != (0, 0) and s["file_bytes"] == s["copies"] == 0 for s in elsewhere), "nowhere")
    require(all(s["rank"] < manifest["ranks"] for s in others), "a segment of a rank that does not exist")
    require({key_of(s)[:2] for s in others} <= {key_of(s)[:2] for s in holding}, "no blocks of that version are held")
    uses = others or elsewhere or any(s["copies"] or s["nodes"] or s["shards"] for s in segments)
    require(manifest["format"] == (2 if uses or manifest["level"] or manifest["flags"] else 1), "of another format")


READERS = {"run": read_record, "settled": read_record, "closed": read_record, "segment": read_segment,
           "copy": read_segment, "manifest": read_manifest}


def read_files(store):
    """Contents by kind and path, and what is wrong. Other names are ignored."""
    found, errors = {kind: {} for kind in READERS}, []
    for file in sorted(store.glob("node-*/*")):
        match = NAME.fullmatch(file.name)
        kind, *numbers = filter(None, match.groups()) if match else [None]
        key, linked = tuple(map(int, numbers)), file.is_symlink() or file.parent.is_symlink()
        if kind not in READERS or any(n >> bits for n, bits in zip(key, (64, 64, 32))) or linked or not file.is_file():
            continue
        try:
            content = READERS[kind](file.read_bytes())
            require(max(key[:2], default=0) <= 1 << 62, "no run or version has such a number")
            named = zip(("run", "version", "rank"), key)
            require(all(content.get(name, n) == n for name, n in named), "the name is that of another file")
            require(kind != "segment" or content["format"] != 2, "a segment that lacks blocks")
            require((content.get("rider_bytes", 0) > 0) == (kind == "bundle"), "only bundles have riders")
            found[kind][file] = content
            require(not content.get("damaged"), "blocks do not match their fingerprints")
        except (ValueError, OSError) as error:
            errors.append((kind, key, f"{file.relative_to(store)}: {error}"))
    later = [error for follow_up in FOLLOW_UPS for error in follow_up(store, found)]
    # A segment that no manifest lists may be unfinished.
    listed = {key_of(segment) for manifest in found["manifest"].values() for segment in manifest["segments"]}
    return found, later + [text for kind, key, text in errors if kind not in ("segment", "copy") or key in listed]


def sources(holder, manifest, found):
    """What may have the blocks of a segment: itself, other segments of its version that are listed, and copies."""
    listed = {key_of(segment): segment["file_bytes"] for segment in manifest["segments"]}
    for kind in ("segment", "copy"):
        for file in found[kind].values():
            key, alike = key_of(file), all(file[name] == manifest[name] for name in ("store", "seed", "hash"))
            counts = key[:2] == key_of(holder)[:2] and (key in listed or holder["rank"] == ELSEWHERE)
            if alike and counts and (kind == "copy" or listed.get(key, file["file_bytes"]) == file["file_bytes"]):
                yield file["blocks"]


def describe_rank(manifest, found):
    """The manifest, with the SHA-256 of each region, and what is wrong."""
    fingerprints, holders, block_bytes = manifest.pop("fingerprints"), manifest.pop("holders"), manifest["block_bytes"]
    held = {holder: list(sources(manifest["segments"][holder], manifest, found)) for holder in set(holders)}
    errors, blocks = [], zip(fingerprints, holders)
    for region in manifest["regions"]:
        lengths = [min(block_bytes, region["bytes"] - at) for at in range(0, region["bytes"], block_bytes)]
        content = [next((files[name, length] for files in held[holder] if (name, length) in files), None)
                   for length, (name, holder) in zip(lengths, blocks)]
        region.update(kind=KINDS[region["kind"]], sha256=None)
        if None in content:
            errors.append(f"rank {manifest['rank']}: blocks of region {region['name']} are damaged or missing")
        else:
            region["sha256"] = hashlib.sha256(b"".join(content)).hexdigest()
    return {**manifest, "hash": HASHES[manifest["hash"]], "errors": errors}


def describe(store):
    """Everything that the store holds, as main() prints it."""
    found, errors = read_files(store)
    if not any(store.glob("node-*")):
        errors.append("there is no directory of a node")
    if len({(content["store"], content["seed"]) for contents in found.values() for content in contents.values()}) > 1:
        errors.append("files of different stores are mixed")
    manifests, versions = {key_of(manifest): manifest for manifest in found["manifest"].values()}, []
    for run, version in sorted({key[:2] for key in manifests}):
        ranks = [describe_rank(manifests[key], found) for key in sorted(manifests) if key[:2] == (run, version)]
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
    print(json.dumps(found, indent=2, default=lambda value: value[::-1].hex()))
    return 1 if found["errors"] or any(version["errors"] for version in found["versions"]) else 0


if __name__ == "__main__":
    from read_additions import read_store  # this file, with what was added to it
    sys.exit(read_store.main(sys.argv[1:]))
