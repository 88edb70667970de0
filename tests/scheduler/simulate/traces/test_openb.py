import pytest

from scheduler.simulate.baselines import fifo
from scheduler.simulate.errors import TraceError
from scheduler.simulate.run import simulate
from scheduler.simulate.traces.openb import (
    TraceNode,
    TracePod,
    read_nodes,
    read_pods,
    sim_jobs,
    sim_world,
)

NODES = "sn,cpu_milli,memory_mib,gpu,model"
PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec"
TIMED = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,creation_time,deletion_time,scheduled_time"


def test_a_node_list_is_read_in_file_order():
    nodes = read_nodes([NODES, "b,64000,262144,2,P100", "a,32000,131072,0,"])
    assert nodes == (
        TraceNode("b", 64000, 262144, 2, "P100"),
        TraceNode("a", 32000, 131072, 0, ""),
    )


def test_a_pod_may_name_several_models_or_none():
    pods = read_pods([PODS, "x,4000,1024,1,460,T4|P100", "y,8000,2048,8,1000,"])
    assert pods == (
        TracePod("x", 4000, 1024, 1, 460, frozenset({"T4", "P100"})),
        TracePod("y", 8000, 2048, 8, 1000, frozenset()),
    )


def test_a_pod_list_without_models_lets_any_model_do():
    (pod,) = read_pods(["name,cpu_milli,memory_mib,num_gpu,gpu_milli", "x,1,1,1,1000"])
    assert pod.models == frozenset()


CASES = {
    "a share of two devices": ([PODS, "x,1,1,2,500,"], 2, "gpu_milli"),
    "more than a device": ([PODS, "x,1,1,1,1001,"], 2, "gpu_milli"),
    "a negative number": ([PODS, "x,-1,1,0,0,"], 2, "cpu_milli"),
    "not a number": ([PODS, "x,nan,1,0,0,"], 2, "cpu_milli"),
    "a number beyond 64 bits": ([PODS, "x," + "9" * 30 + ",1,0,0,"], 2, "cpu_milli"),
    "half a device": ([PODS, "x,1,1,0.5,1000,"], 2, "num_gpu"),
    "a million devices": ([PODS, "x,1,1,1000000,1000,"], 2, "num_gpu"),
    "a short line": ([PODS, "x,1"], 2, "num_gpu"),
    "a missing column": (["name,cpu_milli", "x,1"], 1, ""),
    "no line at all": ([], 1, ""),
    "a field without end": ([PODS, 'x,"' + "1" * 200_000], 1, ""),
    "an end before the begin": ([TIMED, "x,1,1,0,0,50,10,50"], 2, "deletion_time"),
    "a start before the creation": ([TIMED, "x,1,1,0,0,50,90,10"], 2, "scheduled_time"),
}


@pytest.mark.parametrize(("lines", "line", "column"), CASES.values(), ids=CASES)
def test_a_line_that_cannot_be_read_is_named(lines, line, column):
    with pytest.raises(TraceError, match=r"pods\.csv") as caught:
        read_pods(lines, "pods.csv")
    assert (caught.value.line, caught.value.column) == (line, column)


def test_pods_with_times_run_from_their_start_to_their_end():
    started, never = read_pods(
        [TIMED, "x,1000,1024,0,0,10,100,40", "y,1000,1024,0,0,10,100,"], "pods.csv"
    )
    assert (started.created_s, started.ran_s) == (10.0, 60.0)
    assert (never.created_s, never.ran_s) == (10.0, 90.0)


def test_a_trace_can_be_simulated():
    # x runs 0..60 on the only device, y waits for it and runs 60..90
    nodes = read_nodes([NODES, "n,64000,262144,1,P100"])
    pods = read_pods([TIMED, "x,1000,1024,1,1000,0,60,0", "y,1000,1024,1,1000,10,40,10"])
    jobs = sim_jobs(pods, limit_frac=2.0)
    assert [job.spec.time_limit_s for job in jobs] == [120.0, 60.0]
    result = simulate(sim_world(nodes), jobs, fifo())
    assert [job.end_s for job in result.jobs] == [60.0, 90.0]


def test_a_list_without_times_is_refused_where_it_is_to_be_simulated():
    lines = ["name,cpu_milli,memory_mib,num_gpu,gpu_milli", "x,1,1,1,1000"]
    missing = r"multi\.csv, line 1: .* has no column creation_time, deletion_time,.*_default\.csv"
    with pytest.raises(TraceError, match=missing):
        read_pods(lines, "multi.csv", timed=True)
    assert len(read_pods(lines, "multi.csv")) == 1


def test_two_nodes_of_one_name_are_refused():
    nodes = read_nodes([NODES, "n,64000,262144,1,P100", "n,64000,262144,1,P100"])
    with pytest.raises(TraceError, match="twice"):
        sim_world(nodes)
