"""Trains the digit classifier of train_digits.py on npu tensors, data-parallel on 2 processes over backend shmem. There is no NPU.

    ./build.sh npu-demo                # or, with torch_npu and an NPU (or the emulator on LD_LIBRARY_PATH):
    python examples/train_digits_npu.py [--epochs N] [--pes N]

The real torch_npu runs over an emulated device, so this shows that the program is right and nothing about its speed. The same
weights are trained on CPU tensors beside it, and the losses compared. The emulated device has no loops for convolution and
pooling: on npu they are written as a matrix product and maxima, with the same weights.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from typing import Any, Dict, List

import train_digits as cpu

KIND = "npu"


def spread(network: Any) -> Any:
    """The network of the CPU's run, with its own weights, in operators that the emulated device has."""
    import torch
    from torch import nn

    class Spread(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.network = network

        def forward(self, x: Any) -> Any:
            conv = self.network[1]
            image = nn.functional.pad(x.view(-1, 8, 8), (1, 1, 1, 1))
            patches = torch.stack([image[:, i : i + 8, j : j + 8] for i in range(3) for j in range(3)], -1)
            y = torch.relu(patches @ conv.weight.view(16, 9).t() + conv.bias)
            top, low = torch.maximum(y[:, ::2, ::2], y[:, ::2, 1::2]), torch.maximum(y[:, 1::2, ::2], y[:, 1::2, 1::2])
            y = torch.maximum(top, low).permute(0, 3, 1, 2).reshape(-1, 256)
            for layer in self.network[5:]:
                y = layer(y)
            return y

    return Spread()


def train(epochs: int, out: str) -> None:
    """One process: trains on its npu, tells its progress on standard output, and (rank 0) writes the result."""
    import torch
    import torch.distributed as dist
    import torch_npu
    from torch.nn.parallel import DistributedDataParallel

    import shmem

    torch.set_num_threads(1)
    cpu.register_when_not_installed()
    torch_npu.npu.set_device(int(os.environ.get("LOCAL_RANK", os.environ.get("SHMEM_RANK", "0"))))
    dist.init_process_group("shmem")
    rank, size = dist.get_rank(), dist.get_world_size()
    images, labels, test_images, test_labels = (t.to(KIND) for t in cpu.digits())
    model = DistributedDataParallel(spread(cpu.network()).to(KIND))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    losses: List[float] = []
    steps: List[float] = []
    for epoch in range(epochs):
        total = torch.tensor([cpu.one_epoch(model, optimizer, images, labels, epoch, rank, size, steps)], device=KIND)
        dist.all_reduce(total)
        losses.append(float(total) / size)
        if rank == 0:
            print(json.dumps({"epoch": epoch + 1, "loss": losses[-1]}), flush=True)
    with torch.no_grad():
        right = (model.module(test_images).argmax(1) == test_labels).float().mean().item()
    if rank == 0:
        told = {"losses": losses, "accuracy": right, "step_us": statistics.median(steps[10:]) * 1e6, "steps": len(steps)}
        told["device"], told["weights"] = torch_npu.npu.get_device_name(), str(model.module.network[1].weight.device)
        told["paths"] = shmem.info()["python"]["torch_device_operations"]
        with open(out, "w", encoding="utf-8") as file:
            json.dump(told, file)
    dist.barrier()
    dist.destroy_process_group()


def launch(pes: int, epochs: int, advance: Any) -> Dict[str, Any]:
    """Runs the processes with our launcher and follows their progress."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "result.json")
        command = [sys.executable, "-m", "shmem.cli.run", "-n", str(pes), sys.executable, os.path.abspath(__file__)]
        command += ["--train", "--epochs", str(epochs), "--out", out]
        with open(os.path.join(folder, "errors"), "w+", encoding="utf-8") as errors:
            process = subprocess.Popen(command, env={**os.environ, "OMP_NUM_THREADS": "1"}, stdout=subprocess.PIPE, stderr=errors, text=True)
            assert process.stdout is not None
            for line in process.stdout:
                if line.startswith("{"):
                    advance(json.loads(line))
            if process.wait() != 0:
                errors.seek(0)
                raise SystemExit(f"training on {KIND} failed:\n{errors.read()[-4000:]}")
        with open(out, encoding="utf-8") as file:
            return json.load(file)


def compare(pes: int, epochs: int) -> int:
    """Runs both, shows the table, and gives 0 when accuracy and losses are as promised."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console()
    console.print(f"[bold]Handwritten digits[/], DistributedDataParallel over backend shmem on {pes} processes, {epochs} epochs")
    console.print("[yellow]The NPU is emulated[/] (tests/acl_emulator): the real torch_npu runs, its device does not exist. Times say nothing.")
    epoch = TextColumn("epoch {task.completed}/{task.total}  loss {task.fields[loss]:.4f}")
    columns = (TextColumn("{task.description:<14}"), BarColumn(), epoch, TimeElapsedColumn())
    results: Dict[str, Dict[str, Any]] = {}
    with Progress(*columns, console=console) as progress:
        for name in (KIND, "cpu"):
            task = progress.add_task(f"{name} tensors", total=epochs, loss=0.0)

            def advance(said: Dict[str, Any], task: Any = task) -> None:
                progress.update(task, completed=said["epoch"], loss=said["loss"])

            results[name] = launch(pes, epochs, advance) if name == KIND else cpu.launch("shmem", pes, epochs, advance)
    return report(console, results[KIND], results["cpu"])


def report(console: Any, ours: Dict[str, Any], peer: Dict[str, Any]) -> int:
    """The table and the verdict."""
    from rich.table import Table

    difference = max(abs(a - b) for a, b in zip(ours["losses"], peer["losses"]))
    table = Table("", f"{ours['device']}, emulated", "cpu")
    table.add_row("loss, first to last epoch", cpu.spark(ours["losses"]), cpu.spark(peer["losses"]))
    table.add_row("final loss", f"{ours['losses'][-1]:.6f}", f"{peer['losses'][-1]:.6f}")
    table.add_row("test accuracy", f"{ours['accuracy']:.2%}", f"{peer['accuracy']:.2%}")
    table.add_row("steps", str(ours["steps"]), str(peer["steps"]))
    table.add_row("weights on", ours["weights"], "cpu")
    table.add_row("operations of device tensors", ", ".join(f"{count} {path}" for path, count in ours["paths"].items()), "")
    console.print(table)
    console.print(f"Largest difference of the losses: {difference:.2e} (bar 1e-2: other operators round otherwise).")
    good = difference <= 1e-2 and ours["accuracy"] >= 0.95 and abs(ours["accuracy"] - peer["accuracy"]) <= 0.02
    console.print("[green]As promised: the same training on npu tensors.[/]" if good else "[red]NOT as promised.[/]")
    return 0 if good else 1


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="Trains a digit classifier on (emulated) npu tensors over shmem.")
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--pes", type=int, default=2)
    parser.add_argument("--train", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--out", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.train:
        train(options.epochs, options.out)
        return 0
    return compare(options.pes, options.epochs)


if __name__ == "__main__":
    sys.exit(main())
