"""Bring the Chinese catalogue up to date with the code: `make words`.

It extracts every string that is to be translated (this needs xgettext of GNU gettext), keeps the
translations there are, adds new strings empty, drops those that nobody says any more, and
compiles. The catalogue is sorted and carries no dates and no line numbers, so that its history
shows translations alone.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import polib

ROOT: Final = Path(__file__).resolve().parents[1]
CATALOGUE: Final = ROOT / "locale/zh_Hans/LC_MESSAGES/django.po"
SPOKEN: Final = ("portal", "scheduler", "tenants", "telemetry", "templates")
OPTIONS: Final = ("--locale=zh_Hans", "--no-location", "--no-wrap", "--verbosity=0")
HEADER: Final = {
    "Project-Id-Version": "Kilter",
    "Language": "zh_Hans",
    "MIME-Version": "1.0",
    "Content-Type": "text/plain; charset=UTF-8",
    "Content-Transfer-Encoding": "8bit",
    "Plural-Forms": "nplurals=1; plural=0;",
}


def extracted(scratch: Path) -> polib.POFile:
    """Return every string that the code says, untranslated.

    Args:
        scratch: an empty folder; Django writes beside the templates that it reads, so it reads
            copies.

    Raises:
        CalledProcessError: a string can't be extracted; what is wrong is on standard error.
    """
    for folder in SPOKEN:
        shutil.copytree(ROOT / folder, scratch / folder)
    shutil.copy(ROOT / "manage.py", scratch)
    (scratch / "locale").mkdir()
    subprocess.run(
        [sys.executable, "manage.py", "makemessages", *OPTIONS],
        cwd=scratch,
        env={**os.environ, "KILTER_DATA": str(scratch / "data")},
        check=True,
        timeout=120,
    )
    return polib.pofile(str(scratch / CATALOGUE.relative_to(ROOT)))


def merged(known: Iterable[polib.POEntry], fresh: Iterable[polib.POEntry]) -> polib.POFile:
    """Return the fresh strings, sorted, each with the translation that is known."""
    said = {(entry.msgctxt, entry.msgid): entry for entry in known}
    catalogue = polib.POFile(wrapwidth=0)
    catalogue.header = "Kilter in Simplified Chinese."
    catalogue.metadata = dict(HEADER)
    for entry in sorted(fresh, key=lambda entry: (entry.msgid, entry.msgctxt or "")):
        old = said.get((entry.msgctxt, entry.msgid))
        entry.msgstr = old.msgstr if old else ""
        if entry.msgid_plural:
            entry.msgstr_plural = {0: old.msgstr_plural.get(0, "") if old else ""}
        catalogue.append(entry)
    return catalogue


def main() -> None:
    """Rewrite the catalogue and name what lacks a translation."""
    with tempfile.TemporaryDirectory() as scratch:
        fresh = extracted(Path(scratch))
    CATALOGUE.parent.mkdir(parents=True, exist_ok=True)
    known = polib.pofile(str(CATALOGUE)) if CATALOGUE.exists() else ()
    catalogue = merged(known, fresh)
    catalogue.save(str(CATALOGUE))
    catalogue.save_as_mofile(str(CATALOGUE.with_suffix(".mo")))
    missing = catalogue.untranslated_entries()
    for entry in missing:
        sys.stdout.write(f"untranslated: {entry.msgid}\n")
    sys.exit(1 if missing else 0)


if __name__ == "__main__":
    main()
