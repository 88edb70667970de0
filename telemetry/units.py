"""Quantities that people type and pages show: strict parsing, plain formatting, compute units.

What each field takes. A form and the command line give text, the API gives JSON; both end in the
same integer within the same bounds. Anything else is refused with what was expected and what to
write instead; nothing is rounded, guessed or cut.

| field           | text (forms)                          | JSON (API)         | bounds            |
|-----------------|---------------------------------------|--------------------|-------------------|
| cpu_milli       | cores: `2`, `1.5`, or `1500m`         | integer, 1/1000    | 1 .. 10,000 cores |
| memory_mib      | `16Gi`, `16 GiB`, `512Mi`, `1.5Ti`,   | integer, MiB       | 1 MiB .. 64 TiB   |
|                 | or a plain integer of MiB             |                    |                   |
| gpu_memory_mib  | as memory_mib; 0 = no limit           | integer, MiB       | 0 .. 1 TiB        |
| devices         | `4`                                   | integer            | 0 .. 1,024        |
| gpu_milli       | part of a device: `0.5` or `500m`     | integer, 1/1000    | 1 .. 1000         |
| replicas        | `8`                                   | integer            | 1 .. 4,096        |
| time_limit_s    | `3600`, `90s`, `30m`, `4h`, `1h30m`,  | integer, seconds   | 1 s .. 365 days   |
|                 | `2d`, or a clock `1:30:00`            |                    |                   |

Refused everywhere: `1e3`, `NaN`, `inf`, signs, blanks, digits other than 0-9 (`１６`), thousands
separators, underscores, and booleans. `16GB` and `16G` are refused because GB is a decimal unit
(10^9 bytes) that many people write for GiB. The API refuses text and `4.0` where it wants `4`.
"""

import re
from dataclasses import dataclass
from typing import Final

MIB_PER: Final = {"mi": 1, "gi": 1024, "ti": 1024 * 1024}
SECONDS_PER: Final = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
LONGEST_TEXT: Final = 40
LONGEST_ECHO: Final = 48

_PLAIN: Final = re.compile(r"[0-9]+")
_DECIMAL: Final = re.compile(r"([0-9]+)(?:\.([0-9]+))?")
_MILLI: Final = re.compile(r"([0-9]+)m")
_MEMORY: Final = re.compile(r"([0-9]+)(?:\.([0-9]+))? *([MGT]i)B?", re.IGNORECASE | re.ASCII)
_DECIMAL_BYTES: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?) *([KMGT])B?", re.IGNORECASE | re.ASCII)
_SPANS: Final = re.compile(r"(?:([0-9]+)d)? ?(?:([0-9]+)h)? ?(?:([0-9]+)m)? ?(?:([0-9]+)s)?")
_CLOCK: Final = re.compile(r"([0-9]+):([0-5][0-9]):([0-5][0-9])")


class InvalidQuantityError(ValueError):
    """An amount that can't be taken.

    `code` and `suggestion` say the same without English, for faces that speak other languages.

    Attributes:
        value: what was given, printable and cut to a short length.
        expected: what the field takes, in one phrase.
        remedy: what to write instead.
        code: malformed, not_plain_digits, decimal_unit, too_fine, too_small, too_large, or
            not_an_integer (API).
        suggestion: an amount to write instead, such as `16GiB`; for too_small and too_large the
            bound.
    """

    def __init__(
        self, value: object, expected: str, remedy: str, *, code: str, suggestion: str
    ) -> None:
        self.value = _echo(value)
        self.expected = expected
        self.remedy = remedy
        self.code = code
        self.suggestion = suggestion
        super().__init__(f"{self.value} is not {expected}; {remedy}")


@dataclass(frozen=True, slots=True)
class Quantity:
    """What one field takes.

    Attributes:
        name: the field.
        expected: what it takes, in one phrase.
        example: an amount to write, as text.
        minimum: the least, in the field's unit.
        maximum: the most, in the field's unit.
        unit: of the integer, for messages.
    """

    name: str
    expected: str
    example: str
    minimum: int
    maximum: int
    unit: str


CPU: Final = Quantity("cpu_milli", "a number of CPU cores", "1.5 or 1500m", 1, 10_000_000, "m")
MEMORY: Final = Quantity("memory_mib", "an amount of memory", "16GiB", 1, 67_108_864, "MiB")
GPU_MEMORY: Final = Quantity(
    "gpu_memory_mib", "an amount of device memory", "16GiB", 0, 1_048_576, "MiB"
)
DEVICES: Final = Quantity("devices", "a whole number of devices", "1", 0, 1_024, "devices")
GPU: Final = Quantity("gpu_milli", "a part of a device", "0.5 or 500m", 1, 1_000, "m")
REPLICAS: Final = Quantity("replicas", "a whole number of replicas", "1", 1, 4_096, "replicas")
TIME_LIMIT: Final = Quantity("time_limit_s", "a duration", "4h or 1h30m", 1, 31_536_000, "s")
CHECKPOINT_INTERVAL: Final = Quantity(
    "checkpoint_interval_s", "a duration, or 0 for none", "10m or 1h", 0, 31_536_000, "s"
)

