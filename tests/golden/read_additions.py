# SPDX-License-Identifier: Apache-2.0
"""What came to the format after its core, for read_store.py: extents with codecs, shards and bundles (docs/format.md,
sections 8, 4.5 and 4.6). Importing this adds them. Codecs are those of tests/conformance/read_payload.py."""
import functools
import pathlib
import sys

import read_store
from read_store import Reader, key_of, read_manifest, read_segment, require, sum64

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "conformance"))
import read_payload  # noqa: E402

NONE = 0xFFFFFFFF  # the rank of a seat without a segment; the entry of a block that is not in a bundle
EXP = [1]  # powers of 2 in GF(2^8)
while len(EXP) < 255:
    EXP.append(EXP[-1] << 1 ^ (0x11D if EXP[-1] & 128 else 0))
LOG = {power: exponent for exponent, power in enumerate(EXP)}


def decode_payload(codec, payload, raw_bytes):
    """Nothing where it cannot be decoded: its blocks are damaged then."""
    try:
        return read_payload.decode(codec, payload, raw_bytes)
    except (ValueError, LookupError, ArithmeticError):
        return b""


def read_shard(data):
    footer = Reader(data, len(data) - 64).decode("shard footer")
    begin, end = footer["description_offset"], footer["description_offset"] + footer["description_bytes"]
    require(footer["description_checksum"] == sum64(data[begin:end]), "the description's checksum does not match")
    reader = Reader(data, begin)
    shard = reader.decode("shard's description")
    parity, zeros = data[:shard["parity_bytes"]], data[shard["parity_bytes"]:begin]
    require(len(parity) + len(zeros) == begin and len(zeros) == -len(parity) % 64 and not any(zeros), "wrong padding")
    for at in range(0, len(parity), 65536):
        require(reader.decode("u64") == sum64(parity[at:at + 65536]), f"the parity at byte {at} is damaged")
    require(reader.at == end and footer["file_bytes"] == len(data), "a size is not the one written")
    reader.finish(footer_bytes=64)
    check_members(shard)
    return {**shard, "rank": 256 * shard["number"] + shard["i"], "parity": parity}


def check_members(shard):
    ranks = [member["rank"] for member in shard["members"] if member["rank"] != NONE]
    require(len(shard["members"]) >= shard["k"] + shard["m"], "there are too few seats")
    require(len(set(ranks)) == len(ranks) and max(ranks, default=0) < shard["ranks"], "a rank twice, or none")
    for member in shard["members"]:
        size, gap_end = member["file_bytes"], member["gap_offset"] + member["gap_bytes"]
        require(gap_end <= size and size % 4096 == 0 and (size > 0) == (member["rank"] != NONE), "no such member")


def times(content, numerator, denominator):
    """Each byte times numerator / denominator in GF(2^8)."""
    shift = LOG[numerator] - LOG[denominator]
    return content.translate(bytes([0] + [EXP[(LOG[x] + shift) % 255] for x in range(1, 256)]))


def parity_of(shard, found):
    """What the formula makes of the members; None if one is missing."""
    segments = {key_of(segment): segment["data"] for segment in found["segment"].values()}
    k, n, i = shard["k"], len(shard["members"]), shard["i"]
    codeword, parity, longest = (shard["seat"] - k - i) % n, 0, 0
    for j in range(k):
        member = shard["members"][(codeword + j) % n]
        data = segments.get((shard["run"], shard["version"], member["rank"]), b"")
        if len(data) != member["file_bytes"]:
            return None
        data = data[:member["gap_offset"]] + data[member["gap_offset"] + member["gap_bytes"]:]
        c = -(-len(data) // k // 64) * 64
        chunk = times(data[j * c:(j + 1) * c], k ^ j, (k + i) ^ j)
        parity, longest = parity ^ int.from_bytes(chunk, "little"), max(longest, len(chunk))
    return parity.to_bytes(longest, "little")


def check_parity(store, found):
    for file, shard in found["shard"].items():
        if parity_of(shard, found) not in (None, shard["parity"]):
            yield f"{file.relative_to(store)}: the parity is not that of the members"


def read_bundle(data):
    """As read_segment(), with the copies of segments and the bytes of manifests that are in it."""
    bundle, reader = read_segment(data), Reader(data, 128)
    rider = reader.decode("rider's head")
    for listed in (list(map(key_of, rider["segments"])), [manifest["rank"] for manifest in rider["manifests"]]):
        require(all(a < b for a, b in zip(listed, listed[1:])), "the rider is out of order")
    bundle["copies"] = [{**bundle, **segment, "blocks": read_blocks(reader, segment, bundle)}
                        for segment in rider["segments"]]
    reader.take(-reader.at % 4096)
    bundle["manifests"] = [(manifest["rank"], reader.take(manifest["bytes"])) for manifest in rider["manifests"]]
    require(bundle["format"] == 3 and reader.at == 128 + bundle["rider_bytes"], "the rider has another length")
    return bundle


def read_blocks(reader, segment, bundle):
    """Those blocks of a segment that are in a bundle and undamaged."""
    start = reader.at
    blocks = reader.decode("`blocks` times bundled block", segment)
    expected, held = sum64(reader.data[start:reader.at]), {}
    require(reader.decode("u64") == expected, "the checksum of a segment's blocks does not match")
    for block in blocks:
        entry, key = block["entry"], (block["fingerprint"], block["length"])
        require(entry == NONE or bundle["entries"][entry:entry + 1] == [key], "no such entry")
        if entry != NONE and key in bundle["blocks"]:
            held[key] = bundle["blocks"][key]
    return held


def open_bundles(store, found):
    """What is in a bundle counts as if it were in files."""
    for file, bundle in found["bundle"].items():
        found["copy"].update({(file, key_of(copy)): copy for copy in bundle["copies"]})
        retired = file.with_name("retired" + file.name[len("bundle"):].rpartition("-")[0])
        try:
            for rank, data in bundle["manifests"] if not retired.exists() else []:
                manifest = read_manifest(data)
                require(key_of(manifest) == (*key_of(bundle)[:2], rank), "a manifest of another version or rank")
                found["manifest"][file, rank] = manifest
        except ValueError as error:
            yield f"{file.relative_to(store)}: {error}"


read_store.READERS.update(shard=read_shard, bundle=read_bundle)
read_store.CODECS.update({codec: functools.partial(decode_payload, codec) for codec in range(2, 10)})
read_store.FOLLOW_UPS.extend([open_bundles, check_parity])
