"""The frontend contract: syntax and special tokens, as data."""

from collections.abc import Mapping, Sequence

from helios.schema import frontend_pb2 as pb

TOKENIZER_RESOURCE = "tokenizer"
TEMPLATE_RESOURCE = "template"


def frontend_contract(
    eos_tokens: Sequence[int],
    special: Mapping[str, str],
    add_bos: bool,
    has_template: bool,
) -> pb.FrontendContract:
    """A text model; what its chat template writes is yet to be declared."""
    return pb.FrontendContract(
        tool_parser=pb.TOOL_PARSER_NONE,
        reasoning_parser=pb.REASONING_PARSER_NONE,
        eos_tokens=eos_tokens,
        template_tokens=[
            pb.TemplateToken(name=name, text=text) for name, text in sorted(special.items())
        ],
        add_bos=add_bos,
        image_preparation=pb.IMAGE_PREPARATION_NONE,
        image_layout=pb.IMAGE_LAYOUT_NONE,
        tokenizer_resource=TOKENIZER_RESOURCE,
        template_resource=TEMPLATE_RESOURCE if has_template else "",
    )
