#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fifty real jobs under mpirun lose one rank, or all, in the middle of their file operations. Each
is started again and must come to its end with every restored byte as it was."""
import argparse
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

RANKS = 3
JOBS = 50
SECONDS = 60  # for one job; a hang is a failure
LAST_STEP = 7


def run(mpiexec, program, store, *kill):
    command = [mpiexec, "-n", str(RANKS), program, store, *map(str, kill)]
    # What killed ranks shared goes with the store.
    environment = {**os.environ,
                   "OMPI_MCA_btl_vader_backing_directory": str(pathlib.Path(store).parent)}
    return subprocess.run(command, env=environment, capture_output=True, text=True,
                          timeout=SECONDS, check=False)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mpiexec", required=True)
    parser.add_argument("--program", required=True)
    arguments = parser.parse_args()
    chance = random.Random(20261115)
    memory = pathlib.Path("/dev/shm")
    top = pathlib.Path(tempfile.mkdtemp(dir=memory if memory.is_dir() else None))
    failures = killed = resumed = 0
    try:
        for job in range(JOBS):
            store = str(top / f"store-{job}")
            who = "all" if job % 2 else chance.randrange(RANKS)
            at = chance.randrange(1, 170)
            first = run(arguments.mpiexec, arguments.program, store, at, who)
            killed += first.returncode != 0
            second = run(arguments.mpiexec, arguments.program, store)
            start = re.search(r"started at step (\d+)", second.stdout)
            if second.returncode != 0 or not start:
                failures += 1
                print(f"job {job}: killed at operation {at} of {who}: the restart failed:")
                print(second.stderr)
            elif int(start[1]) not in (0, LAST_STEP):
                resumed += 1
    finally:
        shutil.rmtree(top, ignore_errors=True)
    print(f"{JOBS} jobs: {killed} killed, {resumed} resumed in the middle, {failures} failed")
    # A sample in which nothing was killed or nothing resumed would prove nothing.
    return 1 if failures or killed < JOBS // 2 or resumed < JOBS // 5 else 0


if __name__ == "__main__":
    sys.exit(main())