QUANTITIES: Final = {
    q.name: q
    for q in (CPU, MEMORY, GPU_MEMORY, DEVICES, GPU, REPLICAS, TIME_LIMIT, CHECKPOINT_INTERVAL)
}
"""Field -> what it takes; the table above as values."""


def parse_cpu_milli(text: str, quantity: Quantity = CPU) -> int:
    """Return thousandths of a core from `2`, `1.5` or `1500m`.

    Raises:
        InvalidQuantityError: not such an amount, finer than a thousandth, or out of bounds.
    """
    return _parse_milli(text, quantity)


def parse_gpu_milli(text: str, quantity: Quantity = GPU) -> int:
    """Return thousandths of a device from `0.5` or `500m`.

    Raises:
        InvalidQuantityError: not such an amount, finer than a thousandth, or out of bounds.
    """
    return _parse_milli(text, quantity)


def parse_memory_mib(text: str, quantity: Quantity = MEMORY) -> int:
    """Return MiB from `16Gi`, `16 GiB`, `512Mi`, `1.5Ti` or a plain integer of MiB.

    Raises:
        InvalidQuantityError: not such an amount, a decimal unit such as GB, not a whole number of
            MiB, or out of bounds.
    """
    cleaned = _clean(text, quantity)
    if _PLAIN.fullmatch(cleaned):
        return _bounded(int(cleaned), text, quantity)
    found = _MEMORY.fullmatch(cleaned)
    if found is None:
        raise _malformed_memory(text, cleaned, quantity)
    whole, part, unit = found[1], found[2] or "", found[3].lower()
    mib, rest = divmod(int(whole + part) * MIB_PER[unit], 10 ** len(part))
    if rest:
        raise _too_fine(text, "a whole number of MiB", f"{mib + 1}MiB")
    return _bounded(mib, text, quantity)


def parse_count(text: str, quantity: Quantity = DEVICES) -> int:
    """Return a whole number of things from its decimal digits.

    Raises:
        InvalidQuantityError: anything but digits 0-9, or out of bounds.
    """
    cleaned = _clean(text, quantity)
    if not _PLAIN.fullmatch(cleaned):
        raise _malformed(text, quantity)
    return _bounded(int(cleaned), text, quantity)


def parse_duration_s(text: str, quantity: Quantity = TIME_LIMIT) -> int:
    """Return seconds from `3600`, `90s`, `30m`, `4h`, `1h30m`, `2d 4h` or `1:30:00`.

    Raises:
        InvalidQuantityError: not such a duration, or out of bounds.
    """
    cleaned = _clean(text, quantity)
    if _PLAIN.fullmatch(cleaned):
        return _bounded(int(cleaned), text, quantity)
    found = _CLOCK.fullmatch(cleaned)
    if found:
        hours, minutes, seconds = (int(part) for part in found.groups())
        return _bounded(hours * 3600 + minutes * 60 + seconds, text, quantity)
    spans = _SPANS.fullmatch(cleaned)
    if spans is None:
        raise _malformed(text, quantity)
    parts = zip(spans.groups(), SECONDS_PER.values(), strict=True)
    return _bounded(sum(int(part or 0) * unit for part, unit in parts), text, quantity)


def require_integer(value: object, quantity: Quantity) -> int:
    """Return a JSON integer of the field's own unit, unchanged.

    Args:
        value: as the JSON parser gave it.
        quantity: of the field.

    Raises:
        InvalidQuantityError: text, a float (also 4.0), a boolean, null, or out of bounds.
    """
    if isinstance(value, bool) or not isinstance(value, int):
        example = max(quantity.minimum, min(1000, quantity.maximum))
        raise InvalidQuantityError(
            value,
            f"a JSON integer ({quantity.unit})",
            f"send {quantity.name} as a whole number without quotes, such as {example}",
            code="not_an_integer",
            suggestion=str(example),
        )
    return _bounded(value, value, quantity)


def format_memory(mib: int) -> str:
    """Return `512 MiB`, `16 GiB`, `1.5 TiB`: the largest unit that fits, one decimal at most."""
    for symbol, unit in (("TiB", MIB_PER["ti"]), ("GiB", MIB_PER["gi"])):
        if abs(mib) >= unit:
            return f"{_short(mib / unit, 1)} {symbol}"
    return f"{mib} MiB"


