"""What a reader who had not written the core found broken across the C boundary: threads against the end, garbage, stopped peers."""

from __future__ import annotations

import signal
import time

import pytest

from processes import Script


def test_a_daemon_thread_in_a_barrier_at_exit(tmp_path):
    for round_ in range(4):
        folder = tmp_path / str(round_)
        folder.mkdir()
        body = f"""
            import threading
            w = up()
            b = shmem.buffer(1 << 20)
            def loop():
                while True:
                    shmem.barrier(timeout=5) if {round_} % 2 else shmem.get(bytearray(1 << 20), b, 1 - ME)
            t = threading.Thread(target=loop, daemon=True)
            t.start()
            time.sleep(0.2 + 0.013 * ME * {round_})
        """
        with Script(2, body, folder) as job:
            for e in job.wait():
                assert e.code == 0 and "fatal" not in e.err.lower() and "SIG" not in e.err, e


def test_finalize_and_destroy_under_blocking_c_calls(tmp_path):
    body = """
        import ctypes, threading
        from shmem._lib import library
        w = up()
        lib = library()
        team = w.team.split_strided(0, 1, N)
        got = []
        def block(handle, sliced):
            if sliced:
                r = ctypes.c_uint64()
                s = lib.collective(handle, 2, None, None, 0, 0, 0, -1, 1.0, None, 0, -1, 50_000_000, ctypes.byref(r))
                while s == 1: s = lib.request_wait(r.value, 50_000_000)
                got.append(s)
            else:
                got.append(lib.barrier(handle))
        if ME == 0:
            t = threading.Thread(target=block, args=(team.handle, False)); t.start()
            time.sleep(0.2)
            team.destroy()
            t.join(60)
            assert not t.is_alive(), "a destroyed team's barrier goes on"
            assert got and got[0] < 0, got
            touch("destroyed")
            t = [threading.Thread(target=block, args=(w.team.handle, k)) for k in (False, True)]
            for x in t: x.start()
            time.sleep(0.02)
            try: w.finalize(timeout=0)
            except shmem.ShmemError as e: print(type(e).__name__)
            for x in t: x.join(60)
            assert not any(x.is_alive() for x in t) and len(got) == 3 and all(g < 0 for g in got), got
            assert not shmem.is_initialized(), "closed, whatever finalize raised"
        else:
            until("destroyed")
            try: shmem.sync(team=team) if hasattr(shmem, "sync") else shmem.barrier(team=team)
            except shmem.ShmemError as e: print(type(e).__name__, e)
            else: raise SystemExit("the destroyed team's barrier succeeded")
            w.finalize(timeout=60)
    """
    with Script(2, body, tmp_path, {"SHMEM_TRANSPORT": "shm"}) as job:
        job.good()


def test_every_waiter_hears_of_a_death(tmp_path):
    body = """
        import threading
        w = up()
        b = shmem.buffer(64, format="q")
        shmem.barrier()
        if ME == 1:
            until("waiting")
            os.kill(os.getpid(), signal.SIGKILL)
        said = []
        def wait(i):
            try: shmem.wait_until(b, "==", 1, index=i, timeout=200)
            except shmem.PeerDeadError as e: said.append(e.pe)
        t = [threading.Thread(target=wait, args=(i,)) for i in range(3)]
        for x in t: x.start()
        time.sleep(0.3); touch("waiting")
        began = time.monotonic()
        for x in t: x.join()
        assert said == [1, 1, 1], said
        assert time.monotonic() - began < 30
        w.finalize()
    """
    with Script(2, body, tmp_path) as job:
        first, second = job.wait()
        assert first.code == 0, first


def test_a_barrier_keeps_its_time_when_a_put_is_not_answered(tmp_path):
    body = """
        w = up()
        b = shmem.buffer(1 << 16)
        shmem.barrier()
        if ME == 0:
            touch("stop"); until("stopped")
            shmem.put(b, bytearray(1 << 16), 1)
            began = time.monotonic()
            try: shmem.barrier(timeout=1)
            except shmem.TimeoutError as e: print(e)
            took = time.monotonic() - began
            assert 0.9 <= took <= 30, took  # the put is called off after minutes
            touch("go")
            os._exit(0)
        else:
            time.sleep(300)  # it is stopped, then killed
    """
    with Script(2, body, tmp_path, {"SHMEM_TRANSPORT": "tcp"}) as job:
        end = time.monotonic() + 200
        while not (tmp_path / "stop").exists() and time.monotonic() < end:
            time.sleep(0.01)
        time.sleep(0.2)
        job.processes[1].send_signal(signal.SIGSTOP)
        (tmp_path / "stopped").touch()
        out, err = job.processes[0].communicate(timeout=200)
        job.processes[1].kill()
        assert job.processes[0].returncode == 0, (out, err)


