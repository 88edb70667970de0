"""What each vendor's runtime is told to see."""

import pytest

from scheduler.execute.base import ReplicaBinding
from scheduler.execute.local.environment import device_variables, replica_environment
from tests.scheduler.execute.builders import binding

NONE = {
    "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
    "CUDA_VISIBLE_DEVICES": "",
    "ASCEND_RT_VISIBLE_DEVICES": "-1",
    "ROCR_VISIBLE_DEVICES": "-1",
    "HIP_VISIBLE_DEVICES": "-1",
}
CASES: dict[str, tuple[ReplicaBinding, dict[str, str]]] = {
    "no device": (ReplicaBinding(0, "n"), {}),
    "two of nvidia": (
        ReplicaBinding(0, "n", (1, 3), ("GPU-a", "GPU-b"), "nvidia"),
        {"CUDA_VISIBLE_DEVICES": "1,3"},
    ),
    "a part of an nvidia device goes by its id": (
        ReplicaBinding(0, "n", (0,), ("MIG-1c2b",), "nvidia"),
        {"CUDA_VISIBLE_DEVICES": "MIG-1c2b"},
    ),
    "two of amd are counted again by HIP": (
        ReplicaBinding(0, "n", (2, 5), ("x", "y"), "amd"),
        {"ROCR_VISIBLE_DEVICES": "2,5", "HIP_VISIBLE_DEVICES": "0,1"},
    ),
    "one of ascend": (
        ReplicaBinding(0, "n", (7,), ("x",), "ascend"),
        {"ASCEND_RT_VISIBLE_DEVICES": "7"},
    ),
    "a vendor that nobody knows": (ReplicaBinding(0, "n", (7,), ("x",), "acme"), {}),
}


@pytest.mark.parametrize(("replica", "shown"), CASES.values(), ids=CASES.keys())
def test_only_held_devices_are_seen(replica: ReplicaBinding, shown: dict[str, str]) -> None:
    assert device_variables(replica) == {**NONE, **shown}


def test_a_job_may_change_defaults_but_not_who_it_is() -> None:
    env = {"PATH": "/mine", "OMP_NUM_THREADS": "1", "KILTER_JOB_ID": "x", "KILTER_REPLICA": "9"}
    job = binding(env=env, cpu_milli=2500)
    found = replica_environment(job, job.replicas[0], home="/w", path="/bin")
    assert found["KILTER_CHECKPOINT_DIR"] == "/w/checkpoints"
    assert (found["PATH"], found["OMP_NUM_THREADS"]) == ("/mine", "1")
    assert (found["KILTER_JOB_ID"], found["KILTER_REPLICA"]) == (job.uid, "0")


def test_threads_follow_the_cores_asked_for() -> None:
    job = binding(cpu_milli=2500)
    found = replica_environment(job, job.replicas[0], home="/w", path="/bin")
    assert found["OMP_NUM_THREADS"] == "3"
