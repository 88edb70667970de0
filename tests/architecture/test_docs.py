"""What can be set is documented, and what is documented exists."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def variables_read() -> set[str]:
    sources = [ROOT / "portal/settings.py", *sorted((ROOT / "portal/embedded").glob("*.py"))]
    text = "\n".join(source.read_text() for source in sources)
    return set(re.findall(r"KILTER_[A-Z_]+[A-Z]|DATABASE_URL|REDIS_URL", text))


def variables_documented() -> set[str]:
    return set(re.findall(r"^\| `([A-Z_]+)` \|", (ROOT / "README.md").read_text(), re.MULTILINE))


def test_every_setting_stands_in_the_readme_and_no_other() -> None:
    assert variables_documented() == variables_read()


def test_every_picture_and_file_that_the_readme_names_exists() -> None:
    readme = (ROOT / "README.md").read_text()
    names = re.findall(r"\]\(((?!https?:)[^)#]+)\)", readme)
    assert names
    assert [name for name in names if not (ROOT / name).exists()] == []


def test_docs_name_no_folder_that_is_not_there() -> None:
    readme = (ROOT / "README.md").read_text()
    folders = re.findall(r"^\| `([a-z/]+/)`", readme, re.MULTILINE)
    assert folders
    assert [folder for folder in folders if not (ROOT / folder).is_dir()] == []
