"""Chat templates in the manner of each family, cut down to what recognition looks at."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Family:
    """A template, its tokens, and what is to be found out about it.

    `close` holds closers with a space between, `states` the template arguments of a prompt and
    the reasoning state it leaves behind.
    """

    template: str
    tokens: tuple[str, ...]
    tools: str
    reasoning: str = "none"
    switches: tuple[str, ...] = ()
    open: str = ""
    close: str = ""
    tool_response: tuple[str, str] = ("", "")
    boundaries: tuple[str, ...] = ("system",)
    tags: tuple[str, str] | None = None  # instead of the outermost ones of `tools`
    states: tuple[tuple[dict[str, bool], str], ...] = field(default=(({}, "absent"),))


CHATML = ("<|im_start|>", "<|im_end|>")
CHATML_OPEN, CHATML_CLOSE = "<|im_start|>assistant\n", "<|im_end|>"
HERMES_TOKENS = (*CHATML, "<tool_call>", "</tool_call>")
THINK_TOKENS = ("<think>", "</think>")


def chatml(assistant: str, prompt: str, tools: str = "{{ tools | tojson }}") -> str:
    """ChatML around an assistant's own message, with what a prompt ends with."""
    return (
        "{%- if tools %}<|im_start|>system\n"
        "{% if messages[0].role == 'system' %}{{ messages[0].content }}\n{% endif %}"
        + tools
        + "<|im_end|>\n"
        "{% elif messages[0].role == 'system' %}<|im_start|>system\n"
        "{{ messages[0].content }}<|im_end|>\n{% endif %}"
        "{%- for message in messages %}"
        "{%- if message.role == 'user' %}<|im_start|>user\n{{ message.content }}<|im_end|>\n"
        "{%- elif message.role == 'assistant' %}<|im_start|>assistant\n"
        + assistant
        + "<|im_end|>\n"
        "{%- elif message.role == 'tool' %}<|im_start|>user\n<tool_response>\n"
        "{{ message.content }}\n</tool_response><|im_end|>\n"
        "{%- endif %}{% endfor %}"
        "{%- if add_generation_prompt %}<|im_start|>assistant\n" + prompt + "{% endif %}"
    )


JSON_CALLS = (
    "{{ message.content }}{% for call in message.tool_calls or [] %}"
    '{% if not loop.first or message.content %}\n{% endif %}<tool_call>\n{"name": "'
    '{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}\n</tool_call>'
    "{% endfor %}"
)
FUNCTION_CALLS = (
    "{{ message.content }}{% for call in message.tool_calls or [] %}\n<tool_call>\n"
    "<function={{ call.function.name }}>\n"
    "{% for key, value in call.function.arguments | items %}<parameter={{ key }}>\n"
    "{{ value if value is string else value | tojson }}\n</parameter>\n{% endfor %}"
    "</function>\n</tool_call>{% endfor %}"
)
OLD_THOUGHTS = (
    "{% if message.reasoning_content %}<think>\n{{ message.reasoning_content.strip('\\n') }}\n"
    "</think>\n\n{% endif %}"
)
EMPTY_THOUGHT = (
    "{% if enable_thinking is defined and enable_thinking is false %}<think>\n\n</think>\n\n"
    "{% endif %}"
)
OPEN_THOUGHT = (
    "{% if enable_thinking is defined and enable_thinking is false %}<think>\n\n</think>\n\n"
    "{% else %}<think>\n{% endif %}"
)

SWITCHED = (
    ({}, "absent"),
    ({"enable_thinking": True}, "absent"),
    ({"enable_thinking": False}, "closed"),
)
OPENED = (
    ({}, "open"),
    ({"enable_thinking": True}, "open"),
    ({"enable_thinking": False}, "closed"),
)

GLM_TOKENS = (
    "[gMASK]", "<sop>", "<|system|>", "<|user|>", "<|assistant|>", "<|observation|>",
    "<|endoftext|>", "<tool_call>", "</tool_call>", "<arg_key>", "</arg_key>", "<arg_value>",
    "</arg_value>", *THINK_TOKENS,
)  # fmt: skip


