"""A request's sampling and limits: explicit values first, then the core's defaults."""

import secrets
from collections.abc import Collection
from typing import TypeVar

from helios.contract.prepared import ServingDefaults
from helios.contract.submission import Sampling
from helios.errors import RequestError
from helios.frontend.prompt import ContextLengthError
from helios.frontend.stops import check_tokens
from helios.server.protocol.fields import GenerationFields

Value = TypeVar("Value")

_SEEDS = 1 << 63
_BAN = -1e9  # finite, as all biases are, and below any logit


def first_seed(asked: int | None) -> int:
    """The seed of a request's first choice: its own, or a fresh one."""
    return secrets.randbelow(_SEEDS) if asked is None else asked % _SEEDS


def sampling_of(
    fields: GenerationFields,
    defaults: ServingDefaults,
    *,
    seed: int,
    vocabulary: int,
    top_logprobs: int,
    banned: Collection[int] = (),
) -> Sampling:
    """How one choice's tokens are drawn; `top_logprobs` is -1 for no scores, and `banned` are
    tokens that must not be."""
    return Sampling(
        temperature=_pick(fields.temperature, defaults.temperature, 1.0),
        top_k=max(_pick(fields.top_k, defaults.top_k, 0), 0),
        top_p=_pick(fields.top_p, defaults.top_p, 1.0),
        min_p=_pick(fields.min_p, defaults.min_p, 0.0),
        repetition_penalty=_pick(fields.repetition_penalty, defaults.repetition_penalty, 1.0),
        presence_penalty=_pick(fields.presence_penalty, defaults.presence_penalty, 0.0),
        frequency_penalty=_pick(fields.frequency_penalty, defaults.frequency_penalty, 0.0),
        seed=seed % _SEEDS,
        min_output=fields.min_tokens or 0,
        logit_bias=_logit_bias(fields.logit_bias or {}, vocabulary, banned),
        top_logprobs=top_logprobs,
    )


def output_limit(
    prompt_tokens: int, context: int, asked: int | None, default: int | None, *, field: str
) -> int:
    """The most tokens to sample. An explicit limit must fit; a default gives way. `field` is the
    parameter that holds the prompt."""
    room = context - prompt_tokens
    if room < (asked != 0):
        raise ContextLengthError(
            f"the prompt has {prompt_tokens} tokens; this model's context holds {context}, one "
            "of them for the answer",
            field=field,
            value=prompt_tokens,
            remedy=f"send at most {context - 1} tokens",
        )
    if asked is None:
        return room if default is None else min(default, room)
    if asked > room:
        raise ContextLengthError(
            f"{prompt_tokens} prompt tokens and {asked} new ones exceed this model's context of "
            f"{context} tokens",
            field="max_tokens",
            value=asked,
            remedy=f"ask for at most {room}",
        )
    return asked


def _pick(asked: Value | None, default: Value | None, otherwise: Value) -> Value:
    if asked is not None:
        return asked
    return otherwise if default is None else default


def _logit_bias(
    bias: dict[str, float], vocabulary: int, banned: Collection[int]
) -> tuple[tuple[int, float], ...]:
    pairs: dict[int, float] = {}
    for name, value in bias.items():
        field = f"logit_bias.{name}"
        if not (name.isascii() and name.isdigit() and len(name) < 11):
            raise RequestError(
                "is not a token id", field=field, value=name, remedy="use decimal token ids"
            )
        check_tokens((int(name),), vocabulary, field)
        pairs[int(name)] = value
    pairs.update(dict.fromkeys(banned, _BAN))
    return tuple(sorted(pairs.items()))
