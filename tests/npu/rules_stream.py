"""Rules of processes, devices, threads, streams and events. One function per rule: it breaks the rule. See rules.py."""

import contextlib
import ctypes
import os

from acl import *  # noqa: F403
from breach import *  # noqa: F403


@case
def init_first():
    refuse("init_first", "aclrtSetDevice", 0)


@case
def init_twice():
    call("aclInit", None)
    refuse("init_twice", "aclInit", None)
    call("aclrtSetDevice", 0)  # the code may be ignored


@case
def finalize_twice():
    start()
    call("aclFinalize")
    refuse("finalize_twice", "aclFinalize")


@case
def forked_child():
    start()
    child = os.fork()
    if not child:
        with contextlib.suppress(BaseException):
            refuse("forked_child", "aclrtSetDevice", 0)
            os._exit(0)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0


@case(devices=3)
def device_id():
    call("aclInit", None)
    for bad in (3, -1):
        refuse("device_id", "aclrtSetDevice", bad)
    start_ok = try_call("aclrtSetDevice", 2)
    assert start_ok[0] == 0


@case
def set_device_first():
    import threading

    call("aclInit", None)
    refuse("set_device_first", "aclrtCreateStream", ctypes.byref(POINTER()))
    call("aclrtSetDevice", 0)
    seen = []

    def other_thread():
        try:
            refuse("set_device_first", "aclrtCreateStream", ctypes.byref(POINTER()))
            context = out("aclrtCreateContext", 0)
            call("aclrtSetCurrentContext", POINTER(context))
            stream()
            seen.append(True)
        except Exception as error:
            seen.append(error)

    thread = threading.Thread(target=other_thread)
    thread.start()
    thread.join()
    assert seen == [True], seen


@case
def reset_unset():
    start()
    refuse("reset_unset", "aclrtResetDevice", 1)
    call("aclrtSetDevice", 0)
    call("aclrtResetDevice", 0)
    stream()  # one of two references is left
    call("aclrtResetDevice", 0)
    refuse("set_device_first", "aclrtCreateStream", ctypes.byref(POINTER()))


@case
def peer_self():
    start(1)
    refuse("peer_self", "aclrtDeviceEnablePeerAccess", 1, 0)
    refuse("peer_self", "aclrtDeviceCanAccessPeer", ctypes.byref(I32()), 1, 1)


@case
def peer_flags():
    start()
    refuse("peer_flags", "aclrtDeviceEnablePeerAccess", 1, 1)


@case
def context_handle():
    start()
    refuse("context_handle", "aclrtSetCurrentContext", POINTER(0x1234))
    refuse("context_handle", "aclrtDestroyContext", POINTER(out("aclrtGetCurrentContext")))


@case
def null_out():
    start()
    refuse("null_out", "aclrtMalloc", NULL, SIZE(64), 0)
    refuse("null_out", "aclrtMemcpy", NULL, SIZE(8), NULL, SIZE(8), H2D)


@case
def stream_handle():
    start()
    gone = stream()
    call("aclrtDestroyStream", POINTER(gone))
    refuse("stream_handle", "aclrtSynchronizeStream", POINTER(gone))
    refuse("stream_handle", "aclrtDestroyStream", NULL)


@case
def stream_context():
    start(0)
    of_zero = stream()
    call("aclrtSetDevice", 1)
    refuse("stream_context", "aclrtSynchronizeStream", POINTER(of_zero))


@case
def stream_timeout():
    start()
    handle, release = blocked_stream()
    refuse("stream_timeout", "aclrtSynchronizeStreamWithTimeout", POINTER(handle), 20)
    refuse("stream_timeout", "aclrtSynchronizeDeviceWithTimeout", 20)
    release()
    call("aclrtSynchronizeStreamWithTimeout", POINTER(handle), 20000)


@case
def stream_flag():
    start()
    refuse("stream_flag", "aclrtCreateStreamWithConfig", ctypes.byref(POINTER()), 0, 0x40)
    refuse("stream_flag", "aclrtSetStreamFailureMode", POINTER(stream()), U64(2))


@case
def event_handle():
    start()
    event = out("aclrtCreateEvent")
    call("aclrtDestroyEvent", POINTER(event))
    refuse("event_handle", "aclrtRecordEvent", POINTER(event), NULL)


@case
def event_flag():
    start()
    refuse("event_flag", "aclrtCreateEventWithFlag", ctypes.byref(POINTER()), 0x80)
    refuse("event_flag", "aclrtCreateEventWithFlag", ctypes.byref(POINTER()), 0x48)


@case
def event_timeout():
    start()
    handle, release = blocked_stream()
    event = out("aclrtCreateEvent")
    call("aclrtRecordEvent", POINTER(event), POINTER(handle))
    refuse("event_timeout", "aclrtSynchronizeEventWithTimeout", POINTER(event), 20)
    release()
    call("aclrtSynchronizeEvent", POINTER(event))


@case
def event_reset():
    start()
    event = out("aclrtCreateEventExWithFlag", 8)
    refuse("event_reset", "aclrtResetEvent", POINTER(event), NULL)


@case
def event_time():
    start()
    events = [out("aclrtCreateEventWithFlag", flag) for flag in (8, 8, 1)]
    refuse("event_time", "aclrtEventElapsedTime", ctypes.byref(ctypes.c_float()), *map(POINTER, events[:2]))
    for event in events:
        call("aclrtRecordEvent", POINTER(event), NULL)
    synchronize()
    refuse("event_time", "aclrtEventElapsedTime", ctypes.byref(ctypes.c_float()), *map(POINTER, events[1:]))
    call("aclrtEventElapsedTime", ctypes.byref(ctypes.c_float()), *map(POINTER, events[:2]))


@case
def event_not_ipc():
    start()
    refuse("event_not_ipc", "aclrtIpcGetEventHandle", POINTER(out("aclrtCreateEvent")), ctypes.create_string_buffer(64))


@case
def event_same_process():
    start()
    event, handle = out("aclrtCreateEventWithFlag", 0x40), EventHandle()
    call("aclrtIpcGetEventHandle", POINTER(event), ctypes.byref(handle))
    refuse("event_same_process", "aclrtIpcOpenEventHandle", handle, ctypes.byref(POINTER()))


@case
def host_func():
    start()
    refuse("host_func", "aclrtLaunchHostFunc", NULL, NULL, NULL)


@case
def value_align():
    start()
    word = malloc(64)
    refuse("value_align", "aclrtValueWrite", POINTER(word + 4), U64(1), 0, NULL)
    pinned = out("aclrtMallocHost", SIZE(64))
    refuse("value_align", "aclrtValueWait", POINTER(pinned), U64(1), 0, NULL)


@case
def value_flag():
    start()
    word = malloc(64)
    refuse("value_flag", "aclrtValueWait", POINTER(word), U64(1), 4, NULL)
    refuse("value_flag", "aclrtValueWrite", POINTER(word), U64(1), 1, NULL)


@case
def wait_timeout():
    start()
    notify = out("aclrtCreateNotify", U64(0))
    call("aclrtWaitAndResetNotify", POINTER(notify), NULL, 1)
    refuse("wait_timeout", "aclrtSynchronizeStream", NULL)
