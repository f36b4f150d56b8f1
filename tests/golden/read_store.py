#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Reads a store as docs/format.md describes it, and nothing else: a second opinion on the format.

usage: read_store.py STORE

Prints as JSON the run records, every manifest, and the SHA-256 of every region. All is verified. Exit code 0: all is
well, 1: damage, which includes versions of which a part is missing, 2: usage. Needs python3-xxhash. Here are manifests
and what makes a version whole; read_fields.py has the tables of the document, read_segment.py and read_parity.py read
the files that hold blocks.
"""
import hashlib
import json
import pathlib
import re
import struct
import sys

from read_fields import KINDS, Damage, Reader, fingerprint, key_of, require, round_up
from read_parity import parity_of, read_shard
from read_segment import read_bundle, read_segment

ELSEWHERE = 0xFFFFFFFF  # the rank of blocks that other ranks stored
SIX, TEN = "([0-9]{6}|[1-9][0-9]{6,})", "([0-9]{10}|[1-9][0-9]{10,})"
NAME = re.compile(f"(settled)|(run)-{SIX}|(closed|retired)-{SIX}-{TEN}|"
                  f"(segment|copy|shard|bundle|manifest)-{SIX}-{TEN}-{SIX}")


def read_record(data):
    reader = Reader(data)
    record = reader.decode("run_record")
    require(record.pop("size") == len(data) == 80 + record["application"] + record["host"], "the size is wrong")
    record.update(application=reader.name(record["application"]), host=reader.name(record["host"], least=0))
    reader.check_sum(0)
    require(record["ranks"] > 0 and record.pop("format") == 1, "a run of no ranks, or not of format 1")
    return record


def read_manifest(data):
    reader = Reader(data)
    manifest, footer = reader.decode("manifest_header"), Reader(data, len(data) - 32).decode("manifest_footer")
    require(manifest.pop("size") == footer["size"] == len(data), "the size is not the one written")
    require(footer["checksum"] == fingerprint(data[:-16], "xxh3", 0), "the checksum does not match")
    blocks, block_bytes = manifest["blocks"], manifest["block_bytes"]
    manifest["ledger"] = Reader(manifest["ledger"]).decode("ledger")
    manifest["application"] = reader.name(manifest["application"])
    manifest["segments"] = reader.decode_all("segment", manifest["segments"])
    manifest["regions"] = [read_region(reader) for _ in range(manifest["regions"])]
    listed = [*map(key_of, manifest["segments"]), *(region["name"] for region in manifest["regions"])]
    require(len(set(listed)) == len(listed), "a segment or a region is listed twice")
    require(sum(-(-r["bytes"] // block_bytes) for r in manifest["regions"]) == blocks, "regions have other blocks")
    reader.zeros_until(round_up(reader.at, 16))
    manifest["fingerprints"], manifest["holders"] = reader.take(16 * blocks), reader.take(blocks)
    require(max(manifest["holders"], default=-1) < check_segments(manifest), "a holder is not in the list")
    require(round_up(reader.at + 32, 4096) == len(data), "the file is longer than its contents")
    reader.zeros_until(len(data) - 32)
    return manifest


def read_region(reader):
    region = reader.decode("region")
    require(region["kind"] < len(KINDS) and region["element_bytes"] > 0, "elements that do not exist")
    shape = list(struct.unpack(f"<{region['dimensions']}Q", reader.take(8 * region.pop("dimensions"))))
    region.update(kind=KINDS[region["kind"]], name=reader.name(region["name"]), shape=shape)
    return {**region, "type_name": reader.name(region["type_name"], least=0)}


def check_segments(manifest):
    """How many segments come first, which hold blocks; after them may come those of other ranks."""
    segments = manifest["segments"]
    holds = [segment["rank"] in (manifest["rank"], ELSEWHERE) for segment in segments]
    holding, others = segments[:sum(holds)], segments[sum(holds):]
    elsewhere = [segment for segment in holding if segment["rank"] == ELSEWHERE]
    require(len(holding) <= 250 and all(holds[:len(holding)]), "too many segments hold blocks, or not the first ones")
    require(all(key_of(s)[:2] != (0, 0) and s["file_bytes"] == s["copies"] == 0 for s in elsewhere), "nowhere")
    require(all(other["rank"] < manifest["ranks"] for other in others), "a segment of a rank that does not exist")
    require({key_of(s)[:2] for s in others} <= {key_of(s)[:2] for s in holding}, "no blocks of that version are held")
    uses = (others or elsewhere or manifest["level"] or manifest["flags"]
            or any(s["copies"] or s["nodes"] or s["shards"] for s in segments))
    require(manifest["format"] == (2 if uses else 1), "the format is not that of the contents")
    return len(holding)


READERS = {"run": read_record, "settled": read_record, "closed": read_record, "segment": read_segment,
           "copy": read_segment, "shard": read_shard, "bundle": read_bundle, "manifest": read_manifest}


def read_files(store):
    """Contents by kind and numbers of the name (or path), and what is wrong. Other names are ignored."""
    found, errors = {kind: {} for kind in READERS}, []
    for file in sorted(file for file in store.glob("node-*/*") if file.is_file()):
        match = NAME.fullmatch(file.name)
        kind, *numbers = filter(None, match.groups()) if match else [None]
        key = tuple(map(int, numbers))
        if kind not in READERS or any(n >> bits for n, bits in zip(key, (64, 64, 32))):
            continue
        try:
            content = read_file(file, kind, key)
            open_bundle(file, key, content, found)
            found[kind].setdefault(key if kind in ("segment", "manifest") else file, content)
            require(not content.get("bad_blocks"), "blocks do not match their fingerprints")
        except (Damage, OSError) as error:
            errors.append((kind, key, f"{file.relative_to(store)}: {error}"))
    # A segment that no manifest lists may be unfinished.
    listed = {key_of(segment) for manifest in found["manifest"].values() for segment in manifest["segments"]}
    none = [] if any(store.glob("node-*")) else ["there is no directory of a node"]
    return found, none + [text for kind, key, text in errors if kind not in ("segment", "copy") or key in listed]


def read_file(file, kind, key):
    data = file.read_bytes()
    content = {**READERS[kind](data), "file_bytes": len(data), **({"data": data} if kind == "segment" else {})}
    require(max(key[:2], default=0) <= 1 << 62, "no run or version has such a number")
    origin = key_of(content) if len(key) == 3 else (content["run"], *key[1:])
    require(not key or origin == key, "the content is of another file than the name")
    require(kind != "segment" or content["format"] != 2, "a segment that lacks blocks")
    require(kind not in ("segment", "copy") or content["rider_bytes"] == 0, "a rider in a segment")
    return content


def open_bundle(file, key, content, found):
    """What is in a bundle counts as if it were in files."""
    for copy in content.pop("copies", []):
        found["copy"][file, key_of(copy)] = copy
    retired = file.with_name("retired" + file.name[len("bundle"):].rpartition("-")[0])
    for rank, data in content.get("manifests", []) if not retired.exists() else []:
        manifest = read_manifest(data)
        require(key_of(manifest) == (*key[:2], rank), "a manifest of another version or rank")
        found["manifest"].setdefault(key_of(manifest), {**manifest, "file_bytes": len(data)})


def sources(holder, manifest, found):
    """Files that may have the blocks of a holding segment: itself, its copies, and others that are listed."""
    listed = set(map(key_of, manifest["segments"])) - {key_of(holder)}
    for kind in ("segment", "copy"):
        for content in found[kind].values():
            key, same_version = key_of(content), key_of(content)[:2] == key_of(holder)[:2]
            whole = kind == "copy" or content["file_bytes"] == holder["file_bytes"]
            if (key == key_of(holder) and whole) or (same_version and (key in listed or holder["rank"] == ELSEWHERE)):
                yield content


def region_content(manifest, region, number, found):
    """The blocks of a region, the first of which is the `number`-th of the manifest."""
    for start in range(0, region["bytes"], manifest["block_bytes"]):
        holder = manifest["segments"][manifest["holders"][number]]
        block = manifest["fingerprints"][16 * number:][:16], min(manifest["block_bytes"], region["bytes"] - start)
        files = [f for f in sources(holder, manifest, found)
                 if all(f[name] == manifest[name] for name in ("store", "seed", "hash"))]
        content = next((f["blocks"][block] for f in files if block in f["blocks"]), None)
        require(content is not None, f"block {number} of segment {key_of(holder)} is damaged or missing")
        yield content
        number += 1


def describe_rank(manifest, found):
    shown = {k: v for k, v in manifest.items() if k not in ("fingerprints", "holders", "file_bytes")}
    number, shown["errors"] = 0, []
    for region in shown["regions"]:
        try:
            region["sha256"] = hashlib.sha256(b"".join(region_content(manifest, region, number, found))).hexdigest()
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
        ranks = [describe_rank(m, found) for key, m in sorted(found["manifest"].items()) if key[:2] == (run, version)]
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
