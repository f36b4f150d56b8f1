# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034  # variables are for the scripts that source this
# What all scripts share: where the repository is, how they speak, how they build. Sourced.

repository="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
release="$repository/build/release"
cores="$(nproc)"

# Open MPI refuses to run as root, which is what a container has, unless told twice; and it counts
# processors, of which a small machine has fewer than the examples have ranks.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1

if [[ -t 1 && -z "${NO_COLOR:-}" ]]; then
  bold=$'\e[1m' plain=$'\e[0m'
else
  bold='' plain=''
fi

say() { printf '%s\n' "$*"; }
header() { printf '\n%s== %s%s\n' "$bold" "$*" "$plain"; }
die() {
  printf '%s: %s\n' "$(basename "$0")" "$*" >&2
  exit 1
}

# build_preset PRESET [TARGET...]: configures and builds in build/PRESET; every target if none.
build_preset() (
  preset="$1" targets=()
  shift
  (($# == 0)) || targets=(--target "$@")
  cd "$repository" || exit
  cmake --preset "$preset" -Wno-dev --log-level=WARNING >/dev/null || exit
  timeout --foreground --kill-after=10 1800 \
    cmake --build "build/$preset" --parallel "$cores" "${targets[@]}"
)
