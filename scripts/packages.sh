# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034  # the lists are for the scripts that source this
# The one list of Debian packages that Belay needs, and the function that installs what is missing.
# Sourced by the other scripts, after lib.sh.

# What it takes to build every program. The tests are configured with them, which asks for Python.
build_packages=(
  cmake
  ninja-build
  g++
  libfmt-dev
  libfpzip-dev
  libhdf5-dev
  libisal-dev
  liblz4-dev
  libssl-dev
  libtomlplusplus-dev
  libxxhash-dev
  libzstd-dev
  libcli11-dev
  libpng-dev
  libgmock-dev
  libgtest-dev
  libbenchmark-dev
  nlohmann-json3-dev
  libopenmpi-dev
  openmpi-bin
  python3
  zlib1g-dev
)

# What the tests need beyond that.
test_packages=(
  btrfs-progs
  clang
  e2fsprogs
  hdf5-tools
  libclang-rt-14-dev
  netcdf-bin
  patch
  pkg-config
  python3-h5py
  python3-numpy
  python3-xxhash
  shellcheck
  strace
  xfsprogs
)

# is_installed PACKAGE
is_installed() {
  [[ "$(dpkg-query --show --showformat='${db:Status-Status}' "$1" 2>/dev/null)" == installed ]]
}

# install_packages PACKAGE...: asks apt for those that are missing; does nothing if there are none.
install_packages() {
  local missing=() package
  for package in "$@"; do
    is_installed "$package" || missing+=("$package")
  done
  ((${#missing[@]})) || return 0

  command -v apt-get >/dev/null ||
    die "apt-get is not here, so these Debian packages must come another way: ${missing[*]}"
  local as_root=()
  if ((EUID != 0)); then
    command -v sudo >/dev/null ||
      die "not root, and no sudo. As root run: apt-get install ${missing[*]}"
    as_root=(sudo)
  fi
  say "installing: ${missing[*]}"
  run_apt update || die "apt-get update failed; look at /etc/apt/sources.list and the network"
  run_apt install --yes --no-install-recommends "${missing[@]}" ||
    die "apt-get install failed for: ${missing[*]}"
}

# run_apt ARGUMENTS: quiet unless it fails. Uses as_root of install_packages.
run_apt() {
  local log status=0
  log="$(mktemp)"
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=120 \
    "$@" >"$log" 2>&1 </dev/null || status=$?
  ((status == 0)) || cat "$log" >&2
  rm -f "$log"
  return "$status"
}
