"""DDP, FSDP2 and functional collectives on npu tensors; test_torch_npu.py starts one process per rank.

    python distributed.py RANK SIZE PORT

The backend here stages every collective through gloo on the CPU: it proves what torch_npu and the emulator give a
backend, without any of our own. Each model must end with the weights that one CPU process computes.
"""

import os
import sys

import torch
import torch.distributed as dist
import torch.nn.functional as F
import torch_npu  # noqa: F401
from torch._C._distributed_c10d import Backend, Work
from torch.distributed import _functional_collectives as functional
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel


class Done(Work):
    def __init__(self, result):
        super().__init__()
        self.future = torch.futures.Future()
        self.future.set_result(result)

    def wait(self, timeout=None):
        return True

    def is_completed(self):
        return True

    def get_future(self):
        return self.future


class Staging(Backend):
    def __init__(self, store, rank, size, timeout):
        super().__init__(rank, size)
        self.gloo = dist.ProcessGroupGloo(dist.PrefixStore("staging", store), rank, size, timeout)

    def name(self):
        return "staging"

    def broadcast(self, tensors, options):
        staged = [t.cpu() for t in tensors]
        self.gloo.broadcast(staged, options).wait()
        return self.back(tensors, staged)

    def allreduce(self, tensors, options):
        staged, average = [t.cpu() for t in tensors], options.reduceOp == dist.ReduceOp.AVG
        if average:
            options.reduceOp = dist.ReduceOp.SUM
        self.gloo.allreduce(staged, options).wait()
        return self.back(tensors, [s / self.size() if average else s for s in staged])

    def allgather(self, outputs, inputs, options=None):
        staged = [[torch.empty(t.shape, dtype=t.dtype) for t in row] for row in outputs]
        self.gloo.allgather(staged, [t.cpu() for t in inputs]).wait()
        return self.back(sum(outputs, []), sum(staged, []))

    def all_gather_single(self, output, source, options=None):
        staged = torch.empty(output.shape, dtype=output.dtype)
        self.gloo._allgather_base(staged, source.cpu()).wait()
        return self.back([output], [staged])

    def reduce_scatter_single(self, output, source, options=None):
        staged, n = source.cpu(), output.numel()
        self.gloo.allreduce([staged]).wait()
        part = staged.view(-1)[self.rank() * n : (self.rank() + 1) * n].view(output.shape)
        average = getattr(options, "reduceOp", None) == dist.ReduceOp.AVG
        return self.back([output], [part / self.size() if average else part])

    def all_gather_single_coalesced(self, outputs, inputs, options=None):
        for output, source in zip(outputs, inputs):
            self.all_gather_single(output, source, options)
        return Done(outputs)

    def barrier(self, options=None):
        self.gloo.barrier().wait()
        return Done(None)

    @staticmethod
    def back(tensors, staged):
        for tensor, value in zip(tensors, staged):
            tensor.copy_(value)
        return Done(tensors)

    # The names before torch 2.14.
    _allgather_base, _reduce_scatter_base = all_gather_single, reduce_scatter_single
    allgather_into_tensor_coalesced = all_gather_single_coalesced


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm, self.last = torch.nn.Linear(64, 32), torch.nn.LayerNorm(32), torch.nn.Linear(32, 10)

    def forward(self, x):
        return self.last(F.relu(self.norm(self.first(x))))


def train(wrap, x, y, device):
    torch.manual_seed(1)
    model = wrap(Model().to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(4):
        optimizer.zero_grad()
        F.cross_entropy(model(x.to(device)), y.to(device)).backward()
        optimizer.step()
    return [getattr(p, "full_tensor", lambda p=p: p.detach())().detach().cpu() for p in model.parameters()]


def main(rank, size, port):
    dist.Backend.register_backend("staging", Staging, devices=["npu"])
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.npu.set_device(rank)
    dist.init_process_group("cpu:gloo,npu:staging", rank=rank, world_size=size)
    mesh = init_device_mesh("npu", (size,))

    def sharded(model):
        fully_shard(model.first, mesh=mesh)
        return fully_shard(model, mesh=mesh) or model

    torch.manual_seed(0)
    x, y, mine = torch.randn(8 * size, 64), torch.randint(0, 10, (8 * size,)), slice(8 * rank, 8 * rank + 8)
    expected = train(lambda model: model, x, y, "cpu")
    for wrap in (lambda model: DistributedDataParallel(model, device_ids=[rank]), sharded):
        for got, wanted in zip(train(wrap, x[mine], y[mine], "npu"), expected):
            torch.testing.assert_close(got, wanted, rtol=1e-4, atol=1e-5)
    t = torch.full((3,), rank + 1.0, device="npu")
    assert functional.all_reduce(t, "sum", mesh).cpu().tolist() == [size * (size + 1) / 2] * 3
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
    print("ok")
