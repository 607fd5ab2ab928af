"""The mutants of the kernels and device headers, and sources that hold all of them at once.

A mutant is one statement removed, one condition ignored, one clause of a condition ignored, or one
bound ignored. All are written into one copy of the sources, each behind MUTANT(number), which is
true for the number that the environment variable GSHMEM_MUTANT names. So the suite is compiled
once, and a mutant costs no more than running it. Lines of macros are left out.
"""
import pathlib
import re
from typing import Callable, Iterator, List, NamedTuple, Optional, Tuple

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGETS = ["rma/*.cpp", "coll/*.cpp", "coll/*.h", "fused/*.cpp", "include/kernel_entry.h", "include/device/internal/*.h",
           "include/device/shmem_def.h", "include/device/gm2gm/*.h", "include/device/gm2gm/engine/*.h", "include/device/ub2gm/engine/*.h", "include/device/team/*.h"]
# Statements whose loss is a mutant: waits, flags, cleans, and what must happen at all.
CALLS = ("SetFlag|WaitFlag|PipeBarrier|DataSyncBarrier|SetAtomicAdd|SetAtomicNone|DataCacheCleanAndInvalid|quiet|refresh_cache|team_barrier|"
         "core_barrier|pe_barrier|settle|turn_over|announce|wait_reached|wait_until|store_shared|mark_unrouted|engine_quiet|engine_drain|"
         "engine_set|engine_write|sdma_quiet|check_scratch|put_before_signal|put_rows_nbi|signal|InitSocState")
REMOVED = re.compile(rf"^(for \(.*\) )?(\(void\))?(AscendC::|gshmem::)?({CALLS})\b.*;( //.*)?$")
GUARD = re.compile(r"^[^{]*;( //.*)?$")
BOUND = re.compile(r"(?P<lead>.*(?:return |= |\())(?P<bound>[\w.\->()+* ]+ < [\w.\->()]+) \?(?P<rest>.*)")
SELECTOR = """#pragma once
#include <cstdlib>
inline const int gshmem_mutant = std::getenv("GSHMEM_MUTANT") ? std::atoi(std::getenv("GSHMEM_MUTANT")) : 0;
#define MUTANT(number) (gshmem_mutant == (number))
"""

Take = Callable[[str], str]  # gives the next mutant's switch to a kind of change


class Mutant(NamedTuple):
    """One change of one line; `number` switches it on."""

    number: int
    path: str
    line: int
    name: str


def closing(text: str, opening: int) -> int:
    """Where the bracket at `opening` is closed."""
    depth = 0
    for at in range(opening, len(text)):
        depth += (text[at] in "([{") - (text[at] in ")]}")
        if depth == 0:
            return at
    raise ValueError(f"no closing bracket in {text!r}")


def split(condition: str) -> Tuple[str, List[str]]:
    """The operator and the clauses of a chain of && or ||; one clause when it is neither, or mixed."""
    parts: List[str] = []
    operators = set()
    depth = start = 0
    for at, letter in enumerate(condition):
        depth += (letter in "([{") - (letter in ")]}")
        if depth == 0 and at >= start and condition[at:at + 2] in ("&&", "||"):
            operators.add(condition[at:at + 2])
            parts.append(condition[start:at].strip())
            start = at + 2
    parts.append(condition[start:].strip())
    return (operators.pop(), parts) if len(operators) == 1 else ("", [condition])


def spoil_condition(condition: str, take: Take) -> str:
    """The condition with a switch in each clause of a chain: off, the chain is as if the clause were not there."""
    operator, parts = split(condition)
    if len(parts) == 1:
        return condition
    form = "(!{} && ({}))" if operator == "||" else "({} || ({}))"
    return f" {operator} ".join(form.format(take(f"clause {part} ignored"), part) for part in parts)


def spoil(line: str, take: Take) -> str:
    """The line with all its mutants, each behind the switch that `take(kind)` returns."""
    text = line.strip()
    lead = line[:len(line) - len(line.lstrip())]
    if text.startswith(("if (", "else if (")):
        opening = text.index("(")
        end = closing(text, opening)
        rest = text[end + 1:]
        condition = spoil_condition(text[opening + 1:end], take)
        if GUARD.match(rest.strip()):
            kind = "removed" if REMOVED.match(rest.strip()) else "guard removed"
            condition = f"!{take(kind)} && ({condition})"
        return f"{lead}{text[:opening]}({condition}){rest}"
    if REMOVED.match(text):
        return f"{lead}if (!{take('removed')}) {text}"
    bound = BOUND.match(line)
    if bound:
        return f"{bound['lead']}(!{take('bound ignored')} && ({bound['bound']})) ?{bound['rest']}"
    value = re.match(r"(?P<lead>.*\breturn )(?P<condition>[^?;]*)(?P<rest>( \?.*)?;.*)", line)
    if value and "[" not in value["condition"]:
        return value["lead"] + spoil_condition(value["condition"], take) + value["rest"]
    return line


def is_code(text: str) -> bool:
    """False for comments, the preprocessor and the inside of macros."""
    return not text.startswith(("//", "#", "*", "/*")) and not text.endswith("\\")


def instrument(path: str, found: List[Mutant]) -> str:
    """The text of one file with its mutants, which are added to `found`."""
    counts = {}

    def take(kind: str, line: Optional[int] = None, text: str = "") -> str:
        name = f"{path}: {kind}: {text}"
        counts[name] = counts.get(name, 0) + 1
        found.append(Mutant(len(found) + 1, path, line or 0, name + (f" #{counts[name]}" if counts[name] > 1 else "")))
        return f"MUTANT({found[-1].number})"

    lines = (ROOT / path).read_text().splitlines()
    model = True  # False: inside what only bisheng compiles
    for at, line in enumerate(lines):
        text = line.strip()
        if text.startswith("#"):
            model = text != "#ifndef GSHMEM_CPU_MODEL" and (model or text == "#else" or text.startswith("#endif"))
        elif model and is_code(text):
            lines[at] = spoil(line, lambda kind, at=at, text=text: take(kind, at + 1, text))
    return "\n".join(lines) + "\n"


def targets() -> Iterator[str]:
    """The files that are mutated, in a fixed order."""
    for pattern in TARGETS:
        for file in sorted(ROOT.glob(pattern)):
            yield file.relative_to(ROOT).as_posix()


def everything() -> Tuple[List[Mutant], List[Tuple[str, str]]]:
    """All mutants, and (path, text) of each instrumented file."""
    found: List[Mutant] = []
    files = [(path, instrument(path, found)) for path in targets()]
    return found, files