def glm(newline: str, thought: str, prompt: str) -> str:
    """GLM's messages: nothing closes one but the next role."""
    return (
        "[gMASK]<sop>{% if tools %}<|system|>\n{{ tools | tojson }}{% endif %}"
        "{% for message in messages %}"
        "{% if message.role == 'user' %}<|user|>" + newline + "{{ message.content }}"
        "{% elif message.role == 'system' %}<|system|>" + newline + "{{ message.content }}"
        "{% elif message.role == 'assistant' %}<|assistant|>" + thought + newline
        + "{{ message.content }}{% for call in message.tool_calls or [] %}"
        + newline + "<tool_call>{{ call.function.name }}" + newline
        + "{% for key, value in call.function.arguments | items %}<arg_key>{{ key }}</arg_key>"
        + newline + "<arg_value>{{ value if value is string else value | tojson }}</arg_value>"
        + newline + "{% endfor %}</tool_call>{% endfor %}"
        "{% elif message.role == 'tool' %}<|observation|>" + newline
        + "<tool_response>{{ message.content }}</tool_response>"
        "{% endif %}{% endfor %}"
        "{% if add_generation_prompt %}<|assistant|>" + prompt + "{% endif %}"
    )  # fmt: skip


DEEPSEEK_TOKENS = (
    "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜User｜>", "<｜Assistant｜>",
    "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>", "<｜tool▁call▁begin｜>",
    "<｜tool▁call▁end｜>", "<｜tool▁sep｜>", "<｜tool▁outputs▁begin｜>", "<｜tool▁outputs▁end｜>",
    "<｜tool▁output▁begin｜>", "<｜tool▁output▁end｜>", "｜DSML｜", *THINK_TOKENS,
)  # fmt: skip


def deepseek(calls: str, result: str, answer: str, prompt: str) -> str:
    """DeepSeek's messages; a tool's result is part of the assistant's turn."""
    return (
        "{% set ns = namespace(last='') %}"
        "{% for m in messages %}{% if m.role == 'system' %}{{ m.content }}{% endif %}{% endfor %}"
        "{% if tools %}\n\n## Tools\n{{ tools | tojson }}{% endif %}"
        "{% for m in messages %}"
        "{% if m.role == 'user' %}<｜User｜>{{ m.content }}{% set ns.last = 'user' %}"
        "{% elif m.role == 'assistant' %}"
        "{% if ns.last != 'tool' %}<｜Assistant｜>{% endif %}"
        + answer
        + "{% if m.tool_calls %}"
        + calls
        + "{% endif %}<｜end▁of▁sentence｜>{% set ns.last = 'assistant' %}"
        "{% elif m.role == 'tool' %}" + result + "{% set ns.last = 'tool' %}"
        "{% endif %}{% endfor %}"
        "{% if add_generation_prompt and ns.last != 'tool' %}<｜Assistant｜>"
        + prompt
        + "{% endif %}"
    )


FENCED = (
    "<｜tool▁calls▁begin｜>{% for call in m.tool_calls %}"
    "<｜tool▁call▁begin｜>function<｜tool▁sep｜>"
    "{{ call.function.name }}\n```json\n{{ call.function.arguments | tojson }}\n```"
    "<｜tool▁call▁end｜>{% endfor %}<｜tool▁calls▁end｜>"
)
SECTIONS = (
    "<｜tool▁calls▁begin｜>{% for call in m.tool_calls %}<｜tool▁call▁begin｜>"
    "{{ call.function.name }}<｜tool▁sep｜>{{ call.function.arguments | tojson }}"
    "<｜tool▁call▁end｜>{% endfor %}<｜tool▁calls▁end｜>"
)
OUTPUTS = (
    "<｜tool▁outputs▁begin｜><｜tool▁output▁begin｜>{{ m.content }}<｜tool▁output▁end｜>"
    "<｜tool▁outputs▁end｜>"
)
DSML = (
    "\n\n<｜DSML｜function_calls>\n{% for call in m.tool_calls %}"
    '<｜DSML｜invoke name="{{ call.function.name }}">\n'
    "{% for key, value in call.function.arguments | items %}"
    '<｜DSML｜parameter name="{{ key }}" string="{{ "true" if value is string else "false" }}">'
    "{{ value if value is string else value | tojson }}</｜DSML｜parameter>\n{% endfor %}"
    "</｜DSML｜invoke>\n{% endfor %}</｜DSML｜function_calls>"
)
RESULTS = "\n\n<function_results>\n<result>{{ m.content }}</result>\n</function_results>\n\n"

