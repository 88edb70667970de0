"""Processors.

No maker publishes dense FP16 throughput of a CPU, so it is derived, per socket:

    cores x base clock x FP16 operations a cycle and core

A fused multiply-add counts two. A core without FP16 arithmetic converts to FP32 and computes there,
so its FP32 rate counts. Matrix units that know BF16 and INT8 only (AMX before Granite Rapids) do
not count, for a compute unit is FP16. The base clock is used: the boost clock does not last on all
cores. The general entry `cpu` stands for any other processor: its throughput is unknown.
"""

from typing import Final

from telemetry.flavors.entry import FlavorEntry

FP32_2X256: Final = 32
"""Two 256-bit FMA units, FP32: 2 x 8 x 2 (AMD Zen 2 to 4, Software Optimization Guides)."""
FP32_2X512: Final = 64
"""Two 512-bit FMA units, FP32: 2 x 16 x 2 (Intel Skylake-SP to Ice Lake-SP; AMD Zen 5)."""
FP16_2X512: Final = 128
"""Two 512-bit FMA units with AVX512-FP16: 2 x 32 x 2 (Intel Sapphire Rapids and later)."""
FP16_2X128: Final = 32
"""Two 128-bit FMA units with Armv8.2 FP16: 2 x 8 x 2 (Neoverse N1, TaiShan v110)."""
FP16_4X128: Final = 64
"""Four 128-bit FMA units with FP16: 4 x 8 x 2 (Neoverse V2)."""


def _cpu(  # noqa: PLR0917 a row of the table below
    slug: str,
    name: str,
    names: tuple[str, ...],
    cores: int,
    clock_ghz: float,
    per_cycle: int,
    power_w: float,
    source: str,
) -> FlavorEntry:
    return FlavorEntry(
        slug=slug,
        vendor="cpu",
        name=name,
        names=names,
        fp16_tflops=round(cores * clock_ghz * per_cycle / 1000, 3),
        memory_mib=None,
        power_w=power_w,
        source=f"{source}: {cores} cores, {clock_ghz} GHz base; {per_cycle} operations a cycle",
        cores=cores,
        derived=True,
    )


CPUS: Final = (
    _cpu(
        "amd-epyc-9755",
        "AMD EPYC 9755",
        (r"epyc 9755",),
        128,
        2.7,
        FP32_2X512,
        500,
        "AMD EPYC 9755 page",
    ),
    _cpu(
        "amd-epyc-9654",
        "AMD EPYC 9654",
        (r"epyc 9654p?",),
        96,
        2.4,
        FP32_2X256,
        360,
        "AMD EPYC 9654 page",
    ),
    _cpu(
        "amd-epyc-7763",
        "AMD EPYC 7763",
        (r"epyc 7763",),
        64,
        2.45,
        FP32_2X256,
        280,
        "AMD EPYC 7763 page",
    ),
    _cpu(
        "amd-epyc-7742",
        "AMD EPYC 7742",
        (r"epyc 7742",),
        64,
        2.25,
        FP32_2X256,
        225,
        "AMD EPYC 7742 page",
    ),
    _cpu(
        "intel-xeon-8592",
        "Intel Xeon Platinum 8592+",
        (r"xeon platinum 8592\+?",),
        64,
        1.9,
        FP16_2X512,
        350,
        "Intel ARK, Xeon Platinum 8592+",
    ),
    _cpu(
        "intel-xeon-8480",
        "Intel Xeon Platinum 8480+",
        (r"xeon platinum 8480[+lc]?",),
        56,
        2.0,
        FP16_2X512,
        350,
        "Intel ARK, Xeon Platinum 8480+",
    ),
    _cpu(
        "intel-xeon-8380",
        "Intel Xeon Platinum 8380",
        (r"xeon platinum 8380",),
        40,
        2.3,
        FP32_2X512,
        270,
        "Intel ARK, Xeon Platinum 8380",
    ),
    _cpu(
        "intel-xeon-8280",
        "Intel Xeon Platinum 8280",
        (r"xeon platinum 8280[lm]?",),
        28,
        2.7,
        FP32_2X512,
        205,
        "Intel ARK, Xeon Platinum 8280",
    ),
    _cpu(
        "kunpeng-920",
        "Kunpeng 920-6426",
        (r"(huawei )?kunpeng 920( 6426)?",),
        64,
        2.6,
        FP16_2X128,
        180,
        "Huawei Kunpeng 920 page, 920-6426 (systems name no bin; this is the largest); vector"
        " units: WikiChip, TaiShan v110",
    ),
    _cpu(
        "ampere-altra-max",
        "Ampere Altra Max M128-30",
        (r"ampere altra max( m128 30)?",),
        128,
        3.0,
        FP16_2X128,
        250,
        "Ampere Altra Max product brief; vector units: Arm Neoverse N1 Software Optimization Guide",
    ),
    _cpu(
        "nvidia-grace",
        "NVIDIA Grace (72 cores)",
        (r"grace( a02)?",),
        72,
        3.1,
        FP16_4X128,
        250,
        "NVIDIA Grace CPU Superchip data sheet, one of two; vector units: Arm Neoverse V2 guide",
    ),
    FlavorEntry(
        slug="cpu",
        vendor="cpu",
        name="CPU",
        names=(r"(generic )?cpu",),
        fp16_tflops=None,
        memory_mib=None,
        power_w=None,
        source="any processor that is not in the catalogue; its throughput is not known",
    ),
)
"""Every processor in the catalogue."""
