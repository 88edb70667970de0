"""A pretended NVIDIA driver: compiled once, loaded by the real pynvml in a process of its own."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest

ROOT = Path(__file__).resolve().parents[3]
SOURCE = ROOT / "tests" / "native" / "fake_nvml.c"
PREAMBLE = """
import dataclasses, functools, json, os, pathlib, sys, threading, time
from telemetry.sense import nvml
NvmlReader = functools.partial(nvml.NvmlReader, root=pathlib.Path(os.environ["FAKE_ROOT"]))
def machine(**keys):
    text = "".join(f"{key} {value}\\n" for key, value in keys.items())
    path = os.environ["FAKE_NVML"]
    with open(path + ".new", "w") as file:
        file.write(text)
    os.replace(path + ".new", path)
def look(reader):
    devices, note = reader.read()
    answers.append({"devices": [dataclasses.asdict(device) for device in devices], "note": note})
answers = []
"""


Answer = dict[str, Any]
"""What one look() gave: devices and note."""


class Driver:
    """The folder with the pretended library, and how to look at it."""

    def __init__(self, folder: Path, scratch: Path) -> None:
        self.folder = folder
        self.root = scratch
        self.control = scratch / "machine.txt"

    def run(self, script: str) -> list[Answer]:
        """Run a script that calls machine() and look(); return the answers of look()."""
        environment = {**os.environ, "LD_LIBRARY_PATH": str(self.folder)}
        environment |= {"FAKE_NVML": str(self.control), "PYTHONPATH": str(ROOT)}
        environment["FAKE_ROOT"] = str(self.root)
        done = subprocess.run(
            [sys.executable, "-c", PREAMBLE + script + "\nprint(json.dumps(answers))"],
            env=environment,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return cast("list[Answer]", json.loads(done.stdout))


def _compiled(folder: Path, *flags: str) -> Path:
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("gcc is missing, so the pretended NVIDIA driver can't be built")
    library = folder / "libnvidia-ml.so.1"
    command = [compiler, "-shared", "-fPIC", "-O1", *flags, "-o", str(library), str(SOURCE)]
    subprocess.run(command, check=True, timeout=60)
    return folder


@pytest.fixture(scope="session")
def new_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _compiled(tmp_path_factory.mktemp("nvml"))


@pytest.fixture(scope="session")
def old_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _compiled(tmp_path_factory.mktemp("old-nvml"), "-DOLD_DRIVER")


@pytest.fixture
def driver(new_library: Path, tmp_path: Path) -> Driver:
    return Driver(new_library, tmp_path)


@pytest.fixture
def old_driver(old_library: Path, tmp_path: Path) -> Driver:
    return Driver(old_library, tmp_path)


@pytest.fixture
def no_driver(tmp_path: Path) -> Driver:
    return Driver(tmp_path, tmp_path)
