"""`helios keys`: whose signatures count, and for which namespace."""

from pathlib import Path
from typing import Annotated

from rich.table import Table

from helios.cli.command import Argument
from helios.cli.console import JsonFlag, out, print_json
from helios.core.keys import PublicKey, SigningKey
from helios.core.trust import TrustStore, local_publisher

Namespace = Annotated[str, Argument(help="Publisher namespace, such as acme/models.")]
Key = Annotated[str, Argument(help="Public key, as `helios keys list` prints it.")]


def list_keys(as_json: JsonFlag = False) -> None:
    """List trusted namespaces and their keys."""
    entries = TrustStore().entries()
    if as_json:
        print_json({name: [key.text for key in keys] for name, keys in entries.items()})
        return
    table = Table("namespace", "key id", "public key")
    for name, keys in entries.items():
        for key in keys:
            table.add_row(name, key.id, key.text)
    out.print(table)


def local(as_json: JsonFlag = False) -> None:
    """Show the local publisher, making its key if there is none yet."""
    namespace, key = local_publisher()
    if as_json:
        print_json({"namespace": namespace, "key_id": key.id, "public_key": key.public.text})
    else:
        out.print(f"{namespace}\n{key.public.text}", highlight=False)


def new(
    path: Annotated[Path, Argument(help="File to write the private key to.")],
    as_json: JsonFlag = False,
) -> None:
    """Make a signing key. Keep the file private; give the public key away."""
    key = SigningKey.generate()
    key.save(path)
    if as_json:
        print_json({"path": str(path), "key_id": key.id, "public_key": key.public.text})
    else:
        out.print(f"wrote {path}\npublic key: {key.public.text}", highlight=False)


def trust(namespace: Namespace, key: Key, as_json: JsonFlag = False) -> None:
    """Let a key sign for a namespace."""
    parsed = PublicKey.parse(key)
    TrustStore().add(namespace, parsed)
    if as_json:
        print_json({"namespace": namespace, "key_id": parsed.id, "trusted": True})
    else:
        out.print(f"{namespace} may now be signed by {parsed.id}", highlight=False)


def distrust(namespace: Namespace, key: Key, as_json: JsonFlag = False) -> None:
    """Let a key sign for a namespace no longer."""
    parsed = PublicKey.parse(key)
    TrustStore().remove(namespace, parsed)
    if as_json:
        print_json({"namespace": namespace, "key_id": parsed.id, "trusted": False})
    else:
        out.print(f"{namespace} may no longer be signed by {parsed.id}", highlight=False)


HELP = "Signing keys and the trust store."
COMMANDS = {
    "list": list_keys,
    "local": local,
    "new": new,
    "trust": trust,
    "distrust": distrust,
}
