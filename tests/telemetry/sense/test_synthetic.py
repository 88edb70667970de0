"""The simulated fleet."""

import itertools
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import pytest

from telemetry import flavors
from telemetry.sense.base import DeviceReading, NodeReading
from telemetry.sense.synthetic import Held, build

ROOT = Path(__file__).resolve().parents[3]
NOW_S = 1_800_000_000.0
DAY_S = 86_400
Holds = dict[str, Held]
Number = TypeVar("Number", int, float)
FIRST = "SIM-demo-h100-01-0"


def fleet(
    now_s: float = NOW_S, held: Holds | None = None, **options: object
) -> Sequence[NodeReading]:
    return build("demo", {"held": lambda: held or {}, **options}).collect(now_s=now_s)


def first_device(
    now_s: float = NOW_S, held: Holds | None = None, **options: object
) -> DeviceReading:
    return fleet(now_s, held, **options)[0].devices[0]


def over_a_day(kind: str, milli: int = 1000, step_s: int = 300) -> list[float]:
    held = {FIRST: Held(milli, kind)}
    collector = build("demo", {"held": lambda: held})
    moments = range(0, DAY_S, step_s)
    return [busy(collector.collect(now_s=NOW_S + at)[0].devices[0]) for at in moments]


def busy(device: DeviceReading) -> float:
    return told(device.utilised_frac)


def told(number: Number | None) -> Number:
    assert number is not None
    return number


def test_the_fleet_has_the_promised_mix() -> None:
    count: Counter[tuple[str, int]] = Counter()
    for node in fleet():
        kind = {flavors.flavor_slug(device.vendor, device.model) for device in node.devices}
        count[(kind.pop() if kind else "cpu", len(node.devices))] += 1
    assert count == {
        ("nvidia-h100-sxm", 8): 3,
        ("nvidia-a100-80gb", 8): 3,
        ("nvidia-l40s", 4): 2,
        ("amd-mi300x", 8): 2,
        ("ascend-910b3", 8): 2,
        ("cpu", 0): 2,
    }


def test_every_node_says_that_it_is_simulated() -> None:
    assert all(node.labels["kilter/simulated"] == "true" for node in fleet(nodes=40))


def test_names_and_uids_are_unique_in_a_large_fleet() -> None:
    nodes = fleet(nodes=300)
    names = [node.name for node in nodes]
    uids = [device.uid for node in nodes for device in node.devices]
    assert len(set(names)) == len(names) == 300
    assert len(set(uids)) == len(uids)


def test_one_node_is_tainted_and_one_device_unhealthy_however_large_the_fleet() -> None:
    nodes = fleet(nodes=100)
    assert [node.name for node in nodes if node.taints] == ["l40s-09"]
    ill = [d for node in nodes for d in node.devices if d.health != "healthy"]
    assert [device.uid for device in ill] == ["SIM-demo-a100-08-5"]
    assert ill[0].health_note


def test_nodes_have_racks_of_four_and_links_where_the_model_has_them() -> None:
    nodes = fleet()
    assert Counter(node.labels["kilter/rack"] for node in nodes) == {
        "rack-01": 4,
        "rack-02": 4,
        "rack-03": 4,
        "rack-04": 2,
    }
    assert {device.link_group for device in nodes[0].devices} == {0}
    assert {device.link_group for device in nodes[2].devices} == {-1}


def test_nodes_have_two_sockets_and_a_network_card_for_two_devices() -> None:
    eight, four = fleet()[0].devices, fleet()[2].devices
    assert [device.numa_node for device in eight] == [0, 0, 0, 0, 1, 1, 1, 1]
    assert [device.nic[-1] for device in eight] == ["0", "0", "1", "1", "2", "2", "3", "3"]
    assert [device.numa_node for device in four] == [0, 0, 1, 1]


def test_the_same_seed_time_and_holds_give_the_same_readings() -> None:
    held = {FIRST: Held(1000, "training")}
    assert fleet(held=held, seed=3) == fleet(held=held, seed=3)


