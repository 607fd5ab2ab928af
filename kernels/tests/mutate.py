#!/usr/bin/env python3
"""Mutation test of the CPU model: is every wait, flag, clean and bound of the kernels needed, and
would the suite notice if it were missing?

Each mutant is one statement removed, or one bound ignored, in a kernel or device header. It is
compiled and the suite is run until something fails. A mutant that survives must be listed in
mutants_survive.txt with the reason; at least 95 % of the others must be caught.

    python3 tests/mutate.py --build DIR [--jobs 2] [--only TEXT] [--table FILE]

DIR is the OUT of a finished `make tests`. Runs in about 10 minutes on two cores.
"""
import argparse
import concurrent.futures
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
INVALID = "does not compile"  # such a change is no mutant and is not counted
SURVIVORS = ROOT / "tests" / "mutants_survive.txt"
TARGETS = ["rma/*.cpp", "coll/*.cpp", "coll/*.h", "fused/*.cpp", "include/kernel_entry.h", "include/device/internal/*.h",
           "include/device/gm2gm/shmem_device_so.h", "include/device/gm2gm/shmem_device_p2p_sync.h"]
REMOVED = re.compile(
    r"^(if \(.*\) )?(AscendC::)?"
    r"(SetFlag|WaitFlag|PipeBarrier|DataSyncBarrier|SetAtomicAdd|SetAtomicNone|DataCacheCleanAndInvalid|quiet|refresh_cache|team_barrier|"
    r"core_barrier|pe_barrier|settle|engine_quiet|turn_over|announce|wait_reached|store_shared|mark_unrouted)\b.*;( //.*)?$")
GUARD = re.compile(r"^if \(.*\) (return|continue|break|per = |half_ = )?.*;$")
BOUND = re.compile(r"[\w.\->()+* ]+ < [\w.\->()]+ \?")
COMPILE = ["-std=c++17", "-O1", "-pthread", "-w", "-Icpu_model/include"]
# Configurations that together meet every policy, schedule and pipe preference; quick ones first.
RUNS = [["--pes", "3", "--blocks", "3", "--seeds", "2"], ["--pes", "2", "--blocks", "1", "--seeds", "12"],
        ["--pes", "5", "--blocks", "2", "--seeds", "8"], ["--pes", "8", "--blocks", "5", "--seeds", "2"]]
# The tests that can notice a change of a kernel or header.
ALL = "put,get,strided,signal,atomic,barrier,allgather,broadcast,allreduce_half,allreduce_int32,teams,member,abort,moe,matmul"
DEVICE = ALL + ",device,engine"
TESTS = {"rma/copy.cpp": "put,get,engine", "rma/strided.cpp": "strided", "rma/signal.cpp": "signal,put_value,atomic,engine,abort",
         "coll/barrier.cpp": "barrier", "coll/allgather.cpp": "allgather,teams,member,abort", "coll/all_to_all.cpp": "all_to_all,member,abort",
         "coll/broadcast.cpp": "broadcast,member,abort", "coll/allreduce.cpp": "allreduce,member,abort",
         "coll/reduce_scatter.cpp": "reduce_scatter,member,abort", "coll/push.h": "allgather,all_to_all,broadcast",
         "coll/reducer.h": "allreduce,reduce_scatter,moe", "fused/kv_shuffle.cpp": "kv_shuffle,member,abort",
         "fused/moe_dispatch.cpp": "moe,member,abort", "fused/moe_combine.cpp": "moe,member,abort",
         "fused/matmul_allreduce.cpp": "matmul,member,abort",
         **{f"include/device/internal/{n}.h": DEVICE for n in ("amo", "queue", "engines", "engine_sync", "barrier", "rma", "spin", "memory", "copy", "sync")},
         **{f"include/device/gm2gm/shmem_device_{n}.h": DEVICE for n in ("so", "p2p_sync")}}


class Mutant:
    """One change of one line."""

    def __init__(self, path, line, kind, text, replacement):
        self.path, self.line, self.kind, self.text, self.replacement = path, line, kind, text, replacement

    @property
    def name(self):
        return f"{self.path}: {self.kind}: {self.text.strip()}"


def mutants_of(path):
    """All mutants of one file. Lines of the model's exceptions and of disabled code are left out."""
    for number, line in enumerate((ROOT / path).read_text().splitlines()):
        text = line.strip()
        if text.startswith(("//", "#", "*", "/*")) or text.endswith("\\"):
            continue
        if REMOVED.match(text):
            yield Mutant(path, number, "removed", line, "")
        elif GUARD.match(text):
            yield Mutant(path, number, "guard removed", line, "")
        if BOUND.search(line):
            yield Mutant(path, number, "bound ignored", line, BOUND.sub(lambda m: lead(m.group(0)) + "false ?", line, count=1))


def lead(matched):
    """What the bound's pattern swallowed before the comparison: an opening `=`, `return` or `(`."""
    for opening in ("return ", "= ", "("):
        at = matched.rfind(opening)
        if at >= 0 and "(" not in matched[at + len(opening):].split("<")[0].replace("()", ""):
            return matched[: at + len(opening)]
    return " "


