"""What runs in a worker process: it answers one item after the other until its connection ends.

The process is started with nothing but this module's `serve` and a socket; what it is to do comes first over the
socket. It lives no longer than whoever started it: when the connection ends, a thread ends the process, whatever the
function is doing (and the CPU limit ends what never lets go of the interpreter).

Messages to it: first ``(sys.path, function, memory_bytes)``, then ``(item, cpu_seconds)`` each. From it: first
``("ready", None)``, then ``("result", value)`` or ``("failed", (reason, detail))`` each. Exit codes: 0 the other end
is gone, `OUT_OF_MEMORY` a limit was reached, `UNREADABLE` a message cannot be unpickled; SIGXCPU is the CPU limit.
"""

from __future__ import annotations

import gc
import math
import os
import pickle
import resource
import signal
import socket
import struct
import threading
from collections import deque
from typing import Any

from .isolation import reason_of

OUT_OF_MEMORY = 86
UNREADABLE = 87
_LENGTH = struct.Struct(">Q")


class Channel:
    """Pickled messages over a socket, each behind its length in bytes."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection

    def send(self, message: object) -> None:
        body = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
        self.socket.sendall(_LENGTH.pack(len(body)))
        self.socket.sendall(body)

    def receive(self) -> Any:
        """The next message; raises `EOFError` where the other end is gone, `TimeoutError` by the socket's timeout."""
        (size,) = _LENGTH.unpack(self._exactly(_LENGTH.size))
        return pickle.loads(self._exactly(size))

    def _exactly(self, size: int) -> bytearray:
        body = bytearray(size)
        view, done = memoryview(body), 0
        while done < size:
            count = self.socket.recv_into(view[done:])
            if count == 0:
                raise EOFError("the other end is gone")
            done += count
        return body


def serve(descriptor: int) -> None:
    """Answer until the other end is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started us decides when it is over
    _set_soft(resource.RLIMIT_CORE, 0)
    with socket.socket(fileno=descriptor) as connection:
        channel = Channel(connection)
        requests: deque[Any] = deque()
        arrived = threading.Semaphore(0)
        threading.Thread(target=_listen, args=(channel, requests, arrived), daemon=True).start()
        arrived.acquire()
        function, memory_bytes = requests.popleft()
        _limit_memory(memory_bytes)
        channel.send(("ready", None))
        while True:
            arrived.acquire()
            item, cpu_seconds = requests.popleft()
            _limit_cpu(cpu_seconds)
            try:
                channel.send(("result", function(item)))
            except MemoryError:
                os._exit(OUT_OF_MEMORY)
            except Exception as error:
                channel.send(("failed", reason_of(error)))
            del item


def _listen(channel: Channel, requests: deque[Any], arrived: threading.Semaphore) -> None:
    """Take requests, and end the process where there will be none any more."""
    try:
        while True:
            requests.append(channel.receive())
            arrived.release()
    except MemoryError:
        os._exit(OUT_OF_MEMORY)
    except (EOFError, OSError):
        os._exit(0)
    except BaseException:  # what was sent cannot be unpickled here: its code is not to be found
        os._exit(UNREADABLE)


def _limit_memory(memory_bytes: int) -> None:
    """On top of what is mapped; where the system does not tell (no ``/proc``), memory is not limited."""
    gc.collect()
    try:
        with open("/proc/self/statm", encoding="ascii") as stream:
            mapped_bytes = int(stream.read().split()[0]) * resource.getpagesize()
    except FileNotFoundError:
        return
    _set_soft(resource.RLIMIT_AS, mapped_bytes + memory_bytes)


def _limit_cpu(cpu_seconds: float) -> None:
    used = resource.getrusage(resource.RUSAGE_SELF)
    _set_soft(resource.RLIMIT_CPU, math.ceil(used.ru_utime + used.ru_stime + cpu_seconds))


def _set_soft(which: int, value: int) -> None:
    hard = resource.getrlimit(which)[1]
    resource.setrlimit(which, (value if hard == resource.RLIM_INFINITY else min(value, hard), hard))
