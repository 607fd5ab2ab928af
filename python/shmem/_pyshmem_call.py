"""Makes the functions of the Ascend binding's table."""

from __future__ import annotations

import ctypes
from typing import Any, Callable, Dict, List, Sequence, Tuple

from . import _ascend

# Parameters that must not be 0, and the functions that say so.
_NEEDED = {"aclshmem_signal_wait_until": ("sig_addr",)}


def wrap(name: str, c_name: str, parameters: str, result: str, waits: bool) -> Callable[..., Any]:
    """A Python function with these parameters over a C function. It raises what the C function failed with. Loads nothing yet."""
    words = [word.split(":") for word in parameters.split()]
    names, kinds = tuple(w[0] for w in words), tuple(w[1] for w in words)
    signature = " ".join(kinds)
    needed = tuple(names.index(n) for n in _must_be_given(name, names))

    def call(*arguments: Any, **named: Any) -> Any:
        given = arranged(name, names, arguments, named)
        for place, kind in enumerate(kinds):
            if given[place] is None:
                raise TypeError(f"{name}: {names[place]} is None; give an int")
            if kind == "char":
                given[place] = _one_byte(name, given[place])
        for place in needed:
            if not given[place]:
                raise ValueError(f"{name}: {names[place]} is 0")
        answer = _run(name, _ascend.bind(c_name, signature, result), given, waits)
        return answer.decode("latin-1") if isinstance(answer, bytes) else answer

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"{c_name}({', '.join(names)}). {'Blocks until what is waited for has happened.' if waits else 'Does not wait for other PEs.'}"
    return call


def _must_be_given(name: str, names: Sequence[str]) -> Tuple[str, ...]:
    if name.endswith(("_wait_until_any", "_wait_until_any_vector")):
        return ("ivars", "res_out")
    return _NEEDED.get(name, ())


def arranged(name: str, names: Sequence[str], arguments: Sequence[Any], named: Dict[str, Any]) -> List[Any]:
    """Arguments in the order of the parameters; TypeError as Python itself words it."""
    if len(arguments) + len(named) != len(names):
        raise TypeError(f"{name}() takes {len(names)} arguments ({', '.join(names)}) but {len(arguments) + len(named)} were given")
    given = list(arguments)
    for one in names[len(arguments) :]:
        if one not in named:
            raise TypeError(f"{name}() lacks the argument {one!r}")
        given.append(named[one])
    return given


def _one_byte(name: str, value: Any) -> bytes:
    raw = value.encode("latin-1") if isinstance(value, str) else value
    if not isinstance(raw, bytes) or len(raw) != 1:
        raise TypeError(f"{name}: {value!r} is not one character")
    return raw


def _run(name: str, function: Callable[..., Any], given: Sequence[Any], waits: bool) -> Any:
    def call() -> Any:
        return _ascend.checked(name, lambda: function(*given))

    try:
        return _ascend.interruptible(call) if waits else call()
    except ctypes.ArgumentError as problem:
        raise TypeError(f"{name}: {problem}") from None
