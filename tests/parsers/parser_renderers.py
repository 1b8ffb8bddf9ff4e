"""How each syntax writes messages: the other half of the parsers, for tests.

A rendered message is a list of parts: a `Mark` is a control token, a string is ordinary text even
where it spells one.
"""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from parser_runs import frontend

from helios.contract.syntax import PreparedFrontend
from helios.ignition.preparation import syntaxes as s

Arguments = dict[str, object]


@dataclass(frozen=True)
class Mark:
    """A control token."""

    spelling: str


@dataclass(frozen=True)
class Call:
    name: str
    arguments: Arguments


Parts = list[str | Mark]
Render = Callable[[Sequence[Call]], Parts]


@dataclass(frozen=True)
class Syntax:
    """A syntax under test.

    `tokens` are its control tokens. `keys` and `strings` match what argument names and string
    values may be: some syntaxes can't write every text. `around` says whether text may stand
    before and behind calls.
    """

    name: str
    frontend: PreparedFrontend
    tokens: tuple[str, ...]
    render: Render
    keys: str = r"[^\x00-\x1f\"'<>=:,{}\[\]|]+"
    ambiguous: str = r"(?!)"
    names: str = r"[a-z][a-z0-9_.-]{0,12}"
    around: bool = True
    think: tuple[str, str] | None = None

    def writes(self, value: object) -> bool:
        """Whether the syntax can write a value so that it is read back."""
        if isinstance(value, str):
            return not re.search(self.ambiguous, value)
        if isinstance(value, dict):
            return all(self.writes(inner) for inner in value.values())
        if isinstance(value, list):
            return all(self.writes(inner) for inner in value)
        return True


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _raw(value: object) -> str:
    return value if isinstance(value, str) else _json(value)


def _marked(template: str, *tokens: str) -> Parts:
    """A fixed text in which the given tokens are tokens."""
    pieces = re.split(f"({'|'.join(map(re.escape, tokens))})", template)
    return [Mark(piece) if piece in tokens else piece for piece in pieces if piece]


def _joined(parts: Iterable[Parts], between: str = "") -> Parts:
    result: Parts = []
    for number, part in enumerate(parts):
        result += [between] if number and between else []
        result += part
    return result


def function_tags(calls: Sequence[Call]) -> Parts:
    def one(call: Call) -> Parts:
        body = f"\n<function={call.name}>\n"
        for key, value in call.arguments.items():
            body += f"<parameter={key}>\n{_raw(value)}\n</parameter>\n"
        return [Mark("<tool_call>"), f"{body}</function>\n", Mark("</tool_call>")]

    return _joined(map(one, calls), "\n")


def json_tags(calls: Sequence[Call]) -> Parts:
    return _joined(
        ([Mark("<tool_call>"), f"\n{_envelope(call)}\n", Mark("</tool_call>")] for call in calls),
        "\n",
    )


def _envelope(call: Call, arguments: str = "arguments") -> str:
    return _json({"name": call.name, arguments: call.arguments})


def text_json_list(calls: Sequence[Call]) -> Parts:
    return [f"<tool_call>[{', '.join(map(_envelope, calls))}]</tool_call>"]


def granite_list(calls: Sequence[Call]) -> Parts:
    return [Mark("<|tool_call|>"), f"[{', '.join(map(_envelope, calls))}]"]


def mistral_list(calls: Sequence[Call]) -> Parts:
    items = [
        _json({"name": call.name, "arguments": call.arguments, "id": f"abcd{number:05}"})
        for number, call in enumerate(calls)
    ]
    return [Mark("[TOOL_CALLS]"), f" [{', '.join(items)}]"]


def mistral_named(calls: Sequence[Call]) -> Parts:
    return _joined(
        [Mark("[TOOL_CALLS]"), call.name, Mark("[ARGS]"), _json(call.arguments)] for call in calls
    )


def llama_json(calls: Sequence[Call]) -> Parts:
    return ["; ".join(_envelope(call, "parameters") for call in calls)]


def python_tag_json(calls: Sequence[Call]) -> Parts:
    return [Mark("<|python_tag|>"), *llama_json(calls)]