def test_another_process_with_another_hash_seed_gives_the_same_readings() -> None:
    script = (
        "from telemetry.sense.synthetic import Held, build\n"
        f"c = build('demo', {{'held': lambda: {{'{FIRST}': Held(1000, 'training')}}}})\n"
        f"print(c.collect(now_s={NOW_S}))"
    )
    texts = [
        subprocess.run(
            [sys.executable, "-c", script],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert texts[0] == texts[1]
    assert "SIM-demo-h100-01-0" in texts[0]


def test_another_seed_gives_another_course() -> None:
    held = {FIRST: Held(1000, "training")}
    one, two = first_device(held=held, seed=1), first_device(held=held, seed=2)
    assert one.utilised_frac != two.utilised_frac


def test_an_idle_device_does_nearly_nothing_and_draws_idle_power() -> None:
    for at in range(0, DAY_S, 977):
        device = first_device(NOW_S + at)
        assert 0.0 <= busy(device) < 0.01
        assert 90 < told(device.power_w) < 130  # of 700 W
        assert told(device.temperature_c) < 36
        assert told(device.memory_used_mib) < 600


def test_training_keeps_a_device_between_85_and_97_percent() -> None:
    seen = over_a_day("training")
    assert min(seen) >= 0.85
    assert max(seen) <= 0.97
    assert max(seen) - min(seen) > 0.05


def test_inference_follows_the_hours_of_the_day() -> None:
    # The day's least is at 04:00 UTC and its most at 16:00; NOW_S is 08:00 UTC.
    seen = over_a_day("inference")
    at_04, at_16 = seen[20 * 12], seen[8 * 12]
    assert at_04 < 0.25
    assert at_16 > 0.65


def test_a_notebook_mostly_waits_and_now_and_then_runs() -> None:
    seen = over_a_day("notebook", step_s=7)
    assert sum(frac < 0.1 for frac in seen) / len(seen) > 0.85
    assert max(seen) > 0.5


def test_batch_is_between() -> None:
    seen = over_a_day("batch")
    assert 0.55 < min(seen) < max(seen) < 0.95


def test_an_unknown_kind_looks_like_batch() -> None:
    device = first_device(held={FIRST: Held(1000, "??")})
    assert device == first_device(held={FIRST: Held(1000, "batch")})


def test_half_a_device_is_half_as_busy() -> None:
    whole = first_device(held={FIRST: Held(1000, "training")})
    half = first_device(held={FIRST: Held(500, "training")})
    assert half.utilised_frac == pytest.approx(busy(whole) / 2, abs=1e-4)
    assert told(half.memory_used_mib) == pytest.approx(told(whole.memory_used_mib) / 2, abs=1)
    assert told(half.power_w) < told(whole.power_w)


@pytest.mark.parametrize("milli", [-5, 0, 1, 999, 1000, 5000])
@pytest.mark.parametrize("kind", ["training", "inference", "batch", "notebook"])
@pytest.mark.parametrize("now_s", [0.0, -1e9, NOW_S, 1e12])
def test_readings_stay_within_the_device(milli: int, kind: str, now_s: float) -> None:
    device = first_device(now_s, {FIRST: Held(milli, kind)})
    assert 0.0 <= busy(device) <= 1.0
    assert 0 <= told(device.memory_used_mib) <= told(device.memory_mib)
    assert 0.0 < told(device.power_w) <= 700
    assert 25 < told(device.temperature_c) < 85


def test_a_course_is_smooth_from_one_sample_to_the_next() -> None:
    held = {FIRST: Held(1000, "training")}
    collector = build("demo", {"held": lambda: held})
    seen = [collector.collect(now_s=NOW_S + at)[0].devices[0] for at in range(0, 3600, 5)]
    steps = [abs(busy(b) - busy(a)) for a, b in itertools.pairwise(seen)]
    assert max(steps) < 0.05


def test_only_the_held_device_is_busy() -> None:
    nodes = fleet(held={FIRST: Held(1000, "training")})
    working = [d.uid for node in nodes for d in node.devices if busy(d) > 0.1]
    assert working == [FIRST]


def test_cpu_held_by_name_of_the_node_makes_its_processors_busy() -> None:
    idle, laden = fleet()[5], fleet(held={"cpu-06": Held(1000, "batch")})[5]
    assert idle.name == laden.name == "cpu-06"
    assert told(idle.cpu_utilised_frac) < 0.05
    assert told(laden.cpu_utilised_frac) > 0.5
    assert told(laden.memory_used_mib) > told(idle.memory_used_mib)


def test_a_hold_is_asked_for_at_every_call() -> None:
    held: Holds = {}
    collector = build("demo", {"held": lambda: held})
    assert busy(collector.collect(now_s=NOW_S)[0].devices[0]) < 0.1
    held[FIRST] = Held(1000, "training")
    assert busy(collector.collect(now_s=NOW_S)[0].devices[0]) > 0.8


WRONG: dict[str, dict[str, object]] = {
    "an unknown option": {"speed": 3},
    "no node": {"nodes": 0},
    "too many nodes": {"nodes": 10_001},
    "text for a number": {"nodes": "14"},
    "a boolean for a number": {"nodes": True},
    "a part of a seed": {"seed": 0.5},
    "a hold that can't be called": {"held": {}},
}


@pytest.mark.parametrize("options", WRONG.values(), ids=WRONG.keys())
def test_wrong_options_are_refused(options: dict[str, object]) -> None:
    with pytest.raises((ValueError, TypeError), match="option"):
        build("demo", options)