KIMI_TOKENS = (
    "<|im_system|>", "<|im_user|>", "<|im_assistant|>", "<|im_middle|>", "<|im_end|>",
    "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>", "<|tool_call_begin|>",
    "<|tool_call_end|>", "<|tool_call_argument_begin|>", *THINK_TOKENS,
)  # fmt: skip


def kimi(thought: str) -> str:
    return (
        "{% if tools %}<|im_system|>tool_declare<|im_middle|>{{ tools | tojson }}<|im_end|>"
        "{% endif %}{% for message in messages %}"
        "{% if message.role == 'system' %}<|im_system|>system<|im_middle|>"
        "{% elif message.role == 'user' %}<|im_user|>user<|im_middle|>"
        "{% elif message.role == 'assistant' %}<|im_assistant|>assistant<|im_middle|>"
        + thought
        + "{% elif message.role == 'tool' %}<|im_system|>tool<|im_middle|>"
        "## Return of {{ message.tool_call_id }}\n{% endif %}{{ message.content }}"
        "{% if message.tool_calls %}<|tool_calls_section_begin|>"
        "{% for call in message.tool_calls %}<|tool_call_begin|>"
        "functions.{{ call.function.name }}:{{ loop.index0 }}"
        "<|tool_call_argument_begin|>{{ call.function.arguments | tojson }}<|tool_call_end|>"
        "{% endfor %}<|tool_calls_section_end|>{% endif %}<|im_end|>{% endfor %}"
        "{% if add_generation_prompt %}<|im_assistant|>assistant<|im_middle|>{% endif %}"
    )


MINIMAX = (
    "]~!b[{% if tools %}]~b]system\n{{ tools | tojson }}[e~[\n{% endif %}"
    "{% for message in messages %}{% if message.role == 'tool' %}]~b]tool\n<response>"
    "{{ message.content }}</response>[e~[\n"
    "{% elif message.role == 'assistant' %}]~b]ai\n"
    "{% if message.reasoning_content %}<think>\n{{ message.reasoning_content }}\n</think>\n\n"
    "{% endif %}{{ message.content }}"
    "{% if message.tool_calls %}\n<minimax:tool_call>\n{% for call in message.tool_calls %}"
    '<invoke name="{{ call.function.name }}">\n'
    "{% for key, value in call.function.arguments | items %}"
    '<parameter name="{{ key }}">{{ value if value is string else value | tojson }}</parameter>\n'
    "{% endfor %}</invoke>\n{% endfor %}</minimax:tool_call>{% endif %}[e~[\n"
    "{% else %}]~b]{{ message.role }}\n{{ message.content }}[e~[\n{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}]~b]ai\n<think>\n{% endif %}"
)

LLAMA_TOKENS = (
    "<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "<|eom_id|>",
    "<|python_tag|>",
)  # fmt: skip
LLAMA_3 = (
    "<|begin_of_text|>{% for message in messages %}"
    "{% if message.tool_calls %}"
    "{% if message.tool_calls | length != 1 %}{{ raise_exception('one call at a time') }}"
    "{% endif %}{% set call = message.tool_calls[0].function %}"
    '<|start_header_id|>assistant<|end_header_id|>\n\n{"name": "{{ call.name }}", '
    '"parameters": {{ call.arguments | tojson }}}<|eot_id|>'
    "{% elif message.role == 'tool' %}<|start_header_id|>ipython<|end_header_id|>\n\n"
    "{{ message.content | tojson }}<|eot_id|>"
    "{% else %}<|start_header_id|>{{ message.role }}<|end_header_id|>\n\n"
    "{% if tools and loop.first %}{{ tools | tojson }}\n\n{% endif %}"
    "{{ message.content | trim }}<|eot_id|>{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}"
)
LLAMA_4_TOKENS = (
    "<|header_start|>",
    "<|header_end|>",
    "<|eot|>",
    "<|python_start|>",
    "<|python_end|>",
)
LLAMA_4 = (
    "{% for message in messages %}<|header_start|>{{ message.role }}<|header_end|>\n\n"
    "{% if tools and loop.first %}{{ tools | tojson }}\n\n{% endif %}{{ message.content }}"
    "{% if message.tool_calls %}<|python_start|>["
    "{% for call in message.tool_calls %}{{ call.function.name }}("
    "{% for key, value in call.function.arguments | items %}{{ key }}={{ value | tojson }}"
    "{% if not loop.last %}, {% endif %}{% endfor %})"
    "{% if not loop.last %}, {% endif %}{% endfor %}]<|python_end|>{% endif %}<|eot|>"
    "{% endfor %}{% if add_generation_prompt %}<|header_start|>assistant<|header_end|>\n\n"
    "{% endif %}"
)