def pythonic(calls: Sequence[Call]) -> Parts:
    written = [
        f"{call.name}({', '.join(f'{key}={value!r}' for key, value in call.arguments.items())})"
        for call in calls
    ]
    return [f"[{', '.join(written)}]"]


def wrapped_pythonic(calls: Sequence[Call]) -> Parts:
    return [Mark("<|python_start|>"), *pythonic(calls), Mark("<|python_end|>")]


def _argument_tags(newline: str) -> Render:
    def one(call: Call) -> Parts:
        parts: Parts = [Mark("<tool_call>"), f"{call.name}{newline}"]
        for key, value in call.arguments.items():
            parts += [Mark("<arg_key>"), key, Mark("</arg_key>"), newline]
            parts += [Mark("<arg_value>"), _raw(value), Mark("</arg_value>"), newline]
        return [*parts, Mark("</tool_call>")]

    return lambda calls: _joined(map(one, calls), newline)


def invoke_tags(calls: Sequence[Call]) -> Parts:
    body = "\n"
    for call in calls:
        body += f'<invoke name="{call.name}">\n'
        for key, value in call.arguments.items():
            body += f'<parameter name="{key}">{_raw(value)}</parameter>\n'
        body += "</invoke>\n"
    return [Mark("<minimax:tool_call>"), body, Mark("</minimax:tool_call>")]


def _dsml(block: str, space: str) -> Render:
    def render(calls: Sequence[Call]) -> Parts:
        text = f"\n\n<@{space}{block}>\n"
        values: list[str] = []
        for call in calls:
            text += f'<@{space}invoke name="{call.name}">\n'
            for key, value in call.arguments.items():
                kind = "true" if isinstance(value, str) else "false"
                text += f'<@{space}parameter name="{key}" string="{kind}">\0</@{space}parameter>\n'
                values.append(_raw(value))
            text += f"</@{space}invoke>\n"
        text += f"</@{space}{block}>"
        parts: Parts = []
        for number, piece in enumerate(text.split("\0")):
            parts += [values[number - 1]] if number else []
            parts += _marked(piece.replace("@", "｜DSML｜"), "｜DSML｜")
        return parts

    return render


_DEEPSEEK = {
    name: Mark(f"<｜tool▁{name}｜>")
    for name in ("calls▁begin", "calls▁end", "call▁begin", "call▁end", "sep")
}


def fenced_sections(calls: Sequence[Call]) -> Parts:
    m = _DEEPSEEK
    inner = _joined(
        (
            [
                *(m["call▁begin"], "function", m["sep"], f"{call.name}\n```json\n"),
                *(f"{_json(call.arguments)}\n```", m["call▁end"]),
            ]
            for call in calls
        ),
        "\n",
    )
    return [m["calls▁begin"], *inner, m["calls▁end"]]


def sections(calls: Sequence[Call]) -> Parts:
    m = _DEEPSEEK
    inner = _joined(
        [m["call▁begin"], call.name, m["sep"], _json(call.arguments), m["call▁end"]]
        for call in calls
    )
    return [m["calls▁begin"], *inner, m["calls▁end"]]


def numbered_sections(calls: Sequence[Call]) -> Parts:
    inner: Parts = []
    for number, call in enumerate(calls):
        inner += [Mark("<|tool_call_begin|>"), f"functions.{call.name}:{number}"]
        inner += [Mark("<|tool_call_argument_begin|>"), _json(call.arguments)]
        inner += [Mark("<|tool_call_end|>")]
    return [Mark("<|tool_calls_section_begin|>"), *inner, Mark("<|tool_calls_section_end|>")]


def _quoted_mapping(opener: str, closer: str, quote: str) -> Render:
    def value(item: object) -> Parts:
        match item:
            case str():
                return [Mark(quote), item, Mark(quote)]
            case dict():
                fields = ([f"{key}:", *value(inner)] for key, inner in item.items())
                return ["{", *_joined(fields, ","), "}"]
            case list():
                return ["[", *_joined(map(value, item), ","), "]"]
            case _:
                return [_json(item)]

    def one(call: Call) -> Parts:
        return [Mark(opener), f"call:{call.name}", *value(call.arguments), Mark(closer)]

    return lambda calls: _joined(map(one, calls))


