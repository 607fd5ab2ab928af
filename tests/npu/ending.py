"""Process groups of npu tensors that end in all the wrong ways: what test_ending.py starts, one process per PE.

    python ending.py RANK SIZE FOLDER CASE [OPERATION]
"""

import gc
import os
import signal
import sys
import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch_npu  # noqa: F401

import shmem

ME, N, FOLDER = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
NPU = torch.device("npu", ME)
torch.npu.set_device(ME)
LAST = N - 1


def join(name="store", **more):
    from shmem.interop.registration import register

    register()
    dist.init_process_group(
        "shmem", store=dist.FileStore(os.path.join(FOLDER, name), N), rank=ME, world_size=N, timeout=timedelta(seconds=more.pop("seconds", 150)), **more
    )


def numbers(n, pe, salt=0):
    return (torch.arange(n) * 7 + pe * 31 + salt * 13).remainder(97).float()


def total(n, salt=0):
    return sum(numbers(n, pe, salt) for pe in range(N))


def works(group=None, salt=0):
    """The group computes."""
    t = numbers(30001, ME, salt).to(NPU)
    dist.all_reduce(t, group=group)
    assert torch.equal(t.cpu(), total(30001, salt)), "wrong sum"


def gathered(t, **how):
    return dist.all_gather_into_tensor(torch.empty(N * t.numel(), dtype=t.dtype, device=NPU), t, **how)


OPERATIONS = {
    "kernel": lambda t, **how: dist.all_reduce(t, **how),
    "pieces": lambda t, **how: dist.all_reduce(torch.ones(400000, device=NPU), **how),
    "reduce": lambda t, **how: dist.reduce(t, 0, **how),
    "gather": lambda t, **how: gathered(t, **how),
    "uneven": lambda t, **how: dist.all_to_all_single(torch.empty(N, device=NPU), torch.ones(N, device=NPU), [1] * N, [1] * N, **how),
    "staged": lambda t, **how: dist.all_reduce(t.to(torch.int64), **how),
    "message": lambda t, async_op=False, group=None: (dist.irecv if async_op else dist.recv)(t, LAST, group=group),
    "barrier": lambda t, **how: dist.barrier(**how),
    "host": lambda t, **how: dist.all_reduce(torch.ones(5), **how),
}


def ended(words, seconds, call):
    """Goes on until an error comes; it has the words and comes in time."""
    began = time.monotonic()
    try:
        while time.monotonic() - began < seconds + 60:
            call()
            time.sleep(0.02)
    except Exception as problem:
        took = time.monotonic() - began
        print(f"{took:.2f} s {type(problem).__name__}: {str(problem)[:300]}", flush=True)
        assert took < seconds, (took, problem)
        assert any(word in str(problem) for word in words), problem
        return problem
    raise AssertionError("no error")


def killed():
    """A PE dies while the others are in an operation of each kind: an error that names it, soon, and the process can go on and end."""
    join()
    works()
    t = torch.ones(1000, device=NPU)
    dist.barrier()
    if ME == LAST:
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGKILL)
    operation = OPERATIONS[sys.argv[5]]

    def call():
        work = operation(t, async_op=True)
        work.wait()
        torch.npu.synchronize()

    ended([f"PE {LAST}", f"rank {LAST}"], SOON, call)
    assert torch.ones(3, device=NPU).sum().item() == 3
    dist.destroy_process_group()


def crashed():
    """A PE ends by an exception with work pending on its streams. Nobody hangs, itself neither."""
    join()
    works()
    t = torch.ones(200000, device=NPU)
    if ME == LAST:
        kept = [dist.all_reduce(t, async_op=True) for _ in range(3)]
        raise ValueError(f"a bug of the program, with {len(kept)} operations under way")

    def call():
        for work in [dist.all_reduce(t, async_op=True) for _ in range(3)]:  # the other may have left before the second
            work.wait()
        dist.all_reduce(t)
        torch.npu.synchronize()

    ended([f"PE {LAST}", f"rank {LAST}"], SOON, call)


