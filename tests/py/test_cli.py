"""shmem-run and shmem-config."""

from __future__ import annotations

import json
import os
import re
import select
import shlex
import subprocess
import sys
import time

import pytest

from processes import environment

RUN = [sys.executable, "-m", "shmem.cli.run"]


def run(*arguments, timeout=240, **more):
    return subprocess.run([*RUN, *arguments], env=environment(), capture_output=True, text=True, timeout=timeout, **more)


def test_world_from_the_launcher():
    code = "import array, shmem, sys; shmem.init(); a = array.array('q', [shmem.my_pe()]); shmem.all_reduce(a); "
    # One write a line: print may write a line in pieces, and three processes share the pipe.
    code += "sys.stdout.write(f'{shmem.my_pe()} {shmem.n_pes()} {a[0]}\\n'); sys.stdout.flush(); shmem.finalize()"
    done = run("-n", "3", sys.executable, "-c", code)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.split("\n")) == ["", "0 3 3", "1 3 3", "2 3 3"]


def test_eight_jobs_at_once():
    code = "import shmem; shmem.init(timeout=200); shmem.barrier(); print(shmem.n_pes()); shmem.finalize()"
    jobs = [
        subprocess.Popen([*RUN, "-n", "2", sys.executable, "-c", code], env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(8)
    ]
    for job in jobs:
        out, err = job.communicate(timeout=300)
        assert job.returncode == 0 and out.count("2") == 2, err


def test_prefix_and_streams():
    code = "import os, sys; r = os.environ['SHMEM_RANK']; print('out', r); print('err', r, file=sys.stderr, end='')"
    done = run("-n", "2", "-p", sys.executable, "-c", code)
    assert sorted(done.stdout.splitlines()) == ["[0] out 0", "[1] out 1"]
    assert sorted(done.stderr.splitlines()) == ["[0] err 0", "[1] err 1"]


def test_lines_of_two_processes_never_mix():
    code = "import os, time\nwords = b'<', os.environ['SHMEM_RANK'].encode() * 9, b'>', b'\\n'\n"
    code += "for i in range(40): [os.write(1, word) for word in words]; time.sleep(0.001)"
    done = run("-n", "3", sys.executable, "-c", code)
    assert sorted(done.stdout.splitlines()) == [f"<{str(rank) * 9}>" for rank in range(3) for _ in range(40)]


def test_a_line_longer_than_any_buffer_and_one_without_an_end():
    done = run("-n", "1", sys.executable, "-c", "print('x' * 3_000_000); print('end', end='')")
    assert done.stdout == "x" * 3_000_000 + "\nend"


def test_bursts_larger_than_any_buffer_stay_whole_lines():
    code = "import os, time\nline = os.environ['SHMEM_RANK'].encode() * 101 + b'\\n'\nend = time.monotonic() + 1.5\n"
    code += "while time.monotonic() < end: os.write(1, line * 500)"
    job = subprocess.Popen([*RUN, "-n", "3", sys.executable, "-c", code], env=environment(), stdout=subprocess.PIPE)
    assert job.stdout is not None
    for line in job.stdout:
        assert line[:101] == line[:1] * 101 and line[101:] == b"\n", line
    job.stdout.close()
    assert job.wait(timeout=240) == 0


def test_every_byte_passes_unchanged():
    code = "import os; os.write(1, bytes(range(256)) * 3); os.write(2, b'\\xff\\x00')"
    done = subprocess.run([*RUN, "-n", "1", sys.executable, "-c", code], env=environment(), capture_output=True, timeout=240)
    assert (done.stdout, done.stderr) == (bytes(range(256)) * 3, b"\xff\x00")


def test_a_grandchild_that_holds_the_pipe_keeps_no_line_back():
    began = time.monotonic()
    done = run("-n", "1", "sh", "-c", "sleep 60 & printf 'no end'", timeout=50)
    assert done.stdout == "no end" and time.monotonic() - began < 45


@pytest.mark.parametrize("signal_number", [2, 15])
def test_a_reader_that_sleeps_keeps_nobody_from_ending_the_job(signal_number):
    job = subprocess.Popen([*RUN, "-n", "2", "--grace", "0.5", "yes"], env=environment(), stdout=subprocess.PIPE)
    assert select.select([job.stdout], [], [], 120)[0]
    time.sleep(1.5)  # from the first line on, long enough for the pipe to be full
    job.send_signal(signal_number)
    assert job.wait(timeout=120) == 128 + signal_number
    job.stdout.close()


def test_standard_descriptors_that_are_closed_or_full():
    command = " ".join([*RUN, "-n", "2", "sh", "-c", "'echo out; echo err >&2; ls -l /proc/self/fd'"])
    for closed, code in ((">&-", 0), ("2>&-", 0), ("<&- >&- 2>&-", 0), (">/dev/full", 126)):
        done = subprocess.run(["sh", "-c", f"exec {command} {closed}"], env=environment(), capture_output=True, text=True, timeout=240)
        assert done.returncode == code and "Traceback" not in done.stderr and not re.search(" [012] -> socket", done.stdout), (closed, done)
    assert "cannot pass on the output" in done.stderr and "No space left" in done.stderr


def test_few_descriptors():
    import resource

    few = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))  # noqa: E731
    done = subprocess.run([*RUN, "-n", "12", "true"], env=environment(), capture_output=True, text=True, timeout=240, preexec_fn=few)
    assert done.returncode == 0, done.stderr


