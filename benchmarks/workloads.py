"""What is asked of the servers, and the order in which they are asked.

All servers run at once and idle but for the one that is measured. For each repeat and workload
every server gets the same prompts, one server right after the other, starting with another server
each time, so that a slow minute of the machine strikes all of them.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from benchmarks.client import Answer, Target, complete
from benchmarks.corpus import Prompts
from benchmarks.results import Measured
from benchmarks.servers import Peer, Server, Shape

T = TypeVar("T")
PromptList = list[list[int]]
Run = Callable[[Target, PromptList], Coroutine[None, None, float]]
Report = Callable[[str], None]


MANY_STREAMS = Shape(32, 512)
LONG_PROMPTS = Shape(2, 2304)
FOOTPRINT = Shape(16, 1024)


@dataclass(frozen=True, slots=True)
class Workload:
    """A question to a server. `prompts` and `length` say what `run` is given, `shape` what the
    server has to hold, `more` whether a larger figure is better."""

    name: str
    title: str
    unit: str
    more: bool
    prompts: int
    length: int
    run: Run
    shape: Shape


def throughput(streams: int, tokens_in: int, tokens_out: int) -> Workload:
    """Streams that start together; output tokens per second until the last one ends."""

    async def run(target: Target, prompts: PromptList) -> float:
        answers = await asyncio.gather(*(complete(target, p, tokens_out) for p in prompts))
        return output_rate(answers)

    plural = "s" if streams > 1 else ""
    title = f"{tokens_in} in, {tokens_out} out, {streams} stream{plural}"
    return Workload(
        f"http.{streams}", title, "tokens/s", True, streams, tokens_in, run, MANY_STREAMS
    )


def output_rate(answers: Sequence[Answer]) -> float:
    """Output tokens per second from the first request sent to the last byte received."""
    seconds = max(a.last for a in answers) - min(a.sent for a in answers)
    return sum(a.tokens for a in answers) / seconds


def first_token(length: int) -> Workload:
    """Seconds to the first text after a prompt that no cache knows."""

    async def run(target: Target, prompts: PromptList) -> float:
        answer = await complete(target, prompts[0], 4)
        return answer.first - answer.sent

    title = f"first token after {length:,} tokens"
    return Workload(f"first.{length}", title, "s", False, 1, length, run, LONG_PROMPTS)


def cached_prefix(prefix: int, more: int) -> Workload:
    """Seconds to the first text after a prompt of which all but the last tokens were seen."""

    async def run(target: Target, prompts: PromptList) -> float:
        await complete(target, prompts[0][:prefix], 4)
        answer = await complete(target, prompts[0], 4)
        return answer.first - answer.sent

    title = f"first token after {prefix:,} cached tokens and {more} new"
    return Workload(f"prefix.{prefix}", title, "s", False, 1, prefix + more, run, LONG_PROMPTS)


WORKLOADS = (
    *(throughput(streams, 128, 128) for streams in (1, 8, 16, 32)),
    first_token(512),
    first_token(2000),
    cached_prefix(1500, 50),
)
QUICK_WORKLOADS = (
    *(throughput(streams, 16, 16) for streams in (1, 4)),
    first_token(128),
    cached_prefix(96, 16),
)

FOOTPRINTS = {
    "start": Measured("exec to first completion", "s", False),
    "resident.start": Measured("resident after the first completion", "MB", False),
    "resident.busy": Measured("resident at 16 streams", "MB", False),
    "resident.end": Measured("resident after all the streams", "MB", False),
}


@dataclass
class Samples:
    """Values by workload and peer, in the order of the repeats."""

    values: dict[str, dict[str, list[float]]] = field(default_factory=dict)

    def add(self, workload: str, peer: str, value: float) -> None:
        """Note one value."""
        self.values.setdefault(workload, {}).setdefault(peer, []).append(value)


def run_workloads(
    peers: Sequence[Peer],
    workloads: Sequence[Workload],
    prompts: Prompts,
    threads: int,
    repeats: int,
    samples: Samples,
    report: Report,
) -> None:
    """Measure every workload on every peer, with servers started once for each shape."""
    for shape in dict.fromkeys(workload.shape for workload in workloads):
        with started(peers, threads, shape, report) as servers:
            _warm_up(servers, prompts)
            for repeat in range(repeats):
                for workload in workloads:
                    if workload.shape == shape:
                        label = f"{repeat + 1}/{repeats}"
                        order = rotated(servers, repeat)
                        _interleaved(order, workload, prompts, samples, report, label)
            if shape == MANY_STREAMS:
                for server in servers:
                    samples.add("resident.end", server.peer.name, server.resident() / 1e6)


@contextmanager
def started(
    peers: Sequence[Peer], threads: int, shape: Shape, report: Report
) -> Iterator[list[Server]]:
    """All peers, running."""
    with ExitStack() as stack:
        servers = []
        for peer in peers:
            report(f"starting {peer.name}")
            servers.append(stack.enter_context(closing(Server(peer, threads, shape))))
        yield servers


def _warm_up(servers: Sequence[Server], prompts: Prompts) -> None:
    given = prompts.take(2, 32)
    for server in servers:
        asyncio.run(throughput(2, 32, 32).run(server.target, given))


def _interleaved(
    servers: Sequence[Server],
    workload: Workload,
    prompts: Prompts,
    samples: Samples,
    report: Report,
    label: str,
) -> None:
    given = prompts.take(workload.prompts, workload.length)
    for server in servers:
        value = asyncio.run(workload.run(server.target, given))
        samples.add(workload.name, server.peer.name, value)
        report(f"{label} {workload.title}: {server.peer.name} {value:.3f} {workload.unit}")


def rotated(servers: Sequence[T], turn: int) -> list[T]:
    """The servers in order, another one first each turn."""
    shift = turn % max(len(servers), 1)
    return [*servers[shift:], *servers[:shift]]


def run_footprints(
    peers: Sequence[Peer],
    prompts: Prompts,
    streams: int,
    threads: int,
    repeats: int,
    samples: Samples,
    report: Report,
) -> None:
    """Start every peer alone, several times: how long it takes, and how much memory."""
    for repeat in range(repeats):
        given = prompts.take(streams, 128)
        for peer in peers:
            with closing(Server(peer, threads, FOOTPRINT)) as server:
                samples.add("start", peer.name, server.started)
                samples.add("resident.start", peer.name, server.resident() / 1e6)
                busy = asyncio.run(_most_resident(server, given))
                samples.add("resident.busy", peer.name, busy / 1e6)
                report(f"{repeat + 1}/{repeats} start: {peer.name} {server.started:.2f} s")


async def _most_resident(server: Server, prompts: PromptList) -> int:
    """The most bytes seen in memory while every prompt is continued by 128 tokens."""
    work = asyncio.gather(*(complete(server.target, p, 128) for p in prompts))
    most = 0
    while not work.done():
        most = max(most, server.resident())
        await asyncio.sleep(0.1)
    await work
    return most
