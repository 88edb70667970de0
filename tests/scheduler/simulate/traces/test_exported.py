import json
from dataclasses import replace

import pytest

from scheduler.core.snapshot import QuotaLine
from scheduler.simulate.baselines import fifo
from scheduler.simulate.errors import InvalidSimulationError, TraceError
from scheduler.simulate.run import simulate
from scheduler.simulate.traces.exported import Trace, read_trace, write_trace
from tests.builders import FleetBuilder, tenant, world
from tests.scheduler.simulate.build import work

HEAD = '{"record": "trace", "version": 1, "cluster": "c", "begin_s": 100}'
FLAVOR = '{"record": "flavor", "name": "a100", "memory_mib": 80000, "compute_units": 312}'
NODE = (
    '{"record": "node", "name": "n", "cpu_milli": 64000, "memory_mib": 9000, "devices": ["a100"]}'
)
TENANT = '{"record": "tenant", "slug": "t", "quotas": {"a100": [2000, null, 500]}}'
JOB = {
    "record": "job",
    "uid": "j",
    "tenant": "t",
    "cpu_milli": 1000,
    "memory_mib": 1024,
    "devices": 1,
    "submitted_s": 110,
    "time_limit_s": 600,
    "work": 60,
}


def lines(*more: object) -> list[str]:
    start = [HEAD, FLAVOR, NODE, "", TENANT]
    return start + [one if isinstance(one, str) else json.dumps(one) for one in more]


def test_a_short_file_is_read_with_its_defaults() -> None:
    trace = read_trace(lines(JOB), "site.jsonl")
    [job] = trace.jobs
    assert trace.world.tenants[0].quotas == {"a100": QuotaLine(2000, None, 500)}
    assert trace.world.fleet.device_memory_mib.tolist() == [80_000]
    assert (job.spec.kind, job.spec.replicas_max, job.spec.preemptible) == ("batch", 1, True)
    # it arrives at 110, runs for 60 s on the only device, and ends at 170
    assert simulate(trace.world, trace.jobs, fifo()).jobs[0].end_s == 170.0


def test_what_is_written_is_read_back() -> None:
    fleet = FleetBuilder().node("a", devices=2, taints=["gpu"]).node("b", devices=1, flavor="k80")
    tenants = [tenant("root"), tenant("t", under="root", weight=2.0, a100=2, k80=1)]
    jobs = (
        work("j1", 5.0, 10.0, flavors=["k80", "a100"], tolerations=["gpu"], priority=-3),
        work("j2", 6.0, 20.0, replicas=2, replicas_max=4, throughput={"a100": 2.5}, scaling=0.5),
        work("j3", 7.0, 30.0, devices=0, fails_after_s=4.0, checkpoint_every_s=60.0, milli=1000),
        work("j4", 8.0, 30.0, milli=250, startup_s=3.0, saves_when_told=True, min_throughput=0.5),
    )
    trace = Trace(world(fleet, tenants=tenants, now_s=1.0), jobs)
    back = read_trace(write_trace(trace), "back")
    assert back.jobs == trace.jobs
    assert back.world.tenants == trace.world.tenants
    assert list(write_trace(back)) == list(write_trace(trace))


def test_file_of_the_first_version_is_read_with_the_defaults_of_what_it_does_not_say() -> None:
    """Nothing of what came with the second version is in `lines`."""
    trace = read_trace(lines(JOB), "old.jsonl")
    world, fleet, [job] = trace.world, trace.world.fleet, trace.jobs
    assert trace.policy is None
    assert (world.throughputs, world.pairs, world.reservations, world.demand_mix) == (
        {},
        {},
        (),
        (),
    )
    assert (world.usage_decayed, world.runtime_ratios) == ({}, ())
    assert (fleet.device_link_group.tolist(), fleet.device_healthy.tolist()) == ([-1], [True])
    assert (len(fleet.device_numa), len(fleet.device_nic), len(fleet.device_throttled)) == (0, 0, 0)
    assert (fleet.node_ready.tolist(), fleet.node_note) == ([True], ("",))
    spec = job.spec
    assert (spec.topology, spec.placement_wish, spec.job_class) == (None, "", "")
    assert (spec.interference, spec.anti_affinity, spec.preempted_count) == ("", "", 0)


