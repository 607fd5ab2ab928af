"""Symmetric npu tensors over the emulator: what test_symmetric.py starts, one process per PE. Not a test by itself.

    python symmetric.py RANK SIZE FOLDER CASE
"""

import gc
import os
import signal
import sys
import threading
import time

import torch
import torch.distributed as dist
import torch_npu  # noqa: F401

import shmem

ME, N, FOLDER = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
RIGHT, LEFT = (ME + 1) % N, (ME - 1) % N
NPU = torch.device("npu", ME)


def up(**more):
    torch.npu.set_device(ME)
    return shmem.init(ME, N, path=os.path.join(FOLDER, "meet"), device="npu", device_heap="64M", timeout=200, **more)


def join():
    from shmem.interop.registration import register

    register()
    dist.init_process_group("shmem", store=dist.FileStore(os.path.join(FOLDER, "store"), N), rank=ME, world_size=N)


def values(n, pe, salt=0):
    """Distinct per element, PE and salt, and exact in float32."""
    return torch.arange(n, dtype=torch.float32) + 10000 * pe + 0.5 * salt


def raises(kind, words, function, *arguments, **more):
    try:
        function(*arguments, **more)
    except kind as problem:
        assert words in str(problem), problem
        return
    raise AssertionError(f"no {kind.__name__}")


def one_sided():
    """Every one-sided call, with device and host memory on either side, between canaries."""
    up()
    for n in (1, 3, 64, 1000, 70001):
        t = shmem.full((n + 2,), -7.0, device="npu")
        assert t.device == NPU and shmem.is_symmetric(t) and not shmem.is_symmetric(torch.zeros(1, device=NPU))
        inner, host = t[1 : n + 1], shmem.zeros(n)
        shmem.barrier()
        shmem.put(inner, values(n, ME).to(NPU), RIGHT)  # the values are not on the device yet when the call comes
        shmem.barrier()
        assert torch.equal(inner.cpu(), values(n, LEFT)) and t[0].item() == t[n + 1].item() == -7.0, n
        far, near, wide = torch.zeros(n, device=NPU), torch.zeros(n), torch.zeros(n, 2, device=NPU)
        shmem.get(far, inner, RIGHT)
        shmem.get(near, inner, RIGHT)
        shmem.get(wide[:, 1], inner, RIGHT)  # not contiguous
        assert torch.equal(far.cpu(), values(n, ME)) and torch.equal(near, values(n, ME))
        assert torch.equal(wide[:, 1].cpu(), values(n, ME)) and wide[:, 0].abs().sum().item() == 0
        assert torch.equal(shmem.peer(inner, RIGHT).cpu(), values(n, ME))
        shmem.barrier()
        shmem.put(inner, values(n, ME, 1), RIGHT)
        shmem.put(host, values(n, ME, 2).to(NPU), RIGHT)
        shmem.barrier()
        assert torch.equal(inner.cpu(), values(n, LEFT, 1)) and torch.equal(host, values(n, LEFT, 2))
        shmem.barrier()
        shmem.put_nbi(inner, values(n, ME, 3).to(NPU), RIGHT)
        shmem.quiet()
        shmem.barrier()
        assert torch.equal(inner.cpu(), values(n, LEFT, 3)), n
        shmem.barrier()
    words()
    shmem.finalize()


def words():
    flag, small = shmem.zeros(3, dtype=torch.int64, device="npu"), shmem.zeros(4, dtype=torch.int32, device="npu")
    data = shmem.zeros(5, device="npu")
    shmem.put_signal(data, values(5, ME).to(NPU), flag, 40 + ME, RIGHT, index=1)
    assert shmem.wait_until(flag, ">=", 40, index=1, timeout=200) == 40 + LEFT
    assert torch.equal(data.cpu(), values(5, LEFT))
    shmem.p(flag, 3 + ME, RIGHT, index=2)
    shmem.barrier()
    assert flag.tolist() == [0, 40 + LEFT, 3 + LEFT] and shmem.g(flag, RIGHT, index=2) == 3 + ME
    if shmem.current().device.kernels:
        for _ in range(3):
            shmem.atomic_add(small, ME + 1, 0, index=2)
        shmem.barrier()
        assert ME or small.tolist() == [0, 0, 3 * sum(range(1, N + 1)), 0]
    else:
        raises(shmem.UnsupportedError, "kernels", shmem.atomic_add, small, ME + 1, 0)
    if shmem.current().device.kernels and shmem.info()["device"]["facts"]["atomics"]:
        olds = [shmem.atomic_fetch_add(small, 1, 0, index=1) for _ in range(2)]
        assert 0 <= olds[0] < olds[1] < 2 * N, olds
        shmem.barrier()
    else:
        raises(shmem.UnsupportedError, "host", shmem.atomic_fetch_add, small, 1, 0)
    raises(shmem.TimeoutError, "", shmem.wait_until, flag, "==", 77, timeout=0.2)


