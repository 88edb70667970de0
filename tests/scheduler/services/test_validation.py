"""What a request may hold: every bad value is refused with its value and a remedy."""

from typing import Any

import pytest
from django.utils import translation

from scheduler.models import PriorityClass
from scheduler.services import amounts, references
from scheduler.services.validation import JobRequest, job_request_validate
from telemetry import units
from tenants.choices import Role
from tenants.errors import InvalidValueError
from tests import factories
from tests.scheduler.world import World

pytestmark = pytest.mark.django_db


@pytest.fixture
def world() -> World:
    return World()


def validate(world: World, *, text: bool = False, **fields: Any) -> JobRequest:
    data = {"name": "x", "tenant": "t", "cluster": "c", "command": "true", **fields}
    return job_request_validate(data=data, actor=world.user, text=text)


def refused(world: World, **fields: Any) -> dict[str, list[str]]:
    with pytest.raises(InvalidValueError) as refusal:
        validate(world, **fields)
    return refusal.value.fields


JSON_AMOUNTS = {
    "text instead of a number": ("cpu_milli", "1000", "'1000'", "without quotes"),
    "a float that is whole": ("memory_mib", 4.0, "4.0", "without quotes"),
    "a float": ("devices", 0.5, "0.5", "without quotes"),
    "a boolean": ("devices", True, "True", "without quotes"),
    "not a number": ("gpu_milli", float("nan"), "nan", "without quotes"),
    "infinite": ("time_limit_s", float("inf"), "inf", "without quotes"),
    "a list": ("replicas", [1], "list", "without quotes"),
    "zero cores": ("cpu_milli", 0, "0", "1 or more"),
    "negative memory": ("memory_mib", -5, "-5", "1 or more"),
    "negative devices": ("devices", -1, "-1", "0 or more"),
    "no time at all": ("time_limit_s", 0, "0", "1 or more"),
    "an absurd number of cores": ("cpu_milli", 10**12, "10", "10000000 or less"),
    "an integer of many digits": ("memory_mib", 10**400, "bits", "67108864 or less"),
    "too many replicas": ("replicas", 4097, "4097", "4096 or less"),
    "no replica": ("replicas", 0, "0", "1 or more"),
    "more than a whole device": ("gpu_milli", 1001, "1001", "1000 or less"),
}


@pytest.mark.parametrize(
    ("field", "value", "echo", "remedy"), JSON_AMOUNTS.values(), ids=JSON_AMOUNTS.keys()
)
def test_a_json_amount_is_refused_with_its_value_and_a_remedy(
    world: World, field: str, value: object, echo: str, remedy: str
) -> None:
    (sentence,) = refused(world, **{field: value})[field]
    assert echo in sentence
    assert remedy in sentence


TEXT_AMOUNTS = {
    "scientific notation": ("cpu_milli", "1e3", "'1e3'", "1.5 or 1500m"),
    "half a device": ("devices", "0.5", "'0.5'", "write 1"),
    "decimal gigabytes": ("memory_mib", "16GB", "'16GB'", "write 16GiB"),
    "decimal gigabytes, short": ("memory_mib", "16G", "'16G'", "write 16GiB"),
    "digits of another script": ("memory_mib", "１６", "'１６'", "plain digits"),
    "a sign": ("replicas", "-1", "'-1'", "write 1"),
    "zero cores": ("cpu_milli", "0", "'0'", "0.001 or more"),
    "absurd memory": ("memory_mib", "9999Ti", "'9999Ti'", "64 TiB or less"),
    "a very long number": ("devices", "9" * 400, "999", "write 1"),
    "finer than a thousandth": ("gpu_milli", "0.0005", "'0.0005'", "write 1m"),
    "no duration": ("time_limit_s", "soon", "'soon'", "4h or 1h30m"),
    "more than a year": ("time_limit_s", "400d", "'400d'", "365d or less"),
    "NUL": ("cpu_milli", "1\x00", "1\\x00", "1.5 or 1500m"),
    "not a number": ("cpu_milli", "NaN", "'NaN'", "1.5 or 1500m"),
}


@pytest.mark.parametrize(
    ("field", "value", "echo", "remedy"), TEXT_AMOUNTS.values(), ids=TEXT_AMOUNTS.keys()
)
def test_a_typed_amount_is_refused_with_its_value_and_a_remedy(
    world: World, field: str, value: str, echo: str, remedy: str
) -> None:
    (sentence,) = refused(world, text=True, **{field: value})[field]
    assert echo in sentence
    assert remedy in sentence