MISTRAL_TOKENS = (
    "<s>", "</s>", "[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_CALLS]",
    "[TOOL_RESULTS]", "[/TOOL_RESULTS]", "[ARGS]", "[CALL_ID]", "[THINK]", "[/THINK]",
    "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]",
)  # fmt: skip


def mistral(calls: str, space: str = "", thought: str = "") -> str:
    """Mistral's messages: nothing opens an answer but the end of the question."""
    return (
        "<s>{% if tools %}[AVAILABLE_TOOLS]{{ tools | tojson }}[/AVAILABLE_TOOLS]{% endif %}"
        "{% for message in messages %}"
        "{% if message.role == 'system' %}[SYSTEM_PROMPT]{{ message.content }}[/SYSTEM_PROMPT]"
        "{% elif message.role == 'user' %}[INST]" + space + "{{ message.content }}[/INST]"
        "{% elif message.role == 'tool' %}[TOOL_RESULTS]" + space + "{{ message.content }}"
        "[/TOOL_RESULTS]"
        "{% elif message.tool_calls %}"
        "{% if message.tool_calls[0].id | length != 9 %}{{ raise_exception('nine') }}{% endif %}"
        + calls + "</s>"
        "{% else %}" + thought + space + "{{ message.content }}</s>{% endif %}{% endfor %}"
    )  # fmt: skip


MISTRAL_LIST = (
    "[TOOL_CALLS] [{% for call in message.tool_calls %}"
    '{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}, '
    '"id": "{{ call.id }}"}{% if not loop.last %}, {% endif %}{% endfor %}]'
)
MISTRAL_IDS = (
    "{% for call in message.tool_calls %}[TOOL_CALLS]{{ call.function.name }}[CALL_ID]"
    "{{ call.id }}[ARGS]{{ call.function.arguments | tojson }}{% endfor %}"
)
MISTRAL_NAMED = (
    "{% for call in message.tool_calls %}[TOOL_CALLS]{{ call.function.name }}[ARGS]"
    "{{ call.function.arguments | tojson }}{% endfor %}"
)

BRACKETS = "{% if message.thinking %}[THINK]{{ message.thinking }}[/THINK]{% endif %}"

GRANITE_TOKENS = ("<|start_of_role|>", "<|end_of_role|>", "<|end_of_text|>", "<|tool_call|>")
GRANITE_3 = (
    "{% if tools %}<|start_of_role|>tools<|end_of_role|>{{ tools | tojson }}<|end_of_text|>\n"
    "{% endif %}{% for message in messages %}"
    "<|start_of_role|>{{ 'tool_response' if message.role == 'tool' else message.role }}"
    "<|end_of_role|>"
    "{% if message.tool_calls %}<|tool_call|>["
    "{% for call in message.tool_calls %}{{ call.function | tojson }}"
    "{% if not loop.last %}, {% endif %}{% endfor %}]"
    "{% else %}{{ message.content }}{% endif %}<|end_of_text|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|start_of_role|>assistant<|end_of_role|>{% endif %}"
)

JSON_LIST = (
    "{{{{ message.content }}}}{{% if message.tool_calls %}}{}["
    "{{% for call in message.tool_calls %}}"
    '{{{{ {{"name": call.function.name, "arguments": call.function.arguments}} | tojson }}}}'
    "{{% if not loop.last %}}, {{% endif %}}{{% endfor %}}]{}{{% endif %}}"
)
GRANITE_3_3 = (
    "<|start_of_role|>system<|end_of_role|>"
    "{% if messages[0].role == 'system' %}{{ messages[0].content }}{% endif %}"
    "{% if tools %}Write <|tool_call|> followed by a JSON list of tools.{{ tools | tojson }}"
    "{% endif %}{% if thinking %}Write your thoughts between <think></think>.{% endif %}"
    "<|end_of_text|>\n{% for message in messages if message.role != 'system' %}"
    "<|start_of_role|>{{ message.role }}<|end_of_role|>{{ message.content }}<|end_of_text|>\n"
    "{% endfor %}"
    "{% if add_generation_prompt %}<|start_of_role|>assistant<|end_of_role|>{% endif %}"
)

