"""Coming up, leaving, coming up again; and what a forked child may do."""

from __future__ import annotations

import gc
import os
import time

import pytest
import torch

import shmem
from processes import Script


def meet(ctx, name, **more):
    more.setdefault("heap", "64M")
    more.setdefault("timeout", 120)
    return shmem.init(ctx.me, ctx.n, path=os.path.join(ctx.scratch, name), **more)


def usage():
    with open("/proc/self/status") as status:
        rss = next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))
    with open("/proc/self/maps") as maps:
        mappings = sum(1 for _ in maps)
    return {"fds": len(os.listdir("/proc/self/fd")), "threads": len(os.listdir("/proc/self/task")), "rss": rss, "maps": mappings}


def again(ctx, rounds):
    def once(i):
        me = (ctx.me + i) % ctx.n  # other ranks every time
        shmem.init(me, ctx.n, path=os.path.join(ctx.scratch, f"meet{i}"), heap=(32 + i) << 20, timeout=120)
        t = shmem.zeros(300_000)
        t += me
        shmem.all_reduce(t)
        assert t[5] == sum(range(ctx.n)) and shmem.my_pe() == me
        team = shmem.Team.create(range(ctx.n))
        shmem.barrier(team=team)
        del t, team
        gc.collect()
        shmem.finalize(120)

    for i in range(6):
        once(i)
    before = usage()
    for i in range(6, rounds):
        once(i)
    after = usage()
    # What a life leaves would be there 24 times: less is what comes and goes with the Go runtime, whose threads have maps of their own.
    assert after["fds"] <= before["fds"] + 4, (before, after)
    assert after["threads"] <= before["threads"] + 6, (before, after)
    assert after["maps"] <= before["maps"] + 20, (before, after)
    assert after["rss"] <= before["rss"] + 16384, (before, after)


def test_thirty_lives_leave_nothing(trio):
    trio.run(again, 30, world=False, timeout=400)


def tensors_survive(ctx):
    meet(ctx, "a")
    t = shmem.zeros(1000)
    t += ctx.me + 1
    shmem.barrier()
    view = shmem.peer(t, (ctx.me + 1) % ctx.n) if ctx.mapped else None
    team = shmem.Team.create(range(ctx.n))
    shmem.barrier()
    shmem.finalize(120)
    assert not shmem.is_initialized()
    assert bool((t == ctx.me + 1).all())
    t.mul_(2)
    if view is not None:
        assert view[0] in ((ctx.me + 1) % ctx.n + 1, 2 * ((ctx.me + 1) % ctx.n + 1))
    for call in (lambda: shmem.barrier(team=team), lambda: shmem.put(t, torch.zeros(1000), 0, world=team.world), lambda: shmem.barrier(team=team.world.team)):
        with pytest.raises((shmem.FinalizedError, shmem.StaleHandleError)):
            call()
    with pytest.raises(shmem.NotInitializedError, match="finalized"):
        shmem.put(t, torch.zeros(1000), 0)
    meet(ctx, "b")
    with pytest.raises(shmem.NotSymmetricError):
        shmem.put(t, torch.zeros(1000), 0)  # of another world
    u = shmem.zeros(1000)
    assert u.data_ptr() != t.data_ptr() and bool((t == 2 * (ctx.me + 1)).all())
    view = u = t = None
    gc.collect()
    shmem.finalize(120)
    shmem.finalize(120)


def test_tensors_outlive_their_world(trio):
    trio.run(tensors_survive, world=False)


