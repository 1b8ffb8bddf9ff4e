"""A tokenizer that is read piece by piece is the one that the library reads from the whole file."""

import json
from typing import Any

import pytest
import tokenizers
from small_tokenizers import byte_level, sentence_piece

from helios.frontend.tokenizer_file import read_tokenizer

TEXT = "user: Hello <|im_end|> <tool_call> Grüße, 数学 🙂 [extra]"
EXTRA: dict[str, Any] = {
    "content": "[extra]",
    "single_word": True,
    "lstrip": True,
    "rstrip": True,
    "normalized": True,
}


def _changed(source: str, **model: Any) -> str:
    layout = json.loads(source)
    layout["model"] |= model
    return json.dumps(layout)


def _with_added(source: str, *tokens: dict[str, Any]) -> str:
    layout = json.loads(source)
    layout["added_tokens"] = [*tokens, *layout["added_tokens"]]
    return json.dumps(layout)


def _spelled_merges(source: str) -> str:
    merges = json.loads(source)["model"]["merges"]
    return _changed(source, merges=[" ".join(pair) for pair in merges])


@pytest.mark.parametrize(
    "source",
    [
        byte_level(),
        sentence_piece(),
        _spelled_merges(byte_level()),
        _changed(byte_level(), ignore_merges=True, dropout=0.0),
        _changed(byte_level(), cache_of_tomorrow=None),
        # An id that the vocabulary doesn't give is the library's to correct.
        _with_added(byte_level(), {**EXTRA, "id": 7, "special": True}),
        _with_added(sentence_piece(), {**EXTRA, "id": 9000, "special": False}),
        tokenizers.Tokenizer(tokenizers.models.WordLevel({"user": 0, "?": 1}, "?")).to_str(),
        tokenizers.Tokenizer(tokenizers.models.Unigram([("?", 0.0), ("u", -1.0)], 0)).to_str(),
    ],
)
def test_it_is_what_the_library_reads(source: str) -> None:
    tokenizer, layout = read_tokenizer(source)
    oracle = tokenizers.Tokenizer.from_str(source)
    assert tokenizer.to_str() == oracle.to_str()
    assert tokenizer.encode(TEXT).ids == oracle.encode(TEXT).ids
    assert layout["model"]["type"] == json.loads(source)["model"]["type"]
    assert layout["model"]["vocab"] == json.loads(source)["model"]["vocab"]
    assert layout["added_tokens"] == json.loads(source)["added_tokens"]


@pytest.mark.parametrize(
    "source",
    [
        "",
        "[]",
        '{"model": {"type": "BPE"}}',
        _changed(byte_level(), merges=[["no such", "token"]]),
        _changed(byte_level(), vocab={"a": -1}),
        _changed(byte_level(), dropout=2.0),
        json.dumps({**json.loads(byte_level()), "decoder": {"type": "Unheard"}}),
        json.dumps({**json.loads(byte_level()), "tomorrow": 1}),
    ],
)
def test_what_the_library_refuses_is_refused(source: str) -> None:
    with pytest.raises(Exception):  # noqa: B017, PT011 - the library raises nothing narrower
        tokenizers.Tokenizer.from_str(source)
    with pytest.raises(Exception):  # noqa: B017, PT011
        read_tokenizer(source)
