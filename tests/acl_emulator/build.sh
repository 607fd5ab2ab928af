#!/bin/sh
# Builds the test-only CANN libraries into a folder: tests/acl_emulator/build.sh OUTDIR
#
#   OUTDIR/libascendcl.so   the ACL emulator as CANN 8.5 has it, and the other names torch_npu links with
#   OUTDIR/libopapi.so      the operators torch_npu calls (only with it do npu tensors compute)
#   OUTDIR/cann-8.1, OUTDIR/cann-9.2   libascendcl.so with the entry points of those releases
#
# Put OUTDIR first in LD_LIBRARY_PATH. CXX chooses the compiler, EMULATOR_CXXFLAGS adds flags.
# A library appears whole: processes that use the old one while it is made again keep theirs. OUTDIR/built is newer than all of them.
set -eu
out=${1:?usage: build.sh OUTDIR}
here=$(cd "$(dirname "$0")" && pwd)
self=$here/$(basename "$0")
cxx=${CXX:-g++}
mkdir -p "$out/objects" "$out/cann-8.1" "$out/cann-9.2"
out=$(cd "$out" && pwd)
flags="-std=c++17 -O2 -g1 -fPIC -ffp-contract=off -Wall -Wextra -pthread ${EMULATOR_CXXFLAGS:-}"

# stale OBJECT: must the object be made (again)? The compiler wrote what it depends on beside it.
stale() {
    [ -e "$1" ] && [ -e "${1%.o}.d" ] && [ ! "$self" -nt "$1" ] || return 0
    for file in $(sed 's/^[^:]*://; s/\\$//' "${1%.o}.d"); do
        [ -e "$file" ] && [ ! "$file" -nt "$1" ] || return 0
    done
    return 1
}

# compile FOLDER: compiles its changed sources, two at a time.
compile() {
    for source in "$here/$1"/*.cpp; do
        object="$out/objects/$1-$(basename "$source" .cpp).o"
        if stale "$object"; then printf '%s\n%s\n' "$source" "$object"; fi
    done | xargs -r -P 2 -n 2 sh -c "$cxx $flags ${2:-} -MMD -c \"\$0\" -o \"\$1\" || exit 255"
}

# exports RELEASE: a version script that hides the entry points of later releases.
exports() {
    awk -v release="$1" '
        BEGIN { split("8_1 8_5 9_0 9_1 9_2b1 master", order, " "); for (i in order) rank[order[i]] = i
                print "{ global: aclrt*; acl*; rt*; Msprof*; local:" }
        /^ACL_FUNCTION/ { gsub(/ACL_FUNCTION\(|,/, " "); if (rank[$1] > rank[release]) print $3 ";" }
        END { print "*; };" }' "$here/interface/functions.def" | sed "s/const char\\*//"
}

# link LIBRARY ARGUMENT...: links a library beside its place, and puts it there when it is whole and something of it is newer.
link() {
    library=$1; shift
    for part in "$self" "$@"; do
        if [ ! -e "$library" ] || { [ -f "$part" ] && [ "$part" -nt "$library" ]; }; then
            $cxx -shared -pthread "-Wl,-soname,$(basename "$library")" "$@" -o "$library.new"
            mv "$library.new" "$library"
            return
        fi
    done
}

compile runtime
compile operators -O1
compile collective
cd "$out"
for pair in 8_5:. 8_1:cann-8.1 master:cann-9.2; do
    exports "${pair%%:*}" > "objects/${pair%%:*}.map"
    link "${pair##*:}/libascendcl.so" -Wl,--version-script,"objects/${pair%%:*}.map" -Wl,-z,defs objects/runtime-*.o -ldl
done
link libhccl.so objects/collective-*.o -ldl
for name in libge_runner libgraph libacl_tdt_channel libacl_op_compiler; do
    link $name.so -Wl,--no-as-needed -L. -lascendcl -Wl,-rpath,'$ORIGIN'
done
link libopapi.so -Wl,-z,defs objects/operators-*.o -L. -lascendcl -Wl,-rpath,'$ORIGIN'
touch built
