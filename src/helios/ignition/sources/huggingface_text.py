"""The text side of a checkpoint folder: tokenizer, special tokens, chat templates, licence."""

import re
from collections.abc import Mapping
from pathlib import Path

from helios.errors import SourceError
from helios.ignition.sources.facts import Facts
from helios.ignition.sources.folder import Folder
from helios.ignition.sources.source import License, TokenizerFile
from helios.ignition.sources.templates import DEFAULT, one_template

_TEMPLATES = "additional_chat_templates"
_LICENSE_LINE = re.compile(r"^license:\s*(\S+)\s*$", re.MULTILINE)


def read_tokenizer(folder: Folder, ends: tuple[Facts, ...], *, complete: bool) -> TokenizerFile:
    """`tokenizer.json` and the special tokens that the files beside it name.

    `ends` are settings that may name the tokens which end generation; the first that does counts.
    """
    content = folder.bytes("tokenizer.json")
    if content is None and complete:
        raise SourceError(
            "the folder lacks a fast tokenizer",
            field="tokenizer.json",
            remedy="save it with transformers: AutoTokenizer.from_pretrained(…).save_pretrained(…)",
        )
    settings = Facts(folder.json("tokenizer_config.json"))
    special = Facts(folder.json("special_tokens_map.json"))

    def token(key: str) -> str | None:
        return _token_text(settings, key) or _token_text(special, key)

    return TokenizerFile(
        json=content or b"",
        bos=token("bos_token"),
        eos=token("eos_token"),
        padding=token("pad_token"),
        unknown=token("unk_token"),
        eos_ids=next((ids for facts in ends if (ids := _end_ids(facts))), ()),
        add_bos=settings.flag("add_bos_token") if "add_bos_token" in settings else None,
    )


def read_template(folder: Folder) -> str | None:
    """The chat template, from whichever of the places that are in use."""
    own = folder.text("chat_template.jinja")
    if own is not None:
        return one_template({**_additional(folder), DEFAULT: own})
    for name in ("tokenizer_config.json", "chat_template.json"):
        settings = Facts(folder.json(name))
        if "chat_template" in settings:
            return one_template({**_additional(folder), **_named(settings)})
    return None


def read_license(folder: Folder) -> License:
    """The licence text, and what the model card calls it."""
    text = folder.bytes("LICENSE") or folder.bytes("LICENSE.txt") or b""
    card = (folder.bytes("README.md") or b"").decode(errors="replace")
    found = _LICENSE_LINE.search(card[:4096])
    return License(found[1] if found else "", text=text.decode(errors="replace"))


def _additional(folder: Folder) -> Mapping[str, str]:
    """Further templates, each in a file of its own."""
    files = sorted((folder.path / _TEMPLATES).glob("*.jinja"))
    return {file.stem: folder.text(f"{_TEMPLATES}/{file.name}") or "" for file in files}


def _named(settings: Facts) -> Mapping[str, str]:
    """One template, or a list of named ones."""
    try:
        return {DEFAULT: settings.text("chat_template")}
    except SourceError:
        entries = settings.sequence("chat_template")
    named = [Facts(e, "chat_template.") for e in entries if isinstance(e, dict)]
    return {facts.text("name"): facts.text("template") for facts in named}


def _token_text(settings: Facts, key: str) -> str | None:
    """A special token, which is a string or an object with its content."""
    if key not in settings:
        return None
    try:
        return settings.text(key)
    except SourceError:
        return settings.group(key).text("content")


def _end_ids(facts: Facts) -> tuple[int, ...]:
    if "eos_token_id" not in facts:
        return ()
    try:
        return (facts.whole("eos_token_id"),)
    except SourceError:
        ids = facts.sequence("eos_token_id")
    if not all(type(i) is int and i >= 0 for i in ids):
        raise SourceError(
            "must be token ids", field=facts.name("eos_token_id"), value=ids, remedy="correct it"
        )
    return tuple(i for i in ids if isinstance(i, int))


def hub_name(path: Path) -> str:
    """A folder's own name, or that of the repository whose cached snapshot it is."""
    resolved = path.resolve()
    repository = resolved.parent.parent.name
    if resolved.parent.name == "snapshots" and repository.startswith("models--"):
        return repository.rpartition("--")[2]
    return resolved.name
