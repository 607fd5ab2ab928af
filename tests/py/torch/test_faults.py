"""Ranks that disagree, die, do not come, or are interrupted; and jobs as torchrun starts them. Processes of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(HERE))), "python")

HEAD = """
import os, signal, sys, threading, time
sys.path.insert(0, {here!r})
import torch, torch.distributed as dist
from datetime import timedelta
import groups
groups.register()
me, n = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
dist.init_process_group("shmem", store=dist.FileStore(sys.argv[1], n), rank=me, world_size=n, timeout=timedelta(seconds=150))
dist.barrier()
"""


def environment():
    env = {k: v for k, v in os.environ.items() if not k.startswith(("RANK", "WORLD_SIZE", "MASTER_", "TORCHELASTIC"))}
    env["PYTHONPATH"] = os.pathsep.join([] if env.get("SHMEM_TEST_INSTALLED") == "1" else [PACKAGE])
    env["OMP_NUM_THREADS"] = "1"
    return env


def start(tmp_path, body, n=2):
    script = tmp_path / "script.py"
    script.write_text(HEAD.format(here=HERE) + textwrap.dedent(body))
    made = []
    for rank in range(n):
        env = {**environment(), "RANK": str(rank), "WORLD_SIZE": str(n)}
        command = [sys.executable, str(script), str(tmp_path / "store")]
        made.append(subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
    return made


def finish(processes, seconds=300):
    """The exit codes and outputs; kills what is late."""
    end = time.monotonic() + seconds
    out = []
    for process in processes:
        try:
            said, _ = process.communicate(timeout=max(1, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            said = "KILLED BY WATCHDOG\n" + process.communicate()[0]
        out.append((process.returncode, said))
    return out


def test_disagreeing_ranks_are_told(tmp_path):
    body = """
    t = torch.ones(3 + me)
    try:
        dist.all_reduce(t)
    except RuntimeError as problem:
        print("told:", type(problem).__name__, problem)
        sys.exit(0)
    sys.exit(5)
    """
    for code, said in finish(start(tmp_path, body)):
        assert code == 0 and "told: MismatchError" in said, said
        assert "3" in said and "4" in said, said


@pytest.mark.parametrize("how", ["sync", "async"])
def test_a_dead_rank_is_named(tmp_path, how):
    body = f"""
    if me == 1:
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGKILL)
    t = torch.ones(3)
    started = time.monotonic()
    try:
        if {how!r} == "sync":
            dist.all_reduce(t)
        else:
            dist.all_reduce(t, async_op=True).wait()
    except RuntimeError as problem:
        print("told:", type(problem).__name__, problem, "pe", problem.pe)
        assert time.monotonic() - started < 40, time.monotonic() - started
        assert problem.pe == 1
        dist.destroy_process_group()
        print("left after", time.monotonic() - started)
        sys.exit(0)
    sys.exit(5)
    """
    ended = finish(start(tmp_path, body, 3))
    assert ended[1][0] == -signal.SIGKILL
    for code, said in (ended[0], ended[2]):
        assert code == 0 and "told: PeerDeadError" in said, said


def test_control_c(tmp_path):
    body = """
    if me == 1:
        time.sleep(600)
    print("waiting", flush=True)
    started = time.monotonic()
    try:
        threading.Timer(0.4, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        dist.all_reduce(torch.ones(3))
    except KeyboardInterrupt:
        took = time.monotonic() - started
        print("interrupted after", took, flush=True)
        assert took < 30
        os._exit(0)
    os._exit(5)
    """
    processes = start(tmp_path, body)
    code, said = finish(processes[:1])[0]
    processes[1].kill()
    processes[1].communicate()
    assert code == 0 and "interrupted after" in said, said


def test_exit_without_destroy(tmp_path):
    body = """
    works = [dist.all_reduce(torch.ones(1000), async_op=True) for _ in range(5)]
    future = works[-1].get_future()
    print("end")
    """
    for code, said in finish(start(tmp_path, body)):
        assert code == 0 and "end" in said, (code, said)


def test_a_rank_that_leaves_is_named(tmp_path):
    body = """
    if me == 1:
        sys.exit(0)
    try:
        dist.all_reduce(torch.ones(3))
    except RuntimeError as problem:
        print("told:", type(problem).__name__, problem)
        sys.exit(0)
    sys.exit(5)
    """
    ended = finish(start(tmp_path, body))
    assert ended[0][0] == 0 and "told: Peer" in ended[0][1], ended[0][1]


def test_forked_workers(tmp_path):
    """DataLoader workers are harmless."""
    body = """
    from torch.utils.data import DataLoader
    data = [torch.tensor([float(k)]) for k in range(8)]
    total = torch.zeros(1)
    for item in DataLoader(data, num_workers=2, batch_size=2):
        s = item.sum()
        dist.all_reduce(s)
        total += s
    assert total.item() == n * 28, total
    dist.barrier()
    dist.destroy_process_group()
    print("fine")
    """
    for code, said in finish(start(tmp_path, body)):
        assert code == 0 and "fine" in said, said


def torchrun(script, *options):
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", *options, str(script)]
    env = environment()
    env["PYTHONPATH"] = os.pathsep.join([p for p in env["PYTHONPATH"].split(os.pathsep) if p] + [HERE])
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=600)


TRAIN = """
import os, sys
import torch, torch.distributed as dist
import groups
groups.register()
dist.init_process_group("shmem")
net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 2))
net(torch.ones(4, 3) * (dist.get_rank() + 1)).sum().backward()
g = net.module.weight.grad.clone()
dist.all_reduce(g, op=dist.ReduceOp.MAX)
assert torch.equal(g, net.module.weight.grad)
"""


AGAIN = """
for _ in range(2):
    dist.destroy_process_group()
    dist.init_process_group("shmem")
    dist.barrier()
dist.destroy_process_group()
print("trained")
"""

FAILS_ONCE = """
if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0" and dist.get_rank() == 1:
    os._exit(7)
dist.barrier()
dist.destroy_process_group()
open(os.path.join({folder!r}, "done" + os.environ["RANK"]), "w").close()
"""


def test_torchrun(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(TRAIN + AGAIN)
    run = torchrun(script)
    assert run.returncode == 0 and run.stdout.count("trained") == 2, run.stdout + run.stderr


def test_torchrun_restarts(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(TRAIN + FAILS_ONCE.format(folder=str(tmp_path)))
    run = torchrun(script, "--max-restarts=1")
    assert run.returncode == 0, run.stdout + run.stderr
    assert (tmp_path / "done0").exists() and (tmp_path / "done1").exists()
