"""`manage.py replay [CLUSTER]`: the last days of a cluster under another policy."""

from argparse import ArgumentTypeError
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from scheduler import replays, snapshots
from scheduler.management.arguments import interval, number
from scheduler.management.comparison import (
    Outputs,
    Over,
    Window,
    add_options,
    changed,
    compare,
    told,
)
from scheduler.simulate.traces.exported import write_trace
from telemetry.models import Cluster

MOST_DAYS = 3660


def moment(text: str) -> datetime:
    """Return a point in time; UTC where no zone is given.

    Raises:
        ArgumentTypeError: it is none, or it is to come.
    """
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError as wrong:
        raise ArgumentTypeError(f"{text!r} is not a time as 2026-03-02T12:00+00:00") from wrong
    zoned = parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)
    if zoned > timezone.now():  # noqa: TID251 - an entry point
        raise ArgumentTypeError(f"{text!r} is still to come")
    return zoned


class Command(BaseCommand):
    """Reads the jobs that ran, plays them again, and sets the figures beside what was."""

    help = (
        "Plays the last days of a cluster again, with the jobs' real run times, under one or more "
        "policies, and compares, all over the same days. It only reads; nothing on the site "
        "changes."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("cluster", nargs="?", help="slug; may be left out if there is but one")
        parser.add_argument(
            "--days", type=number(0, MOST_DAYS, above=True), default=7.0, help="how far back"
        )
        parser.add_argument(
            "--until", type=moment, metavar="TIME", help="end of the window, ISO 8601; now"
        )
        parser.add_argument(
            "--checkpoint-every",
            type=interval,
            default=0.0,
            metavar="SECONDS",
            help="how often jobs with devices are taken to save their work, 1 at least; 0 = never",
        )
        parser.add_argument("--export", type=Path, metavar="PATH", help="write the trace, too")
        add_options(parser)

    def handle(self, *_args: object, **options: Any) -> None:
        """Play it and write the figures."""
        cluster = _cluster(options["cluster"])
        now = options["until"] or timezone.now()  # noqa: TID251 - an entry point
        outputs = Outputs(options["json"], options["csv"], self.stdout, self.stderr)
        with told():
            outputs.check(writes=[options["export"]] if options["export"] else [])
            policy = changed(snapshots.policy_of(cluster), options["set"])
            record = replays.recording(
                cluster=cluster,
                since=replays.window(days=options["days"], now=now),
                now=now,
                checkpoint_every_s=options["checkpoint_every"],
            )
            if options["export"]:
                lines = "".join(f"{line}\n" for line in write_trace(record.trace))
                options["export"].write_text(lines, encoding="utf-8")
            about = {
                "cluster": cluster.slug,
                "days": options["days"],
                "jobs": len(record.trace.jobs),
                "never_ran": record.never_ran,
                "still_run": record.still_run,
            }
            compare(
                record.trace,
                options["policy"].split(","),
                policy,
                outputs=outputs,
                about=about,
                window=Window(record.recorded.end_s, Over.WINDOW),
                before={"recorded": record.recorded},
                begun=record.begun,
            )


def _cluster(slug: str | None) -> Cluster:
    rows = list(Cluster.objects.order_by("slug"))
    names = ", ".join(row.slug for row in rows) or "none"
    if slug is None and len(rows) == 1:
        return rows[0]
    found = next((row for row in rows if row.slug == slug), None)
    if found is None:
        asked = "Say which cluster" if slug is None else f"There is no cluster {slug!r}"
        raise CommandError(f"{asked}; there are: {names}.")
    return found