def memory():
    """Blocks live as long as something shows them, also beyond finalize; what is dropped is cleared before it is handed out again.

    A tensor may die while an exception is on its way; the exception arrives all the same.
    """
    world = up()

    def heap():
        return world.info()["device"]["heap"]

    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.int8, torch.bool, torch.complex64, torch.float8_e4m3fn):
        t = shmem.empty(3, 5, dtype=dtype, device="npu")
        assert t.dtype is dtype and t.shape == (3, 5) and t.is_contiguous() and t.untyped_storage().nbytes() == 15 * dtype.itemsize
    assert shmem.empty(0, 4, device="npu").shape == (0, 4)
    del t
    shmem.collect()
    before = heap()["blocks"]
    t = shmem.full((1000,), 3.0, device="npu")
    view, peer = t[10:20], shmem.peer(t, RIGHT)
    place = t.data_ptr()
    del t
    gc.collect()
    shmem.collect()
    assert heap()["blocks"] == before + 1 and view.cpu().tolist() == [3.0] * 10
    del view, peer
    gc.collect()
    shmem.collect()
    assert heap()["blocks"] == before

    def ends_with_a_tensor_on_its_stack():
        for _ in [1, shmem.zeros(10, device="npu")]:
            raise ValueError("this one")

    raises(ValueError, "this one", ends_with_a_tensor_on_its_stack)
    shmem.collect()
    assert heap()["blocks"] == before
    again = shmem.empty(1000, device="npu")
    assert again.data_ptr() == place and again.abs().sum().item() == 0
    shmem.free(again)
    raises(shmem.HeapExhaustedError, "", shmem.zeros, 1 << 30, device="npu")
    raises(shmem.UnsupportedError, "cpu or on an npu", shmem.zeros, 3, device="cuda")
    raises(shmem.InvalidArgumentError, "one device", shmem.zeros, 3, device=f"npu:{ME + 1}")
    like = shmem.zeros_like(torch.zeros(2, 3, dtype=torch.int16, device=NPU))
    copy = shmem.symmetric_copy(torch.arange(4.0, device=NPU))
    assert like.device == NPU and like.dtype is torch.int16 and copy.cpu().tolist() == [0, 1, 2, 3]
    shmem.barrier()
    shmem.finalize()
    assert copy.cpu().tolist() == [0, 1, 2, 3]
    raises(RuntimeError, "", shmem.put, copy, copy, 0)
    shmem.init(ME, N, path=os.path.join(FOLDER, "again"), device="npu", device_heap="32M", timeout=200)  # and once more
    t = shmem.zeros(4, device="npu")
    shmem.put(t, torch.full((4,), ME + 1.0, device=NPU), RIGHT)
    shmem.barrier()
    assert t.tolist() == [LEFT + 1.0] * 4 and copy.cpu().tolist() == [0, 1, 2, 3]
    shmem.finalize()


