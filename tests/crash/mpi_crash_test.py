#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Real jobs under mpirun lose one rank, or all, in the middle of their file operations. Each is
started again and must come to its end with every restored byte as it was."""
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
SECONDS = 60  # for one job; a hang is a failure
LAST_STEP = 7


def run(mpiexec, program, store, *kill):
    command = [mpiexec, "-n", str(RANKS), program, store, *map(str, kill)]
    # What killed ranks shared goes with the store. Ranks that wait for a dead one need no second to
    # end in peace, and leave the processor to others.
    environment = {**os.environ,
                   "OMPI_MCA_btl_vader_backing_directory": str(pathlib.Path(store).parent),
                   "OMPI_MCA_odls_base_sigkill_timeout": "0", "OMPI_MCA_mpi_yield_when_idle": "1"}
    return subprocess.run(command, env=environment, capture_output=True, text=True,
                          timeout=SECONDS, check=False)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mpiexec", required=True)
    parser.add_argument("--program", required=True)
    parser.add_argument("--first", type=int, required=True, help="number of the first job")
    parser.add_argument("--jobs", type=int, required=True)
    arguments = parser.parse_args()
    memory = pathlib.Path("/dev/shm")
    top = pathlib.Path(tempfile.mkdtemp(dir=memory if memory.is_dir() else None))
    failures = killed = resumed = 0
    try:
        for job in range(arguments.first, arguments.first + arguments.jobs):
            chance = random.Random(job)
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
    print(f"{arguments.jobs} jobs: {killed} killed, {resumed} resumed in the middle, {failures} failed")
    # A sample in which nothing was killed or nothing resumed would prove nothing.
    return 1 if failures or killed < arguments.jobs // 2 or resumed < arguments.jobs // 5 else 0


if __name__ == "__main__":
    sys.exit(main())
