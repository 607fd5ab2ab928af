"""What torch_npu does over the emulator; test_torch_npu.py starts each function in a process. Not a test by itself."""

import sys
import time

import torch
import torch_npu  # noqa: F401

npu = torch.npu


def devices():
    assert npu.is_available() and npu.device_count() == 4
    for index in (2, 0, 3):
        npu.set_device(index)
        assert npu.current_device() == index
        x = torch.arange(5, device="npu")
        assert x.device == torch.device("npu", index) and x.cpu().tolist() == list(range(5))
    assert npu.get_device_properties(0).total_memory == 1 << 30
    y = torch.ones(3, device="npu:1")
    assert (y.to("npu:2").cpu() == 1).all()


def streams_and_events():
    npu.set_device(0)
    side, pinned = npu.Stream(), torch.arange(1000.0).pin_memory()
    assert side != npu.current_stream()
    start, end = npu.Event(enable_timing=True), npu.Event(enable_timing=True)
    with npu.stream(side):
        start.record()
        x = torch.empty(1000, device="npu")
        x.copy_(pinned, non_blocking=True)
        y = x * 2
        end.record()
    npu.current_stream().wait_event(end)
    z = y + 1
    assert torch.equal(z.cpu(), torch.arange(1000.0) * 2 + 1)
    end.synchronize()
    assert end.query() and start.elapsed_time(end) >= 0
    side.synchronize()
    assert side.query()
    assert isinstance(side.npu_stream, int) and side.npu_stream


def missing_wait_shows():
    """A side stream reads what the current stream has not yet written: without the wait it sees old values."""
    npu.set_device(0)
    side, pinned, stale = npu.Stream(), torch.empty(64).pin_memory(), 0
    for round_ in range(20):
        x = torch.zeros(64, device="npu")
        npu.synchronize()
        pinned.fill_(round_ + 1)
        x.copy_(pinned, non_blocking=True)
        if sys.argv[2] == "wait":
            side.wait_stream(npu.current_stream())
        with npu.stream(side):
            y = x.clone()
        side.synchronize()
        with npu.stream(side):
            stale += bool((y.cpu() != round_ + 1).any())
        npu.synchronize()
    print("stale", stale)


def device_memory_is_out_of_reach():
    import ctypes

    npu.set_device(0)
    x = torch.ones(4, device="npu")
    npu.synchronize()
    print("touching", flush=True)
    ctypes.string_at(x.data_ptr(), 4)


def allocator():
    npu.set_device(0)
    before = npu.memory_allocated()
    kept = [torch.full((n * 1000 + 3,), n, device="npu") for n in range(1, 60)]
    assert npu.memory_allocated() > before and npu.memory_reserved() >= npu.memory_allocated()
    for n, tensor in enumerate(kept, 1):
        assert (tensor.cpu() == n).all()
    del kept[::2], tensor
    big = torch.full((3_000_000,), 7, device="npu")
    assert (big.cpu() == 7).all() and all((t.cpu() == n).all() for t, n in zip(kept, range(2, 60, 2)))
    del kept, big
    npu.empty_cache()
    assert npu.memory_allocated() == before
    free, total = npu.mem_get_info()
    assert 0 < free <= total
    try:
        torch.empty(total // 4 * 2, device="npu")
        raise AssertionError("more memory than the device has")
    except torch.OutOfMemoryError as error:
        assert "out of memory" in str(error).lower()
    assert (torch.full((9,), 3, device="npu").cpu() == 3).all()


def errors_reach_python():
    """A failing entry point is an exception with its code."""
    import ctypes

    npu.set_device(0)
    torch.ones(3, device="npu").cpu()
    library = ctypes.CDLL("libascendcl.so")
    library.aclemu_inject(b"aclrtSynchronizeStreamWithTimeout:1:507053;aclrtSynchronizeStream:1:507053")
    try:
        torch.ones(3, device="npu").cpu()
        raise AssertionError("no error")
    except RuntimeError as error:
        assert "507053" in str(error), error


def missing_operator_is_named():
    """The error may come after the copy: torch_npu's queue thread drops what it holds a moment before it says what failed."""
    npu.set_device(0)
    try:
        torch.ones(8, device="npu").acos().cpu()
        for _ in range(100):
            time.sleep(0.1)
            npu.synchronize()
        raise AssertionError("no error")
    except RuntimeError as error:
        print(str(error).replace("\n", " ")[:3000])


def raw_pointers():
    """Tensors over memory that ACL gave: what a library with its own heap does."""
    import ctypes

    npu.set_device(0)
    torch.ones(1, device="npu")
    library, pointer = ctypes.CDLL("libascendcl.so"), ctypes.c_void_p()
    assert library.aclrtMalloc(ctypes.byref(pointer), ctypes.c_size_t(1 << 21), 0) == 0
    storage = torch_npu._C._construct_storage_from_data_pointer(pointer.value, torch.device("npu", 0), 1 << 21)
    meta = {"storage_offset": 2, "dtype": torch.float32, "size": (3, 4), "stride": (4, 1), "npu_format": 2}
    x = torch_npu._C._construct_NPU_Tensor_From_Storage_And_Metadata(meta, storage)
    x.copy_(torch.arange(12.0).view(3, 4))
    npu.current_stream().synchronize()
    back = (ctypes.c_float * 14)()
    assert library.aclrtMemcpy(back, ctypes.c_size_t(56), pointer, ctypes.c_size_t(56), 2) == 0
    assert list(back)[2:] == list(range(12)) and x.data_ptr() == pointer.value + 8
    assert torch.equal((x * 2).cpu(), torch.arange(12.0).view(3, 4) * 2)


def sharing_child(queue, back):
    npu.set_device(0)
    x = queue.get()
    try:
        x.cpu()
        back.put("copied IPC memory to the host")
    except RuntimeError as error:
        back.put("copy_ipc" in str(error))
    back.put((x.clone().cpu().tolist(), str(x.device)))
    x += 100
    npu.synchronize()
    back.put("added")
    queue.get()


def sharing():
    """torch.multiprocessing sends an npu tensor by its memory, not by value."""
    import torch.multiprocessing as mp

    npu.set_device(0)
    context = mp.get_context("spawn")
    queue, back = context.Queue(), context.Queue()
    child = context.Process(target=sharing_child, args=(queue, back), daemon=True)
    child.start()
    x = torch.arange(5, dtype=torch.float32, device="npu")
    queue.put(x)
    assert back.get(timeout=240) is True
    got = back.get(timeout=240)
    assert got == ([0, 1, 2, 3, 4], "npu:0"), got
    assert back.get(timeout=240) == "added"
    assert x.cpu().tolist() == [100, 101, 102, 103, 104]
    queue.put(None)
    child.join(240)
    assert child.exitcode == 0


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(64, 32), torch.nn.Linear(32, 10)

    def forward(self, x):
        return self.second(torch.relu(self.first(x)))


OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=1e-3, nesterov=True),
    "plain loops": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, foreach=False),
    "adam": lambda p: torch.optim.Adam(p, lr=0.01),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.01, foreach=False),
}