def test_a_reader_that_leaves_ends_the_job():
    job = subprocess.Popen([*RUN, "-n", "2", "yes"], env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert job.stdout is not None and job.stdout.read(2) == b"y\n"
    job.stdout.close()
    _, err = job.communicate(timeout=240)
    assert job.returncode == 128 + 13 and b"Traceback" not in err


def test_a_failure_ends_the_others_and_is_the_status():
    before = time.monotonic()
    done = run("-n", "3", sys.executable, "-c", "import os, sys, time; sys.exit(7) if os.environ['SHMEM_RANK'] == '1' else time.sleep(200)")
    assert done.returncode == 7 and time.monotonic() - before < 100
    assert "PE 1 exited with status 7" in done.stderr


def test_one_that_ignores_sigterm_is_killed():
    code = "import os, signal, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(0.3); "
    code += "sys.exit(3) if os.environ['SHMEM_RANK'] == '0' else time.sleep(200)"
    before = time.monotonic()
    done = run("-n", "2", "--grace", "0.5", sys.executable, "-c", code)
    assert done.returncode == 3 and time.monotonic() - before < 100


def test_killed_by_a_signal():
    done = run("-n", "2", sys.executable, "-c", "import os; os.kill(os.getpid(), 9)")
    assert done.returncode == 128 + 9 and "SIGKILL" in done.stderr


def test_control_c_reaches_every_process():
    code = "import time, sys\ntry:\n    print('up', flush=True); time.sleep(200)\nexcept KeyboardInterrupt:\n    print('interrupted'); sys.exit(0)"
    job = subprocess.Popen([*RUN, "-n", "2", "-p", sys.executable, "-c", code], env=environment(), stdout=subprocess.PIPE, text=True)
    assert job.stdout is not None
    assert job.stdout.readline() and job.stdout.readline()
    time.sleep(0.1)
    job.send_signal(2)
    out, _ = job.communicate(timeout=120)
    assert out.count("interrupted") == 2


@pytest.mark.parametrize(
    "arguments, words",
    [
        (("-n", "0", "true"), "at least 1"),
        (("-n", "2"), "no program"),
        (("-n", "2", "/nonexistent"), "no command"),
        (("-n", "2", "-x", "A", "true"), "NAME=VALUE"),
    ],
)
def test_bad_command_lines(arguments, words):
    done = run(*arguments)
    assert done.returncode == 2 and words in done.stderr


@pytest.mark.parametrize(
    "name, mode, words",
    [("a.py", 0o644, "write: python a.py"), ("prog", 0o755, "write: ./prog"), ("prog.c", 0o644, "without permission")],
)
def test_a_file_that_is_no_command(tmp_path, name, mode, words):
    (tmp_path / name).write_text("")
    (tmp_path / name).chmod(mode)
    done = run("-n", "1", name, cwd=tmp_path)
    assert done.returncode == 2 and "no command" in done.stderr and words in done.stderr


def test_settings_reach_the_job():
    code = "import shmem; shmem.init(); print(shmem.heap_stats()['bytes']); shmem.finalize()"
    done = run("-n", "2", "--heap", "48M", sys.executable, "-c", code)
    assert done.stdout.split() == [str(48 << 20)] * 2, done.stderr


def config(*arguments):
    done = subprocess.run([sys.executable, "-m", "shmem.cli.config", *arguments], env=environment(), capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_config_paths_and_flags():
    assert os.path.exists(os.path.join(config("--includedir").strip(), "gshmem.h"))
    assert os.path.exists(config("--library").strip())
    assert config("--cflags").startswith("-I") and "-lshmem" in config("--libs")
    assert config("--version").strip().count(".") == 2


def test_config_diagnose_is_json_without_secrets():
    env = {**environment(), "SHMEM_SECRET": "hush-hush"}
    done = subprocess.run([sys.executable, "-m", "shmem.cli.config", "--diagnose"], env=env, capture_output=True, text=True, timeout=240)
    told = json.loads(done.stdout)
    assert told["library"]["obstacle"] is None and told["machine"]["cores"] >= 1
    assert "hush-hush" not in done.stdout


def test_config_check():
    assert "works here" in config("--check")


def test_a_c_program(tmp_path):
    source = tmp_path / "hello.c"
    source.write_text(
        "#include <gshmem.h>\n#include <stdio.h>\nint main(void) {\n  gshmem_options o = {.size = sizeof o, .me = -1, .n = -1, .heap_bytes = 1 << 24};\n"
        "  uint64_t world, team, block; void *at;\n"
        '  if (gshmem_init(&o, &world, &team)) { fprintf(stderr, "%s\\n", gshmem_last_error()); return 1; }\n'
        "  int me = gshmem_my_pe(world), n = gshmem_n_pes(world);\n"
        "  if (gshmem_alloc(team, 64, 0, GSHMEM_ZERO, -1, &block, &at)) return 2;\n"
        "  int64_t v = me + 1;\n"
        "  if (gshmem_put(world, at, &v, 8, (me + 1) % n) || gshmem_barrier(team)) return 3;\n"
        "  int64_t sum = 0;\n"
        "  if (gshmem_all_reduce(team, at, &sum, 1, GSHMEM_I64, GSHMEM_SUM)) return 4;\n"
        '  printf("%d of %d: %ld %ld\\n", me, n, (long)*(int64_t *)at, (long)sum);\n'
        "  return gshmem_finalize(world, -1) != 0;\n}\n"
    )
    compiler = os.environ.get("CC", "cc").split()
    try:
        subprocess.run([*compiler, "--version"], capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no C compiler on the PATH")
    program = tmp_path / "hello"
    flags = shlex.split(config("--cflags")) + [str(source), "-o", str(program)] + shlex.split(config("--libs"))
    subprocess.run([*compiler, "-Wall", "-Wextra", "-Werror", *flags], check=True)
    done = run("-n", "3", str(program))
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == ["0 of 3: 3 6", "1 of 3: 1 6", "2 of 3: 2 6"]
