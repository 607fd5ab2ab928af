#!/usr/bin/env python3
"""Mutation test: is every wait, flag, clean and bound of the kernels and device headers needed, and
would the suite notice if it were missing?

    python3 tests/mutate.py --build DIR [--sample SECONDS] [--only TEXT] [--table FILE] [--afresh] [--list]

DIR is the OUT of a finished `make tests`. The suite runs against each mutant (mutants.py) until
something fails, on 910 and then, if nobody noticed, what differs on 950. A mutant that survives must be listed in
mutants_survive.txt with the reason; at least 95 % of the others must be caught. --sample tries as
many unlisted mutants as the seconds allow, on 950, in an order that changes every day, and fails when
one of them survives; --day repeats an earlier day's order. The test that noticed a mutant when
mutants_noticed.md was made (by --table) is tried first, which makes a whole run a matter of minutes;
--afresh does without.
"""
import argparse
import concurrent.futures
import hashlib
import os
import pathlib
import random
import re
import resource
import shlex
import shutil
import subprocess
import sys
import time
from typing import Dict, Iterable, List, NamedTuple, Optional, Tuple

import mutants
from mutants import ROOT, Mutant

SURVIVORS = ROOT / "tests" / "mutants_survive.txt"
NOTICED = ROOT / "tests" / "mutants_noticed.md"
ARCHS = ("2201", "3510")
DIFFERS = ["--only", "950,udma,atomic,engine,selection,stuck,calls"]  # the tests of what differs on 950: scalar atomics and UDMA
BAR = 95.0
LEFT_OUT = ("test_names", "test_model") # they test the names and the model, not the kernels
# Configurations that together meet every policy, schedule and pipe preference; quick ones first.
RUNS = [["--pes", "3", "--blocks", "3", "--seeds", "2"], ["--pes", "2", "--blocks", "1", "--seeds", "12"],
        ["--pes", "5", "--blocks", "2", "--seeds", "8"], ["--pes", "8", "--blocks", "5", "--seeds", "2"]]
LIMIT = 30  # seconds for one case, which takes milliseconds: more is a hang


class Verdict(NamedTuple):
    """What the suite made of one mutant: `how` it was noticed, or None."""

    mutant: Mutant
    how: Optional[str]


# ---- building --------------------------------------------------------------------------------------------------------

def write_tree(tree: pathlib.Path) -> List[Mutant]:
    """The sources with all mutants in them; files that did not change keep their times."""
    found, files = mutants.everything()
    wanted = {path: text for path, text in files}
    for file in sorted(ROOT.rglob("*")):
        path = file.relative_to(ROOT).as_posix()
        if file.suffix in (".cpp", ".h", ".hpp", ".def") and path not in wanted and not path.startswith("build"):
            wanted[path] = file.read_text()
    wanted["mutant.h"] = mutants.SELECTOR
    for path, text in wanted.items():
        target = tree / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists() or target.read_text() != text:
            target.write_text(text)
    return found


def sources_of(tree: pathlib.Path) -> List[pathlib.Path]:
    """What holds mutated code: the kernels as one unit, and each test that calls the device API itself."""
    kernels = sorted(p for folder in ("rma", "coll", "fused") for p in (tree / folder).glob("*.cpp"))
    unit = tree / "unity.cpp"
    text = "".join(f'#include "{p.relative_to(tree).as_posix()}"\n' for p in kernels + [tree / "cpu_model/src/kernels.cpp"])
    if not unit.exists() or unit.read_text() != text:
        unit.write_text(text)
    tests = [p for p in sorted((tree / "tests").glob("test_*.cpp")) if uses_device_code(p) and not p.stem.startswith(LEFT_OUT)]
    return [unit] + tests


def uses_device_code(source: pathlib.Path) -> bool:
    """True when a file includes the device headers, whose inline functions are mutated; harness/api.hpp does."""
    return re.search(r'#include "(device/shmem_device\.h|kernel_entry\.h|harness/api\.hpp)"', source.read_text()) is not None


def compile_one(source: pathlib.Path, tree: pathlib.Path, arch: str, cxx: List[str], digest: str) -> pathlib.Path:
    """The object of one source, kept between runs while nothing changed."""
    made = tree / f"{source.stem}-{arch}-{digest}.o"
    if not made.exists():
        for old in tree.glob(f"{source.stem}-{arch}-*.o"):
            old.unlink()
        flags = ["-std=c++17", "-O1", "-pthread", "-w", f"-D__NPU_ARCH__={arch}", "-include", "mutant.h", "-Iinclude", "-Icpu_model/include", "-Icoll", "-Itests"]
        done = subprocess.run([*cxx, *flags, "-c", str(source), "-o", str(made)], cwd=tree, capture_output=True, text=True, timeout=600, check=False)
        if done.returncode:
            raise SystemExit(f"mutate: {source.name} with the mutants in it does not compile:\n{done.stderr[:2000]}")
    return made


