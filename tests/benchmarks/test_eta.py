import json
from pathlib import Path

import pytest

from benchmarks.eta import Told, _by_seed, figures, main

KEYS = {"cover_p90_pct", "cover_p50_pct", "median_abs_error_s", "by_horizon", "naive"}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Two nodes of two devices; a pod a minute that takes one for seven: some have to wait."""
    folder = tmp_path / "openb"
    folder.mkdir()
    nodes = ["sn,cpu_milli,memory_mib,gpu,model", "n0,64000,262144,2,T4", "n1,64000,262144,2,T4"]
    (folder / "openb_node_list_gpu_node.csv").write_text("\n".join(nodes), encoding="utf-8")
    pods = ["name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,creation_time,deletion_time"]
    pods += [f"p{k},1000,1024,1,1000,,{60 * k},{60 * k + 420}" for k in range(40)]
    path = folder / "openb_pod_list_default.csv"
    path.write_text("\n".join(pods), encoding="utf-8")
    return tmp_path


def test_the_last_line_is_one_object_with_the_agreed_keys(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    size = ["--openb-every", "1", "--openb-speed", "1", "--openb-jobs", "40"]
    main(["--data", str(data), "--only", "openb", *size, "--json"])
    result = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert result.keys() >= KEYS
    assert result["waited"] > 10
    assert result["traces"]["openb"]["jobs"] == 40
    by_seed = result["by_seed"]
    assert list(by_seed) == ["0", "1", "2"]
    assert sum(one["waited"] for one in by_seed.values()) == result["waited"]
    assert result["traces"]["openb"]["by_seed"] == by_seed  # there is no other trace


def test_a_trace_and_seed_that_miss_are_seen_though_others_make_up_for_them() -> None:
    """Seed 0: two waits of 50 on openb, two of 150 on gavel; seed 1 the other way round. P50 is
    100 everywhere: half of them hold on each trace and with each seed, yet no pair is near that.
    """
    short, long = [[Told(100.0, 200.0, 60.0, s, gang=False)] * 2 for s in (50.0, 150.0)]
    told = {("openb", 0): short, ("gavel", 0): long, ("openb", 1): long, ("gavel", 1): short}
    both = _by_seed(told)
    assert [both[seed]["cover_p50_pct"] for seed in ("0", "1")] == [50.0, 50.0]
    alone = _by_seed({key: some for key, some in told.items() if key[0] == "openb"})
    assert [alone[seed]["cover_p50_pct"] for seed in ("0", "1")] == [100.0, 0.0]


UNREADABLE = {
    "a folder that is not there": ("nowhere", "", "nowhere"),
    "an empty node list": (".", "openb_node_list_gpu_node.csv", "openb_node_list_gpu_node.csv"),
    "a list without pods": (".", "openb_pod_list_default.csv", "has no job that can be played"),
}


@pytest.mark.parametrize(("at", "emptied", "says"), UNREADABLE.values(), ids=UNREADABLE.keys())
def test_what_cannot_be_read_is_a_mistake_in_one_sentence(
    at: str, emptied: str, says: str, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if emptied:
        path = data / "openb" / emptied
        head = path.read_text(encoding="utf-8").splitlines()[0]
        path.write_text(head if "pod" in emptied else "", encoding="utf-8")
    with pytest.raises(SystemExit) as ended:
        main(["--data", str(data / at), "--only", "openb", "--openb-every", "1", "--json"])
    assert ended.value.code == 2
    assert says in capsys.readouterr().err.splitlines()[-1]


def test_coverage_and_error_are_those_of_the_starts() -> None:
    """Waits of 50 to 400 against P50 100 and P90 200: 2 and 3 of 4; errors 50, 0, 50, 300."""
    told = [Told(100.0, 200.0, 60.0, waited_s, gang=False) for waited_s in (50, 100, 150, 400)]
    found = figures(told)
    assert found["cover_p50_pct"] == 50.0
    assert found["cover_p90_pct"] == 75.0
    assert found["median_abs_error_s"] == 50.0
    assert found["naive"]["cover_pct"] == 25.0
    assert found["by_horizon"]["<10 min"]["waited"] == 4
    assert found["by_horizon"]["<1 h"] == {"waited": 0}
