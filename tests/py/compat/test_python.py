"""Ascend's Python names: programs as upstream's tests write them, and each function with a value that proves it."""

from __future__ import annotations

import inspect

import pytest
from ports import free_port

import shmem
from processes import Script

HEAD = """
import ctypes, struct
from shmem import compat, core, _pyshmem
PORT = os.environ["T_PORT"]
NEXT, PREV = (ME + 1) % N, (ME + N - 1) % N
def up_at_address(size=32 << 20):
    attributes = shmem.InitAttr()
    attributes.my_rank, attributes.n_ranks, attributes.local_mem_size = ME, N, size
    attributes.ip_port = "tcp://127.0.0.1:" + PORT
    attributes.option_attr.data_op_engine_type = shmem.OpEngineType.MTE
    assert shmem.set_conf_store_tls(False, "") == 0
    assert shmem.aclshmem_init(attributes) == 0
def meet(): # a barrier that Ascend's Python has not: everybody signals everybody
    meet.turn += 1
    for pe in range(N):
        _pyshmem.aclshmemx_signal_op_on_stream(meet.word, 1, 1, pe, 0)
    shmem.aclshmem_signal_wait_until(meet.word, 3, meet.turn * N)
meet.turn = 0
def begin():
    up_at_address()
    meet.word = shmem.aclshmem_calloc(1, 8)
DEVICE = os.environ.get("SHMEM_DEVICE") == "npu"
if DEVICE:  # as a program with CANN has it: a device of its own, and copies instead of stores and loads
    acl = ctypes.CDLL("libascendcl.so")
    acl.aclrtMemcpy.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    assert acl.aclInit(None) == 0 and acl.aclrtSetDevice(ME) == 0
def there(address): return DEVICE and compat._ascend.bind("aclshmem_cpu_on_device", "ptr")(address)
def raw(address, n):
    if not there(address): return ctypes.string_at(address, n)
    data = ctypes.create_string_buffer(n)
    assert acl.aclrtMemcpy(data, n, address, n, 2) == 0
    return data.raw
def paint(address, data):
    if not there(address): ctypes.memmove(address, bytes(data), len(data))
    else: assert acl.aclrtMemcpy(address, len(data), bytes(data), len(data), 1) == 0
def words(address, n, kind=ctypes.c_int32): return list((kind * n).from_buffer_copy(raw(address, n * ctypes.sizeof(kind))))
def store(address, values, kind=ctypes.c_int32): paint(address, bytes((kind * len(values))(*values)))
"""


def job(n: int, body: str, folder: object, **env: str):
    import textwrap

    return Script(n, textwrap.dedent(HEAD) + textwrap.dedent(body), folder, {"T_PORT": str(free_port()), **env})


@pytest.mark.parametrize("n", [1, 2, 3])
def test_init_by_address_memory_and_teams(n, tmp_path):
    body = """
    assert shmem.aclshmemx_init_status() == shmem.InitStatus.NOT_INITIALIZED and core.direct.my_pe() == -1
    up_at_address()
    assert shmem.aclshmemx_init_status() == shmem.InitStatus.INITIALIZED == core.direct.init_status()
    assert (shmem.my_pe(), shmem.pe_count(), shmem.my_pe(0), shmem.team_my_pe(0), shmem.team_n_pes(0)) == (ME, N, ME, ME, N)
    address = shmem.aclshmem_malloc(8 << 20)
    base = shmem.aclshmemx_get_heap_base()
    assert base <= address < base + (64 << 20) and (shmem.aclshmemx_get_heap_base(_pyshmem.MemType.HOST_SIDE) != 0) == DEVICE
    assert shmem.aclshmem_ptr(address, ME) == address and shmem.aclshmem_ptr(address, N) == 0
    aligned, cleared = shmem.aclshmem_align(4096, 10), shmem.aclshmem_calloc(3, 5)
    assert aligned % 4096 == 0 and words(cleared, 15, ctypes.c_uint8) == [0] * 15
    for bad in (lambda: shmem.aclshmem_malloc(0), lambda: shmem.aclshmem_malloc(1 << 40), lambda: shmem.aclshmem_align(3, 8)):
        try: bad()
        except RuntimeError as problem: assert str(problem)
        else: raise AssertionError("no error")
    team = shmem.team_split_strided(0, ME, 1, 1)
    assert team > 0 and shmem.team_my_pe(team) == 0 and shmem.team_n_pes(team) == 1 and shmem.my_pe(team) == 0 == core.direct.team_my_pe(team)
    assert shmem.team_translate_pe(team, 0, 0) == ME and shmem.aclshmem_team_get_config(team).num_contexts == 0
    shmem.team_destroy(team)
    assert shmem.team_n_pes(team) == -1 and shmem.team_split_strided(0, N, 1, 1) == -1
    x, y = shmem.team_split_2d(0, 2)
    assert shmem.team_my_pe(x) == ME % 2 and shmem.team_my_pe(y) == ME // 2
    for block in (address, aligned, cleared): shmem.aclshmem_free(block)
    assert shmem.aclshmem_info_get_version() == (1, 1) and shmem.aclshmem_info_get_name() == "ACLSHMEM v1.1.1" and shmem.get_ffts_config() == 0
    assert core.get_version() == "libaclshmem_version=1.1"
    assert shmem.aclshmem_finalize() == 0 and shmem.aclshmem_finialize() == 0
    """
    with job(n, body, tmp_path) as script:
        script.good()


