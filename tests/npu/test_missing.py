"""Streams: a synchronisation that a program needs and leaves out shows as old data over the emulator; with it, there never are any."""

import re

import pytest

from test_device import all_good, pes  # noqa: F401 (a fixture)

CASES = """
wait_before_the_barrier join_before_the_signal join_behind_a_collective wait_for_the_signal barrier_of_the_streams wait_before_the_source_changes
""".split()


@pytest.mark.parametrize("case", CASES)
def test_a_missing_synchronisation_shows(pes, case):  # noqa: F811
    def old(how):
        ends = pes(2, "missing.py", case, how, ACLEMU_LATE_US=25000)
        all_good(ends)
        return sum(int(re.search(r"old (\d+)", words)[1]) for _, words in ends)

    assert old("keep") == 0
    assert old("drop") > 4
