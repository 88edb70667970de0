"""Accelerators of further makers, as far as the makers publish dense FP16 throughput."""

from typing import Final

from telemetry.flavors.entry import accelerator

OTHERS: Final = (
    accelerator(
        "intel-gaudi3",
        "Intel Gaudi 3",
        (r"gaudi ?3", r"hl 325l?"),
        1678,
        128,
        900,
        "Intel Gaudi 3 AI Accelerator white paper, table of peak MME throughput, FP16",
    ),
    accelerator(
        "intel-gaudi2",
        "Intel Gaudi 2",
        (r"gaudi ?2", r"hl 225[a-z]*"),
        432,
        96,
        600,
        "Intel Gaudi 3 AI Accelerator white paper, comparison with Gaudi 2, MME BF16 (FP16 alike)",
    ),
    accelerator(
        "intel-max-1550",
        "Intel Data Center GPU Max 1550",
        (r"data center gpu max 1550",),
        832,
        128,
        600,
        "Intel Data Center GPU Max Series technical overview, peak FP16 XMX: 832 TFLOPS",
    ),
    accelerator(
        "cambricon-mlu370-x8",
        "Cambricon MLU370-X8",
        (r"mlu370 x8",),
        96,
        48,
        250,
        "Cambricon MLU370-X8 page, specifications: 96 TFLOPS FP16, 48 GB, 250 W",
    ),
    accelerator(
        "cambricon-mlu370-x4",
        "Cambricon MLU370-X4",
        (r"mlu370 x4",),
        96,
        24,
        150,
        "Cambricon MLU370-X4 page, specifications: 96 TFLOPS FP16, 24 GB, 150 W",
    ),
    accelerator(
        "mthreads-s4000",
        "Moore Threads MTT S4000",
        (r"(mtt )?s4000",),
        100,
        48,
        None,
        "Moore Threads MTT S4000 page, specifications: 100 TFLOPS FP16, 48 GB",
    ),
)
"""Every further accelerator in the catalogue."""
