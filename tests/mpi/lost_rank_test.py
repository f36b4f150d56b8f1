#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A rank is killed in the middle of rounds of puts, or while others open or close windows: all
others lose it in time and end by themselves.

In shared memory, by messages, and with both; see lost_rank.cpp."""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

RANKS = 4
SECONDS = 30  # for one job; a hang is a failure
SKIPPED = 77


def run(arguments, directory, most_neighbours, milliseconds):
    command = [arguments.mpiexec, "--enable-recovery", "-n", str(RANKS), arguments.program,
               str(most_neighbours), str(milliseconds)]
    # What the killed rank shared goes with the directory.
    environment = {**os.environ, "OMPI_MCA_btl_vader_backing_directory": directory,
                   "OMPI_MCA_osc_sm_backing_directory": directory}
    return subprocess.run(command, env=environment, capture_output=True, text=True,
                          timeout=SECONDS, check=False)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mpiexec", required=True)
    parser.add_argument("--program", required=True)
    arguments = parser.parse_args()
    version = subprocess.run([arguments.mpiexec, "--version"], capture_output=True, text=True,
                             timeout=SECONDS, check=False)
    if "Open MPI" not in version.stdout and "OpenRTE" not in version.stdout:
        print("skipped: only Open MPI's mpirun leaves the other ranks alone")
        return SKIPPED
    memory = pathlib.Path("/dev/shm")
    directory = tempfile.mkdtemp(dir=memory if memory.is_dir() else None)
    expected = [f"rank {rank} ends" for rank in range(RANKS) if rank != 1]
    failures = 0
    try:
        for most_neighbours, milliseconds in ((0, 150), (1, 150), (2, 230), (0, 0), (2, 0),
                                              (0, -1), (2, -1)):
            done = run(arguments, directory, most_neighbours, milliseconds)
            if sorted(done.stdout.splitlines()) != expected or "lost_rank:" in done.stderr:
                failures += 1
                print(f"at most {most_neighbours} neighbours, killed after {milliseconds} ms:")
                print(done.stdout, done.stderr)
    except subprocess.TimeoutExpired as hung:
        failures += 1
        print(f"no end after {SECONDS} s: {hung.cmd}")
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