def build_suite(build: pathlib.Path, tree: pathlib.Path, arch: str, cxx: List[str], jobs: int) -> pathlib.Path:
    """The suite with all mutants in it, for one chip."""
    digest = hashlib.sha256()
    for file in sorted(tree.rglob("*")):
        if file.suffix in (".cpp", ".h", ".hpp", ".def"):
            digest.update(file.read_bytes())
    sources = sources_of(tree)
    objects = build / f"obj-{arch}"
    names = {p.stem for p in sources}
    others = [p for p in sorted((objects / "tests").glob("test_*.o")) if p.stem not in names and not p.stem.startswith(LEFT_OUT)]
    model = [p for p in sorted((objects / "cpu_model" / "src").glob("*.o")) if p.stem != "kernels"]
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        made = list(pool.map(lambda s: compile_one(s, tree, arch, cxx, digest.hexdigest()[:12]), sources))
    suite = tree / f"suite-{arch}"
    subprocess.run([*cxx, "-pthread", "-o", str(suite), *map(str, made + others + model), *map(str, sorted((objects / "tests" / "harness").glob("*.o")))], check=True)
    return suite


# ---- judging ---------------------------------------------------------------------------------------------------------

def run_suite(suite: pathlib.Path, number: int, run: List[str]) -> Optional[str]:
    """The way the suite notices mutant `number` in one configuration, or None."""
    command = [str(suite), "--stop", "--limit", str(LIMIT), *run]
    environment = {**os.environ, "GSHMEM_MUTANT": str(number)}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20 * LIMIT, env=environment, check=False, errors="replace",
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0)))
    except subprocess.TimeoutExpired:
        return "hangs"
    if done.returncode < 0:
        return f"crashes (signal {-done.returncode})"
    if done.returncode:
        first = next((line for line in done.stdout.splitlines() if line.startswith("FAIL")), "fails")
        return re.sub(r"\s+", " ", first)[:150]
    return None


def judge(mutant: Mutant, suites: Dict[str, pathlib.Path], runs: List[List[str]], last: str) -> Verdict:
    """Runs the suite against one mutant until something fails: first what noticed it `last`, then the first chip's whole, of the
    second what differs."""
    test = re.match(r"FAIL (\w+) .*?(\(950\))?$", last)
    if test:
        how = run_suite(list(suites.values())[-1 if test[2] else 0], mutant.number, RUNS[0] + ["--only", test[1]])
        if how:
            return Verdict(mutant, f"{how} (950)" if test[2] else how)
    for at, suite in enumerate(suites.values()):
        for run in runs:
            how = run_suite(suite, mutant.number, run + (DIFFERS if at else []))
            if how:
                return Verdict(mutant, f"{how} (950)" if at else how)
    return Verdict(mutant, None)


def judge_all(chosen: List[Mutant], suites: Dict[str, pathlib.Path], known: Dict[str, str], options: argparse.Namespace) -> Iterable[Verdict]:
    """The verdicts in order. With --sample, no mutant is begun after that time. Listed survivors get the two quick runs
    only: a longer look could but show that one is caught after all."""
    end = time.monotonic() + options.sample if options.sample else float("inf")
    last = {} if options.afresh or not NOTICED.exists() else notices_of(NOTICED.read_text())
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for verdict in pool.map(lambda m: judge(m, suites, RUNS[:2] if m.name in known else RUNS, last.get(m.name, "")) if time.monotonic() < end else None, chosen):
            if verdict:
                yield verdict


def notices_of(table: str) -> Dict[str, str]:
    """name -> how it was noticed, from an earlier table."""
    return dict(re.findall(r"^\| `(.*)` line \d+ \| (.*) \|$", table.replace("\\|", "|"), re.MULTILINE))


# ---- reporting -------------------------------------------------------------------------------------------------------

def known_survivors() -> Dict[str, str]:
    """name -> reason, from mutants_survive.txt: names, and the indented reason below them."""
    known: Dict[str, str] = {}
    names: List[str] = []
    reason = True
    for line in SURVIVORS.read_text().splitlines() if SURVIVORS.exists() else []:
        if line.startswith("    "):
            for name in names:
                known[name] = f"{known[name]} {line.strip()}".strip()
            reason = True
        elif line and not line.startswith("#"):
            names = [line] if reason else names + [line]
            known.setdefault(line, "")
            reason = False
    return known


def per_file(verdicts: List[Verdict], known: Dict[str, str]) -> List[str]:
    """Rows of the table of the README: file, mutants, really wrong, caught, missed."""
    rows = []
    for path in dict.fromkeys(v.mutant.path for v in verdicts):
        mine = [v for v in verdicts if v.mutant.path == path]
        excused = sum(1 for v in mine if v.how is None and v.mutant.name in known)
        caught = sum(1 for v in mine if v.how)
        rows.append(f"| {path} | {len(mine)} | {len(mine) - excused} | {caught} | {len(mine) - excused - caught} |")
    return rows


