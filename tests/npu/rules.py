"""Breaks one rule of the emulator, which must refuse it with the rule's code and name: `python rules.py RULE`.

test_rules.py runs it for each rule of runtime/rules.def.
"""

import sys

import rules_memory  # noqa: F401
import rules_share  # noqa: F401
import rules_stream  # noqa: F401
import rules_vmm  # noqa: F401
from breach import CASES

CASES[sys.argv[1]][0]()
print("ok")