def two_at_once(ctx):
    a = shmem.World(ctx.me, ctx.n, path=os.path.join(ctx.scratch, "a"), heap="32M", timeout=120)
    with shmem.World(ctx.n - 1 - ctx.me, ctx.n, path=os.path.join(ctx.scratch, "b"), heap="32M", timeout=120) as b:
        assert (a.rank, b.rank) == (ctx.me, ctx.n - 1 - ctx.me)
        ta, tb = shmem.zeros(10, team=a.team), shmem.zeros(10, team=b.team)
        shmem.put(ta, torch.full((10,), 1.0 + ctx.me), (a.rank + 1) % ctx.n, world=a)
        shmem.put(tb, torch.full((10,), 100.0 + b.rank), (b.rank + 1) % ctx.n, world=b)
        shmem.barrier(team=a.team)
        shmem.barrier(team=b.team)
        assert bool((ta == 1 + (a.rank - 1) % ctx.n).all()) and bool((tb == 100 + (b.rank - 1) % ctx.n).all())
        with pytest.raises(shmem.NotSymmetricError):
            shmem.put(ta, torch.zeros(10), 0, world=b)
        shmem.barrier(team=b.team)
    assert not b.alive and a.alive and "finalized" in repr(b)
    shmem.barrier(team=a.team)
    a.finalize(20)


def test_two_worlds_at_once(trio):
    trio.run(two_at_once, world=False)


def information(ctx):
    told = shmem.info()
    assert isinstance(told, dict) and told["python"]["library"].endswith("libshmem.so")
    text = str(told)
    assert ("tcp" in text) if not ctx.mapped else ("shm" in text)
    stats = shmem.heap_stats()
    assert stats["bytes"] == 256 << 20 and stats["used"] <= stats["bytes"] and stats["largest_hole"] <= stats["bytes"]
    with pytest.raises(shmem.ShmemError, match="already initialized"):
        shmem.init(0, 1)
    assert shmem.current().size == shmem.n_pes() == ctx.n


def test_info_says_transport_and_heap(pool):
    pool.run(information)


def alone(ctx):
    with shmem.World() as w:
        assert (w.rank, w.size) == (0, 1)
        t = shmem.zeros(3, team=w.team)
        shmem.put(t, torch.ones(3), 0, world=w)
        assert t.tolist() == [1, 1, 1]
    with shmem.World(0, 1) as w:
        shmem.barrier(team=w.team)


def test_nothing_set_is_a_world_of_one(pair):
    pair.run(alone, world=False)


def through_stores(ctx):
    import datetime

    import torch.distributed as dist

    store = dist.FileStore(os.path.join(ctx.scratch, "store"), ctx.n)
    for _ in range(3):  # the same store again and again
        shmem.init(ctx.me, ctx.n, store=store, heap="32M", timeout=120)
        t = torch.tensor([ctx.me])
        shmem.all_reduce(t)
        assert int(t) == sum(range(ctx.n))
        shmem.finalize(120)
    dist.init_process_group("gloo", store=dist.PrefixStore("x", store), rank=ctx.me, world_size=ctx.n, timeout=datetime.timedelta(seconds=120))
    os.environ.update(RANK=str(ctx.me), WORLD_SIZE=str(ctx.n), MASTER_ADDR="127.0.0.1", MASTER_PORT="1")
    try:
        w = shmem.init(heap="32M", timeout=120)  # torchrun's environment, and a process group with a store
        assert (w.rank, w.size) == (ctx.me, ctx.n)
        shmem.barrier()
        shmem.finalize(120)
    finally:
        for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
            del os.environ[name]
        dist.destroy_process_group()


def test_through_a_torch_store(trio):
    trio.run(through_stores, world=False)


def aborts(ctx):
    meet(ctx, "a")
    shmem.barrier()
    if ctx.me == 0:
        time.sleep(0.2)
        shmem.current().abort(5)
        shmem.finalize(60)
        return
    before = time.monotonic()
    with pytest.raises(shmem.AbortedError) as caught:
        shmem.barrier(timeout=120)
        shmem.barrier(timeout=120)
    assert time.monotonic() - before < 40
    assert "0" in str(caught.value)
    shmem.finalize(60)


def test_abort_wakes_all(trio):
    trio.run(aborts, world=False)