@pytest.mark.parametrize("n", [1, 2, 3])
def test_core_by_unique_id_as_upstream_writes_it(n, tmp_path):
    body = """
    path = os.path.join(FOLDER, "uid")
    if ME == 0:
        uid = core.get_unique_id()
        assert len(uid) == 136
        with open(path + ".new", "wb") as out: out.write(uid + bytes(376))  # receivers may have more room than there are bytes
        os.rename(path + ".new", path)
    until("uid")
    with open(path, "rb") as file: uid = file.read()
    assert shmem.aclshmem_init_using_unique_id(ME, N, 1 << 20, uid[:100]) == -1
    core.init(rank=ME, nranks=N, mem_size=16 << 20, uid=uid, initializer_method="uid")
    value, signal = core.buffer(64), core.buffer(4)
    assert value.length == 64 and core.get_peer_buffer(value, ME) == value
    stream = compat.stream_create()
    store(value.addr, [ME * 10 + i for i in range(16)])
    into = core.buffer(64)
    core.put_signal(into, value, signal, 7 + ME, core.direct.SignalOp.SIGNAL_SET, NEXT, stream)
    core.signal_wait(signal, 7 + PREV, core.direct.ComparisonType.CMP_EQ, stream)
    compat.stream_synchronize(stream)
    assert words(into.addr, 16) == [PREV * 10 + i for i in range(16)]
    back = core.buffer(64)
    core.get(back, into, NEXT, stream)
    core.quiet(stream)
    compat.stream_synchronize(stream)
    assert words(back.addr, 16) == [ME * 10 + i for i in range(16)]
    core.signal_op(signal, 100, core.direct.SignalOp.SIGNAL_ADD, NEXT, stream=0)
    core.signal_wait(signal, 107, core.direct.ComparisonType.CMP_GE, 0)
    compat.stream_synchronize(0)
    core.put(into, value, NEXT)  # the same again, as others may still look
    core.quiet(0)
    for call in (lambda: core.quiet(None), lambda: core.signal_op(signal, 1, 0, 0), lambda: core.init(rank=0), lambda: core.buffer(8, release=True)):
        try: call()
        except core.utils.AclshmemInvalid as problem: assert problem.msg
        else: raise AssertionError("no error")
    try: core.get_peer_buffer(value, N)
    except core.utils.AclshmemError as problem: assert "PE" in problem.msg
    else: raise AssertionError("no error")
    compat.stream_destroy(stream)
    for one in (value, signal, into, back): core.free(one)
    core.finalize()
    """
    with job(n, body, tmp_path) as script:
        script.good()


