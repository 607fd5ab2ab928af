"""The Ascend names when something goes wrong: deaths, timeouts, forks, settings; and that nothing grows."""

from __future__ import annotations

import pytest
from test_python import job


@pytest.mark.parametrize("what", ["shmem.aclshmem_signal_wait_until(meet.word, 0, 999)", "shmem.aclshmem_malloc(64)"])
def test_a_killed_pe_is_found(tmp_path, what):
    body = f"""
    begin()
    meet()
    if ME == 1:
        os.kill(os.getpid(), 9)
    began = time.monotonic()
    try: {what}
    except RuntimeError as problem: assert "PE 1" in str(problem) or "died" in str(problem), problem
    else: raise AssertionError("no error")
    assert time.monotonic() - began < 40
    os._exit(0)
    """
    with job(3, body, tmp_path) as script:
        assert [e.code for e in script.wait()] == [0, -9, 0]


def test_a_wait_has_a_limit(tmp_path):
    body = """
    begin()
    began = time.monotonic()
    try: shmem.aclshmem_signal_wait_until(meet.word, 0, 999)
    except shmem.TimeoutError as problem: assert "SHMEM_TIMEOUT" in str(problem)
    else: raise AssertionError("no error")
    assert 0.9 < time.monotonic() - began < 20
    core.signal_wait(core.utils.Buffer(meet.word, 4), 999, core.direct.ComparisonType.CMP_EQ, 0)
    try: compat.stream_synchronize(0)
    except shmem.TimeoutError: pass
    else: raise AssertionError("no error on the stream")
    assert shmem.aclshmem_finalize() == 0
    """
    with job(1, body, tmp_path, SHMEM_TIMEOUT="1") as script:
        script.good()


def test_a_forked_child_is_harmless(tmp_path):
    body = """
    begin()
    compat.stream_synchronize(0)
    child = os.fork()
    if child == 0:
        bad = 0
        for call in (lambda: shmem.aclshmem_putmem(meet.word, meet.word, 4, ME), lambda: compat.stream_synchronize(0), compat.stream_create,
                     lambda: shmem.aclshmem_malloc(8), lambda: shmem.aclshmem_signal_wait_until(meet.word, 0, 7)):
            try: call()
            except (RuntimeError, ValueError): pass
            else: bad += 1
        bad += shmem.aclshmem_finalize() == 0
        os._exit(bad)
    assert os.waitpid(child, 0)[1] == 0
    meet()
    assert shmem.aclshmem_finalize() == 0
    """
    with job(2, body, tmp_path) as script:
        script.good()


def test_nothing_grows(tmp_path):
    body = """
    import gc, threading
    x_malloc = compat._ascend.bind("aclshmemx_malloc", "size i32", "ptr")
    def counts():
        gc.collect()
        return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task")), sum(1 for _ in open("/proc/self/maps"))
    seen = []
    for turn in range(20):
        up_at_address(1 << 20)
        shmem.aclshmem_malloc(1000)
        shmem.team_split_strided(0, 0, 1, N)
        assert x_malloc(100, 0)
        core.quiet(0)
        assert shmem.aclshmem_finalize() == 0
        seen.append(counts())
    fds, tasks, maps = zip(*seen)  # some are closed, or end, a moment after finalize; one a turn would be ten more
    assert max(fds[15:]) <= max(fds[1:5]) + 3 and max(tasks[15:]) <= max(tasks[1:5]) + 4 and max(maps[15:]) <= max(maps[1:5]) + 60, seen
    """
    with job(2, body, tmp_path) as script:
        script.good()


def test_where_a_unique_id_listens(tmp_path):
    body = """
    import socket
    def listening(port):
        with socket.socket() as s:
            s.settimeout(60)
            return s.connect_ex(("127.0.0.1", port)) == 0
    os.environ["SHMEM_UID_SESSION_ID"] = "127.0.0.1:" + PORT
    assert not listening(int(PORT))
    uid = shmem.aclshmem_get_unique_id()
    assert listening(int(PORT))
    for bad in ("127.0.0.1", "127.0.0.1:80", "127.0.0.1:x", ":9000", "no.such.host.invalid:9000"):
        os.environ["SHMEM_UID_SESSION_ID"] = bad
        try: shmem.aclshmem_get_unique_id()
        except RuntimeError as problem: assert "SHMEM_UID_SESSION_ID" in str(problem), problem
        else: raise AssertionError(bad)
    del os.environ["SHMEM_UID_SESSION_ID"]
    for name in ("lo", "lo:inet4"):
        os.environ["SHMEM_UID_SOCK_IFNAME"] = name
        other = shmem.aclshmem_get_unique_id()
        assert other != uid and bytes([127, 0, 0, 1]) in other
    for bad in ("nosuchif0", ":inet4", "lo" * 20):
        os.environ["SHMEM_UID_SOCK_IFNAME"] = bad
        try: shmem.aclshmem_get_unique_id()
        except RuntimeError as problem: assert "SHMEM_UID_SOCK_IFNAME" in str(problem), problem
        else: raise AssertionError(bad)
    assert shmem.aclshmem_init_using_unique_id(0, 1, 1 << 20, other) == 0
    assert shmem.aclshmem_finalize() == 0
    """
    with job(1, body, tmp_path) as script:
        script.good()


def test_log_goes_where_it_is_told(tmp_path):
    body = """
    assert shmem.set_log_level(9) == -2
    """
    folder = tmp_path / "logs"
    folder.mkdir(mode=0o700)
    with job(1, body, tmp_path, SHMEM_LOG_PATH=str(folder)) as script:
        (ended,) = script.good()
    (file,) = folder.iterdir()
    assert "set_log_level: 9" in file.read_text() and "set_log_level" not in ended.err
    with job(1, body, tmp_path, SHMEM_LOG_TO_STDOUT="1") as script:
        assert "set_log_level: 9" in script.good()[0].out
    with job(1, body, tmp_path, SHMEM_LOG_LEVEL="FATAL") as script:
        assert "set_log_level" not in script.good()[0].err
