"""Every word that people read is spoken in both languages."""

import ast
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import polib
import pytest
from django.template.loader import get_template
from django.test import Client

from portal.pages.colours import NODE_STATES
from portal.pages.script_strings import SCRIPT_STRINGS
from scripts import messages

ROOT = messages.ROOT
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))
MODULES = sorted(
    path
    for folder in ("portal", "scheduler", "tenants", "telemetry")
    for path in (ROOT / folder).rglob("*.py")
    if "migrations" not in path.parts
)
UPDATE = "run `make words` and translate what it names"

# -- the catalogue ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def catalogue() -> polib.POFile:
    return polib.pofile(str(messages.CATALOGUE))


@pytest.fixture(scope="module")
def extracted(tmp_path_factory: pytest.TempPathFactory) -> polib.POFile:
    if shutil.which("xgettext") is None:
        pytest.skip("xgettext of GNU gettext is not installed")
    return messages.extracted(tmp_path_factory.mktemp("extracted"))


def test_the_catalogue_has_every_string_of_the_code_and_no_other(
    catalogue: polib.POFile, extracted: polib.POFile
) -> None:
    fresh = {(entry.msgctxt, entry.msgid, entry.msgid_plural) for entry in extracted}
    known = {(entry.msgctxt, entry.msgid, entry.msgid_plural) for entry in catalogue}
    assert fresh - known == set(), UPDATE
    assert known - fresh == set(), UPDATE


def test_every_string_is_translated_and_none_by_guess(catalogue: polib.POFile) -> None:
    assert len(catalogue) > 300
    assert [entry.msgid for entry in catalogue.untranslated_entries()] == [], UPDATE
    assert [entry.msgid for entry in catalogue.fuzzy_entries()] == []
    assert [entry.msgid for entry in catalogue.obsolete_entries()] == []


def test_the_compiled_catalogue_is_that_of_the_source(catalogue: polib.POFile) -> None:
    compiled = messages.CATALOGUE.with_suffix(".mo").read_bytes()
    assert compiled == catalogue.to_binary(), UPDATE


def translation(entry: polib.POEntry) -> str:
    return entry.msgstr_plural.get(0, "") if entry.msgid_plural else entry.msgstr


def placeholders(text: str) -> Counter[str]:
    return Counter(re.findall(r"%\(\w+\)[0-9]*[a-z]|%%|\{\w+\}", text))


def test_a_translation_fills_in_what_its_original_fills_in(catalogue: polib.POFile) -> None:
    wrong = [
        entry.msgid
        for entry in catalogue
        if placeholders(translation(entry)) != placeholders(entry.msgid_plural or entry.msgid)
    ]
    assert wrong == []


def test_chinese_sentences_have_chinese_marks_and_one_space_beside_latin(
    catalogue: polib.POFile,
) -> None:
    han, latin = "[\u4e00-\u9fff]", "[A-Za-z0-9]"
    clumsy = re.compile(f"{han}[,;:?!.]|[,;:?!]{han}|{han}{latin}|{latin}{han}")
    wrong = []
    for entry in catalogue:
        said = translation(entry)
        if clumsy.search(re.sub(r"%\(\w+\)[0-9]*[a-z]|\{\w+\}", "", said)):
            wrong.append(said)
    assert wrong == []


# -- Python ----------------------------------------------------------------------------------

GETTEXT = {"_", "gettext", "gettext_lazy", "gettext_noop", "ngettext", "ngettext_lazy"}
READ_BY_PEOPLE = {"label", "help_text", "verbose_name", "empty_label", "empty_text", "what"}
ENGLISH_ONLY = "portal/api/v1"
"""The reference of the API, made from the helps of its fields."""

REFUSALS = {"NotAllowedError", "ConflictError", "ValidationError", "NotFound", "ParseError"}


def calls(module: Path) -> Iterator[ast.Call]:
    tree = ast.parse(module.read_text("utf-8"))
    yield from (node for node in ast.walk(tree) if isinstance(node, ast.Call))


