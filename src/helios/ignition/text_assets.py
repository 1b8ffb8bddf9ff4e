"""Tokenizer, template and special tokens of a core, checked against each other."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace

from helios.errors import ContractError, SourceError
from helios.frontend.template import Template
from helios.frontend.tokenizer import Tokenizer
from helios.ignition.envelope import assistant_envelope
from helios.ignition.preparation.tool_prompt import PROMPTED, with_tools
from helios.ignition.sources.source import Source
from helios.ignition.tokenizer import TokenizerAsset, make_tokenizer
from helios.ignition.tool_recognition import Recognised, recognise
from helios.schema import frontend_pb2


@dataclass(frozen=True, slots=True)
class TextAssets:
    """Everything between text and tokens, ready to be put into a core."""

    tokenizer: bytes
    template: str | None
    eos: tuple[int, ...]
    special: Mapping[str, str]
    add_bos: bool
    envelope: frontend_pb2.AssistantEnvelope | None
    syntaxes: Recognised


def make_text_assets(source: Source, vocabulary: int) -> TextAssets:
    """The text side of a source whose model knows `vocabulary` ids.

    Raises `SourceError` for a tokenizer or template that could not be served.
    """
    asset = make_tokenizer(source.tokenizer)
    content = _within(asset, vocabulary)
    try:
        tokenizer = Tokenizer(content.decode())
        template = Template(source.chat_template, asset.special) if source.chat_template else None
    except ContractError as error:
        raise SourceError(
            error.message, field=error.field, value=error.value, remedy="use another checkpoint"
        ) from None
    special = {tokenizer.token_text(token) for token in tokenizer.special_tokens}
    envelope = assistant_envelope(template, special) if template else None
    syntaxes = Recognised()
    if template:
        syntaxes = recognise(template, tokenizer, envelope)
        template, syntaxes = _prompted(template, syntaxes, asset.special)
    return TextAssets(
        tokenizer=content,
        template=template.source if template else None,
        eos=_ends(asset, tokenizer, envelope, vocabulary),
        special=asset.special,
        add_bos=asset.add_bos,
        envelope=envelope,
        syntaxes=syntaxes,
    )


def _prompted(
    template: Template, syntaxes: Recognised, special: Mapping[str, str]
) -> tuple[Template, Recognised]:
    """A template that knows no tools, with a preamble that tells of them."""
    if syntaxes.tools or template.mentions("tools"):
        return template, syntaxes
    return Template(with_tools(template.source), special), replace(syntaxes, tools=PROMPTED)


def _within(asset: TokenizerAsset, vocabulary: int) -> bytes:
    """The tokenizer without added tokens beyond the model's ids.

    Text-only checkpoints share tokenizers with siblings that know more, such as image sentinels;
    spelled out, those are ordinary text here.
    """
    if asset.size <= vocabulary:
        return asset.json
    layout = json.loads(asset.json)
    layout["added_tokens"] = [t for t in layout["added_tokens"] if t["id"] < vocabulary]
    beyond = [token for token, i in layout["model"]["vocab"].items() if i >= vocabulary]
    if beyond:
        raise SourceError(
            f"the tokenizer knows {len(beyond)} tokens that the model has no embedding for",
            field="tokenizer",
            value=beyond[0],
            remedy="use the tokenizer that belongs to the checkpoint",
        )
    return json.dumps(layout, ensure_ascii=False, separators=(",", ":")).encode()


def _ends(
    asset: TokenizerAsset,
    tokenizer: Tokenizer,
    envelope: frontend_pb2.AssistantEnvelope | None,
    vocabulary: int,
) -> tuple[int, ...]:
    """Ids that end generation: the declared ones, and the token that closes a message."""
    ends = list(asset.eos)
    for text in envelope.close if envelope else ():
        token = tokenizer.token_id(text)
        if token is not None and token in tokenizer.special_tokens:
            ends.append(token)
    wrong = next((end for end in ends if end >= vocabulary), None)
    if not ends or wrong is not None:
        raise SourceError(
            "the checkpoint names no usable token that ends generation",
            field="eos_token_id",
            value=wrong,
            remedy="set it in the checkpoint's generation settings",
        )
    return tuple(dict.fromkeys(ends))
