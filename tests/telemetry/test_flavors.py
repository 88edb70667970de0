"""The catalogue of models, and finding one by a driver's words."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from telemetry.flavors import BY_SLUG, CATALOGUE, FlavorEntry, flavor_slug, lookup, normalise

ACCELERATORS = [entry for entry in CATALOGUE if entry.vendor != "cpu"]
CPUS = [entry for entry in CATALOGUE if entry.vendor == "cpu"]


def test_the_catalogue_holds_enough_accelerators_of_each_maker() -> None:
    count = dict.fromkeys(("nvidia", "amd", "ascend"), 0)
    for entry in ACCELERATORS:
        count[entry.vendor] = count.get(entry.vendor, 0) + 1
    assert sum(count[vendor] for vendor in ("nvidia", "amd", "ascend")) >= 25
    assert min(count["nvidia"], count["amd"], count["ascend"]) >= 5


def test_slugs_are_unique_and_plain() -> None:
    assert len(BY_SLUG) == len(CATALOGUE)
    for slug in BY_SLUG:
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", slug)


@pytest.mark.parametrize("entry", CATALOGUE, ids=lambda entry: entry.slug)
def test_an_entry_has_a_source_and_no_zeros(entry: FlavorEntry) -> None:
    assert len(entry.source) > 20
    assert entry.names
    for number in (entry.fp16_tflops, entry.memory_mib, entry.power_w):
        assert number is None or number > 0


@pytest.mark.parametrize("entry", ACCELERATORS, ids=lambda entry: entry.slug)
def test_an_accelerator_has_throughput_and_memory(entry: FlavorEntry) -> None:
    assert entry.fp16_tflops is not None
    assert entry.memory_mib is not None
    assert entry.memory_mib % 1024 == 0
    assert entry.slug.startswith(f"{entry.vendor}-")


def test_a_processor_is_marked_as_derived_and_the_general_one_as_unknown() -> None:
    for entry in CPUS:
        assert entry.memory_mib is None
        assert (entry.fp16_tflops is None) == (entry.slug == "cpu")
        assert entry.derived == (entry.slug != "cpu")


def test_throughput_of_a_processor_is_cores_times_clock_times_operations() -> None:
    # 96 cores x 2.4 GHz x 32 = 7372.8 GFLOPS; 56 x 2.0 x 128 = 14336; 64 x 2.6 x 32 = 5324.8
    assert BY_SLUG["amd-epyc-9654"].fp16_tflops == 7.373
    assert BY_SLUG["intel-xeon-8480"].fp16_tflops == 14.336
    assert BY_SLUG["kunpeng-920"].fp16_tflops == 5.325


DENSE = {
    "nvidia-a100-80gb": 312,
    "nvidia-h100-sxm": 989.4,
    "nvidia-h200": 989.4,
    "nvidia-l4": 121,
    "nvidia-l40s": 362,
    "nvidia-t4": 65,
    "nvidia-v100-32gb": 125,
    "amd-mi300x": 1307.4,
    "ascend-910b3": 313,
}


@pytest.mark.parametrize(("slug", "tflops"), DENSE.items())
def test_throughput_is_dense_and_not_sparse(slug: str, tflops: float) -> None:
    assert BY_SLUG[slug].fp16_tflops == tflops


NAMES = {
    ("nvidia", "NVIDIA A100-SXM4-80GB"): "nvidia-a100-80gb",
    ("nvidia", "A100-SXM4-40GB"): "nvidia-a100-40gb",
    ("nvidia", "NVIDIA A100 80GB PCIe"): "nvidia-a100-pcie-80gb",
    ("nvidia", "NVIDIA A100-PCIE-40GB"): "nvidia-a100-pcie-40gb",
    ("nvidia", "NVIDIA A800-SXM4-80GB"): "nvidia-a800-80gb",
    ("nvidia", "NVIDIA H100 80GB HBM3"): "nvidia-h100-sxm",
    ("nvidia", "NVIDIA H100 PCIe"): "nvidia-h100-pcie",
    ("nvidia", "NVIDIA H100 NVL"): "nvidia-h100-nvl",
    ("nvidia", "NVIDIA H200"): "nvidia-h200",
    ("nvidia", "NVIDIA H200 NVL"): "nvidia-h200-nvl",
    ("nvidia", "NVIDIA H20"): "nvidia-h20",
    ("nvidia", "NVIDIA GH200 480GB"): "nvidia-gh200-96gb",
    ("nvidia", "NVIDIA B200"): "nvidia-b200",
    ("nvidia", "NVIDIA GB200"): "nvidia-gb200",
    ("nvidia", "NVIDIA B300 SXM6 AC"): "nvidia-b300",
    ("nvidia", "NVIDIA L4"): "nvidia-l4",
    ("nvidia", "NVIDIA L40"): "nvidia-l40",
    ("nvidia", "NVIDIA L40S"): "nvidia-l40s",
    ("nvidia", "NVIDIA A10"): "nvidia-a10",
    ("nvidia", "NVIDIA A10G"): "nvidia-a10g",
    ("nvidia", "Tesla T4"): "nvidia-t4",
    ("nvidia", "Tesla V100-SXM2-16GB"): "nvidia-v100-16gb",
    ("nvidia", "Tesla V100-SXM2-32GB"): "nvidia-v100-32gb",
    ("nvidia", "Tesla V100-PCIE-16GB"): "nvidia-v100-pcie-16gb",
    ("nvidia", "Tesla V100S-PCIE-32GB"): "nvidia-v100s",
    ("nvidia", "Tesla P100-PCIE-16GB"): "nvidia-p100-pcie",
    ("nvidia", "NVIDIA GeForce RTX 4090"): "nvidia-rtx-4090",
    ("nvidia", "NVIDIA RTX 6000 Ada Generation"): "nvidia-rtx-6000-ada",
    ("nvidia", "NVIDIA RTX A6000"): "nvidia-rtx-a6000",
    ("nvidia", "NVIDIA RTX PRO 6000 Blackwell Server Edition"): "nvidia-rtx-pro-6000",
    ("amd", "AMD Instinct MI300X"): "amd-mi300x",
    ("amd", "AMD Instinct MI300X OAM"): "amd-mi300x",
    ("amd", "AMD INSTINCT MI250 (MCM) OAM AC MBA"): "amd-mi250",
    ("amd", "Arcturus GL-XL [Instinct MI100]"): "amd-mi100",
    ("amd", "Advanced Micro Devices, Inc. [AMD/ATI] Aldebaran/MI200 [Instinct MI210]"): "amd-mi210",
    ("ascend", "910B3"): "ascend-910b3",
    ("ascend", "Ascend910B3"): "ascend-910b3",
    ("ascend", "Ascend 910B4-1"): "ascend-910b4-64gb",
    ("ascend", "Ascend910_9391"): "ascend-910c",
    ("ascend", "310P3"): "ascend-310p",
    ("intel", "HL-225"): "intel-gaudi2",
    ("cpu", "AMD EPYC 9654 96-Core Processor"): "amd-epyc-9654",
    ("cpu", "AMD EPYC 7763 64-Core Processor"): "amd-epyc-7763",
    ("cpu", "Intel(R) Xeon(R) Platinum 8480+"): "intel-xeon-8480",
    ("cpu", "Intel(R) Xeon(R) Platinum 8380 CPU @ 2.30GHz"): "intel-xeon-8380",
    ("cpu", "Kunpeng-920"): "kunpeng-920",
}


@pytest.mark.parametrize(("reported", "slug"), NAMES.items(), ids=[name for _, name in NAMES])
def test_a_drivers_name_finds_its_entry(reported: tuple[str, str], slug: str) -> None:
    entry = lookup(*reported)
    assert entry is not None
    assert entry.slug == slug
    assert flavor_slug(*reported) == slug


def test_no_name_fits_two_entries() -> None:
    patterns = [(entry, re.compile(name)) for entry in CATALOGUE for name in entry.names]
    for vendor, model in NAMES:
        fits = {e.slug for e, p in patterns if e.vendor == vendor and p.fullmatch(normalise(model))}
        assert len(fits) == 1, (model, fits)


UNKNOWN = {
    "a later model": ("nvidia", "NVIDIA Z9000 Ultra", "nvidia-z9000-ultra"),
    "a variant that is not the known one": (
        "nvidia",
        "NVIDIA A100-SXM-64GB",
        "nvidia-a100-sxm-64gb",
    ),
    "a vendor's longer name": ("nvidia", "NVIDIA L40S Pro", "nvidia-l40s-pro"),
    "one of two models": ("amd", "Aldebaran/MI200 [Instinct MI250X/MI250]", "amd-mi250x-mi250"),
    "an Ascend without its letters": ("ascend", "Ascend910", "ascend-910"),
    "a bin that is not published": ("ascend", "910B1", "ascend-910b1"),
    "a model of another vendor": ("amd", "NVIDIA H200", "amd-h200"),
    "no model": ("nvidia", "", "nvidia-unknown"),
    "nothing at all": ("", "", "unknown"),
    "markup": ("nvidia", "<script>alert(1)</script>", "nvidia-script-alert-1-script"),
    "another script": ("沐曦", "曦云C500", "c500"),
}


@pytest.mark.parametrize(("vendor", "model", "slug"), UNKNOWN.values(), ids=UNKNOWN.keys())
def test_an_unknown_model_is_unknown_and_gets_a_stable_slug(
    vendor: str, model: str, slug: str
) -> None:
    assert lookup(vendor, model) is None
    assert flavor_slug(vendor, model) == slug


def test_a_slug_is_never_longer_than_its_column() -> None:
    slug = flavor_slug("nvidia", "x" * 10_000)
    assert len(slug) == 80


def test_a_mig_slice_is_a_flavor_with_its_part_of_the_device() -> None:
    entry = lookup("nvidia", "NVIDIA A100-SXM4-80GB", "3g.40gb")
    assert entry is not None
    assert entry.slug == "nvidia-a100-80gb-mig-3g.40gb"
    assert entry.fp16_tflops == 133.714  # 312 x 3 / 7
    assert entry.memory_mib == 40_960
    assert entry.power_w == 171.4  # 400 x 3 / 7
    assert entry.derived


def test_a_mig_slice_is_found_by_its_full_name_too() -> None:
    entry = lookup("nvidia", "NVIDIA A100-SXM4-80GB MIG 3g.40gb")
    assert entry == lookup("nvidia", "NVIDIA A100-SXM4-80GB", "3g.40gb")


def test_a_slice_of_an_a30_is_one_of_four() -> None:
    entry = lookup("nvidia", "NVIDIA A30", "1g.6gb")
    assert entry is not None
    assert entry.fp16_tflops == 41.25  # 165 / 4


def test_a_part_of_a_slice_has_the_throughput_of_its_compute_slices() -> None:
    entry = lookup("nvidia", "NVIDIA A100-SXM4-80GB", "1c.3g.40gb")
    assert entry is not None
    assert entry.fp16_tflops == 44.571  # 312 / 7


def test_a_profile_with_attributes_keeps_them_in_its_slug() -> None:
    assert flavor_slug("nvidia", "NVIDIA H100 80GB HBM3", "1g.10gb+me") == (
        "nvidia-h100-sxm-mig-1g.10gb-me"
    )


@pytest.mark.parametrize(
    "profile", ["unknown", "9g.80gb", "0g.5gb", "1g", "<b>", "1g.10gb+" + "x" * 90, "1g.10gb/../x"]
)
def test_a_slice_of_an_odd_profile_is_unknown(profile: str) -> None:
    assert lookup("nvidia", "NVIDIA A100-SXM4-80GB", profile) is None
    assert flavor_slug("nvidia", "NVIDIA A100-SXM4-80GB", profile).startswith("nvidia-a100")


@given(vendor=st.text(max_size=60), model=st.text(max_size=300), profile=st.text(max_size=100))
def test_any_words_make_a_plain_slug(vendor: str, model: str, profile: str) -> None:
    slug = flavor_slug(vendor, model, profile)
    assert re.fullmatch(r"[a-z0-9][a-z0-9.-]{0,79}", slug)
