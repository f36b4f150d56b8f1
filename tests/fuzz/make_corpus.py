#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the seeds of the fuzz targets to corpus/<target>/. docs/format.md has the offsets; what
the first byte of an input means is said in fuzz_target.hpp and in each target."""
import pathlib
import struct

CORPUS = pathlib.Path(__file__).resolve().parent / "corpus"
AS_IT_IS, REPAIRED = b"\0", b"\1"
STORE, SEED, RUN, VERSION, RANK, RANKS = bytes(range(16)), 42, 3, 12, 1, 4
ORIGIN = STORE + struct.pack("<QQQII", SEED, RUN, VERSION, RANK, RANKS)
ANY_RANK = 0xFFFFFFFF
FINGERPRINT = bytes(range(16, 32))


def put(target, name, data):
    path = CORPUS / target / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def changed(data, offset, layout, value):
    field = struct.pack("<" + layout, value)
    return data[:offset] + field + data[offset + len(field):]


def region(name, size, kind=10, element=8, shape=(), type_name=b""):
    fixed = struct.pack("<QIBBBB", size, element, kind, len(shape), len(name), len(type_name))
    return fixed + struct.pack(f"<{len(shape)}Q", *shape) + name + type_name


def own(version, copies=0):
    """A segment as a manifest lists it: run, version, size, rank, copies."""
    return 1, version, 4096, RANK, copies


def manifest(regions, blocks, segments, version=1):
    """`segments` is a list, or how many of the manifest's own rank."""
    segments = [own(s + 1) for s in range(segments)] if isinstance(segments, int) else segments
    holding = sum(segment[3] in (RANK, ANY_RANK) for segment in segments)
    head = b"BELAYMAN" + struct.pack("<IIQ", version, 512, 0) + ORIGIN
    head += struct.pack("<QQq", 2, 11, 1_700_000_000_000_000_000)
    head += struct.pack("<16Q", 12, *range(15))
    head += struct.pack("<QIIBB14x", blocks, len(regions), len(segments), 0, 4)
    tables = b"heat" + b"".join(struct.pack("<QQQII", *segment) for segment in segments)
    file = head + tables + b"".join(regions)
    file += bytes(-len(file) % 16) + FINGERPRINT * blocks
    return file + bytes(i % max(holding, 1) for i in range(blocks))


