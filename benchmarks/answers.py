"""Greedy answers to ordinary questions: ours beside llama.cpp's, and where they part.

Two greedy texts may part at a near tie without either being wrong. So at the first different token
the float32 reference is asked how much it prefers one of the two.
"""

import json
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks.client import HOST
from benchmarks.logits import LogitSource
from benchmarks.servers import Server
from helios.runtime.loader import LoadedModel
from helios.runtime.single import SingleRequest

CANARY = "What is the capital of France?"
QUESTIONS = (
    "How do I boil an egg?",
    "Write a short poem about the sea.",
    "What is the difference between a virus and a bacterium?",
    "Give me three tips for learning a new language.",
    "Explain gravity to a child.",
    "Who wrote Romeo and Juliet, and what is it about?",
    "Suggest a simple dinner with rice and vegetables.",
    "Why is the sky blue?",
    "Write a polite email asking for a day off.",
    "What should I pack for a weekend in the mountains?",
)


@dataclass(frozen=True, slots=True)
class Parting:
    """Where two answers first differ, if they do.

    `gap` is by how much the reference's logit of their token lies above that of ours: positive if
    the reference sides with them.
    """

    question: str
    equal_tokens: int
    ours: int | None = None
    theirs: int | None = None
    gap: float | None = None


def first_difference(ours: Sequence[int], theirs: Sequence[int]) -> int | None:
    """The first place where the two differ, up to the end of the shorter one."""
    pairs = enumerate(zip(ours, theirs, strict=False))
    return next((i for i, (a, b) in pairs if a != b), None)


def parting(
    question: str,
    prompt: Sequence[int],
    ours: Sequence[int],
    theirs: Sequence[int],
    reference: LogitSource,
) -> Parting:
    """Compare two answers to one prompt."""
    place = first_difference(ours, theirs)
    if place is None:
        return Parting(question, min(len(ours), len(theirs)))
    logits = reference([*prompt, *ours[:place]])[-1]
    a, b = ours[place], theirs[place]
    return Parting(question, place, a, b, float(logits[b]) - float(logits[a]))


def native_answer(
    loaded: LoadedModel, prompt: Sequence[int], ends: frozenset[int], most: int
) -> list[int]:
    """Greedy tokens up to an end token, which is left out, or `most`."""
    return list(_until(SingleRequest(loaded.model), prompt, ends, most))


def _until(
    request: SingleRequest, prompt: Sequence[int], ends: frozenset[int], most: int
) -> Iterator[int]:
    for step in request.generate(prompt, most):
        if step.token in ends:
            return
        yield step.token


def llama_answer(server: Server, prompt: Sequence[int], most: int) -> list[int]:
    """The same from a running llama-server."""
    body = {
        "prompt": list(prompt),
        "n_predict": most,
        "temperature": 0,
        "return_tokens": True,
        **server.target.extra,
    }
    request = urllib.request.Request(
        f"http://{HOST}:{server.target.port}/completion",
        data=json.dumps(body).encode(),
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=300) as response:
        tokens: list[int] = json.load(response)["tokens"]
    return tokens
