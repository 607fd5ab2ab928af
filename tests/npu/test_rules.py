"""Every rule of the emulator is provoked, on each chip it holds for."""

import re
import subprocess

import pytest

from conftest import HERE, ROOT, SOURCE

CHIPS = ["910B1", "910_93", "950"]
RULES = re.findall(r"^ACL_RULE\((\w+),", (SOURCE / "runtime" / "rules.def").read_text(), re.MULTILINE)
# What is registered, read from the text: importing it needs the emulator.
TEXT = "".join(path.read_text() for path in sorted(HERE.glob("rules_*.py")))
CASES = {name: options for options, name in re.findall(r"^@case(?:\((.*)\))?\ndef (\w+)\(\):", TEXT, re.MULTILINE)}


def chips(options):
    named = re.search(r"soc=\[(.*?)\]", options)
    return re.findall(r'"(\w+)"', named[1]) if named else CHIPS


@pytest.fixture(scope="session")
def kernels(tmp_path_factory):
    library = tmp_path_factory.mktemp("kernels") / "libkernels.so"
    command = ["cc", "-shared", "-fPIC", f"-I{ROOT}/kernels/cpu_model", str(HERE / "kernels.c"), "-o", str(library)]
    subprocess.run(command, check=True)
    return library


def test_every_rule_has_a_case_and_every_case_a_rule():
    assert sorted(CASES) == sorted(RULES)
    assert len(RULES) == len(set(RULES))


@pytest.mark.parametrize("rule,soc", [(rule, soc) for rule, options in CASES.items() for soc in chips(options)])
def test_rule(emulator, kernels, rule, soc):
    options = CASES[rule]
    settings = dict(re.findall(r'(devices|memory)="?(\w+)', options))
    if "kernels=True" in options:
        settings["kernels"] = kernels
    release = "cann-9.2" if soc == "950" else ""
    assert emulator.run(HERE / "rules.py", rule, soc=soc, release=release, **settings).strip() == "ok"