def reuse():
    """Memory of one PE that is dropped while a stream still uses it is handed out when the stream is past it, not before."""
    up()
    join()
    n, allocate = 20000, dist.group.WORLD.allocate_tensor
    streams = [torch.npu.Stream(), torch.npu.Stream()]
    for turn in range(8):
        one = allocate(n, device=NPU)
        one.copy_(values(n, ME, turn))
        out = torch.empty(N * n, device=NPU)
        work = dist.all_gather_into_tensor(out, one, async_op=True)
        del one
        two = allocate(n, device=NPU)
        two.fill_(-1)  # on the caller's stream, which has not waited for the group's
        work.wait()
        assert torch.equal(out.cpu(), torch.cat([values(n, pe, turn) for pe in range(N)])), turn
        del two
        with torch.npu.stream(streams[turn % 2]):
            one = allocate(n, device=NPU)
            one.copy_(values(n, ME, turn))
            twice = one + one
            del one
        with torch.npu.stream(streams[1 - turn % 2]):
            two = allocate(n, device=NPU)
            two.fill_(-1)
        streams[turn % 2].synchronize()
        assert torch.equal(twice.cpu(), 2 * values(n, ME, turn)), turn
    most = 10 << 20  # more than half of the heap
    flag, met = shmem.zeros(1, dtype=torch.int32, device="npu"), threading.Event()
    helper = threading.Thread(target=lambda: (met.wait(), time.sleep(0.2), torch.npu.set_device(ME), shmem.signal(flag, 1, ME)))
    helper.start()
    with torch.npu.stream(streams[0]):
        one = shmem.full((most,), 3.0, device="npu")
        shmem.wait_on_stream(flag, "==", 1)
        twice = one + one
        del one
    shmem.zeros(3)  # memory of all is reclaimed where all meet, also at a meeting that waits for no stream
    met.set()
    raises(shmem.HeapExhaustedError, "", allocate, most, device=NPU)
    helper.join()
    assert (twice.cpu() == 6).all()
    shmem.collect()
    del twice
    allocate(most, device=NPU)
    for turn in range(12):  # more than the heap holds: it waits
        big = allocate(3 << 20, device=NPU)
        assert big.fill_(turn + 0.5)[-1:].sum().item() == turn + 0.5
        del big
    raises(shmem.HeapExhaustedError, "", allocate, 64 << 20, device=NPU)
    dist.destroy_process_group()
    shmem.finalize()


def streams():
    """put_signal, wait and barrier on torch_npu's streams: nobody synchronises, the order of the stream does."""
    up()
    t, flag = shmem.zeros(5000, device="npu"), shmem.zeros(2, dtype=torch.int32, device="npu")
    side = torch.npu.Stream()
    for turn in range(1, 9):
        with torch.npu.stream(side):
            shmem.put_signal(t, values(5000, ME, turn).to(NPU) * 2, flag, turn, RIGHT, index=1)
            shmem.wait_on_stream(flag, "==", turn, index=1)
            got = t / 2
            shmem.barrier_on_stream()  # nobody writes again before all have read
        torch.npu.current_stream().wait_stream(side)
        assert torch.equal(got.cpu(), values(5000, LEFT, turn)), turn
    shmem.signal(flag, 3, RIGHT, op="add")
    shmem.barrier()
    assert flag.tolist() == [3, 8]
    raises(shmem.UnsupportedError, "symmetric npu tensor", shmem.wait_on_stream, shmem.zeros(1, dtype=torch.int32), "==", 1)
    shmem.finalize()


def stale():
    """The negative: a peer's memory read on a stream that nothing orders behind the put shows old values, so waits are needed and proved."""
    up()
    t, flag = shmem.zeros(256, device="npu"), shmem.zeros(1, dtype=torch.int32, device="npu")
    side, missed = torch.npu.Stream(), 0
    for turn in range(1, 21):
        shmem.put_signal(t, torch.full((256,), float(turn), device=NPU), flag, turn, RIGHT)
        with torch.npu.stream(side):
            if sys.argv[4] == "ordered":
                shmem.wait_on_stream(flag, ">=", turn)
            got = t.clone()
        side.synchronize()
        with torch.npu.stream(side):
            missed += got.cpu().ne(float(turn)).any().item()
        shmem.barrier()
    print("stale", missed)
    shmem.finalize()


ordered = stale


def collectives():
    """By kernels where tensors are symmetric, through the host elsewhere, with one result; told apart by what shmem.info() counts."""
    up()
    for n in (1, 7, 1000, 40001):
        parts = [values(n, pe) for pe in range(N)]
        total = sum(parts)
        for t in (shmem.zeros(n, device="npu"), torch.zeros(n, device=NPU)):
            t.copy_(parts[ME])
            assert shmem.all_reduce(t) is t and torch.equal(t.cpu(), total), n
            out = shmem.zeros(n * N, device="npu") if shmem.is_symmetric(t) else torch.zeros(n * N, device=NPU)
            shmem.all_gather(out, parts[ME].to(NPU))
            assert torch.equal(out.cpu(), torch.cat(parts))
            mine = torch.zeros(n, device=NPU)
            shmem.reduce_scatter(mine, out, "max")
            assert torch.equal(mine.cpu(), parts[ME])
            t.copy_(parts[ME])
            assert torch.equal(shmem.broadcast(t, N - 1).cpu(), parts[N - 1])
            t.copy_(parts[ME])
            assert torch.equal(shmem.all_reduce(t, "min", async_op=True).wait().cpu(), parts[0])
            assert shmem.all_reduce(t, "avg").cpu().tolist() == parts[0].tolist()  # kernels have no avg
    for dtype in (torch.float16, torch.bfloat16, torch.int32, torch.int64, torch.float64):
        t = shmem.zeros(33, dtype=dtype, device="npu")
        t.copy_((torch.arange(33) % 7 + ME).to(dtype))
        shmem.all_reduce(t)
        assert torch.equal(t.cpu(), (torch.arange(33) % 7 * N + sum(range(N))).to(dtype)), dtype
    shmem.finalize()