GEMMA_4_TOKENS = (
    "<|turn>", "<turn|>", "<|tool_call>", "<tool_call|>", '<|"|>', "<|channel>", "<channel|>",
    "<|tool_response>", "<tool_response|>", "<|think|>",
)  # fmt: skip
GEMMA_4 = (
    "{% set ns = namespace(last='') %}"
    "{% if enable_thinking or tools %}<|turn>system\n{% if enable_thinking %}<|think|>{% endif %}"
    "{% if tools %}{{ tools | tojson }}{% endif %}<turn|>\n{% endif %}"
    "{% for message in messages %}"
    "{% if message.role == 'tool' %}<|tool_response>response:{{ message.name }}{value:"
    '<|"|>{{ message.content }}<|"|>}<tool_response|>'
    "{% else %}<|turn>{{ 'model' if message.role == 'assistant' else message.role }}\n"
    "{% if message.role == 'assistant' and message.reasoning_content %}<|channel>thought\n"
    "{{ message.reasoning_content }}\n<channel|>{% endif %}"
    "{{ message.content }}{% for call in message.tool_calls or [] %}<|tool_call>call:"
    "{{ call.function.name }}{{ '{' }}"
    "{% for key, value in call.function.arguments | items %}{{ key }}:"
    '{% if value is string %}<|"|>{{ value }}<|"|>{% else %}{{ value | tojson }}{% endif %}'
    "{% if not loop.last %},{% endif %}{% endfor %}{{ '}' }}<tool_call|>{% endfor %}"
    "{% if not message.tool_calls %}<turn|>\n{% endif %}{% endif %}"
    "{% set ns.last = message.role %}{% endfor %}"
    "{% if add_generation_prompt and ns.last != 'tool' %}<|turn>model\n"
    "{% if not enable_thinking %}<|channel>thought\n<channel|>{% endif %}{% endif %}"
)
GEMMA_3 = (
    "<bos>{% for message in messages %}"
    "{% if (message.role == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('roles must alternate') }}{% endif %}"
    "<start_of_turn>{{ 'model' if message.role == 'assistant' else message.role }}\n"
    "{{ message.content | trim }}<end_of_turn>\n{% endfor %}"
    "{% if add_generation_prompt %}<start_of_turn>model\n{% endif %}"
)
FUNCTION_GEMMA = (
    "{% if tools %}<start_of_turn>developer\n{{ tools | tojson }}<end_of_turn>\n{% endif %}"
    "{% for message in messages %}"
    "{% if message.role == 'tool' %}<start_function_response>response:{{ message.name }}{value:"
    "<escape>{{ message.content }}<escape>}<end_function_response>"
    "{% else %}<start_of_turn>{{ 'model' if message.role == 'assistant' else message.role }}\n"
    "{{ message.content }}{% for call in message.tool_calls or [] %}<start_function_call>call:"
    "{{ call.function.name }}{{ '{' }}"
    "{% for key, value in call.function.arguments | items %}{{ key }}:"
    "{% if value is string %}<escape>{{ value }}<escape>{% else %}{{ value | tojson }}{% endif %}"
    "{% if not loop.last %},{% endif %}{% endfor %}{{ '}' }}<end_function_call>{% endfor %}"
    "<end_of_turn>\n{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<start_of_turn>model\n{% endif %}"
)