def called(call: ast.Call) -> str:
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def is_prose(node: ast.AST | None) -> bool:
    if isinstance(node, ast.JoinedStr):
        return any(is_prose(part) for part in node.values)
    return isinstance(node, ast.Constant) and bool(re.search("[A-Za-z]{2}", str(node.value)))


def test_no_string_of_a_module_escapes_the_catalogue(catalogue: polib.POFile) -> None:
    """Also where xgettext is missing, and where it does not look: inside f-strings."""
    known = {entry.msgid for entry in catalogue}
    said = {
        call.args[0].value
        for module in MODULES
        for call in calls(module)
        if called(call) in GETTEXT and call.args and isinstance(call.args[0], ast.Constant)
    }
    assert len(said) > 200
    assert said - known == set(), UPDATE


def test_modules_call_gettext_by_names_that_the_extraction_knows() -> None:
    wrong = [
        f"{module.relative_to(ROOT)}: {alias.asname}"
        for module in MODULES
        for node in ast.walk(ast.parse(module.read_text("utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module == "django.utils.translation"
        for alias in node.names
        if alias.asname not in {None, "_"}
    ]
    assert wrong == []


def test_no_module_translates_a_string_that_is_put_together_first() -> None:
    wrong = [
        f"{module.relative_to(ROOT)}:{call.lineno}"
        for module in MODULES
        for call in calls(module)
        if called(call) in GETTEXT and call.args
        if isinstance(call.args[0], (ast.JoinedStr, ast.BinOp, ast.Call))
    ]
    assert wrong == []


def untranslated_in(module: Path) -> Iterator[int]:
    for call in calls(module):
        on_messages = isinstance(call.func, ast.Attribute) and "messages" in ast.dump(call.func)
        read = READ_BY_PEOPLE if ENGLISH_ONLY not in module.as_posix() else set()
        plain = [keyword.value for keyword in call.keywords if keyword.arg in read]
        if called(call) in REFUSALS or on_messages:
            plain += call.args
        if any(
            isinstance(node, (ast.Constant, ast.JoinedStr)) and is_prose(node) for node in plain
        ):
            yield call.lineno


def untranslated_labels_in(module: Path) -> Iterator[int]:
    for node in ast.walk(ast.parse(module.read_text("utf-8"))):
        if isinstance(node, ast.ClassDef) and "TextChoices" in map(ast.unparse, node.bases):
            for line in (line for line in node.body if isinstance(line, ast.Assign)):
                if not isinstance(line.value, ast.Tuple) or is_prose(line.value.elts[1]):
                    yield line.lineno


def test_labels_helps_and_messages_of_modules_are_translated() -> None:
    wrong = [
        f"{module.relative_to(ROOT)}:{line}"
        for module in MODULES
        for line in (*untranslated_in(module), *untranslated_labels_in(module))
    ]
    assert wrong == []


# -- templates -------------------------------------------------------------------------------

SAME_IN_BOTH = {"Kilter", "API", "CPU", "CU", "GiB", "MiB", "ms", "P50", "P90"}
"""Names and units that are not translated."""

SPOKEN_ATTRIBUTES = {"aria-label", "title", "placeholder", "alt", "data-label", "data-confirm"}
VOID = {"br", "hr", "img", "input", "link", "meta", "option"}
COMMENT = re.compile(r"\{#.*?#\}|\{% comment.*?endcomment %\}", re.DOTALL)
BLOCK = re.compile(r"\{% blocktrans(?:late)?\b.*?endblocktrans(?:late)? %\}", re.DOTALL)
TAG = re.compile(r"\{%.*?%\}|\{\{.*?\}\}", re.DOTALL)
TRANSLATED = re.compile(r"""_\((["']).*?\1\)|\{% trans(?:late)? .*?%\}""")


class Words(HTMLParser):
    """Collects what a page says by itself: its text, and attributes that are read aloud.

    Code stays as it is, and so does what says its own language, such as the name of a language.
    """

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []
        self._silent: list[bool] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = {name for name, _value in attrs}
        silent = tag in {"script", "style", "code"} or ("lang" in names and tag != "html")
        if not silent:
            self.said += [value or "" for name, value in attrs if name in SPOKEN_ATTRIBUTES]
        if tag not in VOID:
            self._silent.append(silent)

    def handle_data(self, data: str) -> None:
        if not any(self._silent):
            self.said.append(data)

    def handle_endtag(self, tag: str) -> None:  # noqa: ARG002 - templates close what they open
        self._silent = self._silent[:-1]


def english_in(text: str) -> set[str]:
    """Return the words of a template that are said in English whatever the language."""
    text = BLOCK.sub("", COMMENT.sub("", text))
    page = Words()
    page.feed(TAG.sub("", text))
    words = {word for said in page.said for word in re.findall(r"[A-Za-z][A-Za-z0-9]+", said)}
    handed_on = re.findall(r"""(["'])([A-Z][a-z].*?)\1""", " ".join(tags_without_words(text)))
    return (words - SAME_IN_BOTH) | {said for _quote, said in handed_on}


def tags_without_words(text: str) -> list[str]:
    return [TRANSLATED.sub("", tag) for tag in TAG.findall(text)]


@pytest.mark.parametrize(
    ("template", "english"),
    [
        ("<p>Hello</p>", {"Hello"}),
        ('<b lang="fr">Bonjour</b><code>ls</code><input><i>Go</i>', {"Go"}),
        ('<p>{% translate "Hello" %} Kilter, 5 GiB</p>', set()),
        ('<a title="Go {{ there }}">{{ name }}</a>', {"Go"}),
        ('<a title="{% translate \'Go\' %}" class="btn"></a>', set()),
        ("{% blocktranslate with n=2 %}Some {{ n }}{% endblocktranslate %}{# why #}", set()),
        ('{% include "a.html" with title="Some words" %}', {"Some words"}),
        ('{% nav_item "pages:home" href _("Home") %}', set()),
    ],
)
def test_the_scan_finds_what_is_said_in_english_only(template: str, english: set[str]) -> None:
    assert english_in(template) == english


def test_templates_say_nothing_that_is_not_translated() -> None:
    assert len(TEMPLATES) > 20
    found = {
        str(path.relative_to(ROOT)): english
        for path in TEMPLATES
        if (english := english_in(path.read_text("utf-8")))
    }
    assert found == {}


@pytest.mark.parametrize("path", [str(p.relative_to(ROOT / "templates")) for p in TEMPLATES])
def test_every_template_loads_the_tags_that_it_says_its_words_with(path: str) -> None:
    get_template(path)


# -- scripts ---------------------------------------------------------------------------------

SCRIPTS = sorted((ROOT / "static/pages").glob("*.js"))


def test_scripts_have_the_words_that_they_say_and_no_other() -> None:
    text = "\n".join(script.read_text("utf-8") for script in SCRIPTS)
    said = set(re.findall(r"""\bsay\(["'](\w+)["']""", text))
    said |= {f"node_{state}" for state in NODE_STATES}  # grid.js says them by their state
    named = set(re.findall(r"""["'](\w+)["']""", text))  # words handed on before they are said
    assert said - set(SCRIPT_STRINGS) == set()
    assert set(SCRIPT_STRINGS) - said - named == set()


def test_scripts_write_no_words_of_their_own() -> None:
    prose = re.compile(r"""["'`]([A-Z][a-z]+ [a-z][^"'`]*|[A-Z]{3,})["'`]""")
    wrong = [
        f"{script.name}: {match[1]}"
        for script in SCRIPTS
        for line in script.read_text("utf-8").splitlines()
        for match in prose.finditer(line.partition("//")[0])
    ]
    assert wrong == []


# -- the whole way ---------------------------------------------------------------------------


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("asked", "language", "word"),
    [("zh-CN,zh;q=0.9,en;q=0.5", "zh-hans", "登录"), ("en-GB,en", "en", "Sign in")],
)
def test_the_browser_s_language_is_spoken(
    client: Client, asked: str, language: str, word: str
) -> None:
    page = client.get("/accounts/login/", headers={"accept-language": asked}).content.decode()
    assert f'<html lang="{language}"' in page
    assert f">{word}</button>" in page
