"""Next-token logits of a window of text from the models that are compared."""

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from benchmarks import install
from benchmarks.checkpoint import reference_model
from benchmarks.divergence import Floats
from helios.contract.operation import Operation
from helios.contract.submission import Lane, LaneAdmission, Sampling, Submission
from helios.errors import DeviceError
from helios.program.extents import ROWS, SAMPLED, TOKENS
from helios.runtime.capture import checkpoints, read_checkpoint
from helios.runtime.loader import LoadedModel
from helios.runtime.packing import PackedStep

LOGITS = "logits"  # as Helios' programs name them


class LogitSource(Protocol):
    """Something that reads a window and predicts every next token."""

    def __call__(self, tokens: Sequence[int]) -> Floats:
        """Logits [tokens, vocabulary]; windows do not see each other."""


class Reference:
    """`transformers` in float32, on the values that the checkpoint holds."""

    def __init__(self, path: Path, threads: int) -> None:
        import torch

        torch.set_num_threads(threads)
        self._torch = torch
        self._model: Any = reference_model(path)

    def __call__(self, tokens: Sequence[int]) -> Floats:
        """See `LogitSource`."""
        with self._torch.inference_mode():
            found: Floats = self._model(self._torch.tensor([list(tokens)])).logits[0].numpy()
        return found


class Native:
    """A loaded core, through its scoring program.

    With `LOGITS` retained every call returns logits. Retaining keeps operations unfused, so the
    product's own plan is held against it by the scores that both report: `scores` has the
    log-probabilities of the last window's tokens, each given those before it.
    """

    def __init__(self, loaded: LoadedModel) -> None:
        self._model, self._storage = loaded.model, loaded.storage
        variants = loaded.model.geometry.variants
        self._variants = {v.operation: v for v in variants}
        program = self._variants[Operation.SCORED_PREFILL].program
        points = checkpoints(loaded.compiled)[program]
        self._point = next((point for point in points if point.name == LOGITS), None)
        self._sequence = 0
        self.scores: list[float] = []

    def __call__(self, tokens: Sequence[int]) -> Floats:
        """See `LogitSource`; empty if logits are not retained."""
        most = self._variants[Operation.SCORED_PREFILL].tokens
        self._submit(
            Operation.INITIALIZE, Lane(0, 1, 0, admission=LaneAdmission(Sampling(0.0), tokens))
        )
        page = self._model.geometry.page_tokens
        self.scores, found, pages = [], [], 0
        for start in range(0, len(tokens), most):
            part = tokens[start : start + most]
            end = start + len(part)
            needed = -(-end // page)
            lane = Lane(
                *(0, 1, start, len(part), part),
                new_pages=tuple((p, p) for p in range(pages, needed)),
                targets=[*tokens[start + 1 : end + 1], 0][: len(part)],
            )
            pages = needed
            step = self._submit(Operation.SCORED_PREFILL, lane)
            if self._point is not None:
                found.append(read_checkpoint(self._point, self._storage, step).copy())
        self.scores.pop()  # the last token's target is made up
        return np.concatenate(found) if found else np.empty((0, 0), np.float32)

    def _submit(self, operation: Operation, lane: Lane) -> PackedStep:
        program = self._variants[operation].program
        frame = self._sequence % self._model.geometry.frames
        self._model.submit(Submission(self._sequence, frame, operation, program, (lane,)))
        self._sequence += 1
        done = self._model.wait()
        if done is None or done.error is not None:
            lost = DeviceError("the device returned no completion", field=program)
            raise (done.error if done is not None else None) or lost
        self.scores += done.lanes[0].scores
        return PackedStep(program, frame, {ROWS: 1, TOKENS: lane.query_length, SAMPLED: 0}, ())


class LlamaCpp:
    """llama.cpp, in a process that runs as long as this object is used."""

    def __init__(self, process: "subprocess.Popen[bytes]", vocabulary: int) -> None:
        self._process = process
        self._vocabulary = vocabulary

    def __call__(self, tokens: Sequence[int]) -> Floats:
        """See `LogitSource`."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(np.array([len(tokens), *tokens], dtype=np.int32).tobytes())
        self._process.stdin.flush()
        wanted = len(tokens) * self._vocabulary * 4
        content = self._process.stdout.read(wanted)
        if len(content) != wanted:
            raise SystemExit("llama.cpp gave no logits")
        return np.frombuffer(content, dtype=np.float32).reshape(len(tokens), self._vocabulary)


@contextmanager
def llama_cpp(path: Path, vocabulary: int, threads: int, window: int) -> Iterator[LlamaCpp]:
    """llama.cpp on a file, for windows of at most `window` tokens."""
    binaries = install.llama_cpp()
    source = binaries.parent.parent / "source" / "llama.cpp"
    program = install.compiled(
        "llama_logits.c",
        [f"-I{source / 'include'}", f"-I{source / 'ggml' / 'include'}"],
        [f"-L{binaries}", "-lllama", "-lggml", "-lggml-base", f"-Wl,-rpath,{binaries}"],
    )
    process = subprocess.Popen(
        [program, str(path), str(threads), str(window)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        yield LlamaCpp(process, vocabulary)
    finally:
        process.communicate()
