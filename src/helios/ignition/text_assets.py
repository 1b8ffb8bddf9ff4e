"""Tokenizer, template and special tokens of a core, checked against each other."""

import json
from collections.abc import Mapping

from helios.errors import ContractError, SourceError
from helios.frontend.template import Template
from helios.frontend.tokenizer import Tokenizer
from helios.ignition.chat_syntax import ChatSyntax, chat_syntax, without_template
from helios.ignition.envelope import Terminals
from helios.ignition.options import SyntaxChoice
from helios.ignition.sources.source import Source
from helios.ignition.tokenizer import TokenizerAsset, make_tokenizer
from helios.records import dataclass
from helios.schema import frontend_pb2


@dataclass(frozen=True, slots=True)
class TextAssets:
    """Everything between text and tokens, ready to be put into a core."""

    tokenizer: bytes
    eos: tuple[int, ...]
    special: Mapping[str, str]
    add_bos: bool
    chat: ChatSyntax


def make_text_assets(source: Source, vocabulary: int, choice: SyntaxChoice) -> TextAssets:
    """The text side of a source whose model knows `vocabulary` ids.

    Raises `SourceError` for a tokenizer or template that could not be served, and
    `ConfigurationError` for a choice of syntaxes that does not suit them.
    """
    asset = make_tokenizer(source.tokenizer)
    content = _within(asset, vocabulary)
    written = source.chat_template if choice.template is None else choice.template
    try:
        tokenizer = Tokenizer(content.decode())
        template = Template(written, asset.special) if written else None
    except ContractError as error:
        raise SourceError(
            error.message, field=error.field, value=error.value, remedy="use another checkpoint"
        ) from None
    added = filter(tokenizer.is_added, range(tokenizer.vocabulary))
    terminals = Terminals(
        tokens={tokenizer.token_text(token) for token in added},
        ends=[tokenizer.token_text(token) for token in asset.eos],
    )
    chat = (
        chat_syntax(template, tokenizer, terminals, choice)
        if template
        else without_template(choice)
    )
    return TextAssets(
        tokenizer=content,
        eos=_ends(asset, tokenizer, chat.envelope, vocabulary),
        special=asset.special,
        add_bos=asset.add_bos,
        chat=chat,
    )


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
        if token is not None and tokenizer.is_added(token):
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