def manifests():
    empty = manifest([], 0, 0)
    small = manifest([region(b"step", 8, 4), region(b"grid", 1200, 10, 8, (10, 15)),
                      region(b"p", 48, 13, 24, (2,), b"Particle"), region(b"none", 0)], 5, 2)
    put("manifest", "empty", REPAIRED + empty)
    put("manifest", "small", REPAIRED + small)
    put("manifest", "not-a-manifest", AS_IT_IS + b"BELAYRUN")
    put("manifest", "bare-header", AS_IT_IS + empty)
    put("manifest", "newer-version", REPAIRED + changed(small, 8, "I", 7))
    put("manifest", "block-bytes-0", REPAIRED + changed(small, 12, "I", 0))
    put("manifest", "blocks-wrap-times-17", REPAIRED + changed(small, 224, "Q", (1 << 64) // 17 + 1))
    put("manifest", "blocks-2-60", REPAIRED + changed(small, 224, "Q", 1 << 60))
    put("manifest", "regions-2-32", REPAIRED + changed(empty, 232, "I", 0xFFFFFFFF))
    put("manifest", "segments-251", REPAIRED + changed(small, 236, "I", 251))
    put("manifest", "region-bytes-wrap", REPAIRED + manifest([region(b"r", (1 << 64) - 1)], 0, 1))
    put("manifest", "same-name-twice", REPAIRED + manifest([region(b"r", 0)] * 2, 0, 1))
    put("manifest", "dimensions-past-the-end", REPAIRED + changed(small, 256 + 4 + 64 + 13, "B", 255))
    put("manifest", "holder-without-segment", REPAIRED + small[:-1] + b"\xff")
    manifests_with_copies()


def manifests_with_copies():
    fields = [region(b"field", 1500, 5, 1)], 3
    elsewhere, others = (1, 1, 0, ANY_RANK, 0), [(1, 1, 4096, 0, 1), (1, 1, 8192, 3, 2)]
    whole = manifest(*fields, [own(1), elsewhere, own(2, 3), *others], 2)
    put("manifest", "copies", REPAIRED + manifest(*fields, [own(1, 1)], 2))
    put("manifest", "elsewhere-only", REPAIRED + manifest(*fields, [elsewhere], 2))
    put("manifest", "elsewhere-and-others", REPAIRED + whole)
    put("manifest", "elsewhere-in-format-1", REPAIRED + changed(whole, 8, "I", 1))
    put("manifest", "nothing-new-in-format-2", REPAIRED + manifest(*fields, 2, 2))
    put("manifest", "elsewhere-of-no-version", REPAIRED + manifest(*fields, [(0, 0, 0, ANY_RANK, 0)], 2))
    put("manifest", "elsewhere-with-a-size", REPAIRED + manifest(*fields, [(1, 1, 1, ANY_RANK, 0)], 2))
    put("manifest", "other-rank-without-elsewhere", REPAIRED + manifest(*fields, [own(1), others[0]], 2))
    put("manifest", "other-rank-that-is-none", REPAIRED + manifest(*fields, [elsewhere, (1, 1, 4096, RANKS, 0)], 2))
    put("manifest", "own-after-others", REPAIRED + manifest(*fields, [elsewhere, others[0], own(1)], 2))
    put("manifest", "251-hold-blocks", REPAIRED + manifest(*fields, [own(v + 1, 1) for v in range(251)], 2))
    put("manifest", "all-other-ranks",
        REPAIRED + manifest(*fields, [elsewhere] + [(1, 1, 4096, r, 1) for r in (0, 2, 3)], 2))
    put("manifest", "holder-is-of-another-rank", REPAIRED + whole[:-1] + b"\3")


def segment(lengths, blocks_per_extent, spoil=lambda extent: extent, absent=(), version=None):
    """`absent` are the numbers of extents whose blocks are not in the file."""
    header = b"BELAYSEG" + struct.pack("<II", version or (2 if absent else 1), 512) + ORIGIN + bytes(64)
    extents, offset = [], 128
    for first in range(0, len(lengths), blocks_per_extent):
        part, gone = lengths[first:first + blocks_per_extent], len(extents) in absent
        extents.append(spoil([offset, 0 if gone else sum(part), sum(part), first, len(part), int(gone), 0]))
        offset += 0 if gone else sum(part)
    payload = b"x" * (offset - 128)
    index = b"".join(struct.pack("<QQQQIHH", *extent) for extent in extents)
    index += b"".join(FINGERPRINT + struct.pack("<I", length) for length in lengths)
    return struct.pack("<QQQ", offset, len(extents), len(lengths)) + header + payload + index


def segments():
    small = segment([64, 3, 64, 5], 2)
    put("segment", "empty", REPAIRED + segment([], 1))
    put("segment", "small", REPAIRED + small)
    put("segment", "one-block", REPAIRED + segment([7], 1))
    put("segment", "not-a-segment", AS_IT_IS + b"BELAYMAN")
    put("segment", "bare-header", AS_IT_IS + small[24:24 + 128])
    put("segment", "newer-version", REPAIRED + changed(small, 24 + 8, "I", 7))
    put("segment", "extents-wrap-times-40", REPAIRED + changed(small, 8, "Q", (1 << 64) // 40 + 1))
    put("segment", "entries-2-61", REPAIRED + changed(small, 16, "Q", 1 << 61))
    put("segment", "index-in-header", REPAIRED + changed(small, 0, "Q", 0))
    put("segment", "index-past-the-end", REPAIRED + changed(small, 0, "Q", (1 << 64) - 64))
    put("segment", "extent-end-wraps",
        REPAIRED + segment([9, 9], 1, lambda e: [e[0], (1 << 64) - e[0]] + e[2:]))
    put("segment", "extents-overlap", REPAIRED + segment([9, 9], 1, lambda e: [128] + e[1:]))
    put("segment", "extent-without-entries", REPAIRED + segment([9], 1, lambda e: e[:4] + [0, 0, 0]))
    put("segment", "unknown-codec", REPAIRED + segment([9], 1, lambda e: e[:5] + [99, 0]))
    put("segment", "length-0", REPAIRED + segment([0], 1))
    put("segment", "length-past-block", REPAIRED + segment([513], 1))
    four = [64, 3, 64, 5]
    put("segment", "partial", REPAIRED + segment(four, 1, absent=(1, 3)))
    put("segment", "partial-first", REPAIRED + segment(four, 2, absent=(0,)))
    put("segment", "all-absent", REPAIRED + segment(four, 4, absent=(0,)))
    put("segment", "absent-in-format-1", REPAIRED + segment(four, 2, absent=(1,), version=1))
    put("segment", "nothing-absent-in-format-2", REPAIRED + segment(four, 4, version=2))
    put("segment", "two-absent-neighbours", REPAIRED + segment(four, 1, absent=(1, 2)))
    put("segment", "two-raw-neighbours", REPAIRED + segment(four, 1, absent=(3,)))
    put("segment", "absent-with-bytes",
        REPAIRED + segment(four, 2, lambda e: [e[0], e[2]] + e[2:], absent=(1,)))
    put("segment", "absent-at-another-place",
        REPAIRED + segment(four, 2, lambda e: [e[0] - e[5]] + e[1:], absent=(1,)))


def shard(members, parity=1000, seat=0, index=0, scheme=(2, 1), version=2, checksums=None, number=5):
    """`members` by seat: rank, size of the file, where its gap begins, its length."""
    units = -(-parity // 65536) if checksums is None else checksums
    head = b"BELAYSHD" + struct.pack("<II", version, number) + STORE + struct.pack("<QQQII", SEED, RUN, VERSION, 0, RANKS)
    head += struct.pack("<QIIIBB10x", parity, seat, index, len(members), *scheme)
    return head + b"".join(struct.pack("<IIQQQ", m[0], 0, *m[1:]) for m in members) + bytes(range(8)) * units


def shards():
    three = [(0, 4096, 0, 0), (1, 8192, 200, 4096), (ANY_RANK, 0, 0, 0)]
    small = shard(three)
    put("shard", "small", REPAIRED + small)
    put("shard", "no-parity", REPAIRED + shard([(ANY_RANK, 0, 0, 0)] * 3, parity=0))
    put("shard", "three-units", REPAIRED + shard(three, parity=140000))
    put("shard", "two-and-two", REPAIRED + shard(three + [(2, 4096, 0, 0)], scheme=(2, 2), index=1, seat=3))
    put("shard", "not-a-shard", AS_IT_IS + b"BELAYSEG")
    put("shard", "bare-description", AS_IT_IS + small)
    put("shard", "newer-version", REPAIRED + changed(small, 8, "I", 7))
    put("shard", "older-version", REPAIRED + changed(small, 8, "I", 1))
    put("shard", "of-a-rank", REPAIRED + changed(small, 56, "I", 1))
    put("shard", "parity-2-63", REPAIRED + changed(small, 64, "Q", 1 << 63))
    put("shard", "seat-past-the-end", REPAIRED + changed(small, 72, "I", 3))
    put("shard", "index-past-the-end", REPAIRED + changed(small, 76, "I", 1))
    put("shard", "seats-2-27", REPAIRED + changed(small, 80, "I", 1 << 27))
    put("shard", "seats-wrap-times-32", REPAIRED + changed(small, 80, "I", (1 << 32) - 1))
    put("shard", "too-few-seats", REPAIRED + shard(three, scheme=(3, 1)))
    put("shard", "no-scheme", REPAIRED + shard(three, scheme=(0, 0)))
    put("shard", "reserved", REPAIRED + changed(small, 90, "B", 1))
    put("shard", "rank-twice", REPAIRED + shard([three[0]] * 3))
    put("shard", "rank-that-is-none", REPAIRED + shard(three[:2] + [(RANKS, 4096, 0, 0)]))
    put("shard", "gap-wraps", REPAIRED + shard(three[:2] + [(2, 4096, (1 << 64) - 1, 2)]))
    put("shard", "size-of-no-file", REPAIRED + shard(three[:2] + [(2, 100, 0, 0)]))
    put("shard", "bytes-of-nobody", REPAIRED + shard(three[:2] + [(ANY_RANK, 4096, 0, 0)]))
    put("shard", "a-checksum-too-few", REPAIRED + shard(three, checksums=0))


def run_records():
    def record(application, host, ranks=4):
        return (b"BELAYRUN" + struct.pack("<II", 1, 0) + STORE +
                struct.pack("<QQIBBHQq", SEED, RUN, ranks, len(application), len(host), 0, 4711, -1) +
                application + host)
    small = record(b"heat", b"node-17")
    put("run_record", "small", REPAIRED + small)
    put("run_record", "no-host", REPAIRED + record(b"heat", b""))
    put("run_record", "utf-8", REPAIRED + record("wärme".encode(), b"h"))
    put("run_record", "longest", REPAIRED + record(b"a" * 255, b"h" * 255))
    put("run_record", "bare", AS_IT_IS + small)
    put("run_record", "newer-version", REPAIRED + changed(small, 8, "I", 7))
    put("run_record", "no-ranks", REPAIRED + record(b"heat", b"h", 0))
    put("run_record", "no-application", REPAIRED + record(b"", b"h"))
    put("run_record", "name-past-the-end", REPAIRED + changed(small, 52, "B", 255))
    put("run_record", "control-character", REPAIRED + record(b"he\x1bat", b"h"))
    put("run_record", "overlong-utf-8", REPAIRED + record(b"\xc0\x80", b"h"))


def names():
    for name, text in {
            "segment": "segment-000001-0000000012-000003", "manifest": "manifest-000001-0000000012-000003",
            "run": "run-000001", "temporary": "run-000001.tmp", "temporary-twice": "run-000001.tmp.tmp",
            "largest": "segment-18446744073709551615-18446744073709551615-4294967295",
            "run-too-large": "run-18446744073709551616", "too-many-zeros": "run-0000001",
            "rank-too-large": "segment-000001-0000000012-4294967296", "sign": "run-+00001",
            "escape": "../run-000001", "settled": "settled", "closed": "closed-000003-0000000012",
            "copy": "copy-000001-0000000012-000003", "copy-temporary": "copy-000001-0000000012-000003.tmp",
            "copy-without-rank": "copy-000001-0000000012"}.items():
        put("names", name, text.encode())


def options():
    every = "\n".join(["store = '/scratch/store'", "application = 'heat'", "block = '16KiB'", "hash = 'md5'",
                       "keep = 3", "interval = '10m'", "mtbf = '24h'", "background = 'inline'", "late = 'skip'",
                       "staging = '256MiB'", "segments = 64", "timeout = '5m'", "track = 'none'",
                       "redundancy = 'none'", "dedup = 'local'", "node = 'n1'", "log = 'debug'"])
    put("options", "file-of-every-option", b"t" + every.encode())
    put("options", "file-of-odd-types", b"t" + b"keep = [1]\nblock = 1979-05-27\n[codec]\n'*' = 'raw'\nsegments = nan")
    put("options", "file-cut", b"t" + b"store = \"")
    put("options", "file-deep", b"t" + b"a = " + b"[" * 300)
    put("options", "file-unknown-name", b"t" + b"blok = 3\n\"\\u0000\" = 1")
    put("options", "environment", b"e" + b"BELAY_BLOCK=4KiB\nBELAY_INTERVAL=50 calls\nBELAY_KEEP=1\nBELAY_HASH=XXH3")
    put("options", "environment-units", b"e" + b"BELAY_TIMEOUT=1.5h\nBELAY_MTBF=18446744073709551615ns\nBELAY_STAGING=1e3GB")
    put("options", "environment-overflow", b"e" + b"BELAY_MTBF=18446744073709551615h\nBELAY_STAGING=99999999999999999999TiB")
    put("options", "environment-odd", b"e" + b"BELAY_=\nBELAY_NODE=..\nBELAY_CONFIG=x\n=\nBELAY_APPLICATION=\xff\nBELAY_KEEP=-1")


RAW, LZ4, SHUFFLE_LZ4, SHUFFLE_ZSTD, DELTA1_ZSTD, DELTA2_ZSTD, LORENZO_ZSTD, ZSTD_LONG = 0, 2, 3, 4, 5, 6, 7, 8
DELTA3_ZSTD, DELTA1_BITS, DELTA2_BITS, DELTA3_BITS, LORENZO_BITS = 9, 10, 11, 12, 13


def encoded(codec, raw_bytes, data):
    return AS_IT_IS + struct.pack("<BH", codec, raw_bytes) + data


def planes(record, strides=(), number=0, big_endian=0, tail=b"", lengths=(), data=None):
    """Without quiet groups left out. Stored as they are, unless `data` has what lengths are to be put in front of."""
    head = b"\0" + struct.pack(f"<BBBB{len(strides)}Q", record, number, big_endian, len(strides), *strides) + tail
    return head + b"".join(struct.pack("<I", n) + (data or bytes(range(n))) for n in lengths)


def zstd_frame(data):
    """One frame with the size of its content and one raw block."""
    return struct.pack("<IBBHB", 0xFD2FB528, 0x20, len(data), (len(data) << 3 | 1) & 0xFFFF, len(data) >> 13) + data


def codecs():
    frame = zstd_frame(b"abcdefgh" * 4)
    run = struct.pack("<IBB", 0xFD2FB528, 0x20, 200) + struct.pack("<I", 200 << 3 | 2 | 1)[:3] + b"z"
    small_lz4 = b"\x1fa\x01\x00\x00\x50aaaaa"
    put("codec", "raw", encoded(RAW, 3, b"abc"))
    put("codec", "lz4-stored", encoded(LZ4, 5, planes(1, lengths=[5])))
    put("codec", "lz4-block", encoded(LZ4, 25, planes(1, lengths=[len(small_lz4)], data=small_lz4)))
    put("codec", "lz4-constant", encoded(LZ4, 500, planes(1, lengths=[1])))
    put("codec", "shuffle-zstd-constant", encoded(SHUFFLE_ZSTD, 403, planes(4, tail=b"xyz", lengths=[1, 1, 100, 1])))
    put("codec", "fewer-bytes-than-a-record", encoded(SHUFFLE_ZSTD, 3, planes(8, tail=b"abc")))
    put("codec", "plane-of-nothing", encoded(SHUFFLE_ZSTD, 16, planes(8, lengths=[2] * 7 + [0])))
    quiet = zstd_frame(b"\x05")
    for name, step, kept, part in (("quiet", 4, 150, quiet), ("quiet-step-65", 65, 150, quiet),
                                   ("quiet-kept-nothing", 4, 0, quiet), ("quiet-too-much", 4, 214, quiet),
                                   ("quiet-first", 4, 150, zstd_frame(b"\x06")), ("quiet-cut", 4, 150, quiet[:-1])):
        put("codec", name, encoded(LZ4, 278, struct.pack("<BII", step, kept, len(part)) + part +
                                   planes(1, lengths=[kept])[1:]))
    put("codec", "shuffle-lz4", encoded(SHUFFLE_LZ4, 34, planes(8, tail=b"xy", lengths=[4] * 8)))
    put("codec", "shuffle-zstd", encoded(SHUFFLE_ZSTD, 400, planes(2, lengths=[len(run)] * 2, data=run)))
    put("codec", "delta1", encoded(DELTA1_ZSTD, 32, planes(4, [1], 4, lengths=[8] * 4)))
    put("codec", "delta2", encoded(DELTA2_ZSTD, 64, planes(8, [2, 2], 4, lengths=[8] * 8)))
    put("codec", "delta3", encoded(DELTA3_ZSTD, 32, planes(4, [1, 1, 1], 4, lengths=[8] * 4)))
    put("codec", "delta3-with-two-strides", encoded(DELTA3_ZSTD, 32, planes(4, [1, 1], 4, lengths=[8] * 4)))
    leads = struct.pack("<I", 8) + bytes([0, 3, 4, 63, 12, 5, 1, 20])
    for name, part, bits in (("leads", leads, bytes(range(6))), ("leads-cut", leads, bytes(5)),
                             ("leads-and-more", leads, bytes(7)), ("lead-too-large", leads[:-1] + b"\x40", bytes(9)),
                             ("leads-constant", struct.pack("<IB", 1, 6), bytes(2))):
        put("codec", name, encoded(DELTA1_BITS, 32, planes(4, [1], 4) + part + bits))
    put("codec", "leads-without-strides", encoded(DELTA2_BITS, 32, planes(4, lengths=[8] * 4)))
    put("codec", "lorenzo", encoded(LORENZO_ZSTD, 800, planes(4, [1, 5, 20], 4, lengths=[len(run)] * 4, data=run)))
    put("codec", "lorenzo-big-endian", encoded(LORENZO_ZSTD, 32, planes(2, [1, 4, 8, 12], 2, 1, lengths=[16] * 2)))
    put("codec", "zstd-long", encoded(ZSTD_LONG, 32, frame))
    put("codec", "two-frames", encoded(ZSTD_LONG, 64, frame * 2))
    put("codec", "frame-to-skip", encoded(ZSTD_LONG, 1, struct.pack("<II", 0x184D2A50, 0)))
    put("codec", "frame-of-another-size", encoded(ZSTD_LONG, 33, frame))
    put("codec", "frame-of-2-60-bytes", encoded(ZSTD_LONG, 9, struct.pack("<IBQ", 0xFD2FB528, 0xE0, 1 << 60) + b"\1\0\0"))
    put("codec", "plane-past-the-end", encoded(SHUFFLE_ZSTD, 16, planes(8, lengths=[2 ** 32 - 1], data=b"x")))
    put("codec", "stride-2-63", encoded(LORENZO_ZSTD, 32, planes(4, [1, 1 << 63], 4, lengths=[8] * 4)))
    put("codec", "stride-past-the-end", encoded(DELTA1_ZSTD, 32, planes(4, [8], 4, lengths=[8] * 4)))
    put("codec", "strides-255", encoded(LORENZO_ZSTD, 32, b"\0\4\4\0\xff" + bytes(range(200))))
    field = struct.pack("<60d", *(300 + i / 8 for i in range(60)))
    for codec in (RAW, LZ4, SHUFFLE_LZ4, SHUFFLE_ZSTD, DELTA1_ZSTD, DELTA2_ZSTD, LORENZO_ZSTD, ZSTD_LONG,
                  DELTA3_ZSTD, DELTA1_BITS, DELTA2_BITS, DELTA3_BITS, LORENZO_BITS):
        description = struct.pack("<BBBB4B", 2, 8, 1, 2, 6, 10, 0, 0)
        put("codec", f"encode-{codec}", REPAIRED + bytes([codec]) + description + field)


def packed_file(path, size, regions, mode=0o644, kind=1, in_skeleton=None):
    """`regions` are (region, variable, series of offset, length, stride, count, and from format 2 on the array);
    `in_skeleton`, from format 3 on, (name, variable, bytes, array)."""
    file = struct.pack("<H", len(path)) + path + struct.pack("<QIqqB", size, mode, 1, 2, kind) + FINGERPRINT
    file += struct.pack("<I", len(regions))
    for name, variable, series, *array in regions:
        file += struct.pack("<B", len(name)) + name + struct.pack("<H", len(variable)) + variable
        file += struct.pack("<I", len(series)) + b"".join(struct.pack("<QQQI", *one) for one in series)
        file += b"".join(array)
    if in_skeleton is not None:
        file += struct.pack("<I", len(in_skeleton))
    for name, variable, taken, array in in_skeleton or []:
        file += struct.pack("<B", len(name)) + name + struct.pack("<H", len(variable)) + variable
        file += struct.pack("<Q", taken) + array
    return file


def contents(files, step=None, version=1):
    head = b"BELAYFIL" + struct.pack("<IIQI", version, step is not None, step or 0, len(files))
    return head + b"".join(files)


def array(kind, size, name, shape, there=1):
    return (struct.pack("<BBIB", there, kind, size, len(name)) + name + struct.pack("<B", len(shape))
            + struct.pack(f"<{len(shape)}Q", *shape))


def tables():
    whole = packed_file(b"a/b.h5", 500, [(b"a/b.h5:", b"", [(0, 500, 0, 1)])])
    cut = packed_file(b"c.h5", 1000, [(b"c.h5:", b"", [(0, 10, 0, 1), (110, 10, 110, 8), (990, 10, 0, 1)]),
                                      (b"c.h5:x", b"x", [(10, 100, 110, 9)])])
    half = 1 << 63
    small = contents([whole, cut], step=12)
    put("contents", "small", small)
    put("contents", "empty", contents([]))
    put("contents", "empty-file", contents([packed_file(b"e", 0, [(b"e:", b"", [])])]))
    put("contents", "cut-short", small[:-3])
    put("contents", "too-long", small + b"x")
    put("contents", "newer-version", changed(small, 8, "I", 4))
    chunked = lambda *what: contents([packed_file(b"a", 10, [(b"a:", b"", [(0, 4, 0, 1)], b"\0"),
                                                             (b"a:x", b"x", [(4, 6, 0, 1)], array(*what))])], version=2)
    put("contents", "array", chunked(10, 8, b"big-endian", (7, 9)))
    put("contents", "array-of-nothing", chunked(10, 0, b"", (7, 9)))
    put("contents", "array-wraps", chunked(10, 8, b"", (half, half)))
    put("contents", "array-kind-200", chunked(200, 8, b"", (7,)))
    put("contents", "array-dimensions-255", chunked(10, 8, b"", (1,) * 255))
    put("contents", "array-flag-2", chunked(10, 8, b"", (7,), 2))
    few = array(10, 8, b"", (2,))[1:]
    beside = lambda *more: contents([packed_file(b"a", 100, [(b"a:", b"", [(0, 40, 0, 1)], b"\0"),
                                                             (b"a:x", b"x", [(40, 60, 0, 1)], b"\0")],
                                                 in_skeleton=more)], version=3)
    good = beside((b"a:few", b"few", 16, few), (b"a:none", b"none", 0, array(1, 1, b"", (0, 7))[1:]))
    put("contents", "skeleton", good)
    put("contents", "skeleton-of-none", beside())
    put("contents", "skeleton-cut-short", good[:-3])
    put("contents", "skeleton-variables-2-32", changed(beside(), len(beside()) - 4, "I", 0xFFFFFFFF))
    put("contents", "skeleton-name-of-a-region", beside((b"a:x", b"few", 16, few)))
    put("contents", "skeleton-variable-of-a-region", beside((b"a:few", b"x", 16, few)))
    put("contents", "skeleton-variable-twice", beside((b"a:few", b"few", 16, few), (b"a:b", b"few", 16, few)))
    put("contents", "skeleton-without-name", beside((b"", b"few", 16, few)))
    put("contents", "skeleton-without-variable", beside((b"a:few", b"", 16, few)))
    put("contents", "skeleton-larger-than-its-file", beside((b"a:few", b"few", 101, few)))
    put("contents", "skeleton-array-wraps", beside((b"a:few", b"few", 16, array(10, 8, b"", (half, half))[1:])))
    put("contents", "skeleton-type-with-escape", beside((b"a:few", b"few", 16, array(10, 8, b"\x1b[", (2,))[1:])))
    for name, path in (("absolute", b"/etc/passwd"), ("parent", b"a/../../b"), ("dot", b"./a"), ("zero", b"a\0b"),
                       ("no-name", b""), ("ends-in-slash", b"a/")):
        put("contents", "path-" + name, contents([packed_file(path, 0, [])]))
    put("contents", "out-of-order", contents([cut, whole]))
    put("contents", "same-region-twice", contents([packed_file(b"a", 2, [(b"a:", b"", [(0, 1, 0, 1)]),
                                                                          (b"a:", b"", [(1, 1, 0, 1)])])]))
    put("contents", "overlap", contents([packed_file(b"a", 10, [(b"a:", b"", [(0, 6, 0, 1), (5, 5, 0, 1)])])]))
    put("contents", "gap", contents([packed_file(b"a", 10, [(b"a:", b"", [(0, 4, 0, 1), (5, 5, 0, 1)])])]))
    put("contents", "sum-wraps", contents([packed_file(b"a", 10, [(b"a:", b"", [(0, 10, 0, 1), (0, half, 0, 1),
                                                                                 (0, half, 0, 1)])])]))
    put("contents", "stride-wraps", contents([packed_file(b"a", 10, [(b"a:", b"", [(0, 5, half, 3)])])]))
    put("contents", "ranges-2-32", contents([packed_file(b"a", 10, [(b"a:", b"", [(0, 1, 1, 0xFFFFFFFF)])])]))
    put("contents", "setuid-and-more", contents([packed_file(b"a", 0, [], mode=0o170000)]))
    put("contents", "unknown-format", contents([packed_file(b"a", 0, [], kind=9)]))


if __name__ == "__main__":
    for write in (manifests, segments, shards, run_records, names, options, codecs, tables):
        write()
