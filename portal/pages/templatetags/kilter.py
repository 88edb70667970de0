"""Filters and tags of the pages: amounts, badges, icons, and data for the scripts."""

from collections.abc import Mapping
from datetime import UTC, datetime

from django import template
from django.template.context import RequestContext
from django.templatetags.static import static
from django.utils.functional import Promise
from django.utils.html import format_html, json_script
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from portal.flavor_names import flavor_label
from portal.pages import amounts
from portal.pages.bars import Bar, BarSegment, bar_segments
from portal.pages.cluster_titles import cluster_title
from portal.pages.colours import JOB_STATES, NODE_STATES
from portal.pages.cycle_words import cycle_word
from portal.pages.script_strings import SCRIPT_STRINGS
from scheduler.choices import JobState

register = template.Library()

register.filter("memory", amounts.memory_text)
register.filter("cpu", amounts.cpu_text)
register.filter("devices", amounts.devices_text)
register.filter("frac", amounts.frac_text)
register.filter("duration", amounts.duration_text)
register.filter("ago", amounts.ago_text)
register.filter("cycle_word", cycle_word)
register.filter("cluster_title", cluster_title)
register.filter("flavor_label", flavor_label)

NODE_LABELS: Mapping[str, str | Promise] = {
    "ready": _("ready"),
    "cordoned": _("cordoned"),
    "draining": _("draining"),
    "unknown": _("unknown"),
}


@register.simple_tag
def icon(name: str) -> SafeString:
    """Return one icon of the sprite; it is decoration, so the text beside it speaks."""
    return format_html(
        '<svg class="icon k-icon" aria-hidden="true"><use href="{}#{}"></use></svg>',
        static("vendor/tabler-icons/sprite.svg"),
        name,
    )


@register.inclusion_tag("parts/state_badge.html")
def state_badge(state: str) -> dict[str, object]:
    """Return a job state as icon, word and colour.

    Raises:
        ValueError: no such state.
    """
    look = JOB_STATES[JobState(state)]
    label = JobState(state).label
    return {
        "kind": "state",
        "slug": state.replace("_", "-"),
        "state": state,
        "name": look.icon,
        "label": label,
    }


@register.inclusion_tag("parts/state_badge.html")
def node_badge(state: str) -> dict[str, object]:
    """Return a node state as icon, word and colour.

    Raises:
        KeyError: no such state.
    """
    name = NODE_STATES[state]
    label = NODE_LABELS[state]
    return {"kind": "node", "slug": state, "state": state, "name": name, "label": label}


@register.inclusion_tag("parts/nav_item.html", takes_context=True)
def nav_item(
    context: RequestContext, views: str, href: str, name: str, label: str
) -> dict[str, object]:
    """Return one entry of the sidebar, marked where one of its `views` is shown."""
    match = getattr(context.get("request"), "resolver_match", None)
    active = match is not None and match.view_name in views.split()
    return {"href": href, "name": name, "label": label, "active": active}


@register.inclusion_tag("parts/bar.html")
def quota_bar(bar: Bar) -> dict[str, object]:
    """Return a quota bar: own, borrowed and this request against nominal and limit."""
    segments: tuple[BarSegment, ...] = bar_segments(bar)
    return {"segments": segments, "bar": bar, "nominal_pct": bar.nominal_pct, "label": bar.label}


@register.simple_tag
def when(then: datetime | None, now: datetime) -> SafeString | str:
    """Return an age that the browser keeps counting."""
    if then is None:
        return amounts.UNKNOWN
    return format_html(
        '<time datetime="{}" title="{}" data-ago>{}</time>',
        then.isoformat(),
        _utc_text(then),
        amounts.ago_text(then, now),
    )


@register.simple_tag
def moment(then: datetime | None) -> SafeString | str:
    """Return a point in time; UTC as sent, in the reader's zone once the browser has it."""
    if then is None:
        return amounts.UNKNOWN
    return format_html(
        '<time datetime="{}" data-local>{}</time>', then.isoformat(), _utc_text(then)
    )


@register.simple_tag
def script_strings() -> SafeString:
    """Return the words of the scripts as a JSON element."""
    words = {key: str(text) for key, text in SCRIPT_STRINGS.items()}
    return json_script(words, "kilter-strings")


@register.simple_tag
def figure_data(figure: Mapping[str, object], name: str) -> SafeString:
    """Return a figure as the JSON element that `charts.js` looks for."""
    return json_script(figure, f"{name}-figure")


def _utc_text(then: datetime) -> str:
    return then.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