def test_amounts_typed_and_sent_end_in_the_same_integers(world: World) -> None:
    typed = validate(
        world, text=True, cpu_milli="1.5", memory_mib="16Gi", devices="1", gpu_milli="0.5",
        gpu_memory_mib="8GiB", replicas="2", time_limit_s="1h30m",
    )  # fmt: skip
    sent = validate(
        world, cpu_milli=1500, memory_mib=16384, devices=1, gpu_milli=500,
        gpu_memory_mib=8192, replicas=2, time_limit_s=5400,
    )  # fmt: skip
    assert typed == sent
    assert (sent.replicas_min, sent.replicas_max) == (2, 2)


def test_the_remedy_of_a_bound_is_itself_taken(world: World) -> None:
    for name, bound in (("memory_mib", "64 TiB"), ("cpu_milli", "10000"), ("time_limit_s", "365d")):
        validate(world, text=True, **{name: bound})


def test_every_code_of_a_refused_amount_has_a_sentence() -> None:
    assert set(amounts.SENTENCES) == {
        "malformed",
        "not_plain_digits",
        "decimal_unit",
        "too_fine",
        "too_small",
        "too_large",
        "not_an_integer",
    }
    wrong = units.InvalidQuantityError("x", "e", "r", code="too_small", suggestion="1")
    with translation.override("zh-hans"):
        assert "'x'" in amounts.amount_refusal(wrong, units.CPU, text=False)


TEXTS = {
    "no name": ("name", "", "needs a name"),
    "a blank name": ("name", " \t ", "needs a name"),
    "a name that is a number": ("name", 5, "needs a name"),
    "a name of 201 characters": ("name", "n" * 201, "201"),
    "NUL in a name": ("name", "a\x00b", "U+0000"),
    "a line end in a name": ("name", "a\nb", "U+000A"),
    "an override of direction": ("name", "a\u202eb", "U+202E"),
    "half a surrogate pair": ("name", "a\ud800b", "U+D800"),
    "no command": ("command", " ", "needs a command"),
    "a command of 10 MB": ("command", "x" * 10_000_000, "10000000 bytes"),
    "many bytes in few characters": ("command", "\u4e2d" * 30_000, "90000 bytes"),
    "NUL in a command": ("command", "true\x00", "U+0000"),
    "an escape in a command": ("command", "echo \x1b[2J", "U+001B"),
    "a carriage return in a command": ("command", "a\rb", "U+000D"),
    "an image with blanks": ("image", "a b", "“a b”"),
    "an image with a flag": ("image", "--privileged", "“--privileged”"),
    "an image that is a list": ("image", ["x"], "not the name"),
    "env as text": ("env", "A=1", "pairs"),
    "env with a number": ("env", {"A": 1}, "value of A is not text"),
    "env with a bad name": ("env", {"A-B": "1"}, "“A-B”"),
    "env with a name that starts with a digit": ("env", {"1A": "1"}, "“1A”"),
    "env with NUL": ("env", {"A": "\x00"}, "U+0000"),
    "env that chooses devices": ("env", {"CUDA_VISIBLE_DEVICES": "0"}, "set by Kilter"),
    "env that chooses NPUs": ("env", {"ASCEND_RT_VISIBLE_DEVICES": "0"}, "set by Kilter"),
    "env that plays Kilter": ("env", {"KILTER_JOB": "x"}, "set by Kilter"),
    "too many variables": ("env", {f"V{i}": "" for i in range(201)}, "201"),
    "too much environment": ("env", {"A": "x" * 70_000}, "65536 bytes"),
    "an unknown flavor": ("flavors", ["<b>h100</b>"], "“<b>h100</b>”"),
    "flavors as text": ("flavors", "nvidia-l4", "list of names"),
    "flavors of numbers": ("flavors", [1], "list of names"),
    "33 flavors": ("flavors", [str(i) for i in range(33)], "32"),
    "a toleration with markup": ("tolerations", ["<script>"], "“<script>”"),
    "an unknown kind": ("kind", "daemon", "training, inference, batch, notebook"),
    "a kind that is a list": ("kind", ["batch"], "not a kind"),
    "an unknown priority class": ("priority_class", "urgent", "high, normal, low"),
    "an unknown cluster": ("cluster", "moon", "“moon”"),
    "a cluster that is null-ended": ("cluster", "c\x00", "cluster"),
    "an unknown tenant": ("tenant", "nobody", "“nobody”"),
    "no tenant": ("tenant", "", "Name the tenant"),
    "a tenant that is a number": ("tenant", 7, "“7”"),
    "a throughput above 1": ("min_throughput", 1.5, "“1.5”"),
    "a throughput as text": ("min_throughput", "0.5", "“0.5”"),
    "a throughput that is no number": ("min_throughput", float("nan"), "“nan”"),
    "a throughput of 400 digits": ("min_throughput", 10**400, "not a number from 0 to 1"),
    "a latency of zero": ("max_latency_ms", 0, "“0”"),
    "a latency as text": ("max_latency_ms", "10", "“10”"),
    "a latency that is true": ("max_latency_ms", True, "“True”"),
    "an unknown topology": ("required_topology", "planet", "link, nic, numa, node, rack, block"),
    "a topology that is a list": ("preferred_topology", ["rack"], "not one of"),
    "an unknown placement": ("placement_wish", "anywhere", "pack, spread, one_per_node"),
    "a class with markup": ("job_class", "<b>", "not a class"),
    "a class of 81 letters": ("job_class", "a" * 81, "not a class"),
    "links without devices": ("required_topology", "link", "none is asked for"),
}


