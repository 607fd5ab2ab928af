#!/bin/sh
# Runs the core as an aarch64 host would: the library and the tests are compiled for it and run under qemu's user mode.
#
# Proves code generation, layouts, alignment, atomics' instructions and loading; not memory order, which an x86 host keeps stronger
# than the real thing, and not speed. Needs aarch64-linux-gnu-gcc (CC), its libraries and qemu-aarch64
# (Debian: gcc-aarch64-linux-gnu, libc6-dev-arm64-cross, qemu-user).
set -eu
cd "$(dirname "$0")/.."
sysroot=${SYSROOT:-/usr/aarch64-linux-gnu}
export CC="${CC:-aarch64-linux-gnu-gcc}" GOARCH=arm64 GOOS=linux CGO_ENABLED=1
export GODEBUG=asyncpreemptoff=1 # qemu loses signals that arrive inside a system call
for tool in "$CC" qemu-aarch64; do
    command -v "$tool" > /dev/null || { echo "aarch64: $tool was not found (see $0)" >&2; exit 1; }
done
out=$PWD/build/aarch64
mkdir -p "$out"

echo "==> Go packages"
go test -count=1 -timeout 1800s -exec "qemu-aarch64 -L $sysroot" \
    ./gocore/reduce ./gocore/heap ./gocore/team ./gocore/message ./gocore/plan ./gocore/coll

echo "==> the hot path's C programs"
"$CC" -std=gnu11 -O2 -I capi/include gocore/hot/*.c gocore/hot/testdata/*.c -o "$out/hot_programs" -static -pthread
qemu-aarch64 "$out/hot_programs"

echo "==> programs over the library"
go build -buildmode=c-shared -trimpath -o "$out/libshmem.so" ./capi
printf '#!/bin/sh\nexec qemu-aarch64 -L %s "$@"\n' "$sysroot" > "$out/run"
chmod +x "$out/run"
# hello, life and every_coll have symmetric variables of the program, which need a system call that qemu lacks
for program in every_rma every_atomic every_wait generic; do
    "$CC" -std=gnu11 -O1 -I capi/include/openshmem -I capi/include "tests/c/openshmem/$program.c" -o "$out/$program" -L "$out" -lshmem "-Wl,-rpath,$out"
    for transport in shm tcp; do
        PYTHONPATH=python "${PYTHON:-python3}" -m shmem.cli.run --transport $transport -n 3 "$out/run" "$out/$program" > "$out/$program.log" 2>&1 ||
            { cat "$out/$program.log"; exit 1; }
        echo "  ok   $program over $transport: $(grep '^checks' "$out/$program.log") on 3 PEs"
    done
done
