import pytest

from scheduler.simulate.traces import TraceError, TraceNode, TracePod, read_nodes, read_pods

NODES = "sn,cpu_milli,memory_mib,gpu,model"
PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec"


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
    "a share of two devices": ([PODS, "x,1,1,2,500,"], "line 2: 2 devices of 500 milli each"),
    "more than a device": ([PODS, "x,1,1,1,1001,"], "line 2"),
    "a negative number": ([PODS, "x,-1,1,0,0,"], "cpu_milli is '-1'"),
    "not a number": ([PODS, "x,nan,1,0,0,"], "cpu_milli is 'nan'"),
    "a number beyond 64 bits": ([PODS, "x," + "9" * 30 + ",1,0,0,"], "cpu_milli"),
    "a short line": ([PODS, "x,1"], "num_gpu is ''"),
    "a missing column": (["name,cpu_milli", "x,1"], "no column memory_mib, num_gpu"),
}


@pytest.mark.parametrize(("lines", "message"), CASES.values(), ids=CASES)
def test_a_line_that_cannot_be_read_is_named(lines, message):
    with pytest.raises(TraceError, match=message.replace("(", r"\(")):
        read_pods(lines)
