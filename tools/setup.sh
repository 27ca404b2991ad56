#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what the build (tier "build") and also the tests (tier "test") need: Debian packages as
# root or by sudo, a private Python environment in .venv, pinned artifacts in .deps. Running it again
# costs about a second. Says what is missing when it cannot install it. Tier "full" adds the peer
# implementations that we compare with, in .venv/peers, where a CPython 3.12 is found.
# usage: tools/setup.sh [build|test|full]
set -euo pipefail
cd "$(dirname "$0")/.."
tier=${1:-build}

say() { printf '\033[0m== %s\n' "$*" >&2; }
fail() { printf 'setup: %s\n' "$*" >&2; exit 1; }

build_packages=(g++ cmake ninja-build ccache mold pkg-config python3 python3-venv ca-certificates
                libsimdjson-dev libfmt-dev libspdlog-dev libcli11-dev libgtest-dev
                libseccomp-dev libssl-dev libutf8proc-dev unicode-data)
test_packages=(clang-19 clang-tidy-19 clang-format-19 libclang-rt-19-dev lld-19 util-linux)
packages=("${build_packages[@]}")
[ "$tier" != build ] && packages+=("${test_packages[@]}")

at_least() { # at_least 3.25 3.25.1
  [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" = "$1" ]
}

install_packages() {
  command -v dpkg-query >/dev/null || { say "not a Debian system: install by hand what stands for: ${packages[*]}"; return; }
  local missing=()
  for package in "${packages[@]}"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return
  say "installing Debian packages: ${missing[*]}"
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    sudo -n true 2>/dev/null || fail "these Debian packages are missing and neither root nor sudo is at hand: ${missing[*]}"
    as_root=(sudo -n)
  fi
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

check_tools() {
  command -v cmake >/dev/null || fail "cmake 3.25 or newer is missing"
  at_least 3.25 "$(cmake --version | sed -n 's/.*version \([0-9.]*\).*/\1/p')" || fail "cmake is older than 3.25"
  [ -f .deps/micropython/derived.wasm ] && [ -f .deps/wasmtime/include/.version ] && return
  command -v cargo >/dev/null || fail "cargo 1.85 or newer is missing (it fetches the Wasmtime headers); install it, e.g. with rustup"
  at_least 1.85 "$(cargo --version | awk '{print $2}')" || fail "cargo is older than 1.85; update it, e.g. with rustup"
  command -v npm >/dev/null || fail "npm is missing (it fetches the tool that derives the MicroPython artifact); install Node.js 18 or newer"
  at_least 18 "$(node --version | tr -d v)" || fail "Node.js is older than 18"
}

make_environment() {
  local stamp
  stamp=$(sha256sum tools/requirements.txt | cut -d' ' -f1)
  [ -x .venv/bin/python ] && [ "$(cat .venv/.stamp 2>/dev/null)" = "$stamp" ] && return
  say "Python environment in .venv"
  python3 -m venv --clear .venv || fail "python3 -m venv failed; is the package python3-venv there?"
  .venv/bin/python -m pip install --quiet --disable-pip-version-check --requirement tools/requirements.txt
  echo "$stamp" > .venv/.stamp
}

find_python312() {
  local candidate
  for candidate in "${CAISSON_PYTHON312:-}" python3.12 "$HOME"/.pyenv/versions/3.12*/bin/python; do
    [ -n "$candidate" ] && "$candidate" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 12))' 2>/dev/null &&
      { command -v "$candidate"; return; }
  done
  return 1
}

make_peers() {
  local stamp python
  stamp=$(sha256sum tools/peers.txt | cut -d' ' -f1)
  [ "$(cat .venv/peers/.stamp 2>/dev/null)" = "$stamp" ] && return
  python=$(find_python312) || { say "no CPython 3.12 here: comparisons with the peers will be skipped"; return; }
  say "peer implementations in .venv/peers"
  "$python" -m venv --clear .venv/peers
  .venv/peers/bin/python -m pip install --quiet --disable-pip-version-check --requirement tools/peers.txt
  echo "$stamp" > .venv/peers/.stamp
}

install_packages
check_tools
make_environment
[ "$tier" = full ] && make_peers
say "pinned artifacts in .deps"
.venv/bin/python tools/fetch_deps.py
