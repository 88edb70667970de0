"""AMD Instinct and Radeon PRO. Matrix cores, dense.

An MI250 or MI250X is two dies in one module, and ROCm lists each die as a device of its own. So the
entry is one die: half of the module's throughput, memory and power.
"""

from typing import Final

from telemetry.flavors.entry import accelerator

_MI300 = "data sheet, peak half precision (FP16) matrix performance"
_MI200 = "AMD Instinct MI200 series data sheet, peak half precision (FP16) performance"

AMD: Final = (
    accelerator(
        "amd-mi355x",
        "AMD Instinct MI355X",
        (r"mi355x( oam)?",),
        2516.6,
        288,
        1400,
        f"AMD Instinct MI355X {_MI300}",
    ),
    accelerator(
        "amd-mi350x",
        "AMD Instinct MI350X",
        (r"mi350x( oam)?",),
        2306.9,
        288,
        1000,
        f"AMD Instinct MI350X {_MI300}",
    ),
    accelerator(
        "amd-mi325x",
        "AMD Instinct MI325X",
        (r"mi325x( oam)?",),
        1307.4,
        256,
        1000,
        f"AMD Instinct MI325X {_MI300}",
    ),
    accelerator(
        "amd-mi300x",
        "AMD Instinct MI300X",
        (r"mi300x( oam| o| hf| 192gb)?",),
        1307.4,
        192,
        750,
        f"AMD Instinct MI300X {_MI300}",
    ),
    accelerator(
        "amd-mi300a",
        "AMD Instinct MI300A",
        (r"mi300a( apu)?",),
        980.6,
        128,
        550,
        f"AMD Instinct MI300A {_MI300}; memory is shared with its CPU",
    ),
    accelerator(
        "amd-mi250x",
        "AMD Instinct MI250X (one of two dies)",
        (r"mi250x( mcm)?( oam)?( ac)?( mba)?",),
        191.5,
        64,
        280,
        f"{_MI200}: 383.0 TFLOPS, 128 GB, 560 W for two dies",
    ),
    accelerator(
        "amd-mi250",
        "AMD Instinct MI250 (one of two dies)",
        (r"mi250( mcm)?( oam)?( ac)?( mba)?",),
        181.05,
        64,
        280,
        f"{_MI200}: 362.1 TFLOPS, 128 GB, 560 W for two dies",
    ),
    accelerator("amd-mi210", "AMD Instinct MI210", (r"mi210",), 181, 64, 300, _MI200),
    accelerator(
        "amd-mi100",
        "AMD Instinct MI100",
        (r"mi100",),
        184.6,
        32,
        300,
        "AMD Instinct MI100 data sheet, peak half precision matrix (FP16) performance",
    ),
    accelerator(
        "amd-mi60",
        "AMD Radeon Instinct MI60",
        (r"(radeon )?mi60",),
        29.5,
        32,
        300,
        "AMD Radeon Instinct MI60 data sheet, peak half precision (no matrix units)",
    ),
    accelerator(
        "amd-mi50",
        "AMD Radeon Instinct MI50 (16 GB)",
        (r"(radeon )?mi50( 16gb)?",),
        26.5,
        16,
        300,
        "AMD Radeon Instinct MI50 data sheet, peak half precision (no matrix units)",
    ),
    accelerator(
        "amd-w7900",
        "AMD Radeon PRO W7900",
        (r"radeon pro w7900",),
        122.6,
        48,
        295,
        "AMD Radeon PRO W7900 page, peak half precision (FP16) performance",
    ),
)
"""Every AMD model in the catalogue, newest generation first."""
