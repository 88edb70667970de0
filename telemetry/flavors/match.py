"""From a driver's words to an entry of the catalogue, or to a stable slug of its own."""

import re
import unicodedata
from dataclasses import replace
from functools import lru_cache
from typing import Final

from telemetry.flavors.amd import AMD
from telemetry.flavors.ascend import ASCEND
from telemetry.flavors.cpus import CPUS
from telemetry.flavors.entry import MIB_PER_GB, FlavorEntry
from telemetry.flavors.nvidia import NVIDIA
from telemetry.flavors.others import OTHERS

CATALOGUE: Final = (*NVIDIA, *AMD, *ASCEND, *OTHERS, *CPUS)
"""Every model known, accelerators first."""

BY_SLUG: Final = {entry.slug: entry for entry in CATALOGUE}
"""Slug -> entry."""

LONGEST_SLUG: Final = 80
LONGEST_NAME: Final = 200
MIG_SLICES: Final = {"nvidia-a30": 4}
"""Compute slices of a whole GPU, where not seven (NVIDIA Multi-Instance GPU User Guide)."""

_PATTERNS: Final = tuple(
    (entry, re.compile("|".join(f"(?:{name})" for name in entry.names))) for entry in CATALOGUE
)
_MAKERS: Final = re.compile(
    r"\b(nvidia|tesla|amd|advanced micro devices|instinct|intel|huawei|hisilicon|habana|cambricon"
    r"|moore threads|corporation|inc|r|tm|accelerator|ai|genuine)\b"
)
_BRACKETED: Final = re.compile(r"\[(?:amd/ati\] )?\w[^\[\]]*\[([^\[\]]+)\]|.*\[([^\[\]]+)\]$")
_CLOCK: Final = re.compile(r"( cpu)? @ .*$|( \d+[ -]core)? processor.*$| with .* graphics$")
_MIG: Final = re.compile(
    r"^(.*?) mig (?:(\d)c\.)?(\d)g\.(\d{1,4})gb(\+[a-z0-9.+-]{1,16})?$", re.IGNORECASE
)
_PROFILE: Final = re.compile(r"(?:([1-9])c\.)?([1-9])g\.(\d{1,4})gb(?:\+[a-z0-9.+-]{1,16})?")


def lookup(vendor: str, model: str, mig_profile: str = "") -> FlavorEntry | None:
    """Return what the catalogue knows of a model, None where it does not know it.

    A MIG slice is a flavor of its own: the GPU's slug with `-mig-1g.10gb`, throughput and power by
    compute slices (one of seven, of an A30 one of four), memory by the profile; marked as derived.

    Args:
        vendor: nvidia, amd, ascend, ...; `cpu` for a processor; "" = any.
        model: as the driver names it, such as `NVIDIA A100-SXM4-80GB`; may end in ` MIG 1g.10gb`.
        mig_profile: such as `1g.10gb`, "" for a whole device.
    """
    name = model.strip()[:LONGEST_NAME]
    named = _MIG.match(name)
    if named:
        model, mig_profile = named[1], name[len(named[1]) + len(" mig ") :]
    entry = _whole(vendor.strip().lower(), normalise(model))
    return entry if entry is None or not mig_profile else _slice_of(entry, mig_profile)


def flavor_slug(vendor: str, model: str, mig_profile: str = "") -> str:
    """Return the slug of a model; of an unknown one a stable one made of its vendor and name.

    Args:
        vendor: as in `lookup`.
        model: as in `lookup`.
        mig_profile: as in `lookup`.

    Returns:
        Lower-case letters, digits, `-` and `.`, at most 80 of them, never empty.
    """
    entry = lookup(vendor, model, mig_profile)
    if entry is not None:
        return entry.slug
    words = [vendor, normalise(model) or "unknown", f"mig {mig_profile}" if mig_profile else ""]
    slug = re.sub(r"[^a-z0-9.]+", "-", " ".join(words).lower()).strip("-.")
    return slug[:LONGEST_SLUG].strip("-.") or "unknown"


def normalise(model: str) -> str:
    """Return a model's name in plain lower-case words, without makers, marks and clock speeds.

    `NVIDIA A100-SXM4-80GB` -> `a100 sxm4 80gb`; `Intel(R) Xeon(R) Platinum 8480+ CPU @ 2.00GHz`
    -> `xeon platinum 8480+`; `Ascend910B3` -> `910b3`.
    """
    text = unicodedata.normalize("NFKC", model[:LONGEST_NAME]).lower().strip()
    found = _BRACKETED.match(text)
    if found:
        text = found[1] or found[2]
    text = _CLOCK.sub("", text)
    text = re.sub(r"[^a-z0-9+.]+", " ", text.replace("ascend", " "))
    return " ".join(_MAKERS.sub(" ", text).split())


@lru_cache(maxsize=1024)
def _whole(vendor: str, name: str) -> FlavorEntry | None:
    for entry, pattern in _PATTERNS:
        if vendor in {"", entry.vendor} and pattern.fullmatch(name):
            return entry
    return None


def _slice_of(entry: FlavorEntry, mig_profile: str) -> FlavorEntry | None:
    found = _PROFILE.fullmatch(mig_profile.strip().lower())
    whole = MIG_SLICES.get(entry.slug, 7)
    if found is None or not 1 <= int(found[2]) <= whole or entry.fp16_tflops is None:
        return None
    part = int(found[1] or found[2]) / whole
    return replace(
        entry,
        slug=f"{entry.slug}-mig-{re.sub(r'[^a-z0-9.]+', '-', found[0]).strip('-')}",
        name=f"{entry.name} MIG {found[0]}",
        names=(),
        fp16_tflops=round(entry.fp16_tflops * part, 3),
        memory_mib=int(found[3]) * MIB_PER_GB,
        power_w=None if entry.power_w is None else round(entry.power_w * part, 1),
        source=f"{entry.source}; a slice: its part of the compute slices",
        derived=True,
    )
