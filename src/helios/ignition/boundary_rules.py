"""After which messages a prompt's prefix is worth a snapshot.

Complete pages of every prompt are shared as they are. A snapshot adds the tokens behind the last
complete page, and costs a step that ends there. That pays where many conversations begin alike:
after the system's message. The end of every prompt is kept anyway.
"""

from helios.frontend.template import Template
from helios.ignition.probe import ANSWER, QUESTION, Message, rendered
from helios.schema.frontend_pb2 import PrefixBoundaryRule


def boundary_rules(template: Template) -> tuple[PrefixBoundaryRule, ...]:
    """A rule for each role of system messages that the template renders by themselves."""
    roles = ("system", "developer") if template.mentions("developer") else ("system",)
    return tuple(PrefixBoundaryRule(role=role) for role in roles if _is_prefix(template, role))


def _is_prefix(template: Template, role: str) -> bool:
    message: Message = {"role": role, "content": ANSWER}
    alone = rendered(template, [message]) or ""
    whole = rendered(template, [message, QUESTION], opened=True) or ""
    return ANSWER in alone and whole.startswith(alone)
