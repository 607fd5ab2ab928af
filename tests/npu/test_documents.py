"""The block of docs/npu.md does run, over the emulator."""

import os
import re
import sys

from conftest import HERE, ROOT


def test_the_block_of_the_document(npu, tmp_path):
    text = (ROOT / "docs" / "npu.md").read_text()
    block = re.search(r"^```python\n(.*?)^```", text, re.M | re.S).group(1)
    check = "assert torch.equal(y.cpu(), torch.arange(1024.0) * 2 + 1), y\nassert torch.equal(t.cpu(), torch.arange(1024.0) * 4), t\n"
    script = tmp_path / "ring.py"
    script.write_text("from shmem.interop.registration import register\nregister()\n" + block + check)
    package = [] if os.environ.get("SHMEM_TEST_INSTALLED") == "1" else [str(ROOT / "python")]
    settings = {"PYTHONPATH": os.pathsep.join([str(HERE), *package]), "SHMEM_KERNELS": os.environ.get("SHMEM_KERNELS", str(ROOT / "build" / "kernels"))}
    npu.run("-m", "shmem.cli.run", "-n", "2", sys.executable, script, timeout=400, devices=2, **settings)