def test_every_binding(tmp_path):
    body = """
    begin()
    from shmem import _pyshmem_table as table
    kinds = dict(float=ctypes.c_float, double=ctypes.c_double, char=ctypes.c_char, **{k: getattr(ctypes, "c_" + k) for k in
                 "int8 int16 int32 int64 uint8 uint16 uint32 uint64".split()})
    called = set()
    def call(name, *arguments, **named):
        called.add(name)
        return getattr(_pyshmem, name)(*arguments, **named)
    room, size = shmem.aclshmem_malloc(4096), lambda k: ctypes.sizeof(kinds[k])
    private = ctypes.create_string_buffer(4096)
    here = ctypes.addressof(private)
    def fresh():
        meet(); paint(room, b"\\1" * 4096); meet()
    def fill(step, n=512):
        data = bytes((ME * 29 + i * 5 + step) % 251 + 2 for i in range(n)); ctypes.memmove(here, data, n); return data
    def of(pe, step, n=512): return bytes((pe * 29 + i * 5 + step) % 251 + 2 for i in range(n))
    step = 0
    sig, turns = shmem.aclshmem_calloc(1, 8), 0
    # contiguous
    for name, unit in [("putmem", 1)] + [(f"put{b}", b // 8) for b in table.BITS]:
        for form in ("", "_nbi"):
            step += 1; fresh(); fill(step)
            call(f"aclshmem_{name}{form}", room + 16, here, 5, NEXT); _pyshmem.aclshmemx_quiet_on_stream(0); meet()
            assert raw(room, 200) == b"\\1" * 16 + of(PREV, step)[: 5 * unit] + b"\\1" * (184 - 5 * unit), name
            get = name.replace("put", "get")
            ctypes.memset(here, 0, 4096)
            call(f"aclshmem_{get}{form}", dst=here, src=room + 16, elem_size=5, pe=NEXT)
            assert raw(here, 5 * unit + 1) == of(ME, step)[: 5 * unit] + b"\\0", get
            step += 1; fresh(); fill(step); turns += 1
            call(f"aclshmemx_{name}_signal{form}", room, here, 5, sig, turns, 0, NEXT)
            shmem.aclshmem_signal_wait_until(sig, 0, turns); called.add("aclshmem_signal_wait_until")
            assert raw(room, 5 * unit + 1) == of(PREV, step)[: 5 * unit] + b"\\1", name
    # strided
    for name, unit in [(str(b), b // 8) for b in table.BITS] + [(k, size(k)) for k in table.TYPES]:
        put, get = (f"aclshmem_iput{name}", f"aclshmem_iget{name}") if name.isdigit() else (f"aclshmem_{name}_iput", f"aclshmem_{name}_iget")
        step += 1; fresh(); fill(step)
        call(put, room, here, 2, 1, 4, NEXT); meet()
        want = b"".join(of(PREV, step)[i * unit:(i + 1) * unit] + b"\\1" * unit for i in range(4))
        assert raw(room, 8 * unit) == want, put
        ctypes.memset(here, 0, 512); call(get, here, room, 1, 2, 4, NEXT)
        assert raw(here, 4 * unit + 1) == of(ME, step)[: 4 * unit] + b"\\0", get
    # single values
    for k in table.TYPES:
        value = chr(65 + ME) if k == "char" else 30 + ME
        want = chr(65 + PREV) if k == "char" else 30 + PREV
        fresh(); call(f"aclshmem_{k}_p", room, value, NEXT); meet()
        assert call(f"aclshmem_{k}_g", room, ME) == want, k
    # streams
    fresh(); fill(9)
    call("aclshmemx_putmem_on_stream", room, here, 50, NEXT, 0); call("aclshmemx_quiet_on_stream", 0)
    turns += 1
    call("aclshmemx_signal_op_on_stream", sig, turns, 0, NEXT, 0); call("aclshmemx_signal_wait_until_on_stream", sig, 0, turns, 0)
    compat.stream_synchronize()
    assert raw(room, 51) == of(PREV, 9)[:50] + b"\\1"
    call("aclshmemx_getmem_on_stream", here + 1000, room, 50, NEXT, 0); compat.stream_synchronize()
    assert raw(here + 1000, 50) == of(ME, 9)[:50]
    # waits and tests: word i is 10 + i at places 2 and 5, else 1
    one, many = ctypes.c_int(), ctypes.c_size_t()
    found = (ctypes.c_size_t * 8)()
    A = ctypes.addressof
    for k in table.WAIT_TYPES:
        c = lambda v: chr(v) if k == "char" else v
        fresh()
        array = (kinds[k] * 8)(*[bytes([10 + i]) if k == "char" else 10 + i for i in range(8)])
        low = (kinds[k] * 8)(*[b"\\1" if k == "char" else 1 for _ in range(8)])
        paint(room, bytes(low)); meet()
        for i in (2, 5): _pyshmem.__getattr__(f"aclshmem_{k}_p")(room + i * size(k), c(10 + i), NEXT)
        s = f"aclshmem_{k}_"
        call(s + "wait_until", room + 2 * size(k), 0, c(12)); call(s + "wait", room + 5 * size(k), c(1))
        call(s + "wait_until_all", room + 2 * size(k), 1, 0, 3, c(12)); call(s + "wait_until_any", room, 8, 0, 0, c(15), A(many)); assert many.value == 5
        call(s + "wait_until_some", room, 8, A(found), 0, 2, c(9), A(many)); assert many.value == 2 and list(found[:2]) == [2, 5]
        call(s + "wait_until_all_vector", room + 2 * size(k), 1, 0, 0, A(array) + 2 * size(k))
        call(s + "wait_until_any_vector", room, 8, 0, 0, A(array), A(many)); assert many.value == 2
        call(s + "wait_until_some_vector", room, 8, A(found), 0, 0, A(array), A(many)); assert many.value == 2 and list(found[:2]) == [2, 5]
        call(s + "test", room, 0, c(1), A(one)); assert one.value == 1
        call(s + "test_any", room, 8, 0, 0, c(44), A(many)); assert many.value == 2**64 - 1
        call(s + "test_some", room, 8, A(found), 0, 4, c(10), A(many)); assert many.value == 6
        call(s + "test_all_vector", room, 8, 0, 0, A(array), A(one)); assert one.value == 0
        call(s + "test_any_vector", room, 8, 0, 0, A(array), A(many)); assert many.value == 2
        call(s + "test_some_vector", room, 8, A(found), 0, 0, A(array), A(many)); assert many.value == 2
        meet()
    assert called == set(table.signatures()), set(table.signatures()) - called
    put = _pyshmem.aclshmem_putmem
    for bad in (lambda: put(room, None, 8, 0), lambda: put(room, here, 8), lambda: put(room, here, 8, peer=0)):
        try: bad()
        except TypeError: pass
        else: raise AssertionError("no TypeError")
    for bad in (lambda: shmem.aclshmem_signal_wait_until(0, 0, 1), lambda: _pyshmem.aclshmem_int32_wait_until_any(0, 1, 0, 0, 1, A(many))):
        try: bad()
        except ValueError: pass
        else: raise AssertionError("no ValueError")
    try: shmem.aclshmem_putmem(room, here, 8, N)
    except shmem.InvalidPEError: pass
    else: raise AssertionError("a put to PE N was not refused")
    meet()
    assert shmem.aclshmem_finalize() == 0
    """
    with job(2, body, tmp_path) as script:
        script.good()


