import json

import pytest

from benchmarks import simulate


@pytest.mark.parametrize("policy", simulate.DECIDERS)
def test_simulate_prints_one_json_object_last(policy: str, capsys) -> None:
    simulate.main(["--nodes", "4", "--jobs", "40", "--policy", policy, "--json"])
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    # each of 40 jobs arrives, starts and ends; who is evicted starts once more
    assert told["events"] == 3 * 40 + 2 * told["evictions"]
    assert told["events_per_min"] > 0
    assert 0 < told["allocated_pct"] <= 100