def late():
    """A group's time is up, in the host's words and the device's; a stopped PE is not dead before."""
    join(seconds=150)
    works()
    short = dist.new_group(list(range(N)), timeout=timedelta(seconds=8))
    works(short)
    dist.barrier()
    if ME == LAST:
        time.sleep(2)  # slow is not dead
    works(short, 5)
    t = torch.ones(1000, device=NPU)
    if ME != LAST:

        def call():
            dist.all_reduce(t, group=short)
            torch.npu.synchronize()

        problem = ended(["timed out", "TimeoutError"], SOON, call)
        assert isinstance(problem, shmem.TimeoutError), problem
        open(os.path.join(FOLDER, f"timed-out-{ME}"), "w").close()
    else:
        end = time.monotonic() + 120
        while not all(os.path.exists(os.path.join(FOLDER, f"timed-out-{pe}")) for pe in range(LAST)):
            assert time.monotonic() < end, "the others still wait"
            time.sleep(0.05)
    again = dist.new_group(list(range(N)))
    works(again, 6)
    dist.destroy_process_group()


def destroyed():
    """Groups end with work pending, on every PE at another moment, and new ones come at once."""
    results = []
    for turn in range(6):
        join(f"store{turn}")
        group = dist.new_group(list(range(N)))
        tensors = [numbers(150001, ME, turn * 10 + k).to(NPU) for k in range(4)]
        pending = [dist.all_reduce(t, async_op=True, group=(None, group)[k % 2]) for k, t in enumerate(tensors)]
        if turn % 2:
            del pending
        if ME == turn % N:
            time.sleep(0.2)
        if turn % 3 == 0:
            dist.destroy_process_group(group)
            newer = dist.new_group(list(range(N)))
            works(newer, turn)
        dist.destroy_process_group()
        gc.collect()
        results.append(tensors)
    torch.npu.synchronize()
    for turn, tensors in enumerate(results):
        for k, t in enumerate(tensors):
            assert torch.equal(t.cpu(), total(150001, turn * 10 + k)), (turn, k)


def cramped():
    """Little memory: groups until there is none, and they all compute."""
    join()
    ways = []
    for turn in range(20):
        group = dist.new_group(list(range(N)))
        ways.append(shmem.info()["python"]["torch_device_groups"][-1]["scratch"])
        works(group, turn)
    print("scratches", ways)
    dist.destroy_process_group()


def aborted():
    """One group is aborted: what waits in it ends and names who did it, the other groups compute, and new groups take its memory.

    First the others are in an operation that the last rank does not join, then the last rank is in one alone.
    """
    operation = OPERATIONS[sys.argv[5]]
    join()
    works()
    t = torch.ones(1000, device=NPU)
    for turn, alone in enumerate((False, True, False)):
        group, other = dist.new_group(list(range(N))), dist.new_group(list(range(N))[::-1])
        works(group, turn)
        pending = numbers(60001, ME, turn).to(NPU)
        dist.barrier()
        late = dist.all_reduce(pending, group=other, async_op=True) if ME != LAST else None  # waits for the last rank all the time
        if ME == LAST:
            time.sleep(0.5)
            work = operation(t, group=group, async_op=True) if alone else None
            began = time.monotonic()
            group.abort()
            if work is not None:
                try:
                    work.wait()
                    torch.npu.synchronize()
                    raise SystemExit("an aborted operation was taken for done")
                except RuntimeError as problem:
                    assert "aborted here" in str(problem), problem
            torch.npu.synchronize()
            assert time.monotonic() - began < SOON, time.monotonic() - began
            late = dist.all_reduce(pending, group=other, async_op=True)
        else:

            def call():
                operation(t, group=group, async_op=True).wait()
                torch.npu.current_stream().synchronize()

            if alone:
                time.sleep(1)
            ended([f"PE {LAST}"], SOON, call)
            dist.destroy_process_group(group)
        dist.barrier()  # of the others: nothing is wrong with them
        late.wait()
        assert torch.equal(pending.cpu(), total(60001, turn)), "another group's operation"
        works(None, turn)
        works(other, turn)
        again = dist.new_group(list(range(N)))
        works(again, turn + 7)
        dist.destroy_process_group(again)
        dist.destroy_process_group(other)
    dist.destroy_process_group()


def failing():
    """The device fails at some call: every PE gets an error or the right result, and ends."""
    join(seconds=20)
    try:
        for turn in range(30):
            works(salt=turn)
            gathered(torch.ones(100, device=NPU))
            dist.all_reduce(torch.ones(9, dtype=torch.int64, device=NPU))
    except AssertionError:
        raise
    except Exception as problem:
        print(f"turn {turn} {type(problem).__name__}: {str(problem)[:300]}", flush=True)
    print("ok", flush=True)


SOON = float(os.environ.get("ENDING_SOON", 40))  # seconds; 3 on a quiet machine

if __name__ == "__main__":
    globals()[sys.argv[4]]()
    print("ok", flush=True)
