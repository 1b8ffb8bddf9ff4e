"""Templates render as `transformers` renders them, and cannot spend without bound."""

from typing import Any

import pytest
from transformers.utils.chat_template_utils import render_jinja_template

from helios.errors import ContractError, RequestError
from helios.frontend.template import Template

CHAT: list[dict[str, Any]] = [
    {"role": "system", "content": "Be <b>brief</b> & kind."},
    {"role": "user", "content": "  Grüße\n"},
    {"role": "assistant", "content": "Hello!"},
]
TOOLS: list[Any] = [
    {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
]

ALIKE = [
    "{% for m in messages %}<|{{ m['role'] }}|>{{ m.content | trim }}\n{% endfor %}",
    "{% for m in messages if m.role != 'system' %}{{ loop.index0 }}/{{ loop.length }}{% endfor %}",
    "{%- for m in messages %}\n    {%- if loop.first %}\n  first\n    {%- endif %}\n{% endfor %}",
    "{{ messages | tojson }}{{ tools | tojson(indent=2) }}",
    "{% for m in messages %}{% if loop.index > 1 %}{% break %}{% endif %}{{ m.role }}{% endfor %}",
    "{% generation %}{{ messages[0].content }}{% endgeneration %}{{ bos_token }}",
    "{% set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = ns.n + 1 %}{% endfor %}"
    "{{ ns.n ~ '/' ~ messages | length }}{{ ', '.join(['a', 'b']) }}{{ '%s=%d' | format('x', 3) }}",
    "{% macro show(m) %}[{{ m.role | upper }}]{% endmacro %}{{ show(messages[0]) }}{{ none_such }}",
    "{{ messages | selectattr('role', 'eq', 'user') | map(attribute='content') | list }}",
    "{% if add_generation_prompt %}go{% endif %}{{ 'ab' * 3 }}{{ 7 // 2 }}{{ 2 ** 5 }}{{ 7 % 4 }}",
    "{{ messages[0].content.replace('brief', 'short').split(' ')[1] }}{{ '{} {}'.format(1, 2) }}",
    "{% for k, v in tools[0].function.items() %}{{ k }}{% else %}none{% endfor %}"
    "{{ [1, 2] + [3] }}",
]


@pytest.mark.parametrize("source", ALIKE)
@pytest.mark.parametrize("prompted", [True, False])
def test_renders_as_transformers(source: str, prompted: bool) -> None:
    expected = render_jinja_template(
        [CHAT], tools=TOOLS, chat_template=source, add_generation_prompt=prompted, bos_token="<s>"
    )
    template = Template(source, {"bos_token": "<s>"})
    assert template.render(CHAT, tools=TOOLS, add_generation_prompt=prompted) == expected[0][0]


GREEDY = {
    "multiplied text": "{{ 'a' * 10 ** 9 }}",
    "multiplied list": "{{ ([1] * 10 ** 9) | length }}",
    "nested loops": "{% for i in range(99999) %}{% for j in range(99999) %}x{% endfor %}"
    "{% endfor %}",
    "loops that test": "{% for i in range(99999) %}{% for j in range(99999) if false %}"
    "{% endfor %}{% endfor %}",
    "doubling by ~": "{% set ns = namespace(x='ab') %}{% for i in range(60) %}"
    "{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
    "doubling by +": "{% set ns = namespace(x='ab') %}{% for i in range(60) %}"
    "{% set ns.x = ns.x + ns.x %}{% endfor %}",
    "wide format filter": "{{ '%1000000000d' | format(1) }}",
    "wide format operator": "{{ '%*d' % (1000000000, 1) }}",
    "wide format method": "{{ '{:>1000000000}'.format(1) }}",
    "nested format": "{{ '{:{}}'.format(1, 1000000000) }}",
    "wide filter": "{{ 'a' | center(1000000000) }}",
    "wide method": "{{ 'a'.ljust(1000000000) }}",
    "recursive macro": "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}"
    "{% endmacro %}{{ f(40) }}",
    "endless macro": "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
    "nested lists": "{% set a = ['x'] * 1000 %}{% set b = [a] * 1000 %}{% set c = [b] * 1000 %}"
    "{{ c | tojson }}",
    "printed nested lists": "{% set a = ['x'] * 1000 %}{% set b = [a] * 1000 %}"
    "{% set c = [b] * 1000 %}{{ c }}",
    "huge range": "{{ range(10000000) }}",
    "tower": "{{ 9 ** 9 ** 9 ** 9 }}",
    "growing number": "{% set ns = namespace(x=3) %}{% for i in range(99) %}"
    "{% set ns.x = ns.x * ns.x %}{% endfor %}{{ ns.x }}",
    "replace": "{{ ('a' * 1000000).replace('a', 'b' * 1000000) }}",
    "replace filter": "{{ ('a' * 1000000) | replace('a', 'b' * 1000000) }}",
    "join": "{{ ('b' * 1000000).join(['a'] * 1000000) }}",
    "join filter": "{{ (['a'] * 1000000) | join('b' * 1000000) }}",
    "indent": "{{ ('\\n' * 1000000) | indent(100000) }}",
    "indented json": "{{ [1] | tojson(indent=100000000) }}",
    "summed lists": "{{ [[1] * 1000] | sum(start=[]) }}",
    "batch": "{{ [1] | batch(1000000000, 'x') | list }}",
}


@pytest.mark.parametrize("source", GREEDY.values(), ids=GREEDY.keys())
def test_work_is_bounded(source: str) -> None:
    with pytest.raises(RequestError, match="refuses this conversation"):
        Template(source).render(CHAT)


@pytest.mark.parametrize(
    "source",
    [
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ messages.append(1) }}",
        "{{ messages[0].update({'a': 1}) }}",
        "{{ cycler.__init__.__globals__ }}",
        "{% include 'x' %}",
        "{{ undefined_thing.attribute }}",
        "{{ 1 / 0 }}",
        "{{ raise_exception('roles must alternate') }}",
    ],
)
def test_what_goes_wrong_inside_is_the_requests_error(source: str) -> None:
    with pytest.raises(RequestError) as caught:
        Template(source).render(CHAT)
    assert caught.value.field == "messages"


def test_the_templates_own_message_reaches_the_client() -> None:
    template = Template("{{ raise_exception('roles must alternate') }}")
    with pytest.raises(RequestError, match="roles must alternate"):
        template.render(CHAT)


@pytest.mark.parametrize(
    "source",
    ["{% for %}", "{{ x | no_such_filter }}", "{{ x | pprint }}", "{% if x %}", "x" * 2**21],
)
def test_templates_that_do_not_compile_are_the_cores_error(source: str) -> None:
    with pytest.raises(ContractError, match="template_resource"):
        Template(source)


def test_arguments_as_text_is_found_by_trying() -> None:
    calls = (
        "{% for m in messages %}{% for c in m.tool_calls %}{{ '(' + %s + ')' }}{% endfor %}"
        "{% endfor %}"
    )
    assert Template(calls.replace("%s", "c.function.arguments")).arguments_as_text
    assert not Template(calls.replace("%s", "c.function.arguments | tojson")).arguments_as_text
    assert not Template("{{ messages[0].content }}").arguments_as_text


def test_arguments_cannot_replace_messages() -> None:
    template = Template("{{ messages | length }}{{ x }}")
    assert template.render(CHAT, arguments={"x": "!", "messages": []}) == "3!"
