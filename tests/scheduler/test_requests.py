"""Requests that are wrong in themselves: each refusal names its parameter."""

import pytest
from scheduler_harness import geometry, request

from helios.contract.operation import Operation
from helios.contract.submission import Sampling
from helios.errors import RequestError
from helios.scheduler.request import check_fits, check_request

SHAPE = geometry()


@pytest.mark.parametrize(
    ("field", "options"),
    [
        ("prompt", {"prompt": ()}),
        ("prompt", {"prompt": range(64)}),
        ("prompt", {"prompt": (1, 100)}),
        ("prompt", {"prompt": (-1, 1)}),
        ("max_tokens", {"max_tokens": 0}),
        ("max_tokens", {"max_tokens": -1}),
        ("prompt_logprobs", {"prompt_logprobs": 21}),
        ("prompt_logprobs", {"prompt_logprobs": -2}),
        ("priority", {"priority": 101}),
        ("priority", {"priority": -101}),
        ("sampling", {"sampling": Sampling(temperature=float("nan"))}),
        ("sampling", {"sampling": Sampling(top_p=float("inf"))}),
        ("sampling", {"sampling": Sampling(logit_bias=((1, float("nan")),))}),
        ("top_logprobs", {"sampling": Sampling(top_logprobs=21)}),
        ("logit_bias", {"sampling": Sampling(logit_bias=((1, 0.0),) * 257)}),
        ("logit_bias", {"sampling": Sampling(logit_bias=((97, 0.0),))}),
        ("eos_tokens", {"eos_tokens": (1,) * 17}),
        ("eos_tokens", {"eos_tokens": (97,)}),
        ("stop_tokens", {"stop_tokens": (-1,)}),
        ("stop_sequences", {"stop_sequences": ((),)}),
        ("stop_sequences", {"stop_sequences": ((1,) * 65,)}),
        ("stop_sequences", {"stop_sequences": ((1,),) * 17}),
        ("boundaries", {"boundaries": (0,)}),
        ("boundaries", {"boundaries": (5,)}),
        ("images", {"images": ((3, 2, b""),)}),
        ("images", {"images": ((0, 2, b""), (1, 1, b""))}),
    ],
)
def test_a_refusal_names_the_parameter(field: str, options: dict[str, object]) -> None:
    defaults: dict[str, object] = {"prompt": (1, 2, 3, 4), "max_tokens": 4}
    asked = request(1, **{**defaults, **options})  # type: ignore[arg-type]
    with pytest.raises(RequestError) as refusal:
        check_request(asked, SHAPE)
    assert refusal.value.field == field


def test_limits_themselves_are_allowed() -> None:
    asked = request(
        1,
        range(63),
        1000,
        sampling=Sampling(top_logprobs=20, logit_bias=((96, 1.0),) * 256),
        prompt_logprobs=20,
        priority=-100,
        eos_tokens=(96,) * 16,
        stop_sequences=((1,) * 64,) * 16,
        boundaries=(63,),
        images=((0, 63, b"x"),),
    )
    check_request(asked, SHAPE)
    check_fits(asked, SHAPE)
    check_request(request(1, range(64), 0, prompt_logprobs=0), SHAPE)


def test_scores_need_a_program_that_scores() -> None:
    shape = geometry(without=[Operation.SCORED_PREFILL])
    with pytest.raises(RequestError, match="no program that scores"):
        check_request(request(1, range(4), 1, prompt_logprobs=0), shape)