def xtml(calls: Sequence[Call]) -> Parts:
    kinds = {str: "string", bool: "boolean", int: "number", float: "number", type(None): "null"}
    kinds |= {list: "array", dict: "object"}
    text = "<|open|>tools<|sep|>"
    values: list[str] = []
    for number, call in enumerate(calls, 1):
        text += f'<|open|>call tool="{call.name}" index="{number}"<|sep|>'
        for key, value in call.arguments.items():
            escaped = key.replace("&", "&amp;").replace('"', "&quot;")
            text += f'<|open|>argument key="{escaped}" type="{kinds[type(value)]}"<|sep|>'
            text += "\0<|close|>argument<|sep|>"
            values.append(_raw(value))
        text += "<|close|>call<|sep|>"
    text += "<|close|>tools<|sep|><|close|>message<|sep|>"
    parts: Parts = []
    for number, piece in enumerate(text.split("\0")):
        parts += [values[number - 1]] if number else []
        parts += _marked(piece, "<|open|>", "<|close|>", "<|sep|>")
    return parts


def atem_frames(calls: Sequence[Call]) -> Parts:
    parts: Parts = []
    for call in calls:
        body = f'<atem:function_calls>\n<atem:invoke name="{call.name}">\n'
        for key, value in call.arguments.items():
            body += f'<atem:parameter name="{key}">{_raw(value)}</atem:parameter>\n'
        body += "</atem:invoke>\n</atem:function_calls>"
        parts += [Mark("<|start|>"), f"assistant to={call.name}", Mark("<|message|>"), body]
        parts += [Mark("<|eom|>")]
    return parts


def harmony_frames(calls: Sequence[Call]) -> Parts:
    parts: Parts = []
    for call in calls:
        parts += [Mark("<|start|>"), "assistant", Mark("<|channel|>")]
        parts += [f"commentary to=functions.{call.name} ", Mark("<|constrain|>"), "json"]
        parts += [Mark("<|message|>"), _json(call.arguments), Mark("<|call|>")]
    return parts


def _text_closer(closer: str, *after: str) -> str:
    """Values in which a closer that is no token has a legal continuation."""
    follows = "|".join(map(re.escape, after))
    return rf"{re.escape(closer)}[ \t\r\n]*(?:{follows})"


_PLAIN_KEY = r"[^\x00-\x1f\"'<>=:,{}\[\]|&\s][^\x00-\x1f\"'<>=:,{}\[\]|&]{0,8}(?<!\s)"
_ANY_KEY = r"(?s).{0,10}"
_IDENTIFIER = r"[a-z_][a-z0-9_]{0,8}"
_DSML_TOKENS = ("｜DSML｜",)
_SECTION_TOKENS = tuple(mark.spelling for mark in _DEEPSEEK.values())
_GLM_TOKENS = (
    "<tool_call>",
    "</tool_call>",
    "<arg_key>",
    "</arg_key>",
    "<arg_value>",
    "</arg_value>",
)
_THINK_TOKENS = ("<think>", "</think>")
_XTML_TOKENS = ("<|open|>", "<|close|>", "<|sep|>")
_ATEM_TOKENS = ("<|start|>", "<|message|>", "<|eom|>", "<|eot|>")
_HARMONY_TOKENS = (
    "<|start|>",
    "<|channel|>",
    "<|constrain|>",
    "<|message|>",
    "<|end|>",
    "<|call|>",
    "<|return|>",
)
_FUNCTION_TAGS_AMBIGUOUS = (
    _text_closer("</parameter>", "<parameter=", "</function>", "</tool_call>")
    + r"|(?:^|\n)<parameter=|(?:^|\n)</function>"
)

