"""Teams: who is in, who is not, and that they never disturb each other."""

from __future__ import annotations

import gc

import pytest
import torch

import shmem


def splits(ctx):
    world = shmem.current().team
    assert (world.rank, world.size, world.pes) == (ctx.me, ctx.n, list(range(ctx.n)))
    for start in range(ctx.n):
        for stride in (-2, -1, 1, 2, 3):
            members = []
            pe = start
            while 0 <= pe < ctx.n:
                members.append(pe)
                pe += stride
            for size in {1, len(members)}:
                team = world.split_strided(start, stride, size)
                chosen = members[:size]
                assert (team is not None) == (ctx.me in chosen)
                if team is not None:
                    assert team.pes == chosen and team.rank == chosen.index(ctx.me) and team.size == size
                    t = torch.tensor([ctx.me + 1])
                    shmem.all_reduce(t, team=team)
                    assert int(t) == sum(pe + 1 for pe in chosen)
                    team.destroy()
                    team.destroy()
                    with pytest.raises(shmem.StaleHandleError):
                        shmem.barrier(team=team)
    for bad in ((0, 1, ctx.n + 1), (-1, 1, 1), (ctx.n, 1, 1), (0, 0, 2), (0, 1, 0), (0, -1, 2)):
        if bad == (0, 0, 2) and ctx.n == 1:
            continue
        with pytest.raises(shmem.CallError):
            world.split_strided(*bad)
    shmem.barrier()


def test_strided_splits(pool):
    pool.run(splits)


def grid(ctx):
    world = shmem.current().team
    for xrange in (1, 2, 3, ctx.n, ctx.n + 4):
        row, column = world.split_2d(xrange)
        width = min(xrange, ctx.n)
        assert row.pes == [pe for pe in range(ctx.n) if pe // width == ctx.me // width]
        assert column.pes == [pe for pe in range(ctx.n) if pe % width == ctx.me % width]
        t = torch.tensor([10 ** (ctx.me % 8)])
        shmem.all_reduce(t, team=row)
        assert int(t) == sum(10 ** (pe % 8) for pe in row.pes)
        shmem.barrier(team=column)
    with pytest.raises(shmem.CallError):
        world.split_2d(0)


def test_two_dimensional_split(pool):
    pool.run(grid)


def any_order(ctx):
    order = list(range(ctx.n))[::-1]
    team = shmem.Team.create(order)
    assert team.pes == order and team.rank == ctx.n - 1 - ctx.me
    out = torch.zeros(ctx.n, dtype=torch.int64)
    shmem.all_gather(out, torch.tensor([ctx.me]), team=team)
    assert out.tolist() == order
    if ctx.me > 0:  # PE 0 takes no part at all
        few = shmem.Team.create(range(1, ctx.n), key=7)
        t = torch.ones(1)
        shmem.all_reduce(t, team=few)
        assert t.item() == ctx.n - 1
        assert few.translate(0) == 1 and team.translate(0, few) == (ctx.n - 2 if ctx.n > 1 else None)
        assert shmem.current().team.translate(0, few) is None
    for bad in ([], [0, 0], [ctx.n], [-1]):
        with pytest.raises(shmem.CallError):
            shmem.Team.create(bad)
    with pytest.raises(shmem.CallError):
        team.translate(ctx.n)
    shmem.barrier()


def test_teams_of_any_members_in_any_order(trio):
    trio.run(any_order)


def unequal_lists(ctx):
    mine = [0, 1] if ctx.me == 0 else [1, 0]
    with pytest.raises(shmem.TimeoutError, match=r"team_create.*PE \d.*did not take part in making.*same PEs in the same order"):
        shmem.Team.create(mine, key=99, timeout=0.5)
    shmem.barrier()


def test_members_that_list_other_pes_are_told_so(pair):
    pair.run(unequal_lists)


def hundreds(ctx):
    teams = [shmem.Team.create(range(ctx.n), key=100 + i) for i in range(300)]
    t = torch.zeros(300, dtype=torch.int64)
    for i, team in enumerate(teams):
        one = torch.tensor([ctx.me + i])
        shmem.all_reduce(one, team=team)
        t[i] = one
    assert t.tolist() == [sum(pe + i for pe in range(ctx.n)) for i in range(300)]
    teams.clear()
    gc.collect()
    for i in range(300):
        team = shmem.Team.create(range(ctx.n), key=1000 + i)
        shmem.barrier(team=team)
        team.destroy()
    shmem.barrier()


def test_hundreds_of_live_teams(pair):
    pair.run(hundreds, timeout=300)


def independent(ctx):
    """Two overlapping teams used in different orders by two threads of each PE."""
    import threading

    a, b = shmem.Team.create(range(ctx.n), key=1), shmem.Team.create(range(ctx.n), key=2)
    errors = []

    def work(team, salt):
        try:
            for i in range(100):
                t = torch.tensor([ctx.me * 10 + salt + i])
                shmem.all_reduce(t, team=team, timeout=120)
                assert int(t) == sum(pe * 10 + salt + i for pe in range(ctx.n))
        except BaseException as problem:
            errors.append(problem)

    crew = [threading.Thread(target=work, args=(a, 1)), threading.Thread(target=work, args=(b, 2))]
    for c in crew if ctx.me % 2 else crew[::-1]:
        c.start()
    for c in crew:
        c.join()
    assert not errors, errors


def test_two_teams_in_two_threads(trio):
    trio.run(independent)
