"""Random operations of a process group on npu tensors against the same on the CPU. What test_twins.py starts, one process per PE.

    python twins.py RANK SIZE FOLDER SEED STEPS

Operation, sizes, dtype and group come from a generator that all ranks share; how a tensor lies, on which stream the call is made,
whether and when it is waited for come from each rank's own. What is expected is computed from everybody's inputs in plain torch.
"""

import os
import random
import sys
from datetime import timedelta

import torch
import torch.distributed as dist
import torch_npu  # noqa: F401

ME, N, FOLDER, SEED, STEPS = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
NPU = torch.device("npu", ME)
OP = dist.ReduceOp
FLOATS = [torch.float32, torch.float16, torch.bfloat16, torch.float64]
INTEGERS = [torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8]
OTHERS = [torch.bool, torch.complex64, torch.complex128, torch.float8_e4m3fn, torch.float8_e5m2]
FLAT = ("plain", "offset", "strided")
SIZES = (0, 1, 2, 3, 5, 31, 64, 255, 1000, 4099, 16384, 16385, 50021, 100003)


def values(n, dtype, pe, salt, small=False):
    """Distinct per element in a stretch, rank and salt; sums of them are exact in every dtype."""
    if dtype.is_complex:
        return torch.complex(values(n, torch.float32, pe, salt), values(n, torch.float32, pe, salt + 50)).to(dtype)
    k = torch.arange(n) * 7 + pe * 31 + salt * 13
    if dtype is torch.bool:
        return k % 3 == 0
    if small:
        return (1 + k % 3 // 2).to(dtype)
    return (k % 29 if not dtype.is_signed else k % 29 - 12).to(torch.float32).to(dtype)


def same(got, want):
    """Bit for bit."""
    if got.dtype is not want.dtype or got.shape != want.shape:
        return False
    a, b = (torch.empty(x.numel(), dtype=x.dtype).copy_(x.reshape(-1)) for x in (got, want))
    return torch.equal(a.view(torch.uint8), b.view(torch.uint8))


class Place:
    """An npu tensor of n elements that lies in some way, between canaries."""

    KINDS = ("plain", "offset", "strided", "columns", "symmetric")

    def __init__(self, n, dtype, kind, fill=None):
        self.dtype, self.kind = dtype, kind
        length = 2 * n + 40
        raw = torch.full((length * dtype.itemsize,), 0x5A, dtype=torch.uint8)
        self.before = raw.view(dtype)
        whole = self.before.to(NPU) if dtype in FLOATS + INTEGERS or dtype is torch.bool else raw.to(NPU).view(dtype)
        if kind == "symmetric":
            room = dist.group.WORLD.allocate_tensor(length, dtype=torch.uint8, device=NPU) if dtype.itemsize == 1 else None
            if room is not None:
                room.copy_(raw)
                whole = room.view(dtype)
        self.whole = whole
        self.t = self.view(whole, n)
        if fill is not None:
            self.set(fill)

    def view(self, whole, n):
        if self.kind == "offset":
            return whole[3 : 3 + n]
        if self.kind == "strided":
            return whole[8 : 8 + 2 * n : 2]
        if self.kind == "columns" and n % 2 == 0:
            return whole[16 : 16 + n].view(2, n // 2).t()
        return whole[16 : 16 + n]

    def set(self, fill, target=None):
        """Gives values to it, or to a part of it."""
        bits, target = fill, self.t if target is None else target
        if self.dtype not in FLOATS + INTEGERS and self.dtype is not torch.bool:
            if self.dtype.is_complex:
                bits, target = torch.view_as_real(fill), torch.view_as_real(target)
            else:
                bits, target = fill.view(torch.uint8), target.view(torch.uint8)
        target.copy_(bits.reshape(target.shape).to(NPU))

    def host(self, t):
        """On the CPU, bit for bit."""
        if self.dtype.is_complex:
            return torch.view_as_complex(torch.view_as_real(t).contiguous().cpu())
        return t.cpu() if self.dtype in FLOATS + INTEGERS or self.dtype is torch.bool else t.contiguous().view(torch.uint8).cpu().view(self.dtype)

    def check(self, want, told):
        """The values, and what is around them."""
        whole = self.host(self.whole).clone()
        mine = self.view(whole, self.t.numel())
        got = mine.reshape(-1).clone()
        assert same(got, want.reshape(-1)), (told, self.kind, got[:9], want.reshape(-1)[:9])
        clean = self.before.clone()
        self.view(clean, self.t.numel()).copy_(got.view(self.t.shape) if self.t.dim() == 1 else mine)
        assert same(whole, clean), (told, self.kind, "canaries")


class Twin:
    """One process's run."""

    def __init__(self):
        self.shared, self.own = random.Random(SEED), random.Random(SEED * 1000 + ME)
        self.pending, self.done = [], 0
        every = list(range(N))
        self.groups = [(dist.group.WORLD, every), (dist.new_group(every), every)]
        if N > 2:
            pair = [0, N - 1]
            self.groups.append((dist.new_group(pair), pair))
            rest = every[1:]
            self.groups.append((dist.new_group(rest), rest))
        self.streams = [torch.npu.current_stream(), torch.npu.Stream(), torch.npu.Stream()]
        self.counts = {}

    def place(self, n, dtype, fill=None):
        return Place(n, dtype, self.own.choice(Place.KINDS), fill)

    def run(self):
        names = [name[3:] for name in dir(self) if name.startswith("do_")]
        for step in range(STEPS):
            name = self.shared.choice(names)
            which = self.shared.randrange(len(self.groups))
            n, salt, dtype = self.shared.choice(SIZES), step, self.shared.choice(FLOATS + INTEGERS + OTHERS)
            sync, root = self.shared.random() < 0.4, self.shared.random()
            if n > 20000 and dtype.itemsize > 4:
                n //= 5
            group, ranks = self.groups[which]
            fork = self.shared.random()  # the same for who is not in the group
            if ME not in ranks:
                continue
            self.group, self.ranks, self.sync, self.salt = group, ranks, sync, salt
            self.me, self.root = ranks.index(ME), ranks[int(root * len(ranks))]
            self.told = (step, name, n, dtype, f"group {which}", "sync" if sync else "async", f"root {self.root}", self.group)
            rng = random.Random(fork)
            torch.npu.set_stream(self.streams[which % 3] if self.own.random() < 0.7 else self.own.choice(self.streams))
            self.stream = torch.npu.current_stream()
            try:
                getattr(self, "do_" + name)(n, dtype, rng)
            except Exception:
                print("in", self.told, file=sys.stderr, flush=True)
                raise
            self.counts[name] = self.counts.get(name, 0) + 1
            if len(self.pending) > self.own.choice((0, 3, 6)):
                self.settle(self.own.randrange(len(self.pending)) + 1)
        self.settle(len(self.pending))

    def went(self, work, check):
        if self.sync:
            assert work is None, self.told
        self.pending.append((work, check, self.told, self.stream))

    def settle(self, count):
        """Waits for some of what is pending in another order, on the stream of the call or on another, and looks at it there."""
        self.own.shuffle(self.pending)
        for work, check, told, stream in [self.pending.pop() for _ in range(count)]:
            if work is None:
                torch.npu.set_stream(stream)
            else:
                torch.npu.set_stream(self.own.choice(self.streams))
                way = self.own.randrange(3)
                if way == 0:
                    work.get_future().wait()
                elif way == 1 and hasattr(work, "result") and not isinstance(work, list):
                    work.wait()
                    work.is_completed()
                else:
                    work.wait()
                stream.wait_stream(torch.npu.current_stream())
                torch.npu.set_stream(self.own.choice([stream, torch.npu.current_stream()]))
            check(told)
            self.done += 1

    # ---- reductions ------------------------------------------------------------------------------------------------------

    def reduction(self, dtype, rng):
        ops = [OP.SUM, OP.SUM, OP.PRODUCT, OP.MIN, OP.MAX]
        if dtype.is_floating_point or dtype.is_complex:
            ops.append(OP.AVG)
        if dtype in INTEGERS + [torch.bool]:
            ops += [OP.BAND, OP.BOR, OP.BXOR]
        if dtype.is_complex:
            ops = [OP.SUM, OP.AVG]
        if dtype.itemsize == 1 and dtype.is_floating_point:
            dtype, ops = torch.float32, ops[:5]
        return dtype, rng.choice(ops)

    def reduced(self, parts, op):
        dtype, out = parts[0].dtype, parts[0].clone()
        wide = torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype
        out = out.to(wide)
        for part in parts[1:]:
            part = part.to(wide)
            if dtype is torch.bool:
                out = out ^ part if op == OP.BXOR else out & part if op in (OP.PRODUCT, OP.MIN, OP.BAND) else out | part
            elif op in (OP.SUM, OP.AVG):
                out = out + part
            elif op == OP.PRODUCT:
                out = out * part
            elif op in (OP.MIN, OP.MAX):
                out = torch.minimum(out, part) if op == OP.MIN else torch.maximum(out, part)
            else:
                out = out & part if op == OP.BAND else out | part if op == OP.BOR else out ^ part
        if op == OP.AVG:
            out = torch.view_as_complex(torch.view_as_real(out) / len(parts)) if dtype.is_complex else out / len(parts)
        return out.to(dtype)

    def inputs(self, n, dtype, op=None, salt=0):
        return [values(n, dtype, pe, self.salt + salt, op == OP.PRODUCT) for pe in range(len(self.ranks))]

    def do_all_reduce(self, n, dtype, rng):
        dtype, op = self.reduction(dtype, rng)
        parts = self.inputs(n, dtype, op)
        t = self.place(n, dtype, parts[self.me])
        self.told += (op,)
        work = dist.all_reduce(t.t, op, group=self.group, async_op=not self.sync)
        want = self.reduced(parts, op)
        self.went(work, lambda told: t.check(want, told))

    def do_reduce(self, n, dtype, rng):
        dtype, op = self.reduction(dtype, rng)
        parts = self.inputs(n, dtype, op)
        t = self.place(n, dtype, parts[self.me])
        self.told += (op,)
        work = dist.reduce(t.t, self.root, op, group=self.group, async_op=not self.sync)
        want = self.reduced(parts, op) if ME == self.root else parts[self.me]
        self.went(work, lambda told: t.check(want, told))

    def do_all_reduce_coalesced(self, n, dtype, rng):
        dtype, op = self.reduction(dtype, rng)
        sizes = [n, 7, 1, n // 2]
        parts = [self.inputs(k, dtype, op, i) for i, k in enumerate(sizes)]
        ts = [self.place(k, dtype, p[self.me]) for k, p in zip(sizes, parts)]
        options = dist.AllreduceCoalescedOptions()
        options.reduceOp = op
        self.told += (op,)
        work = self.group.allreduce_coalesced([t.t for t in ts], options)
        self.sync = False
        self.went(work, lambda told: [t.check(self.reduced(p, op), told) for t, p in zip(ts, parts)])

    def do_reduce_scatter_tensor(self, n, dtype, rng):
        dtype, op = self.reduction(dtype, rng)
        size = len(self.ranks)
        parts = self.inputs(n * size, dtype, op)
        t = Place(n, dtype, self.own.choice(FLAT))
        self.told += (op,)
        source = Place(n * size, dtype, self.own.choice(FLAT), parts[self.me])
        work = dist.reduce_scatter_tensor(t.t, source.t, op, group=self.group, async_op=not self.sync)
        del source
        want = self.reduced([p[n * self.me : n * self.me + n] for p in parts], op)
        self.went(work, lambda told: t.check(want, told))

    def do_reduce_scatter(self, n, dtype, rng):
        dtype, op = self.reduction(dtype, rng)
        size = len(self.ranks)
        sizes = [n] * size if rng.random() < 0.6 else [n + 3 * k for k in range(size)]
        parts = [[values(sizes[to], dtype, pe, self.salt + to, op == OP.PRODUCT) for to in range(size)] for pe in range(size)]
        t = self.place(sizes[self.me], dtype)
        self.told += (op, sizes)
        sources = [self.place(sizes[to], dtype, parts[self.me][to]) for to in range(size)]
        work = dist.reduce_scatter(t.t, [s.t for s in sources], op, group=self.group, async_op=not self.sync)
        del sources
        want = self.reduced([parts[pe][self.me] for pe in range(size)], op)
        self.went(work, lambda told: t.check(want, told))

    # ---- movements -------------------------------------------------------------------------------------------------------

    def do_broadcast(self, n, dtype, rng):
        parts = self.inputs(n, dtype)
        t = self.place(n, dtype, parts[self.me])
        work = dist.broadcast(t.t, self.root, group=self.group, async_op=not self.sync)
        want = parts[self.ranks.index(self.root)]
        self.went(work, lambda told: t.check(want, told))

    def do_all_gather(self, n, dtype, rng):
        size = len(self.ranks)
        sizes = [n] * size if rng.random() < 0.6 else [n + 5 * k for k in range(size)]
        ts = [self.place(k, dtype) for k in sizes]
        source = self.place(sizes[self.me], dtype, values(sizes[self.me], dtype, self.me, self.salt))
        work = dist.all_gather([t.t for t in ts], source.t, group=self.group, async_op=not self.sync)
        del source
        salt = self.salt
        self.went(work, lambda told: [t.check(values(k, dtype, pe, salt), told) for pe, (t, k) in enumerate(zip(ts, sizes))])

    def do_all_gather_into_tensor(self, n, dtype, rng):
        size = len(self.ranks)
        t = Place(n * size, dtype, self.own.choice(FLAT))
        parts = self.inputs(n, dtype)
        if n and rng.random() < 0.3:  # in place
            source = t.t[n * self.me : n * self.me + n]
            t.set(parts[self.me], source)
        else:
            source = Place(n, dtype, self.own.choice(FLAT), parts[self.me]).t
        work = dist.all_gather_into_tensor(t.t, source, group=self.group, async_op=not self.sync)
        del source
        self.went(work, lambda told: t.check(torch.cat(parts), told))

    def do_all_to_all_single(self, n, dtype, rng):
        size = len(self.ranks)
        even = rng.random() < 0.5
        most = max(n // size, 1)
        table = [[n // size if even else (pe * 7 + to * 5 + self.salt) % most for to in range(size)] for pe in range(size)]
        rows_in, rows_out = table[self.me], [table[pe][self.me] for pe in range(size)]
        t = Place(sum(rows_out), dtype, self.own.choice(FLAT))
        sent = [[values(table[pe][to], dtype, pe, self.salt + to) for to in range(size)] for pe in range(size)]
        source = Place(sum(rows_in), dtype, self.own.choice(FLAT), torch.cat(sent[self.me]))
        splits = () if even and rng.random() < 0.5 else (rows_out, rows_in)
        work = dist.all_to_all_single(t.t, source.t, *splits, group=self.group, async_op=not self.sync)
        del source
        me = self.me
        self.went(work, lambda told: t.check(torch.cat([sent[pe][me] for pe in range(size)]), told))

    def do_all_to_all(self, n, dtype, rng):
        size = len(self.ranks)
        table = [[(n * (1 + (pe + to) % 3)) // 2 for to in range(size)] for pe in range(size)]
        sent = [[values(table[pe][to], dtype, pe, self.salt + to) for to in range(size)] for pe in range(size)]
        ts = [self.place(table[pe][self.me], dtype) for pe in range(size)]
        sources = [self.place(table[self.me][to], dtype, sent[self.me][to]) for to in range(size)]
        work = dist.all_to_all([t.t for t in ts], [s.t for s in sources], group=self.group, async_op=not self.sync)
        del sources
        me = self.me
        self.went(work, lambda told: [t.check(sent[pe][me], told) for pe, t in enumerate(ts)])

    def do_gather(self, n, dtype, rng):
        parts = self.inputs(n, dtype)
        source = self.place(n, dtype, parts[self.me])
        ts = [self.place(n, dtype) for _ in parts] if ME == self.root else []
        options = dist.GatherOptions()
        options.rootRank = self.ranks.index(self.root)
        work = self.group.gather([[t.t for t in ts]] if ts else [], [source.t], options)
        del source
        self.sync = False
        self.went(work, lambda told: [t.check(part, told) for t, part in zip(ts, parts)])

    def do_scatter(self, n, dtype, rng):
        parts = self.inputs(n, dtype)
        t = self.place(n, dtype)
        sources = [self.place(n, dtype, part) for part in parts] if ME == self.root else []
        options = dist.ScatterOptions()
        options.rootRank = self.ranks.index(self.root)
        work = self.group.scatter([t.t], [[s.t for s in sources]] if sources else [], options)
        del sources
        self.sync = False
        part = parts[self.me]
        self.went(work, lambda told: t.check(part, told))

    def do_coalesced(self, n, dtype, rng):
        size, sizes = len(self.ranks), [n, 3, n // 3]
        ts = [Place(k * size, dtype, self.own.choice(FLAT)) for k in sizes]
        sources = [self.place(k, dtype, values(k, dtype, self.me, self.salt + i)) for i, k in enumerate(sizes)]
        work = self.group.allgather_into_tensor_coalesced([t.t for t in ts], [s.t for s in sources])
        del sources
        self.sync, salt = False, self.salt
        wants = [torch.cat([values(k, dtype, pe, salt + i) for pe in range(size)]) for i, k in enumerate(sizes)]
        self.went(work, lambda told: [t.check(want, told) for t, want in zip(ts, wants)])

    # ---- others ----------------------------------------------------------------------------------------------------------

    def do_messages(self, n, dtype, rng):
        size = len(self.ranks)
        right, left = self.ranks[(self.me + 1) % size], self.ranks[(self.me - 1) % size]
        t, source = self.place(n, dtype), self.place(n, dtype, values(n, dtype, self.me, self.salt))
        ops = [dist.P2POp(dist.isend, source.t, right, self.group), dist.P2POp(dist.irecv, t.t, left, self.group)]
        works = dist.batch_isend_irecv(ops if self.own.random() < 0.5 else ops[::-1])
        del source, ops
        for work in works:
            work.wait()
        want, self.sync = values(n, dtype, (self.me - 1) % size, self.salt), True
        self.went(None, lambda told: t.check(want, told))

    def do_objects(self, n, dtype, rng):
        said = [None] * len(self.ranks)
        dist.all_gather_object(said, {"me": self.me, "n": n}, group=self.group)
        assert said == [{"me": k, "n": n} for k in range(len(self.ranks))], (self.told, said)
        box = [("root", self.salt)] if ME == self.root else [None]
        dist.broadcast_object_list(box, self.root, group=self.group)
        assert box == [("root", self.salt)], (self.told, box)

    def do_barrier(self, n, dtype, rng):
        dist.barrier(self.group)

    def do_host(self, n, dtype, rng):
        """A cpu tensor in between."""
        t = values(n, torch.float32, self.me, self.salt)
        dist.all_reduce(t, group=self.group)
        assert torch.equal(t, sum(self.inputs(n, torch.float32))), self.told


def main():
    from shmem.interop.registration import register

    register()
    torch.npu.set_device(ME)
    store = dist.FileStore(os.path.join(FOLDER, "store"), N)
    dist.init_process_group("shmem", store=store, rank=ME, world_size=N, timeout=timedelta(seconds=120))
    twin = Twin()
    twin.run()
    paths = dict(dist.group.WORLD._channel.paths)
    print("checked", twin.done, dist.group.WORLD._channel.without_scratch, paths, twin.counts)
    twin.groups.clear()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
    print("ok", flush=True)