def all_mutants():
    for pattern in TARGETS:
        for file in sorted(ROOT.glob(pattern)):
            yield from mutants_of(file.relative_to(ROOT).as_posix())


def apply(mutant, tree):
    file = tree / mutant.path
    lines = file.read_text().splitlines()
    assert lines[mutant.line] == mutant.text
    lines[mutant.line] = mutant.replacement if mutant.replacement else ";" if not mutant.text.strip().startswith("else") else "else ;"
    file.write_text("\n".join(lines) + "\n")


def prebuilt(build):
    """Objects that contain no mutated code."""
    base = build / "obj-2201"
    tests = [base / "tests" / f"{n}.o" for n in ("test_rma", "test_coll", "test_fused", "test_abort")]
    model = [p for p in (base / "cpu_model" / "src").glob("*.o") if p.name != "kernels.o"]
    return [str(p) for p in tests + model + list((base / "tests" / "harness").glob("*.o"))]


def compile_tree(tree, build, cxx, device):
    sources = sorted(p for d in ("rma", "coll", "fused") for p in (tree / d).glob("*.cpp")) + [tree / "cpu_model/src/kernels.cpp"]
    unity = tree / "unity.cpp"
    unity.write_text("".join(f'#include "{p}"\n' for p in sources))
    out = tree / "mutant"
    flags = COMPILE + ["-Iinclude", "-Icoll", "-Itests"]
    device = [str(tree / "tests" / f"{n}.cpp") for n in ("test_device", "test_engines")] if device else []
    command = [cxx, *flags, str(unity), *device, *prebuilt(build), "-o", str(out)]
    done = subprocess.run(command, cwd=tree, capture_output=True, text=True, timeout=300)
    return (out, "") if done.returncode == 0 else (None, done.stderr.strip().splitlines()[0] if done.stderr else "?")


def judge(binary, only):
    """The way the suite notices, or None."""
    for run in [[*run, "--only", only] for run in RUNS]:
        try:
            done = subprocess.run([str(binary), "--stop", *run], capture_output=True, text=True, timeout=150)
        except subprocess.TimeoutExpired:
            return "hangs"
        if done.returncode < 0:
            return f"crashes (signal {-done.returncode})"
        if done.returncode:
            first = next((l for l in done.stdout.splitlines() if l.startswith("FAIL")), "fails")
            return re.sub(r"\s+", " ", first)[:150]
    return None


def examine(mutant, build, cxx):
    with tempfile.TemporaryDirectory(prefix="mutant") as temp:
        tree = pathlib.Path(temp) / "kernels"
        shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns("build", ".git*"))
        apply(mutant, tree)
        tests = TESTS.get(mutant.path, ALL)
        binary, error = compile_tree(tree, build, cxx, "engine" in tests)
        return f"{INVALID}: {error[-90:]}" if binary is None else judge(binary, tests)


def known_survivors():
    """name -> reason, from mutants_survive.txt: `name` and an indented reason below it."""
    known, name = {}, None
    for line in SURVIVORS.read_text().splitlines() if SURVIVORS.exists() else []:
        if line.startswith("    ") and name:
            known[name] = (known.get(name, "") + " " + line.strip()).strip()
        elif line and not line.startswith("#"):
            name = line
            known.setdefault(name, "")
    return known


def report(results, table):
    known = known_survivors()
    results = [(m, how) for m, how in results if not (how or "").startswith(INVALID)]
    survivors = [m for m, how in results if how is None]
    excused = [m for m in survivors if m.name in known]
    wrong = len(results) - len(excused)
    caught = len(results) - len(survivors)
    rate = 100.0 * caught / wrong if wrong else 100.0
    if table:
        rows = [f"| `{m.name}` line {m.line + 1} | {how or 'survives: ' + known.get(m.name, 'UNEXPLAINED')} |" for m, how in results]
        pathlib.Path(table).write_text("| mutant | noticed by |\n|---|---|\n" + "\n".join(rows).replace("||", "\\|\\|") + "\n")
    for m in survivors:
        if m.name not in known:
            print(f"SURVIVED line {m.line + 1} {m.name}")
    print(f"{len(results)} mutants: {caught} caught, {len(excused)} equivalent (reasons in {SURVIVORS.name}), "
          f"{len(survivors) - len(excused)} missed; {rate:.1f} % of the wrong ones caught")
    return rate >= 95.0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", required=True, type=pathlib.Path)
    parser.add_argument("--cxx", default="clang++-14")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="", help="parts of names, separated by commas")
    parser.add_argument("--table", default="")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    mutants = [m for m in all_mutants() if any(part in m.name for part in options.only.split(","))]
    if options.list:
        print("\n".join(m.name + "  =>  " + m.replacement.strip() for m in mutants))
        return 0
    results = []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        jobs = [(m, pool.submit(examine, m, options.build.resolve(), options.cxx)) for m in mutants]
        for mutant, job in jobs:
            results.append((mutant, job.result()))
            print(f"{mutant.path}:{mutant.line + 1} {mutant.kind}: {results[-1][1] or 'SURVIVED'}", flush=True)
    return 0 if report(results, options.table) else 1


if __name__ == "__main__":
    sys.exit(main())
