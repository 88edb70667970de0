"""The kept output: raw bytes, capped, and no reason to lose a job."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from scheduler.execute.base import ExecutorUnavailableError, Phase
from scheduler.execute.local.output import Output
from tests.scheduler.execute.builders import binding, replicas
from tests.scheduler.execute.local.conftest import Bench


def test_a_piece_of_the_log_is_raw_bytes_even_amid_a_character(bench: Bench) -> None:
    job = binding("printf 'a\\303\\251\\377\\000b'")
    bench.run(job)
    whole = b"a\xc3\xa9\xff\x00b"
    assert bench.output(job) == whole
    chunk = bench.executor.log(job.uid, 1, since=2, limit=3)
    assert (chunk.data, chunk.since, chunk.size, chunk.truncated) == (whole[2:5], 2, 6, False)
    beyond = bench.executor.log(job.uid, 1, since=99, limit=3)
    assert (beyond.data, beyond.since, beyond.size) == (b"", 6, 6)
    assert bench.executor.log(job.uid, 1, since=-5, limit=2).data == b"a\xc3"


def test_an_unknown_job_has_an_empty_log(bench: Bench) -> None:
    assert bench.executor.log(binding().uid, 1, since=0, limit=10).size == 0


def test_the_log_grows_while_the_job_runs(bench: Bench) -> None:
    job = binding("printf begun; sleep 20")
    bench.executor.bind(job)
    bench.until_output(job, b"begun")
    assert bench.observed(job).phase is Phase.RUNNING


def test_output_beyond_the_cap_is_dropped_with_one_notice(bench: Bench) -> None:
    capped = bench.again(log_cap_bytes=10_000)
    job = binding("head -c 3000000 /dev/zero | tr '\\0' x; echo; echo end; exit 6")
    end = capped.run(job)
    assert end.exit_code == 6
    kept = capped.output(job)
    assert kept[:10_000] == b"x" * 10_000
    assert kept[10_000:] == b"\n[output beyond 10000 bytes was dropped]\n"
    assert capped.executor.log(job.uid, 1, since=0, limit=1).truncated


def test_an_endless_line_is_kept_up_to_the_cap(bench: Bench) -> None:
    capped = bench.again(log_cap_bytes=100_000)
    job = binding("tr '\\0' y < /dev/zero", time_limit_s=1.0, replicas=replicas(2))
    assert capped.run(job).phase is Phase.TIMED_OUT
    assert 100_000 <= len(capped.output(job)) < 100_200


def test_lines_of_several_replicas_say_whose_they_are(tmp_path: Path) -> None:
    output = Output(tmp_path / "log", cap_bytes=1000, prefixed=True)
    output.write(0, b"one\ntw")
    output.write(1, b"other\n")
    output.write(0, b"o\nlast")
    output.flush()
    output.write(1, b"more\n")
    output.write(0, b" end\n")
    output.close()
    assert (tmp_path / "log").read_bytes() == (
        b"[r0] one\n[r1] other\n[r0] two\n[r0] last\n[r1] more\n[r0]  end\n"
    )


def test_a_full_disk_is_noted_and_survived() -> None:
    output = Output(Path("/dev/full"), cap_bytes=1000, prefixed=False)
    output.write(0, b"lost")
    output.write(0, b"lost too")
    output.close()
    assert output.error == "No space left on device"
    assert output.truncated


def test_a_log_that_cant_be_opened_is_noted_and_survived(tmp_path: Path) -> None:
    output = Output(tmp_path / "missing" / "log", cap_bytes=1000, prefixed=False)
    output.write(0, b"lost")
    output.close()
    assert output.error == "No such file or directory"


@pytest.fixture
def small_disk(bench: Bench) -> Iterator[Bench]:
    """Put the attempts on a disk of 128 KiB."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount")
    target = bench.folder / "active"
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=128k,mode=700", "tmpfs", str(target)],
        check=False,
        capture_output=True,
    )
    if made.returncode != 0:
        pytest.skip("mounting is forbidden here")
    yield bench
    subprocess.run(["umount", "--lazy", str(target)], check=True)


def test_a_job_runs_to_its_end_while_the_disk_is_full(small_disk: Bench) -> None:
    job = binding("head -c 1000000 /dev/zero | tr '\\0' z; sleep 2.5; exit 9")
    end = small_disk.run(job)
    assert (end.phase, end.exit_code) == (Phase.FAILED, 9)
    assert "output was lost: No space left on device" in end.message
    chunk = small_disk.executor.log(job.uid, 1, since=0, limit=10)
    assert chunk.data == b"z" * 10
    assert chunk.truncated


def test_bind_on_a_full_disk_fails_and_succeeds_later(small_disk: Bench) -> None:
    filler = small_disk.folder / "active" / "filler"
    with pytest.raises(OSError, match="No space"):
        filler.write_bytes(b"x" * 1_000_000)
    job = binding("echo fine")
    with pytest.raises(ExecutorUnavailableError) as failure:
        small_disk.executor.bind(job)
    assert failure.value.retryable
    filler.unlink()
    assert small_disk.run(job).phase is Phase.SUCCEEDED
    assert small_disk.output(job) == b"fine\n"
