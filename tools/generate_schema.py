"""Generate src/helios/schema/ from proto/ (or, with an argument, into another folder).

protoc derives Python module names from proto paths; the project keeps its bindings in
`helios.schema`, so the imports between generated modules are rewritten to match.
"""

import sys
import tempfile
from pathlib import Path

from grpc_tools import protoc

ROOT = Path(__file__).resolve().parent.parent
PROTO = ROOT / "proto"


def generate(destination: Path) -> None:
    sources = sorted(str(p.relative_to(PROTO)) for p in PROTO.rglob("*.proto"))
    with tempfile.TemporaryDirectory() as scratch:
        arguments = ["protoc", f"-I{PROTO}", f"--python_out={scratch}", f"--pyi_out={scratch}"]
        if protoc.main([*arguments, *sources]) != 0:
            raise SystemExit("protoc failed")
        for generated in sorted(Path(scratch, "helios", "v1").iterdir()):
            text = generated.read_text().replace(
                "from helios.v1 import", "from helios.schema import"
            )
            (destination / generated.name).write_text(text)


if __name__ == "__main__":
    generate(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "src" / "helios" / "schema")
