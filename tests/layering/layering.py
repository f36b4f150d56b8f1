#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The law of dependencies, enforced on #include lines: base <- os <- stages <- vote <- session.

    layering.py REPOSITORY

Prints one line for each breach, `file:line: what is wrong; what to do`, and exits with 1 if there
is any. What a folder may include is in ALLOWED below and nowhere else: a new folder of src/ is a
breach until it has an entry there.
"""

import re
import sys
from pathlib import Path

STAGES = {
    "comm", "format", "capture", "fingerprint", "catalog", "dedup", "codec", "redundancy", "store",
    "aggregate",
}

# Folder of src/ -> the folders of src/ that it may include besides itself. Everything may include
# <belay/...>.
ALLOWED = {
    "base": set(),
    "os": {"base"},
    **{stage: {"base", "os"} for stage in STAGES},
    "vote": {"base", "os"} | STAGES,
    "model": {"base", "os"},
    "marks": {"base", "os"},
    "session": {"base", "os", "vote", "model"} | STAGES,
    "inspect": {"base", "os", "vote"} | STAGES,
    "transparent": {"base", "os", "vote", "model", "session"} | STAGES,
    "c": {"base", "session"},
    "files": {"base", "os", "vote", "model", "session"} | STAGES,
}
# Stages never include each other, with these exceptions: a tier holds files whose names and bytes are
# those of format/, with extents as codec/ made them; and aggregate/ makes files of such files.
EXCEPTIONS = {"store": {"format", "codec"}, "aggregate": {"format", "codec", "store"}}
for stage, others in EXCEPTIONS.items():
    ALLOWED[stage] = ALLOWED[stage] | others
ALLOWED["files"] = ALLOWED["files"] | {"inspect"}

MPI_HEADER = "mpi.h"
MPI_FOLDERS = {"comm", "marks", "transparent"}
MPI_PUBLIC_HEADERS = {"mpi.hpp", "mpi.h"}

# Benchmarks use the public API, but for these files: they measure parts of the library by themselves, or put something
# under it.
PARTS_ALONE = {
    "bench/aggregate/ranks_mpi.cpp",
    "bench/aggregate/slow_tier.hpp",
    "bench/aggregate/trials.hpp",
    "bench/compress/belay_way.cpp",
    "bench/redundancy/raw.cpp",
    "bench/redundancy/raw_mpi.cpp",
}

MAX_LINES = 600
SOURCES = {".cpp", ".hpp", ".c", ".h"}
SCANNED = ["include", "src", "tools", "examples", "tests", "bench"]

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
SPDX = "SPDX-License-Identifier: Apache-2.0"


def source_files(root):
    """Every C and C++ file of the repository, as paths relative to it."""
    for top in SCANNED:
        for path in sorted((root / top).rglob("*")):
            if path.suffix in SOURCES and path.is_file():
                yield path.relative_to(root)


def includes(lines):
    """(line number, is it in angle brackets, name) of each #include."""
    for number, line in enumerate(lines, 1):
        if match := INCLUDE.match(line):
            yield number, match.group(1) == "<", match.group(2)


def is_standard(name):
    """Headers of the standard library have no folder and no suffix."""
    return "/" not in name and "." not in name


def check_public_header(path, angled, name):
    if name == MPI_HEADER:
        if path.name not in MPI_PUBLIC_HEADERS:
            return "only belay/mpi.hpp may include <mpi.h>; programs without MPI read this header"
        return None
    if not angled:
        return f'a public header includes "{name}"; write <belay/...>'
    if name.startswith("belay/") or is_standard(name):
        return None
    if path.suffix == ".h" and re.fullmatch(r"std\w+\.h", name):
        return None
    return f"a public header includes <{name}>; it may include only <belay/...> and the standard library"


def check_source(path, angled, name):
    folder = path.parts[1] if len(path.parts) > 2 else ""
    if folder not in ALLOWED:
        return f"src/{folder} has no entry in ALLOWED of tests/layering/layering.py; decide what it may include"
    if name == MPI_HEADER:
        allowed = folder in MPI_FOLDERS or (folder == "session" and path.stem.endswith("_mpi"))
        return None if allowed else "<mpi.h> belongs in src/comm, or in src/session/*_mpi.cpp"
    if name.startswith("belay/mpi."):
        allowed = path.stem.endswith("_mpi")
        return None if allowed else f"<{name}> brings in MPI; only *_mpi.cpp may include it"
    if angled:
        return None
    if name.startswith(".") or "/" not in name:
        return f'"{name}" is relative; write "{folder}/{Path(name).name}"'
    target = name.split("/")[0]
    if target == folder or target in ALLOWED[folder]:
        return None
    if path.stem.endswith("_test") and target not in ALLOWED:
        return None  # what tests share lies in folders of tests/
    return f'src/{folder} may not include src/{target}; move the code, or let the session join them'


def check_outside(path, angled, name):
    """Tools, examples and benchmarks use the library as programs do."""
    if path.as_posix() in PARTS_ALONE:
        return None
    folder = name.split("/")[0]
    its_own = path.parts[0] == "bench" and path.parts[1] == folder
    if path.parts[0] in ("examples", "bench") and not angled and folder in ALLOWED and not its_own:
        return f'{path.parts[0]}/ uses the public API only, not "{name}"'
    return None


def check_file(root, path):
    text = (root / path).read_text(encoding="utf-8")
    lines = text.splitlines()
    if not lines or SPDX not in lines[0]:
        yield f"{path}:1: the first line is not the licence; put `// {SPDX}` there"
    if len(lines) > MAX_LINES:
        yield f"{path}:{MAX_LINES + 1}: {len(lines)} lines, more than {MAX_LINES}; make it two files"
    check = {"include": check_public_header, "src": check_source}.get(path.parts[0], check_outside)
    for number, angled, name in includes(lines):
        if breach := check(path, angled, name):
            yield f"{path}:{number}: {breach}"


def check_unique_names(paths):
    first = {}
    for path in paths:
        if path.parts[0] != "src":
            continue
        if path.name in first:
            yield f"{path}:1: {first[path.name]} has the same name; names are unique in src/"
        first.setdefault(path.name, path)


def breaches(root):
    paths = list(source_files(root))
    found = [breach for path in paths for breach in check_file(root, path)]
    return found + list(check_unique_names(paths))


def main(arguments):
    if len(arguments) != 1 or not (Path(arguments[0]) / "src").is_dir():
        print("use: layering.py REPOSITORY (a directory with src/ in it)", file=sys.stderr)
        return 2
    found = breaches(Path(arguments[0]))
    for breach in found:
        print(breach)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