def train(device, make, steps=8):
    torch.manual_seed(3)
    model, x, target = Model().to(device), torch.randn(33, 64).to(device), torch.randint(0, 10, (33,)).to(device)
    optimizer, losses = make(model.parameters()), []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), target)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses, [p.detach().cpu() for p in model.parameters()]


def training():
    npu.set_device(0)
    for name, make in OPTIMIZERS.items():
        (losses, weights), (expected, reference) = train("npu", make), train("cpu", make)
        assert losses[-1] < losses[0], name
        torch.testing.assert_close(torch.tensor(losses), torch.tensor(expected), rtol=1e-4, atol=1e-5)
        for a, b in zip(weights, reference):
            torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-5)


def digits_accuracy(device):
    from sklearn.datasets import load_digits

    data = load_digits()
    x = torch.tensor(data.data, dtype=torch.float32).div(16).to(device)
    y = torch.tensor(data.target).to(device)
    torch.manual_seed(0)
    model = Model().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for epoch in range(8):
        for start in range(0, 1500, 50):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x[start : start + 50]), y[start : start + 50]).backward()
            optimizer.step()
    return (model(x[1500:]).argmax(1) == y[1500:]).float().mean().item()


def digits():
    """Trains on real data until it is good at it, as good as on the CPU."""
    npu.set_device(0)
    here, there = digits_accuracy("npu"), digits_accuracy("cpu")
    print(f"accuracy {here:.3f}, on the CPU {there:.3f}")
    assert abs(here - there) < 0.02 and here > 0.8


def random_numbers():
    npu.set_device(0)
    torch.manual_seed(5)
    a, n, k = torch.rand(10000, device="npu"), torch.randn(10000, device="npu"), torch.randint(0, 9, (10000,), device="npu")
    assert 0 <= a.min() and a.max() < 1 and abs(a.mean().item() - 0.5) < 0.02
    assert abs(n.mean().item()) < 0.05 and abs(n.std().item() - 1) < 0.05
    assert k.min() == 0 and k.max() == 8
    d = torch.nn.functional.dropout(torch.ones(10000, device="npu"), 0.25)
    assert abs((d == 0).float().mean().item() - 0.25) < 0.03 and abs(d.max().item() - 4 / 3) < 1e-5
    torch.manual_seed(5)
    assert torch.equal(torch.rand(10000, device="npu").cpu(), a.cpu())


def printing():
    npu.set_device(0)
    assert repr(torch.tensor([1.5, -2.0, 3e-5]).npu()) == "tensor([ 1.5000e+00, -2.0000e+00,  3.0000e-05], device='npu:0')"
    assert repr(torch.arange(3).npu()) == "tensor([0, 1, 2], device='npu:0')"


if __name__ == "__main__":
    globals()[sys.argv[1]]()
    print("ok")
    sys.stdout.flush()