@pytest.mark.parametrize("transport", ["shm", "tcp"])
def test_garbage_is_refused_and_moves_nothing(tmp_path, transport):
    body = """
        import ctypes
        from shmem._lib import library
        w = up(); lib = library()
        b = shmem.buffer(4096); h = w.handle; low = ctypes.addressof(ctypes.c_char.from_buffer(b.data)); own = (ctypes.c_uint8 * 4096)(*([7] * 4096))
        at = ctypes.addressof(own)
        shmem.barrier()
        big = 2**64 - 1
        def bad(status, what): assert status < 0, (what, status)
        words = (ctypes.c_uint64 * 8)()
        # a strided put that leaves the heap, or whose count wraps, moves nothing
        bad(lib.iput(h, low, at, 1 << 30, 1, 1, 4, 1 - ME), "iput beyond")
        bad(lib.iput(h, low, at, 1, 0, 1, 2**63 + 5, 1 - ME), "iput count")
        bad(lib.iput(h, low, at, 1, 0, 2**63 + 8, 2, 1 - ME), "iput elem")
        bad(lib.iget(h, at, low, 0, 1 << 61, 8, 3, 1 - ME), "iget stride")
        bad(lib.atomic(h, 257, 8, low, 99, 0, 1 - ME, None), "atomic op 257")
        bad(lib.atomic(h, 1, 3, low, 99, 0, 1 - ME, None), "atomic width")
        bad(lib.put_signal(h, low, at, 8, low, 1, 256, 1 - ME), "signal op 256")
        bad(lib.put(h, low, None, 8, 1 - ME), "put from NULL")
        bad(lib.get(h, None, low, 8, 1 - ME), "get into NULL")
        bad(lib.put(h, low, at, big, 1 - ME), "put of 2^64-1")
        bad(lib.put(h, low, at, 8, -1), "pe -1"); bad(lib.put(h, low, at, 8, 2**31 - 1), "pe max")
        bad(lib.put(h + 1, low, at, 8, 0), "handle"); bad(lib.put(0, low, at, 8, 0), "no handle")
        bad(lib.g(h, low, 8, 1 - ME, None), "g into NULL")
        bad(lib.test(h, low, 8, 0, 0, 0, None), "test into NULL")
        bad(lib.test(h, low, 0, 0, 0, 0, ctypes.addressof(words)), "test width 0"); bad(lib.test(h, low, 8, 0, 77, 0, ctypes.addressof(words)), "cmp 77")
        bad(lib.team_create(h, ctypes.addressof(words), 2**31 - 1, 1, -1, ctypes.addressof(words)), "huge team")
        bad(lib.team_create(h, None, 2, 1, -1, ctypes.addressof(words)), "NULL team")
        bad(lib.team_create(h, ctypes.addressof(words), -5, 1, -1, ctypes.addressof(words)), "negative team")
        bad(lib.completions_wait(h, -1, ctypes.addressof(words), 0, ctypes.addressof(words)), "no room for completions")
        bad(lib.request_wait(123, 0), "request"); bad(lib.request_release(2**63), "release"); bad(lib.block_drop(77), "drop")
        bad(lib.send(w.team.handle, None, 8, 1 - ME, 1, 0, -1, -1, ctypes.addressof(words)), "send NULL")
        bad(lib.recv(w.team.handle, None, 8, 1 - ME, 1, 0, -1, -1, ctypes.addressof(words)), "recv NULL")
        bad(lib.alloc_local(h, big, 0, 1, ctypes.addressof(words), ctypes.addressof(words)), "alloc 2^64-1")
        bad(lib.alloc_local(h, 8, 1 << 63, 1, ctypes.addressof(words), ctypes.addressof(words)), "align 2^63")
        bad(lib.alloc(w.team.handle, big - 63, 1 << 40, 1, -1, ctypes.addressof(words), ctypes.addressof(words)), "alloc huge")
        shmem.barrier()
        assert bytes(b.data) == bytes(4096), "something moved"
        w.finalize()
    """
    with Script(2, body, tmp_path, {"SHMEM_TRANSPORT": transport}) as job:
        job.good()


