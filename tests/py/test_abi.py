"""The tables of _abi.py against the header itself."""

from __future__ import annotations

import os
import re

import pytest

from shmem import _abi, _errors, _lib

HEADER = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "capi", "include", "gshmem.h")

_TYPES = {"int32_t": "i32", "uint32_t": "u32", "int64_t": "i64", "uint64_t": "u64", "double": "f64", "const char *": "str"}


def text() -> str:
    """The header without comments."""
    path = HEADER if os.path.exists(HEADER) else os.path.join(_lib.include_directory(), "gshmem.h")
    with open(path, encoding="utf-8") as file:
        return re.sub(r"/\*.*?\*/", " ", file.read(), flags=re.S)


def kind(declaration: str) -> str:
    """Our word for one C parameter or result."""
    words = " ".join(declaration.replace("*", " * ").split())
    if "*" in words or "[" in words:
        return "str" if words.startswith("const char *") else "ptr"
    return _TYPES[words.split()[0]]


def prototypes() -> dict:
    """name -> our notation, for every GSHMEM_API declaration."""
    found = {}
    for result, name, arguments in re.findall(r"GSHMEM_API\s+([\w ]+?[\s*]+)(gshmem_\w+)\(([^;]*?)\);", text(), flags=re.S):
        listed = [] if arguments.strip() == "void" else [kind(a) for a in arguments.split(",")]
        found[name] = (f"{kind(result)}:" + "".join(f" {a}" for a in listed)).strip()
    return found


def test_every_prototype_is_in_the_table_as_declared():
    assert prototypes() == _abi.PROTOTYPES


def enumerators() -> dict:
    """Every enumerator of the header with its value, counted as C counts."""
    values = {}
    for body in re.findall(r"enum\s*\{(.*?)\}", text(), flags=re.S):
        number = -1
        for entry in filter(None, (part.strip() for part in body.split(","))):
            name, _, given = (word.strip() for word in entry.partition("="))
            number = int(given) if given else number + 1
            values[name.replace("GSHMEM_", "", 1)] = number
    return values


def test_every_enumerator_has_the_value_of_the_header():
    ours = {}
    for table in (_abi.STATUS, _abi.ATOMIC, _abi.SIGNAL, _abi.MEMORY, _abi.COMPARE, _abi.COLLECTIVE, _abi.DTYPE, _abi.REDUCE, _abi.DO):
        ours.update(table)
    assert ours == enumerators()


@pytest.mark.parametrize(
    "name, value",
    [
        ("ABI_VERSION", _abi.ABI_VERSION),
        ("UID_BYTES", _abi.UID_BYTES),
        ("ASYNC", _abi.ASYNC),
        ("NOTIFY", _abi.NOTIFY),
        ("ZERO", _abi.ZERO),
        ("ON_DEVICE", _abi.ON_DEVICE),
        ("ANY_SOURCE", _abi.ANY_SOURCE),
    ],
)
def test_macros(name, value):
    said = re.search(rf"#define GSHMEM_{name} \(?(-?\d+)u?\)?", text())
    assert said is not None and int(said.group(1)) == value


def test_int64_min_macros():
    assert re.search(r"#define GSHMEM_DEFAULT_TIMEOUT INT64_MIN", text()) and _abi.DEFAULT_TIMEOUT == -(2**63)
    assert re.search(r"#define GSHMEM_ANY_TAG INT64_MIN", text()) and _abi.ANY_TAG == -(2**63)


@pytest.mark.parametrize("struct, table", [("gshmem_options", _abi.OPTIONS), ("gshmem_one_sided", _abi.ONE_SIDED), ("gshmem_heap_stat", _abi.HEAP_STAT)])
def test_struct_fields_in_order(struct, table):
    body = re.search(rf"typedef struct {struct} \{{(.*?)\}}", text(), flags=re.S).group(1)
    fields = []
    for line in filter(None, (part.strip() for part in body.split(";"))):
        first = kind(line)
        for declared in line.split(","):
            fields.append((re.findall(r"\w+", declared)[-1], first))
    assert fields == list(table.items())


def test_every_failure_has_an_exception_of_its_own():
    failing = {code for code in _abi.STATUS.values() if code < 0}
    assert set(_errors.BY_STATUS) == failing
    kinds = [_errors.BY_STATUS[code] for code in failing]
    assert len(set(kinds)) == len(kinds)


def test_groups_follow_the_hundreds():
    groups = {1: _errors.CallError, 2: _errors.ObjectError, 3: _errors.PeerError, 4: _errors.ProcessError, 5: _errors.InternalError}
    for code, kind_ in _errors.BY_STATUS.items():
        assert issubclass(kind_, groups[-code // 100]), kind_


def test_operation_and_pe_are_read_from_the_text():
    error = _errors.from_status(_abi.STATUS["ETIMEOUT"], "barrier: timed out (PE 12): after 2.0 s")
    assert (error.operation, error.pe, type(error)) == ("barrier", 12, _errors.TimeoutError)
    assert isinstance(error, TimeoutError)
    plain = _errors.from_status(_abi.STATUS["EINVAL"], "", "put")
    assert plain.operation == "put" and plain.pe is None


def test_errors_survive_pickling():
    import pickle

    for code, kind_ in _errors.BY_STATUS.items():
        error = pickle.loads(pickle.dumps(_errors.from_status(code, "op: words (PE 3): more")))
        assert type(error) is kind_ and error.pe == 3 and str(error) == "op: words (PE 3): more"