def write_table(verdicts: List[Verdict], known: Dict[str, str], path: str) -> None:
    """Every mutant and what noticed it, as Markdown."""
    rows = [f"| `{v.mutant.name}` line {v.mutant.line} | {v.how or 'survives: ' + known.get(v.mutant.name, 'UNEXPLAINED')} |" for v in verdicts]
    text = ["| file | mutants | wrong | caught | missed |", "|---|---|---|---|---|", *per_file(verdicts, known), "", "| mutant | noticed by |", "|---|---|", *rows]
    pathlib.Path(path).write_text("\n".join(text).replace("||", "\\|\\|") + "\n")


def report(verdicts: List[Verdict], known: Dict[str, str], table: str) -> Tuple[int, float]:
    """Prints the sums; returns how many were missed, and the percentage of the wrong ones caught."""
    survivors = [v.mutant for v in verdicts if v.how is None]
    missed = [m for m in survivors if m.name not in known]
    wrong = len(verdicts) - len(survivors) + len(missed)
    rate = 100.0 * (wrong - len(missed)) / wrong if wrong else 100.0
    for m in missed:
        print(f"SURVIVED line {m.line} {m.name}")
    for v in verdicts:
        if v.how and v.mutant.name in known:
            print(f"note: listed as a survivor, but caught: {v.mutant.name}")
    if table:
        write_table(verdicts, known, table)
    print(f"mutants: {len(verdicts)} tried, {wrong - len(missed)} caught, {len(survivors) - len(missed)} equivalent "
          f"(reasons in {SURVIVORS.name}), {len(missed)} missed; {rate:.1f} % of the wrong ones caught")
    return len(missed), rate


def options_of(arguments: Optional[List[str]]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, type=pathlib.Path, metavar="DIR", help="the OUT of a finished `make tests`")
    parser.add_argument("--cxx", default="clang++-14", help="the compiler, as a command line")
    parser.add_argument("--jobs", type=int, default=1, help="mutants at a time (default 1)")
    parser.add_argument("--only", default="", help="parts of names, separated by commas")
    parser.add_argument("--sample", type=float, default=0.0, metavar="SECONDS", help="as many unlisted mutants as the time allows, on 950")
    parser.add_argument("--day", type=int, default=int(time.time() // 86400), help="which order --sample takes")
    parser.add_argument("--arch", choices=ARCHS, help="one chip's suite only")
    parser.add_argument("--table", default="", metavar="FILE", help="write which test noticed which mutant")
    parser.add_argument("--afresh", action="store_true", help="do not look at mutants_noticed.md")
    parser.add_argument("--list", action="store_true", help="name the mutants and try none")
    return parser.parse_args(arguments)


def main(arguments: Optional[List[str]] = None) -> int:
    """Builds, tries the chosen mutants, reports; 0 when enough were caught."""
    options = options_of(arguments)
    known = known_survivors()
    build = options.build.resolve()
    found = write_tree(build / "mutants")
    chosen = [m for m in found if any(part in m.name for part in options.only.split(","))]
    if options.list:
        print("\n".join(f"{m.number:4} line {m.line:3} {m.name}" for m in chosen))
        return 0
    for name in known.keys() - {m.name for m in found}:
        print(f"note: listed as a survivor, but there is no such mutant: {name}")
    if options.sample:
        print(f"mutants: a sample of day {options.day} (--day {options.day} repeats it)")
        chosen = [m for m in chosen if m.name not in known and "__NPU_ARCH__" not in m.name]
        random.Random(options.day).shuffle(chosen)
    cxx = shlex.split(options.cxx) if not pathlib.Path(options.cxx).exists() else [options.cxx]
    archs = [options.arch] if options.arch else ARCHS[1:] if options.sample else ARCHS
    suites = {arch: build_suite(build, build / "mutants", arch, cxx, max(options.jobs, 2)) for arch in archs}
    how = judge(Mutant(0, "", 0, "none"), suites, RUNS[:1] if options.sample else RUNS, "").how
    if how:
        raise SystemExit(f"mutate: the suite fails without any mutant: {how}")
    verdicts = []
    for verdict in judge_all(chosen, suites, known, options):
        verdicts.append(verdict)
        print(f"{verdict.mutant.path}:{verdict.mutant.line} {verdict.mutant.name.split(': ')[1]}: {verdict.how or 'SURVIVED'}", flush=True)
    missed, rate = report(verdicts, known, options.table)
    return 1 if (missed if options.sample else rate < BAR) else 0


if __name__ == "__main__":
    sys.exit(main())