@pytest.mark.parametrize("transport", ["shm", "tcp"])
def test_garbage_in_a_one_sided_request_is_an_error(tmp_path, transport):
    body = """
        import ctypes
        from shmem import _abi
        from shmem._lib import OneSided, library
        w = up(); lib = library()
        b = shmem.buffer(4096); low = ctypes.addressof(ctypes.c_char.from_buffer(b.data)); own = (ctypes.c_uint8 * 4096)(*([7] * 4096))
        at, top, big = ctypes.addressof(own), 2**64 - 8, 2**63
        shmem.barrier()
        request = ctypes.c_uint64()
        def start(what, words, **fields):
            asked = OneSided(**{"size": ctypes.sizeof(OneSided), "what": _abi.DO.get(f"DO_{what}", what), "pe": 1 - ME, **fields})
            status = lib.one_sided_start(w.handle, ctypes.byref(asked), -1, -1, ctypes.byref(request))
            text = lib.last_error().decode() if status < 0 else "accepted"
            assert words in text, (what, fields, status, text)
        start("PUT", "what.size is 8", dst=low, src=at, bytes=8, size=8)
        start(99, "what.what is 99"); start(0, "what.what is 0"); start(-1, "what.what is -1")
        assert lib.one_sided_start(w.handle, None, -1, -1, ctypes.byref(request)) < 0
        assert lib.one_sided_start(w.handle, ctypes.byref(OneSided(size=128, what=1)), -1, -1, None) < 0
        start("PUT", "NULL", dst=low, bytes=8); start("GET", "NULL", src=low, bytes=8); start("PUT_SIGNAL", "NULL", dst=low, bytes=8, signal=low)
        start("PUT", "0x8", dst=low, src=8, bytes=16); start("GET", "0x8", src=low, dst=8, bytes=16)
        start("PUT", "", dst=low, src=top, bytes=16); start("GET", "", src=low, dst=top, bytes=16)  # wrap round: a panic inside, an error here
        start("PUT", "symmetric", dst=low, src=at, bytes=big); start("PUT", "symmetric", dst=8, src=at, bytes=8)
        start("IPUT", "do not fit", dst=low, src=at, bytes=8, count=big, dst_stride=1, src_stride=1)
        start("PUT_MANY", "NULL", count=3); start("GET_MANY", str(big), count=big, dst=at, src=at, many_bytes=at, many_pe=at)
        far, near, size, pe = (ctypes.c_uint64 * 1)(low), (ctypes.c_uint64 * 1)(8), (ctypes.c_uint64 * 1)(16), (ctypes.c_int32 * 1)(1 - ME)
        done = ctypes.c_uint64(77)
        lists = dict(count=1, many_bytes=ctypes.addressof(size), many_pe=ctypes.addressof(pe), done_out=ctypes.addressof(done))
        start("PUT_MANY", "piece 0: the address 0x8", dst=ctypes.addressof(far), src=ctypes.addressof(near), **lists)
        assert done.value == 0
        start("ATOMIC", "operation 257", op=257, width=8, dst=low); start("ATOMIC", "operation -1", op=-1, width=8, dst=low)
        start("P", "width 3", dst=low, width=3); start("G", "width -8", src=low, width=-8)
        for what in (13, 14, 15, 0, -1):  # also the core's own
            for flags in (0, _abi.ASYNC):
                assert lib.collective(w.team.handle, what, own, own, 8, 0, 0, 0, 1.0, None, flags, -1, -1, ctypes.byref(request)) < 0, what
        shmem.barrier()
        assert bytes(b.data) == bytes(4096) and bytes(own) == bytes([7]) * 4096, "something moved"
        w.finalize()
    """
    with Script(2, body, tmp_path, {"SHMEM_TRANSPORT": transport}) as job:
        job.good()


def test_finalize_that_times_out_ends_the_world(tmp_path):
    body = """
        w = up()
        if ME == 0:
            try: shmem.finalize(timeout=0.1)
            except shmem.TimeoutError as e: assert "PEs [1]" in str(e), e
            else: raise SystemExit("nobody was missing")
            assert not w.alive and not shmem.is_initialized()
            shmem.finalize()
            with shmem.World(0, 1) as again: assert again.size == 1
            touch("done")
        else:
            until("done")
            shmem.finalize()
    """
    with Script(2, body, tmp_path) as job:
        job.good()


def test_two_threads_see_the_end_of_one_request(tmp_path):
    body = """
        import threading
        from shmem import _requests
        w = up()
        for round_ in range(200):
            out = bytearray(8)
            r = shmem.irecv(out, 1 - ME, tag=round_)
            said = []
            def look():
                try: said.append(r.wait(100))
                except Exception as e: said.append(e)
            t = [threading.Thread(target=look) for _ in range(3)]
            for x in t: x.start()
            shmem.send(bytes([round_ % 251] * 8), 1 - ME, tag=round_)
            for x in t: x.join()
            assert said == [(1 - ME, round_, 8)] * 3, said
        with _requests._guard:  # a collection may drop a request while its thread is in here
            _requests.keep_until_done(1 << 60, None)
        del _requests._kept[1 << 60]
        shmem.barrier()
        w.finalize()
    """
    with Script(2, body, tmp_path) as job:
        job.good()