def format_cpu(milli: int) -> str:
    """Return cores from thousandths, exactly: 1500 -> `1.5`, 2000 -> `2`."""
    return _short(milli / 1000, 3)


def format_devices_milli(milli: int) -> str:
    """Return devices from thousandths, exactly: 2500 -> `2.5`."""
    return _short(milli / 1000, 3)


def format_duration(seconds: float) -> str:
    """Return the two largest parts, such as `2d 4h`, `1h 30m`, `45s`; parts of a second are cut."""
    rest, parts = int(abs(seconds)), []
    for symbol, unit in SECONDS_PER.items():
        count, rest = divmod(rest, unit)
        if count:
            parts.append((unit, f"{count}{symbol}"))
    if not parts:
        return "0s"
    sign = "-" if seconds < 0 else ""
    nearest = [part for unit, part in parts[:2] if unit * 60 >= parts[0][0]]
    return sign + " ".join(nearest)


def compute_units(tflops: float | None, milli: int) -> float | None:
    """Return CU of some devices: dense FP16 TFLOPS of one device times the devices held.

    Args:
        tflops: of one device (`FlavorEntry.fp16_tflops`), None where unknown.
        milli: thousandths of a device, >= 0.

    Returns:
        CU >= 0, or None where the model is unknown: unknown is never zero.
    """
    return None if tflops is None else tflops * milli / 1000


def cu_hours(units: float | None, duration_s: float) -> float | None:
    """Return CU-hours of that many CU held that long, None where the CU are unknown."""
    return None if units is None else units * duration_s / 3600


def _parse_milli(text: str, quantity: Quantity) -> int:
    cleaned = _clean(text, quantity)
    found = _MILLI.fullmatch(cleaned)
    if found:
        return _bounded(int(found[1]), text, quantity)
    found = _DECIMAL.fullmatch(cleaned)
    if found is None:
        raise _malformed(text, quantity)
    part = (found[2] or "").rstrip("0")
    milli = int(found[1] + part[:3].ljust(3, "0"))
    if len(part) > len("000"):
        raise _too_fine(text, f"{quantity.expected} in thousandths", f"{milli + 1}m")
    return _bounded(milli, text, quantity)


def _clean(text: str, quantity: Quantity) -> str:
    if not isinstance(text, str) or len(text) > LONGEST_TEXT:
        raise _malformed(text, quantity)
    cleaned = text.strip(" \t")
    if not cleaned.isascii() and any(char.isdigit() for char in cleaned):
        raise InvalidQuantityError(
            text,
            quantity.expected,
            f"write it in plain digits 0-9, such as {quantity.example}",
            code="not_plain_digits",
            suggestion=quantity.example,
        )
    return cleaned


def _bounded(amount: int, given: object, quantity: Quantity) -> int:
    low, high, unit = quantity.minimum, quantity.maximum, quantity.unit
    if low <= amount <= high:
        return amount
    code, bound, side = ("too_small", low, "least") if amount < low else ("too_large", high, "most")
    raise InvalidQuantityError(
        given,
        f"within {low} to {high} {unit}",
        f"ask for at {side} {bound} {unit}",
        code=code,
        suggestion=f"{bound} {unit}",
    )


def _malformed(text: object, quantity: Quantity) -> InvalidQuantityError:
    example = quantity.example
    return InvalidQuantityError(
        text, quantity.expected, f"write {example}", code="malformed", suggestion=example
    )


def _too_fine(text: str, expected: str, next_larger: str) -> InvalidQuantityError:
    return InvalidQuantityError(
        text,
        expected,
        f"write {next_larger}, the next larger one",
        code="too_fine",
        suggestion=next_larger,
    )


def _malformed_memory(text: str, cleaned: str, quantity: Quantity) -> InvalidQuantityError:
    found = _DECIMAL_BYTES.fullmatch(cleaned)
    if found is None or found[2].upper() not in "MGT":
        return _malformed(text, quantity)
    symbol = found[2].upper()
    return InvalidQuantityError(
        text,
        f"{quantity.expected} in binary units",
        f"{symbol}B is a decimal unit that many write for {symbol}iB; write {found[1]}{symbol}iB",
        code="decimal_unit",
        suggestion=f"{found[1]}{symbol}iB",
    )


def _short(number: float, decimals: int) -> str:
    text = f"{number:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _echo(value: object) -> str:
    shown = repr(value[:LONGEST_ECHO]) if isinstance(value, str | bytes) else _echo_other(value)
    return shown if len(shown) <= LONGEST_ECHO else shown[: LONGEST_ECHO - 1] + "…"


def _echo_other(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 10**LONGEST_TEXT:
        return f"an integer of {value.bit_length()} bits"
    if isinstance(value, bool | int | float) or value is None:
        return repr(value)
    return f"a {type(value).__name__}"
