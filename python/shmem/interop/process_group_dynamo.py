"""Keeps torch.compile out of this package's Python.

When C++ calls a method of a group from inside a compiled region (DDP's hooks do), Dynamo would trace that method, fail on
the ctypes calls and log it. Marking the code objects costs nothing per call and, unlike torch.compiler.disable, does not
import torch._dynamo.
"""

from __future__ import annotations

import inspect
import sys
from types import CodeType, FunctionType
from typing import Any, Callable, Iterator, Optional, Set

import torch

_PACKAGE = __name__.split(".")[0]
_marked: Set[str] = set()


def hide() -> None:
    """Marks every function of the package that is loaded and not marked yet: what serves npus is loaded later than the rest."""
    mark = _marker()
    if mark is None:
        return
    for name, module in list(sys.modules.items()):
        if module is not None and name not in _marked and (name == _PACKAGE or name.startswith(_PACKAGE + ".")):
            _marked.add(name)
            for code in _codes(module):
                mark(code)


def _marker() -> Optional[Callable[[CodeType], Any]]:
    """What this torch offers for "never trace this code object"."""
    frames = torch._C._dynamo.eval_frame
    if hasattr(frames, "set_code_exec_strategy"):
        skip = frames._FrameAction.SKIP
        strategy = frames._FrameExecStrategy(skip, skip)
        return lambda code: frames.set_code_exec_strategy(code, strategy)
    return getattr(frames, "skip_code", None)


def _codes(module: Any) -> Iterator[CodeType]:
    for value in list(vars(module).values()):
        if getattr(value, "__module__", None) != module.__name__:
            continue
        if isinstance(value, FunctionType):
            yield value.__code__
        elif inspect.isclass(value):
            yield from _methods(value)


def _methods(kind: type) -> Iterator[CodeType]:
    for value in vars(kind).values():
        if isinstance(value, property):
            value = value.fget
        if isinstance(value, (staticmethod, classmethod)):
            value = value.__func__
        if isinstance(value, FunctionType):
            yield value.__code__
