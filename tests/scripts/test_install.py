import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "install.sh"
pytestmark = pytest.mark.slow


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "scripts").mkdir()
    shutil.copy(SCRIPT, tmp_path / "scripts")
    (tmp_path / "constraints.txt").write_text("# nothing\n")
    (tmp_path / "requirements.txt").write_text("# nothing\n")
    (tmp_path / "requirements-dev.txt").write_text("-r requirements.txt\n")
    return tmp_path


def install(project: Path, what: str = "run", **more: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        ["sh", str(project / "scripts" / "install.sh"), what],
        cwd="/",
        env={**os.environ, "PYTHON": sys.executable, **more},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_packages_are_installed_once_and_again_when_a_list_changes(project: Path) -> None:
    first = install(project)
    assert first.returncode == 0, first.stderr
    assert "installing packages" in first.stdout
    assert install(project).stdout == ""
    for changed in ("requirements.txt", "constraints.txt"):
        (project / changed).write_text("# still nothing\n")
        assert "installing packages" in install(project).stdout
    assert "for make test" in install(project, "test").stdout


def test_a_half_made_environment_is_made_anew(project: Path) -> None:
    (project / ".venv" / "bin").mkdir(parents=True)
    (project / ".venv" / "bin" / "python").symlink_to("/nonexistent")
    done = install(project)
    assert done.returncode == 0, done.stderr
    assert "making .venv anew" in done.stdout
    assert (project / ".venv" / "bin" / "pip").exists()


@pytest.mark.parametrize("python", ["/bin/false", "no-such-python"])
def test_a_python_that_does_not_fit_is_refused_with_the_remedy(project: Path, python: str) -> None:
    done = install(project, PYTHON=python)
    assert done.returncode == 1
    assert f"Kilter needs Python 3.11, 3.12 or 3.13, and {python} is" in done.stderr
    assert "make run PYTHON=" in done.stderr
    assert not (project / ".venv").exists()


def test_a_package_that_cannot_be_had_stops_the_run(project: Path) -> None:
    (project / "requirements.txt").write_text("./no-such-folder\n")
    done = install(project)
    assert done.returncode == 1
    assert "the packages of requirements.txt could not be installed" in done.stderr
    assert not list((project / ".venv").glob("*.sha256"))


def test_other_words_are_bad_usage(project: Path) -> None:
    assert install(project, "fly").returncode == 2
