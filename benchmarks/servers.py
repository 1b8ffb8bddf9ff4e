"""The servers that are compared, each as its makers would start it on this machine."""

import asyncio
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import install, prepared
from benchmarks.client import HOST, ServerError, Target, complete
from benchmarks.places import HERE, LOGS, model_path

START_SECONDS = 600
FIRST_PROMPT = (504, 2988, 314)  # "The answer is", to which the next token is a word


@dataclass(frozen=True, slots=True)
class Shape:
    """How many requests a server is to hold at once, and how many tokens each may have.

    Peers that divide their cache among slots when they start are told, so that each is asked to
    hold no more than a workload needs. Helios shares its pages and is started the same way always.
    """

    streams: int
    tokens: int


MOST_STREAMS = 32


Command = Callable[[int, int, Shape], Sequence[str]]


@dataclass(frozen=True, slots=True)
class Peer:
    """A way to serve the model. `command` takes a port, the number of threads and a shape.

    Installing happens when the command is first made. `extra` are fields of its own that every
    request carries.
    """

    name: str
    command: Command
    model: str = "smollm2"
    environment: Mapping[str, str] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)


def _helios(numerics: str) -> Command:
    def command(port: int, threads: int, _: Shape) -> Sequence[str]:
        profile = ["--numerics", numerics] if numerics else []
        return [*prepared.serve_command(port, threads), *profile]

    return command


def _llama_cpp(kind: str) -> Command:
    def command(port: int, threads: int, shape: Shape) -> Sequence[str]:
        path = install.requantised(model_path(), kind) if kind else model_path()
        return [
            *(str(install.llama_cpp() / "llama-server"), "--model", str(path)),
            *("--host", HOST, "--port", str(port), "--threads", str(threads)),
            *("--parallel", str(shape.streams), "--no-kv-unified", "--no-ui"),
            *("--ctx-size", str(shape.streams * shape.tokens)),
        ]

    return command


def _openvino(port: int, threads: int, _: Shape) -> Sequence[str]:
    shim = HERE / "shims" / "openvino_server.py"
    return [
        *(str(install.openvino()), str(shim), str(model_path())),
        *("--port", str(port), "--threads", str(threads)),
    ]


# llama.cpp would otherwise run a chain of samplers that greedy decoding has no use for.
_GREEDY = {"samplers": ["top_k"], "top_k": 1, "cache_prompt": True}

PEER_LIST = (
    Peer("helios", _helios(""), environment=prepared.ENVIRONMENT),
    Peer("helios-a8", _helios("a8"), environment=prepared.ENVIRONMENT),
    Peer("helios-a16", _helios("a16"), environment=prepared.ENVIRONMENT),
    Peer("helios-f32", _helios("f32"), environment=prepared.ENVIRONMENT),
    Peer("llama.cpp", _llama_cpp(""), extra=_GREEDY),
    Peer("llama.cpp-q4_0", _llama_cpp("Q4_0"), extra=_GREEDY),
    Peer("openvino", _openvino),
)
PEER_BY_NAME = {peer.name: peer for peer in PEER_LIST}
DEFAULT_PEERS = ("helios", "llama.cpp", "llama.cpp-q4_0", "openvino")


class Server:
    """A running peer. `started` is the seconds from exec to the end of the first completion."""

    def __init__(self, peer: Peer, threads: int, shape: Shape) -> None:
        port = free_port()
        command = peer.command(port, threads, shape)
        LOGS.mkdir(parents=True, exist_ok=True)
        self.peer = peer
        self.target = Target(port, peer.model, peer.extra)
        self._log = (LOGS / f"{peer.name}.log").open("wb")
        begin = time.perf_counter()
        self._process = subprocess.Popen(
            command,
            env={**os.environ, **peer.environment},
            stdout=self._log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            asyncio.run(self._first_completion(begin + START_SECONDS))
        except BaseException:
            self.close()
            raise
        self.started = time.perf_counter() - begin

    def resident(self) -> int:
        """Bytes of the process and all its children that lie in memory now."""
        return sum(_resident(pid) for pid in _family(self._process.pid))

    def close(self) -> None:
        """End the process group and wait for it."""
        for number, seconds in ((signal.SIGTERM, 15), (signal.SIGKILL, 15)):
            if self._process.poll() is None:
                os.killpg(self._process.pid, number)
                try:
                    self._process.wait(seconds)
                except subprocess.TimeoutExpired:
                    continue
        self._log.close()

    async def _first_completion(self, deadline: float) -> None:
        while True:
            try:
                await complete(self.target, FIRST_PROMPT, 1)
            except (OSError, EOFError, ServerError) as error:
                if self._process.poll() is not None or time.perf_counter() > deadline:
                    raise SystemExit(
                        f"{self.peer.name} does not serve ({error}); see {self._log.name}"
                    ) from error
                await asyncio.sleep(0.005)
            else:
                return


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def _family(pid: int) -> list[int]:
    found = [pid]
    for parent in found:
        try:
            children = Path(f"/proc/{parent}/task/{parent}/children").read_text()
        except OSError:
            continue
        found += [int(child) for child in children.split()]
    return found


def _resident(pid: int) -> int:
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")