HARMONY_TOKENS = (
    "<|start|>", "<|end|>", "<|message|>", "<|channel|>", "<|constrain|>", "<|call|>", "<|return|>",
)  # fmt: skip
HARMONY = (
    "<|start|>system<|message|>Reasoning: {{ reasoning_effort or 'medium' }}<|end|>"
    "{% if tools %}<|start|>developer<|message|>{{ tools | tojson }}<|end|>{% endif %}"
    "{% for message in messages %}"
    "{% if message.tool_calls %}{% set call = message.tool_calls[0].function %}"
    "<|start|>assistant to=functions.{{ call.name }}<|channel|>commentary json<|message|>"
    "{{ call.arguments | tojson }}<|call|>"
    "{% elif message.role == 'tool' %}<|start|>functions.{{ message.name }} to=assistant"
    "<|channel|>commentary<|message|>{{ message.content | tojson }}<|end|>"
    "{% elif message.role == 'assistant' %}<|start|>assistant<|channel|>final<|message|>"
    "{{ message.content }}<|end|>"
    "{% else %}<|start|>{{ message.role }}<|message|>{{ message.content }}<|end|>{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}<|start|>assistant{% endif %}"
)
ATEM_TOKENS = ("<|start|>", "<|message|>", "<|eom|>", "<|eot|>")
ATEM = (
    "{% for message in messages %}"
    "{% if message.tool_calls %}{% for call in message.tool_calls %}"
    "<|start|>assistant to={{ call.function.name }}<|message|><atem:function_calls>\n"
    '<atem:invoke name="{{ call.function.name }}">\n'
    "{% for key, value in call.function.arguments | items %}"
    '<atem:parameter name="{{ key }}">{{ value }}</atem:parameter>\n{% endfor %}'
    "</atem:invoke>\n</atem:function_calls>{{ '<|eot|>' if loop.last else '<|eom|>' }}{% endfor %}"
    "{% elif message.role == 'tool' %}<|start|>tool {{ message.name }}<|message|>"
    "{{ message.content }}<|eot|>"
    "{% elif message.role == 'assistant' %}<|start|>assistant to=user<|message|>"
    "{{ message.content }}<|eot|>"
    "{% else %}<|start|>{{ message.role }}<|message|>{{ message.content }}"
    "{% if tools and loop.first %}{{ tools | tojson }}{% endif %}<|eot|>{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}<|start|>assistant{% endif %}"
)

# The family's own end token takes another name here: the one that the tiny model ends texts with.
XTML = (
    "{% for message in messages %}"
    '<|open|>message role="{{ message.role }}"<|sep|>'
    "{% if message.role == 'assistant' %}"
    "<|open|>think<|sep|>{{ message.reasoning_content or '' }}<|close|>think<|sep|>"
    "<|open|>response<|sep|>{{ message.content }}<|close|>response<|sep|>"
    "{% else %}{{ message.content }}{% if tools and loop.first %}{{ tools | tojson }}{% endif %}"
    "{% endif %}<|close|>message<|sep|><|end|>{% endfor %}"
    '{% if add_generation_prompt %}<|open|>message role="assistant"<|sep|>'
    "{% if thinking is defined and not thinking %}<|open|>response<|sep|>"
    "{% else %}<|open|>think<|sep|>{% endif %}{% endif %}"
)