@pytest.mark.parametrize(("field", "value", "part"), TEXTS.values(), ids=TEXTS.keys())
def test_a_bad_value_is_refused_in_one_printable_sentence(
    world: World, field: str, value: object, part: str
) -> None:
    (sentence,) = refused(world, **{field: value})[field]
    assert part in sentence
    assert sentence.isprintable()
    assert len(sentence) < 300


def test_a_tenant_of_others_is_refused_as_if_there_were_none(world: World) -> None:
    factories.tenant("secret")
    (there,) = refused(world, tenant="secret")["tenant"]
    (absent,) = refused(world, tenant="absent")["tenant"]
    assert there == absent.replace("absent", "secret")


def test_a_viewer_of_a_tenant_may_not_submit_to_it(world: World) -> None:
    onlooker = factories.member(world.tenant, role=Role.VIEWER)
    with pytest.raises(InvalidValueError, match="may not submit"):
        job_request_validate(
            data={"name": "x", "tenant": "t", "cluster": "c", "command": "true"}, actor=onlooker
        )


def test_unknown_fields_are_named_and_there_is_an_end_to_it(world: World) -> None:
    fields = refused(world, **{f"field{i}\x00": 1 for i in range(500)})
    assert len(fields) == references.LIST_LIMIT
    assert all(name.isprintable() for name in fields)


def test_a_topology_is_required_or_preferred_not_both(world: World) -> None:
    fields = refused(world, required_topology="rack", preferred_topology="block")
    assert "not both" in fields["preferred_topology"][0]


def test_all_problems_are_reported_at_once(world: World) -> None:
    fields = refused(world, name="", cpu_milli=0, tenant="nobody", flavors=["nope"])
    assert set(fields) == {"name", "cpu_milli", "tenant", "flavors"}


ACROSS = {
    "a part of two devices": ({"devices": 2, "gpu_milli": 500}, "gpu_milli"),
    "a part of no device": ({"gpu_milli": 500}, "gpu_milli"),
    "fewer replicas than the least": ({"replicas": 1, "replicas_min": 2}, "replicas_min"),
    "flavors without devices": ({"flavors": ["nvidia-l4"]}, "devices"),
}


@pytest.mark.parametrize(("fields", "where"), ACROSS.values(), ids=ACROSS.keys())
def test_fields_that_do_not_go_together_are_refused(
    world: World, fields: dict[str, Any], where: str
) -> None:
    assert set(refused(world, **fields)) == {where}


def test_a_wrong_number_of_devices_is_one_problem_not_two(world: World) -> None:
    assert set(refused(world, devices=-1, gpu_milli=500, flavors=["nvidia-l4"])) == {"devices"}


def test_markup_in_a_name_and_a_flavor_that_only_this_fleet_has_are_taken(world: World) -> None:
    factories.device(world.node, index=9, flavor="homemade")
    request = validate(world, name=" <b>x</b> ", devices=1, flavors=["homemade"])
    assert request.name == "<b>x</b>"
    assert request.flavors == ("homemade",)


def test_a_job_goes_to_this_machine_unless_told_otherwise(world: World) -> None:
    data = {"name": "x", "tenant": "t", "command": "true"}
    with pytest.raises(InvalidValueError, match="this-machine"):
        job_request_validate(data=data, actor=world.user)
    here = factories.cluster("this-machine", kind="local")
    assert job_request_validate(data=data, actor=world.user).cluster == here


def test_this_machine_takes_no_image(world: World) -> None:
    factories.cluster("this-machine", kind="local")
    fields = refused(world, cluster="this-machine", image="python:3.13")
    assert set(fields) == {"image"}


def test_windows_line_ends_become_plain_ones(world: World) -> None:
    assert validate(world, command="a\r\nb").command == "a\nb"


def test_without_a_default_class_one_must_be_named(world: World) -> None:
    PriorityClass.objects.update(is_default=False)
    assert set(refused(world)) == {"priority_class"}
