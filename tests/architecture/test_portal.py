"""The faces read through selectors and write through services."""

import ast
from pathlib import Path

PORTAL = Path(__file__).resolve().parents[2] / "portal"


def test_the_portal_asks_no_table_by_itself() -> None:
    files = sorted(PORTAL.rglob("*.py"))
    asked = [
        f"{path.relative_to(PORTAL)}:{node.lineno}"
        for path in files
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Attribute) and node.attr in {"objects", "_default_manager"}
    ]
    assert len(files) > 100
    assert not asked