SYNTAXES = [
    Syntax(
        "function tags",
        frontend(s.FUNCTION_TAGS, s.THINK, calls_end_reasoning=True),
        ("<tool_call>", "</tool_call>", *_THINK_TOKENS),
        function_tags,
        keys=_PLAIN_KEY,
        ambiguous=_FUNCTION_TAGS_AMBIGUOUS,
        think=_THINK_TOKENS,
    ),
    Syntax(
        "json tags",
        frontend(s.JSON_TAGS, s.THINK),
        ("<tool_call>", "</tool_call>", *_THINK_TOKENS),
        json_tags,
        keys=_ANY_KEY,
        think=_THINK_TOKENS,
    ),
    Syntax(
        "json list in text", frontend(s.JSON_LIST_TAGS, None), (), text_json_list, keys=_ANY_KEY
    ),
    Syntax(
        "granite list",
        frontend(s.GRANITE_LIST, None),
        ("<|tool_call|>",),
        granite_list,
        keys=_ANY_KEY,
    ),
    Syntax(
        "mistral list",
        frontend(s.MISTRAL_LIST, None),
        ("[TOOL_CALLS]",),
        mistral_list,
        keys=_ANY_KEY,
    ),
    Syntax(
        "mistral named",
        frontend(s.MISTRAL_NAMED, s.BRACKET_THINK),
        ("[TOOL_CALLS]", "[ARGS]", "[CALL_ID]", "[THINK]", "[/THINK]"),
        mistral_named,
        keys=_ANY_KEY,
        think=("[THINK]", "[/THINK]"),
    ),
    Syntax(
        "llama json",
        frontend(s.LLAMA_JSON, None),
        ("<|python_tag|>",),
        llama_json,
        keys=_ANY_KEY,
        around=False,
    ),
    Syntax(
        "python tag",
        frontend(s.LLAMA_JSON, None),
        ("<|python_tag|>",),
        python_tag_json,
        keys=_ANY_KEY,
    ),
    Syntax(
        "pythonic",
        frontend(s.PYTHONIC, None),
        ("<|python_start|>", "<|python_end|>"),
        pythonic,
        keys=_IDENTIFIER,
        around=False,
    ),
    Syntax(
        "wrapped pythonic",
        frontend(s.PYTHONIC, None),
        ("<|python_start|>", "<|python_end|>"),
        wrapped_pythonic,
        keys=_IDENTIFIER,
    ),
    Syntax(
        "argument tags",
        frontend(s.ARGUMENT_TAGS, s.THINK, calls_end_reasoning=True),
        (*_GLM_TOKENS, *_THINK_TOKENS),
        _argument_tags("\n"),
        keys=_PLAIN_KEY,
        think=_THINK_TOKENS,
    ),
    Syntax(
        "compact argument tags",
        frontend(s.COMPACT_ARGUMENT_TAGS, s.THINK, calls_end_reasoning=True),
        (*_GLM_TOKENS, *_THINK_TOKENS),
        _argument_tags(""),
        keys=_PLAIN_KEY,
        think=_THINK_TOKENS,
    ),
    Syntax(
        "invoke tags",
        frontend(s.INVOKE_TAGS, s.THINK),
        ("<minimax:tool_call>", "</minimax:tool_call>", *_THINK_TOKENS),
        invoke_tags,
        keys=_PLAIN_KEY,
        ambiguous=_text_closer(
            "</parameter>", "<parameter name", "</invoke>", "</minimax:tool_call>"
        ),
        think=_THINK_TOKENS,
    ),
    *(
        Syntax(
            f"dsml {block}",
            frontend(tools, s.INLINE_THINK),
            (*_DSML_TOKENS, *_THINK_TOKENS),
            _dsml(block, space),
            keys=_PLAIN_KEY.replace("&", "&@｜"),
            think=_THINK_TOKENS,
        )
        for tools, block, space in (
            (s.DSML_FUNCTION_CALLS, "function_calls", ""),
            (s.DSML_TOOL_CALLS, "tool_calls", ""),
            (s.DSML_CALLS, "calls", " "),
        )
    ),
    Syntax(
        "fenced sections",
        frontend(s.FENCED_SECTIONS, None),
        _SECTION_TOKENS,
        fenced_sections,
        keys=_ANY_KEY,
    ),
    Syntax(
        "sections",
        frontend(s.SECTIONS, s.INLINE_THINK),
        (*_SECTION_TOKENS, *_THINK_TOKENS),
        sections,
        keys=_ANY_KEY,
        think=_THINK_TOKENS,
    ),
    Syntax(
        "numbered sections",
        frontend(s.NUMBERED_SECTIONS, s.INLINE_THINK, calls_end_reasoning=True),
        (
            "<|tool_calls_section_begin|>",
            "<|tool_calls_section_end|>",
            "<|tool_call_begin|>",
            "<|tool_call_argument_begin|>",
            "<|tool_call_end|>",
            *_THINK_TOKENS,
        ),
        numbered_sections,
        keys=_ANY_KEY,
        think=_THINK_TOKENS,
    ),
    Syntax(
        "quoted mapping",
        frontend(s.QUOTED_MAPPING, s.THOUGHT_CHANNEL),
        ("<|tool_call>", "<tool_call|>", '<|"|>', "<|channel>", "<channel|>"),
        _quoted_mapping("<|tool_call>", "<tool_call|>", '<|"|>'),
        keys=_PLAIN_KEY,
        think=("<|channel>", "<channel|>"),
    ),
    Syntax(
        "escaped mapping",
        frontend(s.ESCAPED_MAPPING, None),
        ("<start_function_call>", "<end_function_call>", "<escape>"),
        _quoted_mapping("<start_function_call>", "<end_function_call>", "<escape>"),
        keys=_PLAIN_KEY,
    ),
    Syntax(
        "xtml",
        frontend(s.XTML, s.XTML_THINK),
        _XTML_TOKENS,
        xtml,
        keys=r"[^\x00-\x1f<>|]{1,8}",
    ),
    Syntax(
        "atem",
        frontend(s.ATEM, s.RECIPIENT_REASONING, ("<|start|>assistant", "<|eot|>")),
        _ATEM_TOKENS,
        atem_frames,
        keys=_PLAIN_KEY,
        ambiguous=_text_closer(
            "</atem:parameter>", "<atem:parameter name", "</atem:invoke>", "</atem:function_calls>"
        ),
    ),
    Syntax(
        "harmony",
        frontend(s.HARMONY, s.HARMONY_REASONING, ("<|start|>assistant", "<|end|>")),
        _HARMONY_TOKENS,
        harmony_frames,
        keys=_ANY_KEY,
    ),
]