def test_keys_logger_and_exit(tmp_path):
    body = """
    heard, asked = [], []
    assert shmem.set_log_level(9) == -2 and shmem.set_log_level(3) == 0
    assert shmem.set_extern_logger(lambda level, text: heard.append((level, text))) == 0
    def decrypt(cipher): asked.append(cipher); return cipher[::-1]
    assert shmem.set_conf_store_tls_key("a key that is long enough", "terces", decrypt) == 0
    attributes = shmem.InitAttr()
    attributes.my_rank, attributes.n_ranks, attributes.local_mem_size, attributes.ip_port = ME, N, 1 << 20, "tcp://127.0.0.1:" + PORT
    assert shmem.set_conf_store_tls(True, "") == 0
    assert shmem.aclshmem_init(attributes) == 0
    assert asked == ["terces"] and any("is up" in text for _, text in heard)
    meet.word = shmem.aclshmem_calloc(1, 8)
    meet()
    if ME == 0:
        shmem.aclshmem_global_exit(17)
    time.sleep(300)
    """
    with job(2, body, tmp_path) as script:
        assert [e.code for e in script.wait()] == [17, 17]


def test_a_wrong_key_does_not_get_in(tmp_path):
    body = """
    assert shmem.set_conf_store_tls_key("a key that is long enough" + str(ME), "", None) == 0 and shmem.set_conf_store_tls(True, "") == 0
    attributes = shmem.InitAttr()
    attributes.my_rank, attributes.n_ranks, attributes.local_mem_size, attributes.ip_port = ME, N, 1 << 20, "tcp://127.0.0.1:" + PORT
    attributes.option_attr.shm_init_timeout = 3
    assert shmem.aclshmem_init(attributes) < 0
    """
    with job(2, body, tmp_path) as script:
        script.good()


def test_control_c_ends_a_wait(tmp_path):
    body = """
    begin()
    import threading
    began = time.monotonic()
    try:
        threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        shmem.aclshmem_signal_wait_until(meet.word, 0, 12345)
    except KeyboardInterrupt: assert time.monotonic() - began < 30
    else: raise AssertionError("no interrupt")
    os._exit(0)
    """
    with job(1, body, tmp_path) as script:
        script.good()


