"""Jobs of a trace: what was asked for, and how it really behaves."""

import math

from scheduler.core.resources import PLACEMENT_WISHES
from scheduler.core.snapshot import JobSpec
from scheduler.core.topology import Level, TopologyWish
from scheduler.simulate.jobs import LEAST_CHECKPOINT_S, SimJob
from scheduler.simulate.traces.cells import Cell
from scheduler.simulate.traces.exported.content import Content
from scheduler.simulate.traces.exported.line import Line, known, new
from scheduler.simulate.traces.exported.site import MOST_PRIORITY, read_shape, shape_values


def read_job(line: Line, content: Content) -> None:
    """Read a job."""
    uid = new(line.cell("uid"), content.jobs)
    fails = line.cell("fails_after_s")
    content.jobs[uid] = SimJob(
        spec=_spec(line, uid, content),
        work=line.cell("work").positive(),
        throughput={flavor: cell.number() for flavor, cell in line.mapping("throughput").items()},
        scaling=line.cell("scaling", 1.0).number(high=1.0),
        startup_s=line.cell("startup_s", 0.0).number(),
        checkpoint_every_s=_interval(line.cell("checkpoint_every_s", 0.0)),
        saves_when_told=line.flag("saves_when_told", default=False),
        fails_after_s=math.inf if fails.value is None else fails.positive(),
    )


def _interval(cell: Cell) -> float:
    """Return a time between checkpoints, 0 for never."""
    every_s = cell.number()
    if 0 < every_s < LEAST_CHECKPOINT_S:
        raise cell.error(f"is too short: 0 for never, or {LEAST_CHECKPOINT_S:g} s at least")
    return every_s


def _spec(line: Line, uid: str, content: Content) -> JobSpec:
    least = line.cell("replicas_min", 1).integer(low=1)
    return JobSpec(
        uid=uid,
        tenant=known(line.cell("tenant"), content.tenants, "tenant"),
        kind=line.cell("kind", "batch").text(),
        shape=read_shape(line),
        replicas_min=least,
        replicas_max=line.cell("replicas_max", least).integer(low=least),
        flavors=line.names("flavors"),
        priority=line.cell("priority", 0).integer(low=-MOST_PRIORITY, high=MOST_PRIORITY),
        preemptible=line.flag("preemptible", default=True),
        time_limit_s=line.cell("time_limit_s").positive(),
        submitted_s=line.cell("submitted_s").number(low=content.begin_s),
        tolerations=frozenset(line.names("tolerations")),
        hold=line.word("hold"),
        not_before_s=line.cell("not_before_s", 0.0).number(),
        min_throughput=line.cell("min_throughput", 0.0).number(high=1.0),
        promised_s=line.cell("promised_s", 0.0).number(),
        preempted_count=line.cell("preempted_count", 0).integer(),
        topology=_topology(line),
        placement_wish=line.word("placement_wish", PLACEMENT_WISHES),
        job_class=line.word("job_class"),
        interference=line.word("interference"),
        anti_affinity=line.word("anti_affinity"),
    )


def _topology(line: Line) -> TopologyWish | None:
    levels = tuple(Level)
    required, preferred = (
        line.word(f"{how}_topology", levels) for how in ("required", "preferred")
    )
    if required and preferred:
        wrong = Cell(line.file, line.number, "preferred_topology", preferred)
        raise wrong.error("stands beside required_topology")
    level = required or preferred
    return TopologyWish(Level(level), bool(required)) if level else None


def job_values(job: SimJob) -> dict[str, object]:
    """Return what `read_job` reads."""
    spec, wish = job.spec, job.spec.topology
    return {
        "uid": spec.uid,
        "tenant": spec.tenant,
        "kind": spec.kind,
        **shape_values(spec.shape),
        "replicas_min": spec.replicas_min,
        "replicas_max": spec.replicas_max,
        "flavors": list(spec.flavors),
        "priority": spec.priority,
        "preemptible": spec.preemptible,
        "time_limit_s": spec.time_limit_s,
        "submitted_s": spec.submitted_s,
        "tolerations": sorted(spec.tolerations),
        "hold": spec.hold,
        "not_before_s": spec.not_before_s or None,
        "min_throughput": spec.min_throughput,
        "promised_s": spec.promised_s or None,
        "preempted_count": spec.preempted_count or None,
        "required_topology": wish.level if wish and wish.required else "",
        "preferred_topology": wish.level if wish and not wish.required else "",
        "placement_wish": spec.placement_wish,
        "job_class": spec.job_class,
        "interference": spec.interference,
        "anti_affinity": spec.anti_affinity,
        "work": job.work,
        "throughput": dict(job.throughput),
        "scaling": job.scaling,
        "startup_s": job.startup_s,
        "checkpoint_every_s": job.checkpoint_every_s,
        "saves_when_told": job.saves_when_told,
        "fails_after_s": None if job.fails_after_s == math.inf else job.fails_after_s,
    }
