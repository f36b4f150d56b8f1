# SPDX-License-Identifier: Apache-2.0
"""The structures of docs/format.md as tables, and a reader that takes them from bytes."""
import hashlib
import re
import struct

from xxhash import xxh3_64_intdigest as sum64, xxh3_128_intdigest

# Of each structure: its name, its magic or -, and its fields with their types in the letters of the struct module.
TABLES = """
run_record      BELAYRUN  format:I size:I store:16s seed:Q run:Q ranks:I application:B host:B reserved:2s pid:Q
                          time_ns:q
segment_header  BELAYSEG  format:I block_bytes:I store:16s seed:Q run:Q version:Q rank:I ranks:I hash:B reserved:7s
                          rider_bytes:Q reserved:40s checksum:Q
extent          -         offset:Q encoded_bytes:Q raw_bytes:Q first_entry:Q entries:I codec:H reserved:2s
entry           -         fingerprint:16s length:I
segment_footer  GESYALEB  format:I reserved:4s index_offset:Q extents:Q entries:Q index_checksum:Q header_checksum:Q
                          checksum:Q
rider           BELAYRDR  format:I reserved:4s segments:Q manifests:Q
rider_segment   -         run:Q version:Q rank:I block_bytes:I blocks:Q
rider_manifest  -         rank:I reserved:4s bytes:Q
rider_block     -         fingerprint:16s length:I entry:I
shard           BELAYSHD  format:I number:I store:16s seed:Q run:Q version:Q rank:I ranks:I parity_bytes:Q seat:I
                          index:I seats:I members:B shards:B reserved:10s
member          -         rank:I reserved:4s file_bytes:Q gap_begin:Q gap_bytes:Q
shard_footer    DHSYALEB  begin:Q size:Q checksum:Q reserved:16s file_bytes:Q own_checksum:Q
manifest_header BELAYMAN  format:I block_bytes:I size:Q store:16s seed:Q run:Q version:Q rank:I ranks:I parent_run:Q
                          parent_version:Q time_ns:q ledger:128s blocks:Q regions:I segments:I hash:B application:B
                          level:B level_a:B level_b:B flags:B reserved:10s
ledger          -         version:Q protected_bytes:Q untouched_bytes:Q unchanged_bytes:Q duplicate_here_bytes:Q
                          duplicate_elsewhere_bytes:Q written_bytes:Q carried_bytes:Q encoded_bytes:Q file_bytes:Q
                          settle_ns:Q detect_ns:Q stage_ns:Q wait_ns:Q blocking_ns:Q durable_ns:Q
segment         -         run:Q version:Q file_bytes:Q rank:I copies:H nodes:B shards:B
region          -         bytes:Q element_bytes:I kind:B dimensions:B name:B type_name:B
manifest_footer NAMYALEB  size:Q checksum:16s
"""
HASHES = ["xxh3", "md5", "sha1", "sha256"]
KINDS = "bytes i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 c64 c128 opaque serialized".split()


def parse(table):
    name, magic, *fields = table.split()
    names, types = zip(*(field.split(":") for field in fields))
    return name, (magic.strip("-").encode(), names, struct.Struct("<" + "".join(types)))


STRUCTURES = dict(map(parse, re.findall(r"^\S.*(?:\n .*)*", TABLES, re.M)))


class Damage(Exception):
    """What is wrong with a file or a version."""


def require(holds, message):
    if not holds:
        raise Damage(message)


def round_up(n, unit):
    return -(-n // unit) * unit


def key_of(origin):
    return origin["run"], origin["version"], origin["rank"]


def fingerprint(block, hash_name, seed):
    if hash_name == "xxh3":
        return xxh3_128_intdigest(block, seed).to_bytes(16, "little")
    return hashlib.new(hash_name, struct.pack("<Q", seed) + block).digest()[:16]


class Reader:
    """Takes structures from `data`, one after the other."""

    def __init__(self, data, at=0):
        self.data, self.at = data, at

    def take(self, count):
        require(0 <= self.at <= len(self.data) - count, "the file ends too early")
        self.at += count
        return self.data[self.at - count:self.at]

    def decode(self, structure):
        magic, names, layout = STRUCTURES[structure]
        require(self.take(len(magic)) == magic, f"the magic is not {magic.decode()}")
        pairs = list(zip(names, layout.unpack(self.take(layout.size))))
        fields = {name: value for name, value in pairs if name != "reserved"}
        require(fields.get("format", 1) in (1, 2, 3), "the format version is not known")
        require(not any(any(value) for name, value in pairs if name == "reserved"), "reserved bytes are not zero")
        if "store" in fields:
            fields["store"] = fields["store"][::-1].hex()
        if "hash" in fields:
            require(fields["rank"] < fields["ranks"], "the rank is not less than ranks")
            require(512 <= fields["block_bytes"] <= 4194304, f"block size {fields['block_bytes']}")
            require(fields["hash"] < len(HASHES), f"hash {fields['hash']} is unknown")
            fields["hash"] = HASHES[fields["hash"]]
        return fields

    def decode_all(self, structure, count):
        return [self.decode(structure) for _ in range(count)]

    def check_sum(self, start):
        """Takes the XXH3-64 of everything from `start` to here."""
        end = self.at
        require(int.from_bytes(self.take(8), "little") == sum64(self.data[start:end]), "a checksum does not match")

    def zeros_until(self, end):
        require(not any(self.take(end - self.at)), "padding is not zero")

    def name(self, length, least=1):
        try:
            text = self.take(length).decode("utf-8")
        except UnicodeDecodeError as error:
            raise Damage("a name is not UTF-8") from error
        require(length >= least and not re.search("[\0-\x1f\x7f-\x9f]", text), "a name is empty or has controls")
        return text
