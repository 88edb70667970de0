import json
from pathlib import Path

import pytest

from benchmarks.eta import Told, figures, main

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