def groups():
    """The process group over the same world: kernels for symmetric and other tensors, in one order, asynchronous ones too."""
    up()
    join()
    counts = dist.group.WORLD._channel.paths
    total = float(sum(range(1, N + 1)))
    x = shmem.full((3001,), ME + 1.0, device="npu")
    dist.all_reduce(x)
    assert x.cpu().tolist() == [total] * 3001 and counts == {"kernels": 1}
    y, works = torch.full((3001,), ME + 1.0, device=NPU), []
    for turn in range(20):
        x.fill_(ME + 1.0 + turn)
        works.append(dist.all_reduce(x, async_op=True))
        host = torch.tensor([float(turn + ME)])
        z = torch.full((7,), ME + 1.0, device=NPU) * (turn + 1)
        works.append(dist.all_reduce(z, async_op=True))
        dist.all_reduce(host)  # a cpu tensor between them keeps its turn
        assert host.item() == turn * N + sum(range(N))
        for work in works[-2:]:
            work.wait()
        assert torch.equal((z / (turn + 1)).cpu(), torch.full((7,), total)) and x[5].item() == total + turn * N
    dist.all_reduce(y)
    assert y[3000].item() == total and counts == {"kernels": 42}, counts
    assert shmem.info()["python"]["torch_device_operations"] == counts
    doubled = dist.all_reduce(x.fill_(1.0), async_op=True).get_future().then(lambda f: f.value()[0] * 2)
    assert doubled.wait()[0].item() == 2.0 * N
    parts = shmem.zeros(N * 900, device="npu")
    works = [dist.all_gather_into_tensor(parts, values(900, ME, turn).to(NPU), async_op=True) for turn in range(6)]  # inputs that nobody keeps
    junk = [torch.full((900,), -1.0, device=NPU) for _ in range(6)]
    for work in works:
        work.wait()
    assert torch.equal(parts.cpu(), torch.cat([values(900, pe, 5) for pe in range(N)])) and len(junk) == 6
    t = dist.group.WORLD.allocate_tensor(50, dtype=torch.float32, device=NPU)
    assert t.device == NPU and shmem.is_symmetric(t)
    dist.all_reduce(t.fill_(2.0))  # local memory of this rank, not at one place on all
    assert t.cpu().tolist() == [2.0 * N] * 50 and "staged" not in counts
    whole = torch.arange(7, device=NPU)
    dist.all_reduce(whole)  # kernels do not add 64-bit integers
    assert whole.tolist() == [N * i for i in range(7)] and counts["staged"] == 1
    dist.destroy_process_group()
    shmem.barrier()
    shmem.finalize()


def killed():
    """A PE dies while the others' streams and hosts wait for it: all of them are told, and who it was, within seconds."""
    world = up()
    flag = shmem.zeros(2, dtype=torch.int32, device="npu")
    shmem.barrier()
    if ME == N - 1:
        time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGKILL)
    shmem.wait_on_stream(flag, "==", 1)  # nobody will send it
    began = time.monotonic()
    raises(shmem.PeerDeadError, f"PE {N - 1}", shmem.quiet)
    took = time.monotonic() - began
    assert took < 40, took
    raises((shmem.PeerDeadError, shmem.PoisonedError), "", shmem.all_reduce, torch.ones(3, device=NPU))
    assert torch.ones(3, device=NPU).sum().item() == 3  # the device itself goes on
    assert N - 1 in [int(pe) for pe in world.info().get("dead", [N - 1])]
    shmem.finalize(60)
    print(f"told after {took:.1f} s")


if __name__ == "__main__":
    globals()[sys.argv[4]]()
    print("ok", flush=True)
