"""OpenVINO GenAI's continuous batching behind the few fields of /v1/completions in use here.

    python openvino_server.py MODEL.gguf --port 8080 --threads 2 --cache-gb 2

Only the standard library and the peer's packages are needed. One thread drives the pipeline; the
event loop hands it requests and writes what it makes. Prompts are token lists, decoding is greedy.
"""

import argparse
import asyncio
import json
import threading
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any

import numpy as np
import openvino  # type: ignore[import-not-found]
import openvino_genai as genai  # type: ignore[import-not-found]


@dataclass
class Job:
    """A request and the queue that its events go to; None ends it."""

    prompt: list[int]
    tokens: int
    events: "asyncio.Queue[dict[str, Any] | None]" = field(default_factory=asyncio.Queue)
    made: int = 0


class Engine(threading.Thread):
    """The pipeline and the one thread that steps it."""

    def __init__(self, model: str, threads: int, cache_gb: int) -> None:
        super().__init__(daemon=True)
        scheduling = genai.SchedulerConfig()
        scheduling.cache_size = cache_gb
        scheduling.enable_prefix_caching = True
        scheduling.max_num_seqs = 256
        settings = {"INFERENCE_NUM_THREADS": threads}
        self._pipeline = genai.ContinuousBatchingPipeline(model, scheduling, "CPU", settings)
        self._tokenizer = self._pipeline.get_tokenizer()
        self._waiting: SimpleQueue[Job] = SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._count = 0

    def submit(self, job: Job) -> None:
        self._waiting.put(job)

    def run(self) -> None:
        running: list[tuple[Job, Any]] = []
        while True:
            while not running or not self._waiting.empty():
                running.append(self._add(self._waiting.get()))
            self._pipeline.step()
            running = [pair for pair in running if not self._deliver(*pair)]

    def _add(self, job: Job) -> tuple[Job, Any]:
        config = genai.GenerationConfig()
        config.max_new_tokens = job.tokens
        config.do_sample = False
        config.ignore_eos = True
        ids = openvino.Tensor(np.array([job.prompt], dtype=np.int64))
        self._count += 1
        return job, self._pipeline.add_request(self._count, ids, config)

    def _deliver(self, job: Job, handle: Any) -> bool:
        """Send what came of a request; whether it has ended."""
        while handle.can_read():
            for output in handle.read().values():
                job.made += len(output.generated_ids)
                text = self._tokenizer.decode(output.generated_ids)
                self._send(job, {"choices": [{"index": 0, "text": text}]})
        if job.made < job.tokens:
            return False
        usage = {"prompt_tokens": len(job.prompt), "completion_tokens": job.made}
        self._send(job, {"choices": [], "usage": usage})
        self._send(job, None)
        return True

    def _send(self, job: Job, event: dict[str, Any] | None) -> None:
        self._loop.call_soon_threadsafe(job.events.put_nowait, event)


HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n"
    b"Connection: close\r\n\r\n"
)


def chunk(event: dict[str, Any]) -> bytes:
    data = b"data: " + json.dumps(event).encode() + b"\n\n"
    return b"%x\r\n%b\r\n" % (len(data), data)


async def answer(
    engine: Engine, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    length = int(head.partition("content-length:")[2].split("\r\n")[0])
    body = json.loads(await reader.readexactly(length))
    job = Job(body["prompt"], body["max_tokens"])
    engine.submit(job)
    writer.write(HEAD)
    while (event := await job.events.get()) is not None:
        writer.write(chunk(event))
    writer.write(b"0\r\n\r\n")
    await writer.drain()
    writer.close()


async def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("model")
    arguments.add_argument("--port", type=int, required=True)
    arguments.add_argument("--threads", type=int, required=True)
    arguments.add_argument("--cache-gb", type=int, default=2)
    options = arguments.parse_args()
    engine = Engine(options.model, options.threads, options.cache_gb)
    engine.start()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await answer(engine, reader, writer)

    server = await asyncio.start_server(handle, "127.0.0.1", options.port, limit=1 << 20)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
