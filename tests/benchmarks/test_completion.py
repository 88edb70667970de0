import json
from pathlib import Path

import pytest

from benchmarks import completion
from benchmarks.rounds import JobClass, least_attained, max_min_shares
from scheduler.simulate.run import simulate
from tests.scheduler.simulate.build import site, work

KIND = "('LM (batch size 5)', 1)"


@pytest.fixture
def trace(tmp_path: Path) -> list[str]:
    """Return arguments for 20 jobs of 9,000 steps, a minute apart, 10 steps a second on a V100."""
    traces, throughputs = tmp_path / "a.trace", tmp_path / "t.json"
    line = "LM (batch size 5)\tmain.py\t--steps\t0\t{steps}\t{at}.0\t1\n"
    traces.write_text("".join(line.format(steps=9000, at=60 * i) for i in range(20)))
    rates = {"k80": 1.0, "p100": 5.0, "v100": 10.0}
    throughputs.write_text(json.dumps({f: {KIND: {"null": r}} for f, r in rates.items()}))
    return ["--traces", str(traces), "--throughputs", str(throughputs), "--json"]


def test_completion_prints_one_json_object_last(
    trace: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    completion.main(trace)
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    # there is a V100 for everybody: 900 s each
    assert (told["mean_s"], told["p99_s"], told["policy"]) == (900.0, 900.0, "ours")
    assert {"fifo", "las", "max_min_aware"} <= told["baselines"].keys()
    assert told["baselines"]["fifo_aware"]["mean_s"] == 900.0


def test_only_the_policies_that_are_asked_for_are_run(
    trace: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    completion.main([*trace, "--only", "fifo_aware, ours"])
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert told["mean_s"] == 900.0
    assert list(told["baselines"]) == ["fifo_aware"]


def _refused(args: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as ended:
        completion.main(args)
    assert ended.value.code == 2
    return capsys.readouterr().err.splitlines()[-1]


def test_mistakes_are_told_in_one_sentence(
    trace: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "'nonsense' is none of the policies" in _refused([*trace, "--only", "nonsense"], capsys)
    assert "No such file" in _refused([*trace, "--traces", str(tmp_path / "no")], capsys)
    assert "No such file" in _refused([*trace, "--throughputs", str(tmp_path / "no")], capsys)
    assert "directory" in _refused([*trace, "--traces", str(tmp_path)], capsys).lower()
    empty, binary = tmp_path / "empty", tmp_path / "binary"
    empty.write_text("")
    binary.write_bytes(b"\xff\xfe")
    assert "nothing can be played" in _refused([*trace, "--traces", str(empty)], capsys)
    assert "no text in UTF-8" in _refused([*trace, "--traces", str(binary)], capsys)
    assert "is no JSON" in _refused([*trace, "--throughputs", str(empty)], capsys)


def test_max_min_gives_each_job_the_flavor_that_it_gains_most_from() -> None:
    # one device of each of two flavors; a is 3 times as fast on the first, b equally fast on both:
    # normalised by the mean (2 and 1), a on the first has 3/2 and b on the second 1/1. The least
    # is largest where b takes time of the first, too: a has x, b 1 - x of the first and x of the
    # second: 1.5 x + 0.5 (1 - x) = 1 for both at x = 0.5 is less than 1.5 and 1, so all stays pure
    shares = max_min_shares([JobClass((1.0, 1.0), 1), JobClass((3.0, 1.0), 1)], [1, 1], [1, 1])
    assert shares[0] == pytest.approx((0.0, 1.0))
    assert shares[1] == pytest.approx((1.0, 0.0))


def test_max_min_shares_one_device_equally() -> None:
    # three jobs of one kind on one device: a third of its time each
    [share] = max_min_shares([JobClass((2.0,), 1)], [3], [1])
    assert share == pytest.approx((1 / 3,))


def test_least_attained_service_takes_turns() -> None:
    # two jobs of 720 s on one device, rounds of 360 s: a, b, a, b; a ends at 1080, b at 1440
    jobs = [work(uid, 0, 720, flavors=["a100"], saves_when_told=True) for uid in ("a", "b")]
    result = simulate(site(), jobs, least_attained(), pace=completion.IN_ROUNDS)
    assert [job.end_s for job in result.jobs] == [1080.0, 1440.0]
    assert [job.evictions for job in result.jobs] == [1, 1]