def test_version_that_is_not_known_is_named() -> None:
    with pytest.raises(TraceError, match=r"version: 4 is .* not known here; 1 to 3 are"):
        read_trace([HEAD.replace("1,", "4,")], "new.jsonl")


def test_past_use_is_read_by_flavor_and_as_files_of_the_second_version_had_it() -> None:
    """By flavor the most used one is what decisions see; else the number is."""
    new = '{"record": "tenant", "slug": "u", "usage_decayed": {"a100": 0.5, "cpu": 0.75}}'
    old = '{"record": "tenant", "slug": "v", "usage_decayed": 0.25}'
    trace = read_trace(lines(new, old), "site.jsonl")
    assert trace.past_use == {("u", "a100"): 0.5, ("u", "cpu"): 0.75}
    assert trace.world.usage_decayed == {"u": 0.75, "v": 0.25}
    assert read_trace(write_trace(trace), "back").past_use == trace.past_use


def test_texts_as_the_database_holds_them_are_read_back() -> None:
    """Labels may be empty, as Kubernetes' are, and keys of taints 317 characters long."""
    key = "x" * 317
    fleet = FleetBuilder().node("n" * 253, devices=1, taints=[key])
    fleet.nodes[0].labels["node-role.kubernetes.io/gpu"] = ""
    made = world(fleet, tenants=[tenant("t")], now_s=0.0)
    trace = Trace(made, (work("j", 1.0, 1.0, tolerations=[key]),))
    back = read_trace(write_trace(trace), "back")
    assert back.world.fleet.node_labels == ({"node-role.kubernetes.io/gpu": ""},)
    assert back.jobs == trace.jobs


def test_number_without_end_is_not_written() -> None:
    made = world(FleetBuilder().node("a", devices=1), tenants=[tenant("t")], now_s=0.0)
    endless = work("j", 1.0, 1.0, limit_s=float("inf"))
    with pytest.raises(InvalidSimulationError, match=r"the job .*infinite"):
        list(write_trace(Trace(made, (endless,))))


def test_characters_beyond_the_first_65536_are_read_however_they_are_written() -> None:
    whole = json.dumps(JOB | {"uid": "j\U0001f600"})  # as two halves, \ud83d and \ude00
    assert "\\ud83d" in whole
    assert read_trace(lines(whole), "site.jsonl").jobs[0].spec.uid == "j\U0001f600"


def without(name: str) -> dict[str, object]:
    return {key: value for key, value in JOB.items() if key != name}