def message(syntax: Syntax, reasoning: str, content: str, calls: Sequence[Call]) -> Parts:
    """A whole response: reasoning, then content, then calls, each where there is any."""
    if syntax.name == "xtml":
        return _xtml_message(reasoning, content, calls)
    if syntax.name in ("atem", "harmony"):
        return _frames(syntax, reasoning, content, calls)
    parts: Parts = []
    if reasoning and syntax.think:
        opener, closer = map(Mark, syntax.think)
        word = "thought\n" if opener.spelling == "<|channel>" else ""
        gap = "\n\n" if syntax.frontend.reasoning_syntax.wrapping_newlines and not word else ""
        parts += [opener, f"{word}{reasoning}", closer, gap]
    parts += [content]
    return [part for part in [*parts, *(syntax.render(calls) if calls else [])] if part]


def _xtml_message(reasoning: str, content: str, calls: Sequence[Call]) -> Parts:
    def element(name: str, text: str) -> Parts:
        opened = [Mark("<|open|>"), name, Mark("<|sep|>")]
        return [*opened, text, Mark("<|close|>"), name, Mark("<|sep|>")]

    parts = element("think", reasoning) + element("response", content)
    return [part for part in [*parts, *(xtml(calls) if calls else [])] if part]


def _frames(syntax: Syntax, reasoning: str, content: str, calls: Sequence[Call]) -> Parts:
    """Frames behind a prompt that has opened the first header."""
    harmony = syntax.name == "harmony"
    end = Mark("<|end|>" if harmony else "<|eom|>")

    def frame(kind: str, text: str) -> Parts:
        header: Parts = [Mark("<|channel|>"), kind] if harmony else [f" to={kind}"]
        return [Mark("<|start|>"), "assistant", *header, Mark("<|message|>"), text, end]

    parts: Parts = []
    if reasoning:
        parts += frame("analysis" if harmony else "self", reasoning)
    if content:
        parts += frame("commentary" if harmony else "user", content)
    parts += syntax.render(calls)
    opened = [Mark("<|start|>"), "assistant"]
    assert not parts or parts[0] == opened[0]
    first = str(parts[1]).removeprefix("assistant") if parts else ""
    return [part for part in [first, *parts[2:]] if part]