FAMILIES = {
    "hermes": Family(
        chatml(JSON_CALLS, ""), HERMES_TOKENS, "json-tags", open=CHATML_OPEN, close=CHATML_CLOSE
    ),
    "qwen3": Family(
        chatml(OLD_THOUGHTS + JSON_CALLS, EMPTY_THOUGHT),
        (*HERMES_TOKENS, *THINK_TOKENS),
        "json-tags",
        "think",
        ("enable_thinking",),
        CHATML_OPEN,
        CHATML_CLOSE,
        states=SWITCHED,
    ),
    "qwen3-thinking": Family(
        chatml(OLD_THOUGHTS + JSON_CALLS, "<think>\n"),
        (*HERMES_TOKENS, *THINK_TOKENS),
        "json-tags",
        "think",
        open=CHATML_OPEN,
        close=CHATML_CLOSE,
        states=(({}, "open"),),
    ),
    "qwen3-coder": Family(
        chatml(FUNCTION_CALLS, ""),
        HERMES_TOKENS,
        "function-tags",
        open=CHATML_OPEN,
        close=CHATML_CLOSE,
    ),
    "qwen3.5": Family(
        chatml(OLD_THOUGHTS + FUNCTION_CALLS, OPEN_THOUGHT),
        (*HERMES_TOKENS, *THINK_TOKENS),
        "function-tags",
        "think",
        ("enable_thinking",),
        CHATML_OPEN,
        CHATML_CLOSE,
        states=OPENED,
    ),
    "glm-4.5": Family(
        glm(
            "\n",
            "{% if message.reasoning_content %}\n<think>{{ message.reasoning_content.strip() }}"
            "</think>{% else %}\n<think></think>{% endif %}",
            "{% if enable_thinking is defined and not enable_thinking %}\n<think></think>"
            "{% endif %}",
        ),
        GLM_TOKENS,
        "argument-tags",
        "think",
        ("enable_thinking",),
        "<|assistant|>",
        "<|user|> <|observation|>",
        states=SWITCHED,
    ),
    "glm-4.7": Family(
        glm(
            "",
            "{% if message.reasoning_content %}<think>{{ message.reasoning_content.strip() }}"
            "</think>{% else %}</think>{% endif %}",
            "{{ '</think>' if enable_thinking is defined and not enable_thinking else '<think>' }}",
        ),
        GLM_TOKENS,
        "compact-argument-tags",
        "think",
        ("enable_thinking",),
        "<|assistant|>",
        "<|user|> <|observation|>",
        states=OPENED,
    ),
    "deepseek-r1": Family(
        deepseek(FENCED, OUTPUTS, "{{ m.content.split('</think>')[-1] }}", "<think>\n"),
        DEEPSEEK_TOKENS,
        "fenced-sections",
        "think",
        (),
        "<｜Assistant｜>",
        "<｜end▁of▁sentence｜>",
        ("<｜tool▁outputs▁begin｜>", "<｜tool▁outputs▁end｜>"),
        states=(({}, "open"),),
    ),
    "deepseek-v3.1": Family(
        deepseek(
            SECTIONS,
            "<｜tool▁output▁begin｜>{{ m.content }}<｜tool▁output▁end｜>",
            "</think>{{ m.content }}",
            "{{ '<think>' if thinking else '</think>' }}",
        ),
        DEEPSEEK_TOKENS,
        "sections",
        "inline-think",
        ("thinking",),
        "<｜Assistant｜>",
        "<｜end▁of▁sentence｜>",
        ("<｜tool▁output▁begin｜>", "<｜tool▁output▁end｜>"),
        states=(({}, "closed"), ({"thinking": True}, "open")),
    ),
    "deepseek-v3.2": Family(
        deepseek(
            DSML,
            RESULTS + "{{ '<think>' if thinking else '</think>' }}",
            "</think>{{ m.content }}",
            "{{ '<think>' if thinking else '</think>' }}",
        ),
        DEEPSEEK_TOKENS,
        "dsml-function-calls",
        "inline-think",
        ("thinking",),
        "<｜Assistant｜>",
        "<｜end▁of▁sentence｜>",
        ("<function_results>", "</function_results>"),
        states=(({}, "closed"), ({"thinking": True}, "open")),
    ),
    "kimi-k2": Family(
        kimi(""),
        KIMI_TOKENS,
        "numbered-sections",
        open="<|im_assistant|>assistant<|im_middle|>",
        close="<|im_end|>",
    ),
    "kimi-k2-thinking": Family(
        kimi("<think>{{ message.reasoning_content or '' }}</think>"),
        KIMI_TOKENS,
        "numbered-sections",
        "inline-think",
        (),
        "<|im_assistant|>assistant<|im_middle|>",
        "<|im_end|>",
    ),
    "minimax-m2": Family(
        MINIMAX,
        ("]~!b[", "]~b]", "[e~[", "<minimax:tool_call>", "</minimax:tool_call>", *THINK_TOKENS),
        "invoke-tags",
        "think",
        (),
        "]~b]ai\n",
        "[e~[",
        states=(({}, "open"),),
    ),
    "llama-3": Family(
        LLAMA_3,
        LLAMA_TOKENS,
        "llama-json",
        open="<|start_header_id|>assistant<|end_header_id|>\n\n",
        close="<|eot_id|>",
    ),
    "llama-4": Family(
        LLAMA_4,
        LLAMA_4_TOKENS,
        "pythonic",
        open="<|header_start|>assistant<|header_end|>\n\n",
        close="<|eot|>",
    ),
    "mistral-v3": Family(
        mistral(MISTRAL_LIST, " "),
        MISTRAL_TOKENS,
        "mistral-list",
        open="[/INST]",
        close="</s>",
        tool_response=("[TOOL_RESULTS]", "[/TOOL_RESULTS]"),
    ),
    "mistral-v11": Family(
        mistral(MISTRAL_IDS),
        MISTRAL_TOKENS,
        "mistral-named",
        open="[/INST]",
        close="</s>",
        tool_response=("[TOOL_RESULTS]", "[/TOOL_RESULTS]"),
    ),
    "magistral": Family(
        mistral(MISTRAL_NAMED, thought=BRACKETS),
        MISTRAL_TOKENS,
        "mistral-named",
        "bracket-think",
        (),
        "[/INST]",
        "</s>",
        ("[TOOL_RESULTS]", "[/TOOL_RESULTS]"),
    ),
    "granite-3": Family(
        GRANITE_3,
        GRANITE_TOKENS,
        "granite-list",
        open="<|start_of_role|>assistant<|end_of_role|>",
        close="<|end_of_text|>",
    ),
    "gemma-4": Family(
        GEMMA_4,
        GEMMA_4_TOKENS,
        "quoted-mapping",
        "thought-channel",
        ("enable_thinking",),
        "<|turn>model\n",
        "<turn|>",
        ("<|tool_response>", "<tool_response|>"),
        states=(({}, "closed"), ({"enable_thinking": True}, "absent")),
    ),
    "function-gemma": Family(
        FUNCTION_GEMMA,
        (
            "<start_of_turn>", "<end_of_turn>", "<start_function_call>", "<end_function_call>",
            "<escape>", "<start_function_response>", "<end_function_response>",
        ),
        "escaped-mapping",
        open="<start_of_turn>model\n",
        close="<end_of_turn>",
        boundaries=("system", "developer"),
    ),
    "gemma-3": Family(
        GEMMA_3,
        ("<bos>", "<start_of_turn>", "<end_of_turn>"),
        "prompted",
        open="<start_of_turn>model\n",
        close="<end_of_turn>",
        boundaries=(),
    ),
    "nemotron": Family(
        chatml(JSON_LIST.format("<TOOLCALL>", "</TOOLCALL>"), "<think>\n"),
        (*CHATML, *THINK_TOKENS),
        "json-list-tags",
        "think",
        open=CHATML_OPEN,
        close=CHATML_CLOSE,
        states=(({}, "open"),),
        tags=("<TOOLCALL>", "</TOOLCALL>"),
    ),
    "lfm2": Family(
        chatml(
            "{{ message.content }}{% if message.tool_calls %}<|tool_call_start|>["
            "{% for call in message.tool_calls %}{{ call.function.name }}("
            "{% for key, value in call.function.arguments | items %}{{ key }}={{ value | tojson }}"
            "{% if not loop.last %}, {% endif %}{% endfor %})"
            "{% if not loop.last %}, {% endif %}{% endfor %}]<|tool_call_end|>{% endif %}",
            "",
        ),
        (*CHATML, "<|tool_call_start|>", "<|tool_call_end|>"),
        "pythonic",
        open=CHATML_OPEN,
        close=CHATML_CLOSE,
        tags=("<|tool_call_start|>", "<|tool_call_end|>"),
    ),
    "seed-oss": Family(
        chatml(FUNCTION_CALLS.replace("tool_call>", "seed:tool_call>"), ""),
        (*CHATML, "<seed:tool_call>", "</seed:tool_call>"),
        "function-tags",
        open=CHATML_OPEN,
        close=CHATML_CLOSE,
        tags=("<seed:tool_call>", "</seed:tool_call>"),
    ),
    "granite-3.3": Family(
        GRANITE_3_3,
        GRANITE_TOKENS,
        "granite-list",
        "inline-think",
        ("thinking",),
        "<|start_of_role|>assistant<|end_of_role|>",
        "<|end_of_text|>",
    ),
    "kimi-k2-ids": Family(
        kimi("").replace("functions.{{ call.function.name }}:{{ loop.index0 }}", "{{ call.id }}"),
        KIMI_TOKENS,
        "numbered-sections",
        open="<|im_assistant|>assistant<|im_middle|>",
        close="<|im_end|>",
    ),
    "phi-3": Family(
        "{% for message in messages %}<|{{ message.role }}|>\n{{ message.content }}<|end|>\n"
        "{% endfor %}{{ '<|assistant|>\n' if add_generation_prompt else eos_token }}",
        ("<|user|>", "<|assistant|>", "<|system|>"),
        "prompted",
        open="<|assistant|>\n",
        close="<|end|>",
        boundaries=(),
    ),
    "gpt-oss": Family(
        HARMONY,
        HARMONY_TOKENS,
        "harmony",
        "harmony",
        open="<|start|>assistant",
        close="<|end|>",
        boundaries=("system", "developer"),
    ),
    "kimi-k3": Family(
        XTML,
        ("<|open|>", "<|close|>", "<|sep|>"),
        "xtml",
        "xtml-think",
        ("thinking",),
        '<|open|>message role="assistant"<|sep|>',
        "<|end|>",
        states=(({}, "open"), ({"thinking": True}, "open"), ({"thinking": False}, "absent")),
    ),
    "muse": Family(
        ATEM, ATEM_TOKENS, "atem", "recipients", open="<|start|>assistant", close="<|eot|>"
    ),
}  # fmt: skip
