"""`helios verify`: is a core what its publisher signed, to the last byte?"""

from pathlib import Path
from typing import Annotated

from helios.cli.command import Argument
from helios.cli.console import JsonFlag, byte_progress, nbytes_text, out, print_json
from helios.core.reader import authenticate
from helios.core.trust import TrustStore


def verify(
    core: Annotated[Path, Argument(help="The core to check.")],
    as_json: JsonFlag = False,
) -> None:
    """Check a core's signature and every stored byte; exit 1 if anything is wrong."""
    with authenticate(core, TrustStore()) as opened:
        with byte_progress("checking", show=not as_json) as update:
            opened.audit(update)
        total = sum(r.stored_nbytes for r in opened.resources)
        if as_json:
            print_json(
                {
                    "path": str(core),
                    "valid": True,
                    "namespace": opened.namespace,
                    "key_id": opened.signer.id,
                    "digest": opened.digest,
                    "resources": len(opened.resources),
                    "nbytes": total,
                }
            )
            return
        out.print(f"[green]good[/green]  {core}", highlight=False)
        out.print(
            f"      signed for {opened.namespace} by {opened.signer.id}; "
            f"{len(opened.resources)} resources, {nbytes_text(total)}, every chunk checked",
            highlight=False,
        )
