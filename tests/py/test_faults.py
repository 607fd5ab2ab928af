"""Processes that die, stop and leave."""

from __future__ import annotations

import os
import signal
import time

from processes import Script

DEATH = """
    import torch
    SOON = 40  # 3 s by promise; a machine may be busy, and operations that nobody ends take 120
    up()
    t = shmem.zeros(100)
    shmem.barrier()
    if ME == 1:
        touch("ready")
        time.sleep(600)
    until("ready")
    before = time.monotonic()
    try:
        CALL
    except shmem.PeerDeadError as e:
        took = time.monotonic() - before
        text = str(e)
        assert e.pe == 1 or "PE 1" in text, text
    else:
        raise SystemExit("no error")
    assert took < SOON, took
    deadline = before + SOON  # the failed call may have been told by another PE before this one's own watch noticed
    while True:
        try:
            shmem.put(t, torch.ones(100), 1)
        except shmem.PeerError:
            break
        if time.monotonic() > deadline:
            raise SystemExit("a put to a dead PE raised nothing")
        time.sleep(0.01)
    if N > 2:  # the survivors go on among themselves
        team = shmem.Team.create([pe for pe in range(N) if pe != 1], timeout=120)
        one = torch.ones(1)
        shmem.all_reduce(one, team=team, timeout=120)
        assert one.item() == N - 1
    before = time.monotonic()
    shmem.finalize(120)
    assert time.monotonic() - before < SOON
    print("survived")
"""


def kill_one(tmp_path, call, n=3):
    with Script(n, DEATH.replace("CALL", call), tmp_path) as script:
        deadline = time.monotonic() + 240
        while not (tmp_path / "ready").exists():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        time.sleep(0.3)
        os.kill(script.processes[1].pid, signal.SIGKILL)
        ended = script.wait()
        told = "\n".join(f"PE {me}: {e.code}\n{e.out}\n{e.err}" for me, e in enumerate(ended))
        assert all(e.code == 0 and "survived" in e.out for me, e in enumerate(ended) if me != 1), told


def test_death_is_found_in_a_barrier(tmp_path):
    kill_one(tmp_path, "shmem.barrier()")


def test_death_is_found_in_an_all_reduce(tmp_path):
    kill_one(tmp_path, "shmem.all_reduce(torch.ones(1_000_000))")


def test_death_is_found_in_a_receive(tmp_path):
    kill_one(tmp_path, "shmem.recv(torch.ones(10), 1)")


def test_death_is_found_in_an_allocation(tmp_path):
    kill_one(tmp_path, "shmem.zeros(10)")


def test_stopped_is_not_dead(tmp_path):
    body = """
    up()
    shmem.barrier()
    if ME == 1:
        touch("ready")
    shmem.barrier(timeout=120)
    for _ in range(200):
        shmem.barrier(timeout=120)
    shmem.finalize(120)
    """
    with Script(2, body, tmp_path) as script:
        deadline = time.monotonic() + 240
        while not (tmp_path / "ready").exists():
            assert time.monotonic() < deadline
            time.sleep(0.002)
        os.kill(script.processes[1].pid, signal.SIGSTOP)
        time.sleep(3.5)
        os.kill(script.processes[1].pid, signal.SIGCONT)
        script.good()


def test_a_pe_that_left_is_an_error_for_those_who_wait(tmp_path):
    body = """
    up()
    shmem.barrier()
    if ME == 1:
        shmem.finalize(0.5)
    else:
        before = time.monotonic()
        try:
            shmem.barrier(timeout=120)
        except (shmem.PeerLeftError, shmem.PeerDeadError) as e:
            assert "1" in str(e)
        else:
            raise SystemExit("no error")
        assert time.monotonic() - before < 40
        shmem.finalize(60)
    """
    with Script(2, body, tmp_path) as script:
        script.good()


def test_a_wait_that_nobody_ended_names_who_left(tmp_path):
    body = """
    up()
    t = shmem.buffer(8, format="q")
    if ME == 1:
        raise SystemExit(0)
    end = time.monotonic() + 60
    while True:  # leaving may come after the first of them
        try:
            shmem.wait_until(t, "==", 5, timeout=0.2)
        except shmem.TimeoutError as e:
            text = str(e)
            assert "is 0, waited for == 5" in text and "of of" not in text, text
            if "PEs [1] have left" in text:
                break
            assert time.monotonic() < end, text
        else:
            raise SystemExit("nobody wrote it")
    shmem.finalize(5)
    """
    with Script(2, body, tmp_path) as script:
        script.good()


def test_nothing_is_left_after_kill(tmp_path):
    """Not a file in the folders for such: the job's own ones for temporary and runtime files, and those of the machine, where other jobs run."""
    own = {"TMPDIR": tmp_path / "tmp", "XDG_RUNTIME_DIR": tmp_path / "run"}
    for place in own.values():
        place.mkdir(mode=0o700)

    def leftovers():
        return {os.path.join(place, name) for place in ("/dev/shm", "/tmp") if os.path.isdir(place) for name in os.listdir(place) if "shmem" in name}

    body = """
    up()
    t = shmem.zeros(1_000_000)
    t += 1
    shmem.barrier()
    names = {os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if os.path.islink(f"/proc/self/fd/{fd}")}
    names |= {line.split(maxsplit=5)[5].strip() for line in open("/proc/self/maps") if len(line.split(maxsplit=5)) > 5}
    open(os.path.join(FOLDER, f"names{ME}"), "w").write("\\n".join(names))
    os.kill(os.getpid(), 9)
    """
    for i in range(5):
        before = leftovers()
        folder = tmp_path / str(i)
        folder.mkdir()
        with Script(2, body, folder, {name: str(place) for name, place in own.items()}) as script:
            script.wait()
        held = {name for me in range(2) for name in (folder / f"names{me}").read_text().splitlines()}
        assert not {name for name in leftovers() - before if name in held}
        assert [os.listdir(place) for place in own.values()] == [[], []]


def test_control_c_in_every_blocking_call(tmp_path):
    body = """
    import threading, torch
    up()
    shmem.barrier()
    word = shmem.zeros(1, dtype=torch.int64)
    if ME == 0:
        def interrupted(call):
            before = time.monotonic()
            try:
                threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
                call()
            except KeyboardInterrupt:
                took = time.monotonic() - before
                assert took < 20, took
            else:
                raise SystemExit("not interrupted")
        interrupted(lambda: shmem.wait_until(word, "==", 1))
        interrupted(lambda: shmem.recv(torch.ones(3), 1, tag=5))
        interrupted(lambda: shmem.isend(torch.ones(3_000_000), 1, tag=6).wait())
        interrupted(lambda: shmem.Team.create([0, 1], key=9))
        interrupted(lambda: shmem.zeros(10))
        touch("done")
    until("done")
    shmem.finalize(2)
    """
    with Script(2, body, tmp_path) as script:
        script.good()


def test_interpreter_exit_while_a_thread_waits(tmp_path):
    body = """
    import threading
    up()
    shmem.barrier()
    def loop():
        try:
            while True:
                shmem.barrier()
        except shmem.ShmemError:
            pass
    threading.Thread(target=loop, daemon=True).start()
    time.sleep(0.3)
    """
    with Script(2, body, tmp_path) as script:
        for ended in script.good():
            assert "Fatal" not in ended.err and "panic" not in ended.err, ended.err