def test_tensors(tmp_path):
    pytest.importorskip("torch")
    body = """
    import torch
    if DEVICE: import torch_npu; torch.npu.set_device(ME)
    begin()
    t = shmem.aclshmem_create_tensor((3, 5), torch.float64, ME)
    where = t.device
    assert where.type == ("npu" if DEVICE else "cpu")
    assert t.shape == (3, 5) and t.dtype == torch.float64 and not t.any()
    assert shmem.calc_nbytes((3, 5), torch.float64) == 120 and shmem.calc_nbytes(None, t.dtype) == 0
    mine = torch.arange(15, dtype=torch.float64) + ME * 100
    meet()
    shmem.aclshmem_putmem(t.data_ptr(), mine.data_ptr(), 120, NEXT)
    meet()
    assert torch.equal(t.reshape(-1).cpu(), torch.arange(15, dtype=torch.float64) + PREV * 100)
    turned = shmem.construct_tensor_from_ptr(t.data_ptr(), (5, 3), torch.float64, where, stride=(1, 5))
    assert torch.equal(turned, t.t())
    tail = shmem.construct_tensor_from_ptr(t.data_ptr(), (2,), torch.float64, where, storage_offset=13)
    assert torch.equal(tail, t.reshape(-1)[13:])
    wrong = [(("x", (1,), torch.int8, "cpu"), TypeError), ((8, (1,), "int8", "cpu"), TypeError)]
    wrong += [((0, (1,), torch.int8, "cpu"), ValueError), ((8, (-1,), torch.int8, "cpu"), ValueError)]
    for bad, kind in wrong:
        try: shmem.construct_tensor_from_ptr(*bad)
        except kind: pass
        else: raise AssertionError(bad)
    meet()
    shmem.aclshmem_free_tensor(t)
    assert shmem.aclshmem_finalize() == 0
    """
    with job(2, body, tmp_path) as script:
        script.good()


def test_both_faces_in_one_process(tmp_path):
    body = """
    begin()
    world = up()
    assert shmem.my_pe() == ME and shmem.n_pes() == N
    shmem.barrier()
    shmem.finalize()
    assert shmem.my_pe() == ME and shmem.pe_count() == N
    meet()
    assert shmem.aclshmem_finalize() == 0
    """
    with job(2, body, tmp_path) as script:
        script.good()


NAMES = (
    "aclshmem_init aclshmem_get_unique_id aclshmem_init_using_unique_id aclshmem_finalize aclshmem_malloc aclshmem_free aclshmem_ptr aclshmemx_get_heap_base "
    "my_pe pe_count set_conf_store_tls_key set_conf_store_tls team_my_pe team_n_pes team_split_strided team_split_2d team_translate_pe team_destroy InitAttr "
    "InitStatus OpEngineType aclshmem_calloc aclshmem_align aclshmemx_init_status get_ffts_config aclshmem_global_exit aclshmem_putmem_nbi aclshmem_getmem_nbi "
    "aclshmemx_putmem_signal aclshmemx_putmem_signal_nbi aclshmem_putmem aclshmem_getmem aclshmem_info_get_version aclshmem_info_get_name "
    "aclshmem_team_get_config set_log_level set_extern_logger aclshmem_create_tensor aclshmem_free_tensor aclshmem_signal_wait_until OptionalAttr core "
    "calc_nbytes construct_tensor_from_ptr aclshmem_finialize _pyshmem _NATIVE_LOADED"
)


def test_upstreams_names_are_all_there():
    for name in NAMES.split():
        assert getattr(shmem, name) is not None, name
    from shmem import compat, core

    assert compat.__all__ == sorted(compat.__all__) and core.__all__ == sorted(core.__all__)
    for name in compat.__all__:
        assert getattr(compat, name) is not None


@pytest.mark.parametrize("name", sorted(n for n in NAMES.split() if n not in ("core", "_pyshmem", "_NATIVE_LOADED")))
def test_documented(name):
    from shmem import compat

    doc = inspect.getdoc(getattr(compat, name)) or ""
    assert doc, name
    if inspect.isfunction(getattr(compat, name)):
        assert "lock" in doc or "not wait" in doc, f"{name}: does not say whether it blocks"


def test_typed_attributes():
    uid = shmem._pyshmem.UniqueId()
    assert uid.version == 65672 and uid.internal == bytes(124)
    with pytest.raises(ValueError):
        uid.internal = b"short"
    assert (shmem.OptionalAttr().sockFd, shmem.InitAttr().option_attr.sockFd) == (-1, 0)
    with pytest.raises(ValueError):
        shmem.core.utils.Buffer(-1, 4)
    assert "0x10" in repr(shmem.core.utils.Buffer(16, 4))