CASES = {
    "no line": ([], 0, ""),
    "no head": ([TENANT], 1, "record"),
    "a newer version": ([HEAD.replace("1,", "4,")], 1, "version"),
    "a version that never was": ([HEAD.replace("1,", "0,")], 1, "version"),
    "a version that is a text": ([HEAD.replace("1,", '"new",')], 1, "version"),
    "no version": ([HEAD.replace('"version": 1, ', "")], 1, "version"),
    "no JSON": (lines("{"), 6, ""),
    "a list": (lines("[]"), 6, ""),
    "half a character in a name": (lines(json.dumps(JOB | {"uid": "j\ud800"})), 6, ""),
    "half a character in a key": (
        lines(json.dumps(JOB | {"throughput": {"a\udfff100": 1}})),
        6,
        "",
    ),
    "far too deep": (lines("[" * 100_000), 6, ""),
    "a very long line": (lines('"' + "x" * 2_000_000 + '"'), 6, ""),
    "an unknown record": (lines({"record": "pod"}), 6, "record"),
    "a record that is a list": (lines({"record": ["job"]}), 6, "record"),
    "a word that nobody knows": (lines(JOB | {"gpus": 2}), 6, "gpus"),
    "no work": (lines(without("work")), 6, "work"),
    "work that is NaN": (lines(json.dumps(JOB | {"work": float("nan")})), 6, "work"),
    "work without end": (lines(json.dumps(JOB | {"work": float("inf")})), 6, "work"),
    "checkpoints all the time": (
        lines(JOB | {"checkpoint_every_s": 1e-9}),
        6,
        "checkpoint_every_s",
    ),
    "a value twice": (lines(json.dumps(JOB)[:-1] + ', "work": 61}'), 6, "work"),
    "a limit of nothing": (lines(JOB | {"time_limit_s": 0}), 6, "time_limit_s"),
    "before the begin": (lines(JOB | {"submitted_s": 99}), 6, "submitted_s"),
    "a tenant that is not there": (lines(JOB | {"tenant": "x"}), 6, "tenant"),
    "a job twice": (lines(JOB, JOB), 7, "uid"),
    "more than a device": (lines(JOB | {"gpu_milli": 1001}), 6, "gpu_milli"),
    "fewer replicas than the least": (
        lines(JOB | {"replicas_min": 2, "replicas_max": 1}),
        6,
        "replicas_max",
    ),
    "a flag that is a number": (lines(JOB | {"preemptible": 1}), 6, "preemptible"),
    "flavors that are a text": (lines(JOB | {"flavors": "a100"}), 6, "flavors"),
    "a negative throughput": (lines(JOB | {"throughput": {"a100": -1}}), 6, "throughput a100"),
    "an unknown parent": (lines({"record": "tenant", "slug": "u", "parent": "x"}), 6, "parent"),
    "a quota of two": (
        lines({"record": "tenant", "slug": "u", "quotas": {"a100": [1, 2]}}),
        6,
        "quotas a100",
    ),
    "links of another number of devices": (
        lines(NODE.replace('"n",', '"m", "link_groups": [0, 1],')),
        6,
        "link_groups",
    ),
    "a NUMA node below none": (lines(NODE.replace('"n",', '"m", "numa": [-2],')), 6, "numa"),
    "a card that is a text": (lines(NODE.replace('"n",', '"m", "nics": ["a"],')), 6, "nics"),
    "a sick device that is not there": (
        lines(NODE.replace('"n",', '"m", "unhealthy": [1],')),
        6,
        "unhealthy",
    ),
    "a hot device below the first": (
        lines(NODE.replace('"n",', '"m", "throttled": [-1],')),
        6,
        "throttled",
    ),
    "a node that is ready by a number": (
        lines(NODE.replace('"n",', '"m", "ready": 1,')),
        6,
        "ready",
    ),
    "a label that is a number": (
        lines(NODE.replace('"n",', '"m", "labels": {"rack": 1},')),
        6,
        "labels rack",
    ),
    "usage that is NaN": (
        lines('{"record": "tenant", "slug": "u", "usage_decayed": NaN}'),
        6,
        "usage_decayed",
    ),
    "usage of a flavor that is not there": (
        lines('{"record": "tenant", "slug": "u", "usage_decayed": {"k80": 0.5}}'),
        6,
        "usage_decayed k80",
    ),
    "usage of a flavor that is below nothing": (
        lines('{"record": "tenant", "slug": "u", "usage_decayed": {"a100": -0.5}}'),
        6,
        "usage_decayed a100",
    ),
    "ratios beyond the limit": (
        [HEAD.replace("100}", '100, "runtime_ratios": [0.5, 1.5]}')],
        1,
        "runtime_ratios",
    ),
    "ratios that fall": (
        [HEAD.replace("100}", '100, "runtime_ratios": [0.5, 0.4]}')],
        1,
        "runtime_ratios",
    ),
    "a speed of nothing": (
        lines({"record": "throughput", "job_class": "lm", "flavor": "a100", "throughput": 0}),
        6,
        "throughput",
    ),
    "a speed twice": (
        lines(
            *[{"record": "throughput", "job_class": "lm", "flavor": "a100", "throughput": 1}] * 2
        ),
        7,
        "job_class",
    ),
    "a pair of three": (
        lines({"record": "pairing", "classes": ["a", "b", "c"], "throughputs": [1, 1]}),
        6,
        "classes",
    ),
    "a pair above its speed alone": (
        lines({"record": "pairing", "classes": ["a", "b"], "throughputs": [1, 2]}),
        6,
        "throughputs",
    ),
    "a pair twice": (
        lines(*[{"record": "pairing", "classes": ["a", "b"], "throughputs": [1, 1]}] * 2),
        7,
        "classes",
    ),
    "a reservation of a node that is not there": (
        lines({"record": "reservation", "id": "r", "start_s": 1, "end_s": 2, "nodes": ["x"]}),
        6,
        "nodes",
    ),
    "a reservation for nobody we know": (
        lines({"record": "reservation", "id": "r", "start_s": 1, "end_s": 2, "tenants": ["x"]}),
        6,
        "tenants",
    ),
    "a reservation that ends before it begins": (
        lines({"record": "reservation", "id": "r", "start_s": 2, "end_s": 1}),
        6,
        "end_s",
    ),
    "demand for nothing": (
        lines({"record": "demand", "cpu_milli": 1, "memory_mib": 1, "count": 0}),
        6,
        "count",
    ),
    "demand twice": (
        lines(*[{"record": "demand", "cpu_milli": 1, "memory_mib": 1, "count": 1}] * 2),
        7,
        "",
    ),
    "a level that nobody knows": (
        lines(JOB | {"required_topology": "moon"}),
        6,
        "required_topology",
    ),
    "two levels": (
        lines(JOB | {"required_topology": "rack", "preferred_topology": "node"}),
        6,
        "preferred_topology",
    ),
    "a wish that nobody knows": (lines(JOB | {"placement_wish": "near"}), 6, "placement_wish"),
    "a group that is a list": (lines(JOB | {"anti_affinity": ["g"]}), 6, "anti_affinity"),
    "evictions in part": (lines(JOB | {"preempted_count": 0.5}), 6, "preempted_count"),
    "a policy twice": (lines({"record": "policy"}, {"record": "policy"}), 7, "record"),
    "a weight that nobody knows": (
        lines({"record": "policy", "order": {"speed": 1}}),
        6,
        "order speed",
    ),
    "a weight below nothing": (lines({"record": "policy", "order": {"age": -1}}), 6, "order age"),
    "weights that are a list": (lines({"record": "policy", "order": [1]}), 6, "order"),
    "a law that is a number": (
        lines({"record": "policy", "preemption": {"by_reclaim": 1}}),
        6,
        "preemption by_reclaim",
    ),
    "a strategy that is not there": (lines({"record": "policy", "strategy": "magic"}), 6, ""),
    "a device of no flavor": (
        lines(NODE.replace('"n"', '"m"').replace('["a100"]', '["x"]')),
        6,
        "devices",
    ),
}


@pytest.mark.parametrize(("text", "line", "column"), CASES.values(), ids=CASES)
def test_a_line_that_makes_no_sense_is_named(text: list[str], line: int, column: str) -> None:
    with pytest.raises(TraceError, match=r"site\.jsonl") as caught:
        read_trace(text, "site.jsonl")
    assert (caught.value.line, caught.value.column) == (line, column)


def test_a_fleet_that_is_not_free_is_written_as_if_it_were() -> None:
    made = world(FleetBuilder().node("a", devices=1), now_s=0.0)
    made.fleet.device_free_milli[:] = 0
    back = read_trace(write_trace(Trace(replace(made, pending=()), ())), "back")
    assert back.world.fleet.device_free_milli.tolist() == [1000]
