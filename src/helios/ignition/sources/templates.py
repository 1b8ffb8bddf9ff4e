"""Chat templates that come under several names."""

from collections.abc import Mapping

DEFAULT, TOOL_USE = "default", "tool_use"


def one_template(named: Mapping[str, str]) -> str | None:
    """The default template, or the one for tools wherever there are tools; None if there is none.

    Jinja trims line breaks next to its blocks; the empty expressions keep it from trimming what
    belongs to a template.
    """
    default, tool_use = named.get(DEFAULT), named.get(TOOL_USE)
    if not default or not tool_use or default == tool_use:
        return default or tool_use or None
    with_tools, without = tool_use.removesuffix("\n"), default.removesuffix("\n")
    nothing = "{{ '' }}"
    return (
        f"{{% if tools %}}{nothing}{with_tools}{nothing}"
        f"{{% else %}}{nothing}{without}{nothing}{{% endif %}}"
    )
