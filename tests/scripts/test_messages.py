"""The catalogue keeps what is translated and follows the code."""

import polib

from scripts.messages import merged


def entry(text: str, said: str = "", **more: str) -> polib.POEntry:
    return polib.POEntry(msgid=text, msgstr=said, **more)


def test_known_translations_stay_new_strings_are_empty_and_old_ones_go() -> None:
    catalogue = merged([entry("Job", "作业"), entry("Gone", "旧")], [entry("New"), entry("Job")])
    assert [(one.msgid, one.msgstr) for one in catalogue] == [("Job", "作业"), ("New", "")]


def test_the_same_word_in_another_context_is_another_string() -> None:
    known = [entry("Memory", "内存"), entry("Memory", "显存", msgctxt="of a device")]
    fresh = [entry("Memory", msgctxt="of a device"), entry("Memory")]
    assert [one.msgstr for one in merged(known, fresh)] == ["内存", "显存"]


def test_a_plural_has_the_one_form_of_chinese() -> None:
    known = [polib.POEntry(msgid="node", msgid_plural="nodes", msgstr_plural={0: "节点"})]
    fresh = [polib.POEntry(msgid="node", msgid_plural="nodes", msgstr_plural={0: "", 1: ""})]
    assert [one.msgstr_plural for one in merged(known, fresh)] == [{0: "节点"}]


def test_the_order_of_the_code_does_not_show() -> None:
    fresh = [entry("b"), entry("a"), entry("c")]
    assert str(merged([], fresh)) == str(merged([], reversed(fresh)))
