"""Every colour that carries a meaning, once, for light and dark.

Pages and figures name a colour by its token; the browser looks the token up in the theme of the
moment. `python -m portal.pages.colours` writes `static/pages/tokens.css`; a test compares the two.

Two scales are kept apart on purpose: *pressure* (quota, budget: high is tight) and *efficiency*
(utilisation: high is good, so never red).
"""

import sys
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Pair:
    """One colour in both themes, as `#rrggbb`."""

    light: str
    dark: str


@dataclass(frozen=True, slots=True)
class StateLook:
    """How one job state looks.

    Attributes:
        solid: lines, bars and dots.
        text: text on `tint`, at least 4.5:1.
        tint: background of a badge.
        icon: symbol of the icon sprite, so that colour is never the only sign.
    """

    solid: Pair
    text: Pair
    tint: Pair
    icon: str


def _look(icon: str, solid: str, text: str, tint: str) -> StateLook:
    """Build a look from `light/dark` strings."""
    return StateLook(Pair(*solid.split("/")), Pair(*text.split("/")), Pair(*tint.split("/")), icon)


JOB_STATES: Final[dict[str, StateLook]] = {
    "awaiting_approval": _look(
        "hourglass-empty", "#d97706/#fbbf24", "#92400e/#fde68a", "#fef3c7/#78350f"
    ),
    "queued": _look("clock", "#7c3aed/#a78bfa", "#5b21b6/#ddd6fe", "#ede9fe/#4c1d95"),
    "starting": _look("rocket", "#0891b2/#22d3ee", "#0e7490/#a5f3fc", "#cffafe/#164e63"),
    "running": _look("player-play", "#2563eb/#60a5fa", "#1d4ed8/#bfdbfe", "#dbeafe/#1e3a8a"),
    "succeeded": _look("circle-check", "#16a34a/#4ade80", "#166534/#bbf7d0", "#dcfce7/#14532d"),
    "failed": _look("circle-x", "#dc2626/#f87171", "#991b1b/#fecaca", "#fee2e2/#7f1d1d"),
    "cancelled": _look("ban", "#64748b/#94a3b8", "#475569/#e2e8f0", "#e2e8f0/#334155"),
    "timed_out": _look("player-stop", "#ea580c/#fb923c", "#9a3412/#fed7aa", "#ffedd5/#7c2d12"),
}
"""One look per `scheduler.choices.JobState`: queued violet, running blue, done green."""

NODE_STATES: Final[dict[str, str]] = {
    "ready": "circle-check",
    "cordoned": "ban",
    "draining": "hourglass-empty",
    "unknown": "help-circle",
}
"""Icon of each node state; a node's badge borrows its colours from tokens `node-<state>`."""

TOKENS: Final[dict[str, Pair]] = {
    # What is held and what is busy: the same hue in every figure.
    "allocated": Pair("#2563eb", "#60a5fa"),
    "utilised": Pair("#0f766e", "#2dd4bf"),
    "idle": Pair("#c2410c", "#fb923c"),
    "requested": Pair("#c4b5fd", "#6d5bb8"),
    "entitled": Pair("#334155", "#cbd5e1"),
    "fair": Pair("#b45309", "#fbbf24"),
    "memory": Pair("#7c3aed", "#a78bfa"),
    # Pressure: below 80 %, below 100 %, at or above; and what is borrowed.
    "pressure-calm": Pair("#2563eb", "#60a5fa"),
    "pressure-tight": Pair("#b45309", "#fbbf24"),
    "pressure-over": Pair("#b91c1c", "#f87171"),
    "borrowed": Pair("#c2410c", "#fb923c"),
    "track": Pair("#e6eaf0", "#28323f"),
    # Efficiency: one hue, light to dark (dark to light on a dark page).
    "scale-low": Pair("#e3edf9", "#172a45"),
    "scale-high": Pair("#0b4a94", "#8cc2ff"),
    "scale-low-text": Pair("#0b1d36", "#dbe9fb"),
    "scale-mid-text": Pair("#0b1d36", "#06172c"),
    "scale-high-text": Pair("#ffffff", "#06172c"),
    # Temperature: 83 and 87 degrees, as the DCGM boards have it.
    "hot": Pair("#d97706", "#f59e0b"),
    "too-hot": Pair("#b91c1c", "#f87171"),
    # Nodes and devices.
    "node-ready-text": Pair("#166534", "#bbf7d0"),
    "node-ready-tint": Pair("#dcfce7", "#14532d"),
    "node-cordoned-text": Pair("#475569", "#e2e8f0"),
    "node-cordoned-tint": Pair("#e2e8f0", "#334155"),
    "node-draining-text": Pair("#92400e", "#fde68a"),
    "node-draining-tint": Pair("#fef3c7", "#78350f"),
    "node-unknown-text": Pair("#991b1b", "#fecaca"),
    "node-unknown-tint": Pair("#fee2e2", "#7f1d1d"),
    # Figures.
    "figure-text": Pair("#475569", "#a8b3c2"),
    "figure-grid": Pair("#e8ecf1", "#26303c"),
    "figure-paper": Pair("#ffffff", "#151d28"),
}

TIGHT_FRAC: Final = 0.8
OVER_FRAC: Final = 1.0
IDLE_FRAC: Final = 0.1
"""Allocated but busy less than this is idle. Source: PAI counts a GPU below 10 % as abnormal."""


def var(token: str) -> str:
    """Return the CSS reference of a token, e.g. `var(--k-allocated)`.

    Raises:
        KeyError: no such token.
    """
    if token not in _all_tokens():
        raise KeyError(token)
    return f"var(--k-{token})"


def state_var(state: str) -> str:
    """Return the CSS reference of a job state's solid colour.

    Raises:
        KeyError: no such state.
    """
    return var(f"state-{_slug(state)}")


def pressure_token(frac: float) -> str:
    """Return the pressure token for `frac` of a limit, 0..1 and above."""
    if frac >= OVER_FRAC:
        return "pressure-over"
    return "pressure-tight" if frac >= TIGHT_FRAC else "pressure-calm"


def stylesheet() -> str:
    """Return `tokens.css`: every token as a custom property, for light and for dark."""
    tokens = _all_tokens()
    light = "".join(f"  --k-{name}: {pair.light};\n" for name, pair in tokens.items())
    dark = "".join(f"  --k-{name}: {pair.dark};\n" for name, pair in tokens.items())
    return (
        "/* Written by `python -m portal.pages.colours`; change the colours there. */\n"
        f':root {{\n{light}}}\n\n[data-bs-theme="dark"] {{\n{dark}}}\n\n{_state_rules()}'
    )


def _slug(state: str) -> str:
    return state.replace("_", "-")


def _all_tokens() -> dict[str, Pair]:
    states = {
        f"state-{_slug(state)}{suffix}": pair
        for state, look in JOB_STATES.items()
        for suffix, pair in (("", look.solid), ("-text", look.text), ("-tint", look.tint))
    }
    return states | TOKENS


def _state_rules() -> str:
    """Return one rule per badge, so that no template needs a style attribute."""
    badges = [(f"k-state-{_slug(state)}", f"state-{_slug(state)}") for state in JOB_STATES]
    badges += [(f"k-node-{state}", f"node-{state}") for state in NODE_STATES]
    return "".join(
        f".{name} {{ color: var(--k-{token}-text); background: var(--k-{token}-tint); }}\n"
        for name, token in badges
    )


if __name__ == "__main__":
    sys.stdout.write(stylesheet())
