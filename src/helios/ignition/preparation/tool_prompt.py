"""Tools for models whose chat template knows none: a preamble to the template itself.

It turns tools, calls and results into the text of plain messages, in the form that `JSON_TAGS`
have on the wire, and leaves everything else to the template. The tools are told in the system
message, or in the first user message where there is none. Results become user messages, joined
with what the user says next, since many templates want roles to alternate.
"""

from helios.ignition.preparation.syntaxes import JSON_TAGS, Tools
from helios.schema import frontend_pb2 as pb


def _adjoining(tools: Tools) -> Tools:
    """A syntax with nothing between calls."""
    syntax = pb.ToolSyntax()
    syntax.CopyFrom(tools.syntax)
    syntax.separator = ""
    return Tools(tools.parser, syntax)


PROMPTED = _adjoining(JSON_TAGS)
"""The syntax that the preamble teaches. A line break behind a call would tempt models that never
learned to call into repeating it: as it is, only the end of the message comes as easily."""

_PREAMBLE = r"""
{%- set ns = namespace(messages=[], text='', tools='', told=not tools, joins=false) -%}
{%- for tool in tools or [] -%}
  {%- set ns.tools = ns.tools ~ tool | tojson ~ '\n' -%}
{%- endfor -%}
{%- set ns.tools = 'You can call functions. Each line between <tools> and </tools> describes one '
  ~ 'of them:\n<tools>\n' ~ ns.tools ~ '</tools>\n'
  ~ 'To call a function, write its name and arguments as JSON between <tool_call> and '
  ~ '</tool_call>:\n<tool_call>\n'
  ~ '{"name": "the_function", "arguments": {"an_argument": "its value"}}\n'
  ~ '</tool_call>' -%}
{%- for message in messages -%}
  {%- set role = 'user' if message.role == 'tool' else message.role -%}
  {%- set ns.text = message.content or '' -%}
  {%- if message.role == 'tool' -%}
    {%- set ns.text = '<tool_response>\n' ~ ns.text ~ '\n</tool_response>' -%}
  {%- endif -%}
  {%- for call in message.tool_calls or [] -%}
    {%- set ns.text = ns.text ~ ('\n' if loop.first and ns.text else '') ~ '<tool_call>\n{"name": '
      ~ call.function.name | tojson ~ ', "arguments": ' ~ call.function.arguments | tojson
      ~ '}\n</tool_call>' -%}
  {%- endfor -%}
  {%- if not ns.told and role in ['system', 'user'] -%}
    {%- set ns.told = true -%}
    {%- set ns.text = ns.text ~ '\n\n' ~ ns.tools if role == 'system'
      else ns.tools ~ '\n\n' ~ ns.text -%}
  {%- endif -%}
  {%- if ns.joins and role == 'user' -%}
    {%- set ns.messages = ns.messages[:-1]
      + [{'role': role, 'content': ns.messages[-1].content ~ '\n' ~ ns.text}] -%}
  {%- else -%}
    {%- set ns.messages = ns.messages + [{'role': role, 'content': ns.text}] -%}
  {%- endif -%}
  {%- set ns.joins = message.role == 'tool' -%}
{%- endfor -%}
{%- set messages = ns.messages -%}
""".lstrip()


def with_tools(template: str) -> str:
    """A chat template that also takes tools."""
    return _PREAMBLE.rstrip("\n") + template
