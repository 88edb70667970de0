"""NVIDIA. Tensor cores, dense; where the data sheet gives only the figure with sparsity, halved.

GeForce cards run FP16 with FP32 accumulation at half the rate of FP16 accumulation. Training needs
the former and data-centre cards give it in full, so the former counts, or they would not compare.
"""

from typing import Final

from telemetry.flavors.entry import accelerator

_A100 = "NVIDIA A100 Tensor Core GPU data sheet, specifications table, FP16 Tensor Core"
_H100 = "NVIDIA H100 Tensor Core GPU data sheet, specifications table, FP16 Tensor Core, halved"
_H200 = "NVIDIA H200 Tensor Core GPU data sheet, specifications table, FP16 Tensor Core, halved"
_V100 = "NVIDIA V100 Tensor Core GPU data sheet, specifications table, Deep Learning"
_GA102 = "NVIDIA Ampere GA102 GPU Architecture white paper, appendix, peak FP16 Tensor"
_GB202 = (
    "NVIDIA RTX Blackwell (PRO) GPU Architecture white paper, appendix, peak FP16 Tensor with FP32"
    " accumulate"
)
_AD102 = "NVIDIA Ada GPU Architecture white paper, appendix, peak FP16 Tensor with FP32 accumulate"

NVIDIA: Final = (
    accelerator(
        "nvidia-gb300",
        "NVIDIA GB300",
        (r"gb300",),
        2500,
        288,
        1400,
        "NVIDIA GB300 NVL72 page, specifications: 360 PFLOPS FP16 with sparsity for 72 GPUs,"
        " halved; memory and power: NVIDIA Blackwell Ultra technical blog, table 3",
    ),
    accelerator(
        "nvidia-b300",
        "NVIDIA B300 SXM",
        (r"b300( sxm6?)?( ac)?",),
        2250,
        288,
        1100,
        "NVIDIA HGX B300 page, specifications: 36 PFLOPS FP16 with sparsity for 8 GPUs, halved;"
        " 288 GB: NVIDIA Blackwell Ultra technical blog; power: as stated for HGX B300 servers",
    ),
    accelerator(
        "nvidia-gb200",
        "NVIDIA GB200",
        (r"gb200",),
        2500,
        186,
        1200,
        "NVIDIA GB200 NVL72 page, specifications: 360 PFLOPS FP16 with sparsity and 13.4 TB for 72"
        " GPUs, halved; power: NVIDIA Blackwell Architecture technical brief",
    ),
    accelerator(
        "nvidia-b200",
        "NVIDIA B200 SXM",
        (r"b200( sxm6?)?",),
        2250,
        180,
        1000,
        "NVIDIA HGX B200 page, specifications: 36 PFLOPS FP16 with sparsity and 1.44 TB for 8 GPUs,"
        " halved; power: NVIDIA Blackwell Architecture technical brief",
    ),
    accelerator(
        "nvidia-h200",
        "NVIDIA H200 SXM",
        (r"h200( sxm5?)?( 141gb)?( hbm3e)?",),
        989.4,
        141,
        700,
        _H200,
    ),
    accelerator("nvidia-h200-nvl", "NVIDIA H200 NVL", (r"h200 nvl",), 835.5, 141, 600, _H200),
    accelerator(
        "nvidia-gh200-96gb",
        "NVIDIA GH200 (96 GB)",
        (r"gh200( 480gb)?( 96gb)?( hbm3)?",),
        989.4,
        96,
        700,
        "NVIDIA GH200 Grace Hopper Superchip data sheet, FP16 Tensor Core, halved; power: of the"
        " GPU part, as H100 SXM (the module's limit, 450 to 1000 W, is shared with the CPU)",
    ),
    accelerator(
        "nvidia-gh200-144gb",
        "NVIDIA GH200 (144 GB)",
        (r"gh200 144g(b)?( hbm3e)?",),
        989.4,
        144,
        700,
        "NVIDIA GH200 Grace Hopper Superchip data sheet, FP16 Tensor Core, halved; power: of the"
        " GPU part, as H200 SXM (the module's limit, 450 to 1000 W, is shared with the CPU)",
    ),
    accelerator(
        "nvidia-h100-sxm",
        "NVIDIA H100 SXM",
        (r"h100( sxm5?)?( 80gb)? hbm3", r"h100 sxm5?( 80gb)?"),
        989.4,
        80,
        700,
        _H100,
    ),
    accelerator(
        "nvidia-h100-pcie",
        "NVIDIA H100 PCIe",
        (r"h100( 80gb)? pcie( 80gb)?",),
        756.5,
        80,
        350,
        _H100,
    ),
    accelerator(
        "nvidia-h100-nvl", "NVIDIA H100 NVL", (r"h100 nvl( 94gb)?",), 835.5, 94, 400, _H100
    ),
    accelerator(
        "nvidia-h800-sxm",
        "NVIDIA H800 SXM",
        (r"h800( sxm5?)?( 80gb)?( hbm3)?",),
        989.4,
        80,
        700,
        "NVIDIA H800 data sheet, specifications table, SXM column, FP16 Tensor Core, halved",
    ),
    accelerator(
        "nvidia-h20",
        "NVIDIA H20 (96 GB)",
        (r"h20( 96gb)?( hbm3)?",),
        148,
        96,
        400,
        "NVIDIA HGX H20 data sheet, specifications table, FP16 Tensor Core",
    ),
    accelerator(
        "nvidia-h20-141gb",
        "NVIDIA H20 (141 GB)",
        (r"h20 3e", r"h20 141gb( hbm3e)?"),
        148,
        141,
        None,
        "NVIDIA HGX H20 data sheet, specifications table, FP16 Tensor Core; the 141 GB variant's"
        " power is not published",
    ),
    accelerator(
        "nvidia-a100-40gb", "NVIDIA A100 SXM (40 GB)", (r"a100 sxm4? 40gb",), 312, 40, 400, _A100
    ),
    accelerator(
        "nvidia-a100-80gb", "NVIDIA A100 SXM (80 GB)", (r"a100 sxm4? 80gb",), 312, 80, 400, _A100
    ),
    accelerator(
        "nvidia-a100-pcie-40gb",
        "NVIDIA A100 PCIe (40 GB)",
        (r"a100 pcie 40gb",),
        312,
        40,
        250,
        _A100,
    ),
    accelerator(
        "nvidia-a100-pcie-80gb",
        "NVIDIA A100 PCIe (80 GB)",
        (r"a100 (80gb pcie|pcie 80gb)",),
        312,
        80,
        300,
        _A100,
    ),
    accelerator(
        "nvidia-a800-80gb",
        "NVIDIA A800 SXM (80 GB)",
        (r"a800 sxm4? 80gb",),
        312,
        80,
        400,
        "NVIDIA A800 data sheet, specifications table, FP16 Tensor Core",
    ),
    accelerator(
        "nvidia-a800-pcie-80gb",
        "NVIDIA A800 PCIe (80 GB)",
        (r"a800 (80gb pcie|pcie 80gb)",),
        312,
        80,
        300,
        "NVIDIA A800 data sheet, specifications table, FP16 Tensor Core",
    ),
    accelerator(
        "nvidia-a30",
        "NVIDIA A30",
        (r"a30( 24gb)?( pcie)?",),
        165,
        24,
        165,
        "NVIDIA A30 data sheet, FP16 Tensor Core",
    ),
    accelerator(
        "nvidia-a40",
        "NVIDIA A40",
        (r"a40( 48gb)?( pcie)?",),
        149.7,
        48,
        300,
        "NVIDIA A40 data sheet, FP16 Tensor Core",
    ),
    accelerator(
        "nvidia-a10",
        "NVIDIA A10",
        (r"a10( 24gb)?( pcie)?",),
        125,
        24,
        150,
        "NVIDIA A10 data sheet, FP16 Tensor Core",
    ),
    accelerator(
        "nvidia-a10g",
        "NVIDIA A10G",
        (r"a10g",),
        70,
        24,
        300,
        "NVIDIA A10G data sheet (AWS G5), FP16 Tensor Core",
    ),
    accelerator(
        "nvidia-a16",
        "NVIDIA A16 (one of four GPUs)",
        (r"a16",),
        17.9,
        16,
        62.5,
        "NVIDIA A16 data sheet, FP16 Tensor Core: 4 x 17.9; 250 W for four",
    ),
    accelerator(
        "nvidia-a2", "NVIDIA A2", (r"a2",), 18, 16, 60, "NVIDIA A2 data sheet, FP16 Tensor Core"
    ),
    accelerator(
        "nvidia-l40s",
        "NVIDIA L40S",
        (r"l40s( 48gb)?( pcie)?",),
        362,
        48,
        350,
        "NVIDIA L40S data sheet, FP16 Tensor Core",
    ),
    accelerator(
        "nvidia-l40",
        "NVIDIA L40",
        (r"l40( 48gb)?( pcie)?",),
        181,
        48,
        300,
        "NVIDIA L40 data sheet, FP16 Tensor Core",
    ),
    accelerator(
        "nvidia-l20",
        "NVIDIA L20",
        (r"l20( 48gb)?( pcie)?",),
        119.5,
        48,
        275,
        "NVIDIA L20 data sheet, FP16 Tensor Core",
    ),
    accelerator(
        "nvidia-l4",
        "NVIDIA L4",
        (r"l4( 24gb)?( pcie)?",),
        121,
        24,
        72,
        "NVIDIA L4 data sheet, FP16 Tensor Core, halved",
    ),
    accelerator(
        "nvidia-t4",
        "NVIDIA T4",
        (r"t4( 16gb)?( pcie)?",),
        65,
        16,
        70,
        "NVIDIA T4 data sheet, Mixed Precision (FP16/FP32)",
    ),
    accelerator(
        "nvidia-v100-16gb", "NVIDIA V100 SXM2 (16 GB)", (r"v100 sxm2 16gb",), 125, 16, 300, _V100
    ),
    accelerator(
        "nvidia-v100-32gb", "NVIDIA V100 SXM (32 GB)", (r"v100 sxm[23] 32gb",), 125, 32, 300, _V100
    ),
    accelerator(
        "nvidia-v100-pcie-16gb",
        "NVIDIA V100 PCIe (16 GB)",
        (r"v100 pcie 16gb",),
        112,
        16,
        250,
        _V100,
    ),
    accelerator(
        "nvidia-v100-pcie-32gb",
        "NVIDIA V100 PCIe (32 GB)",
        (r"v100 pcie 32gb",),
        112,
        32,
        250,
        _V100,
    ),
    accelerator(
        "nvidia-v100s",
        "NVIDIA V100S PCIe (32 GB)",
        (r"v100s( pcie)?( 32gb)?",),
        130,
        32,
        250,
        _V100,
    ),
    accelerator(
        "nvidia-p100",
        "NVIDIA P100 SXM2",
        (r"p100 sxm2( 16gb)?",),
        21.2,
        16,
        300,
        "NVIDIA Tesla P100 data sheet, NVLink column, half precision (no matrix units)",
    ),
    accelerator(
        "nvidia-p100-pcie",
        "NVIDIA P100 PCIe",
        (r"p100 pcie( 16gb)?",),
        18.7,
        16,
        250,
        "NVIDIA Tesla P100 data sheet, PCIe column, half precision (no matrix units)",
    ),
    accelerator(
        "nvidia-rtx-pro-6000",
        "NVIDIA RTX PRO 6000 Blackwell",
        (r"rtx pro 6000 blackwell( server edition| workstation edition)?",),
        503.8,
        96,
        600,
        _GB202,
    ),
    accelerator(
        "nvidia-rtx-6000-ada",
        "NVIDIA RTX 6000 Ada",
        (r"rtx 6000 ada( generation)?",),
        364.2,
        48,
        300,
        _AD102,
    ),
    accelerator("nvidia-rtx-a6000", "NVIDIA RTX A6000", (r"rtx a6000",), 154.8, 48, 300, _GA102),
    accelerator(
        "nvidia-rtx-5090",
        "NVIDIA GeForce RTX 5090",
        (r"(geforce )?rtx 5090",),
        209.5,
        32,
        575,
        _GB202,
    ),
    accelerator(
        "nvidia-rtx-4090",
        "NVIDIA GeForce RTX 4090",
        (r"(geforce )?rtx 4090",),
        165.2,
        24,
        450,
        _AD102,
    ),
    accelerator(
        "nvidia-rtx-3090",
        "NVIDIA GeForce RTX 3090",
        (r"(geforce )?rtx 3090",),
        71,
        24,
        350,
        _GA102 + " with FP32 accumulate",
    ),
)
"""Every NVIDIA model in the catalogue, newest generation first."""
