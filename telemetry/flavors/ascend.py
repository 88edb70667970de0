"""Huawei Ascend. Cube units, dense. One device is what npu-smi lists: a chip, of a 910C one die.

Models whose throughput Huawei does not publish (910B1, 910B2C, ...) are left out on purpose: they
show as unknown. So does a bare `Ascend910`, which tools print for a 910A as for a 910C.
"""

from typing import Final

from telemetry.flavors.entry import accelerator

_A2 = (
    "Huawei Atlas 800T A2 training server technical white paper, FP16 computing power per NPU (313"
    " or 376 TFLOPS); power: not published, middle of third-party reports of 310 to 400 W"
)
_A2_INFERENCE = (
    "Huawei Atlas 800I A2 inference server technical white paper, 280 TFLOPS FP16 per NPU; power:"
    " not published, middle of third-party reports of 310 to 400 W"
)

ASCEND: Final = (
    accelerator(
        "ascend-910c",
        "Ascend 910C (one of two dies)",
        (r"910c", r"910 93[0-9a-f]{2}"),
        376,
        64,
        None,
        "Huawei, Serving LLMs on CloudMatrix384 (arXiv 2506.12708), section 3.3.1: 376 TFLOPS and"
        " 64 GB a die; power is not published",
    ),
    accelerator("ascend-910b2", "Ascend 910B2", (r"910b2",), 376, 64, 350, _A2),
    accelerator("ascend-910b3", "Ascend 910B3", (r"910b3",), 313, 64, 350, _A2),
    accelerator(
        "ascend-910b4",
        "Ascend 910B4 (32 GB)",
        (r"910b4",),
        280,
        32,
        350,
        _A2_INFERENCE,
    ),
    accelerator(
        "ascend-910b4-64gb",
        "Ascend 910B4 (64 GB)",
        (r"910b4 1",),
        280,
        64,
        350,
        _A2_INFERENCE,
    ),
    accelerator(
        "ascend-910a",
        "Ascend 910A",
        (r"910a",),
        256,
        32,
        310,
        "Huawei Ascend 910 announcement, 23 August 2019: 256 TFLOPS FP16, 310 W; Atlas 300T"
        " training card (model 9000) technical white paper, 2.1 Performance",
    ),
    accelerator(
        "ascend-310p",
        "Ascend 310P",
        (r"310p[0-9]?",),
        70,
        24,
        72,
        "Huawei Atlas 300I Pro inference card technical white paper: 140 TOPS INT8, 70 TFLOPS FP16,"
        " 24 GB, 72 W (one 310P)",
    ),
    accelerator(
        "ascend-310",
        "Ascend 310",
        (r"310",),
        8,
        8,
        8,
        "HiSilicon, Key Information About the Huawei Ascend 310, 10 October 2018: 8 TFLOPS FP16,"
        " 8 W; memory: Atlas 300I (model 3010), 32 GB for four chips",
    ),
)
"""Every Ascend model in the catalogue."""
