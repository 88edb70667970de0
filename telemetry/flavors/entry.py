"""One model of accelerator or processor, as the catalogue knows it."""

from dataclasses import dataclass
from typing import Final

MIB_PER_GB: Final = 1024
"""Makers write GB for what is GiB of DRAM: "80 GB" is 81920 MiB, nominal. A driver may report a
little less (ECC, firmware); what it reports is what counts for a real device."""


@dataclass(frozen=True, slots=True)
class FlavorEntry:
    """One model.

    Attributes:
        slug: stable name, such as `nvidia-a100-80gb`; never changes once published.
        vendor: nvidia, amd, ascend, intel, hygon, ... lower case; of a CPU: `cpu`.
        name: for people.
        names: the model as drivers name it, each a regular expression over the normalised name
            (see `match.normalise`), which it must match from end to end.
        fp16_tflops: dense FP16 throughput of one device, TFLOPS (its compute units). Matrix units
            accumulating in FP32 where the maker tells that apart; never the sparse figure. None =
            not known, never zero.
        memory_mib: of one device, nominal; None for a processor.
        power_w: maximum board or package power as the maker rates it, watts.
        source: the maker's document and where in it; `halved` where only a sparse figure is given.
        cores: of a processor; 0 for an accelerator.
        derived: the TFLOPS are computed (cores x clock x operations a cycle), not published.
    """

    slug: str
    vendor: str
    name: str
    names: tuple[str, ...]
    fp16_tflops: float | None
    memory_mib: int | None
    power_w: float | None
    source: str
    cores: int = 0
    derived: bool = False


def accelerator(  # noqa: PLR0917 a row of a vendor's table
    slug: str,
    name: str,
    names: tuple[str, ...],
    tflops: float,
    memory_gb: int,
    power_w: float | None,
    source: str,
) -> FlavorEntry:
    """Return the entry of an accelerator; the vendor is the slug's first word.

    Args:
        slug: as in `FlavorEntry`, like all that follow where not said otherwise.
        name: for people.
        names: as drivers name it.
        tflops: dense FP16 of one device.
        memory_gb: as marketed.
        power_w: None where the maker does not publish it.
        source: of the numbers.
    """
    return FlavorEntry(
        slug=slug,
        vendor=slug.partition("-")[0],
        name=name,
        names=names,
        fp16_tflops=tflops,
        memory_mib=memory_gb * MIB_PER_GB,
        power_w=power_w,
        source=source,
    )