def test_a_rank_that_never_comes(tmp_path):
    body = """
    if ME == 2:
        sys.exit(0)
    touch(f"here{ME}"); until("here0"); until("here1")
    before = time.monotonic()
    try:
        up(timeout=4)
    except (shmem.RendezvousError, shmem.TimeoutError) as e:
        took = time.monotonic() - before
        assert 3.7 < took < 40, took
        print(e)
    else:
        raise SystemExit("came up without PE 2")
    """
    with Script(3, body, tmp_path) as script:
        for ended in script.good()[:2]:
            assert "2" in ended.out
    # nothing is left that the next run could mistake for its own
    with Script(2, "up(); shmem.barrier(); shmem.finalize()", tmp_path) as script:
        script.good()


def test_stale_file_of_an_earlier_run(tmp_path):
    with Script(2, "up(); shmem.barrier(); os.kill(os.getpid(), 9)", tmp_path) as script:
        script.wait()
    (tmp_path / "meet").write_bytes(os.urandom(400)) if not (tmp_path / "meet").exists() else None
    with Script(2, "time.sleep(0.3 * (1 - ME)); up(); shmem.barrier(); shmem.finalize()", tmp_path) as script:
        script.good()


FORK = """
    import gc, torch
    up()
    t = shmem.zeros(100)
    t += ME
    doomed = [shmem.zeros(10) for _ in range(5)]
    shmem.barrier()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            assert t[0] == ME  # readable
            assert not shmem.is_initialized()
            for call in (shmem.my_pe, shmem.barrier, lambda: shmem.put(t, torch.zeros(100), 0), lambda: shmem.zeros(3), shmem.finalize,
                         lambda: shmem.atomic_add(t.view(torch.int32), 1, 0), lambda: shmem.wait_until(t.view(torch.int32), "==", 5),
                         lambda: shmem.World(0, 1), lambda: shmem.put(t, torch.zeros(100), 0, world=shmem.current())):
                before = time.monotonic()
                try:
                    call()
                except shmem.ForkedError:
                    assert time.monotonic() - before < 20
                else:
                    raise AssertionError("no error in a forked child")
            doomed.clear()
            del t
            gc.collect()
            code = 0
        except BaseException:
            import traceback
            traceback.print_exc()
        (os._exit if "torch_npu" in sys.modules else sys.exit)(code)  # with finalizers; those of torch_npu join threads that a child has not
    _, status = os.waitpid(child, 0)
    assert status == 0, status
    t += 1
    shmem.all_reduce(t)
    assert t[0] == sum(range(N)) + N
    shmem.barrier()
    shmem.finalize(120)
"""


def test_a_forked_child_is_harmless(tmp_path):
    with Script(2, FORK, tmp_path, {"TORCH_DEVICE_BACKEND_AUTOLOAD": "1"}) as script:  # with a device, torch_npu is in both processes
        script.good()


def test_child_of_a_process_that_only_imported(tmp_path):
    body = """
    child = os.fork()
    if child == 0:
        up(); shmem.barrier(); shmem.finalize(120)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert status == 0
    """
    with Script(2, body, tmp_path) as script:
        script.good()


def test_dataloader_workers(tmp_path):
    body = """
    import torch
    from torch.utils.data import DataLoader, TensorDataset
    up()
    shmem.barrier()
    data = TensorDataset(torch.arange(64.0))
    total = sum(float(batch[0].sum()) for batch in DataLoader(data, batch_size=8, num_workers=2))
    t = torch.tensor([total])
    shmem.all_reduce(t)
    assert t.item() == N * 2016.0
    shmem.finalize(120)
    """
    with Script(2, body, tmp_path) as script:
        script.good()


def test_exit_without_finalize(tmp_path):
    body = """
    import threading, torch
    up()
    t = shmem.zeros(1000)
    shmem.all_reduce(t)
    kept = shmem.all_reduce(torch.ones(10), async_op=True)
    kept.wait()
    threading.Thread(target=lambda: [time.sleep(0.01) for _ in range(10**6)], daemon=True).start()
    """
    with Script(2, body, tmp_path) as script:
        for ended in script.good():
            assert ended.err == "", ended.err
