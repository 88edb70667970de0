"""One colour per meaning, the same in Python, in the style sheet and in both themes."""

from pathlib import Path

import pytest

from portal.pages.colours import (
    JOB_STATES,
    NODE_STATES,
    TOKENS,
    pressure_token,
    state_var,
    stylesheet,
    var,
)
from scheduler.choices import JobState

STATIC = Path(__file__).parents[3] / "static"
LEGIBLE = 4.5  # WCAG 2.2, 1.4.3


def _luminance(colour: str) -> float:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(one: str, other: str) -> float:
    high, low = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_contrast_of_black_on_white_is_twenty_one():
    assert _contrast("#000000", "#ffffff") == pytest.approx(21.0)


def test_every_job_state_has_a_look_and_no_other_has():
    assert set(JOB_STATES) == {state.value for state in JobState}


def test_no_two_states_share_a_colour():
    for theme in ("light", "dark"):
        solids = [getattr(look.solid, theme) for look in JOB_STATES.values()]
        assert len(set(solids)) == len(solids)


@pytest.mark.parametrize("state", sorted(JOB_STATES))
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_of_a_state_is_legible_on_its_tint(state, theme):
    look = JOB_STATES[state]
    assert _contrast(getattr(look.text, theme), getattr(look.tint, theme)) >= LEGIBLE


@pytest.mark.parametrize("state", sorted(NODE_STATES))
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_of_a_node_state_is_legible_on_its_tint(state, theme):
    text, tint = TOKENS[f"node-{state}-text"], TOKENS[f"node-{state}-tint"]
    assert _contrast(getattr(text, theme), getattr(tint, theme)) >= LEGIBLE


def test_the_style_sheet_is_the_one_that_this_module_writes():
    assert (STATIC / "pages" / "tokens.css").read_text() == stylesheet()


def test_every_icon_of_a_state_is_in_the_sprite():
    sprite = (STATIC / "vendor" / "tabler-icons" / "sprite.svg").read_text()
    icons = {look.icon for look in JOB_STATES.values()} | set(NODE_STATES.values())
    assert [icon for icon in sorted(icons) if f'id="{icon}"' not in sprite] == []


@pytest.mark.parametrize(
    ("frac", "token"),
    [
        (0.0, "pressure-calm"),
        (0.79, "pressure-calm"),
        (0.8, "pressure-tight"),
        (0.999, "pressure-tight"),
        (1.0, "pressure-over"),
        (3.0, "pressure-over"),
    ],
)
def test_pressure_rises_at_eighty_and_at_a_hundred_per_cent(frac, token):
    assert pressure_token(frac) == token


def test_a_token_is_named_as_css_names_it():
    assert var("allocated") == "var(--k-allocated)"
    assert state_var("timed_out") == "var(--k-state-timed-out)"


def test_an_unknown_token_is_refused():
    with pytest.raises(KeyError):
        var("beige")
