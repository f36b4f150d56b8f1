# SPDX-License-Identifier: Apache-2.0
"""Shards of erasure codes, section 4.5 of docs/format.md: read, and computed by the formula."""
from read_fields import Reader, require, round_up, sum64

NO_RANK = 0xFFFFFFFF
EXP = [1]  # powers of 2 in GF(2^8)
while len(EXP) < 255:
    EXP.append(EXP[-1] << 1 ^ (0x11D if EXP[-1] & 128 else 0))
LOG = {power: exponent for exponent, power in enumerate(EXP)}


def read_shard(data):
    footer = Reader(data, len(data) - 64).decode("shard_footer")
    begin, end = footer["begin"], footer["begin"] + footer["size"]
    require(footer["own_checksum"] == sum64(data[-64:-8]), "the footer's checksum does not match")
    require(footer["file_bytes"] == len(data) == round_up(end + 64, 4096), "a wrong size")
    require(footer["checksum"] == sum64(data[begin:end]), "the description's checksum does not match")
    reader = Reader(data, begin)
    shard = reader.decode("shard")
    parity, k, m, n = data[:shard["parity_bytes"]], shard["members"], shard["shards"], shard["seats"]
    require(shard["format"] == 2 and shard["rank"] == 0 < shard["ranks"], "a shard of a rank, or of format 1")
    require(k > 0 < m and n >= k + m and shard["seat"] < n and shard["index"] < m, "a seat or shard that is none")
    require(round_up(shard["parity_bytes"], 64) == begin, "the description is not behind the parity")
    table = reader.decode_all("member", n)
    ranks = [member["rank"] for member in table if member["rank"] != NO_RANK]
    require(len(set(ranks)) == len(ranks) and max(ranks, default=-1) < shard["ranks"], "a rank twice, or none")
    for rank, size, gap, length in (member.values() for member in table):
        require(gap + length <= size and size % 4096 == 0 and (size > 0) == (rank != NO_RANK), "no such member")
    for at in range(0, len(parity), 65536):
        sum_of_unit = int.from_bytes(reader.take(8), "little")
        require(sum_of_unit == sum64(parity[at:at + 65536]), f"the parity at byte {at} does not match its checksum")
    require(reader.at == end, "the description has another length")
    reader.zeros_until(len(data) - 64)
    Reader(data, len(parity)).zeros_until(begin)
    return {**shard, "rank": 256 * shard["number"] + shard["index"], "table": table, "parity": parity}


def times(content, numerator, denominator):
    """Each byte times numerator / denominator in GF(2^8)."""
    shift = LOG[numerator] - LOG[denominator]
    return content.translate(bytes([0] + [EXP[(LOG[x] + shift) % 255] for x in range(1, 256)]))


def parity_of(shard, segments):
    """What the formula makes of the members; None if one is missing."""
    k, n, i = shard["members"], shard["seats"], shard["index"]
    codeword, parity, longest = (shard["seat"] - k - i) % n, 0, 0
    for j in range(k):
        rank, size, gap, length = shard["table"][(codeword + j) % n].values()
        data = segments.get((shard["run"], shard["version"], rank), {"data": b""})["data"]
        if len(data) != size:
            return None
        member = data[:gap] + data[gap + length:]
        c = round_up(-(-len(member) // k), 64)
        chunk = times(member[j * c:(j + 1) * c], k ^ j, (k + i) ^ j)
        parity, longest = parity ^ int.from_bytes(chunk, "little"), max(longest, len(chunk))
    return parity.to_bytes(longest, "little")
