import os
import socket
from pathlib import Path

import pytest
from django.conf import settings

from portal.embedded import preflight


@pytest.mark.parametrize("text", ["0", "65536", "-1", "abc", "80.0", "８０８０", "", "1e3"])
def test_what_is_no_port_is_refused_with_the_remedy(text: str) -> None:
    with pytest.raises(preflight.Refused) as refused:
        preflight.port_number(text)
    assert repr(text) in str(refused.value)
    assert "--port or KILTER_PORT" in str(refused.value)


def test_ports_are_numbers_up_to_65535() -> None:
    assert preflight.port_number("1") == 1
    assert preflight.port_number("65535") == 65535


def test_a_port_in_use_names_who_uses_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(preflight.Refused) as refused:
            preflight.check_address("127.0.0.1", port)
        with pytest.raises(preflight.Refused):
            preflight.check_address("0.0.0.0", port)  # noqa: S104 - must clash
    assert f"Port {port} on 127.0.0.1 is in use by " in str(refused.value)
    assert f"(process {os.getpid()})" in str(refused.value)
    preflight.check_address("127.0.0.1", port)


@pytest.mark.parametrize("host", ["no-such-host.invalid", "192.0.2.1", "a b", "1" * 300, "é" * 70])
def test_a_host_that_is_not_ours_is_refused(host: str) -> None:
    with pytest.raises(preflight.Refused, match="--host or KILTER_HOST") as refused:
        preflight.check_address(host, 18000)
    assert repr(host) in str(refused.value)


def test_a_data_folder_in_use_names_the_process(tmp_path: Path) -> None:
    lock = preflight.take_folder(tmp_path)
    with pytest.raises(preflight.Refused) as refused:
        preflight.take_folder(tmp_path)
    assert f"{tmp_path} is in use by another `up` (process {os.getpid()})" in str(refused.value)
    os.close(lock)
    os.close(preflight.take_folder(tmp_path))


def test_an_unreachable_database_is_named_without_its_password() -> None:
    named = {"HOST": "127.0.0.1", "PORT": 1, "USER": "me", "PASSWORD": "hunter2", "NAME": "n"}
    with pytest.raises(preflight.Refused) as refused:
        preflight.check_database(named, "postgresql://me:hunter2@127.0.0.1:1/n")
    assert "DATABASE_URL=postgresql://me:***@127.0.0.1:1/n cannot be reached" in str(refused.value)
    assert "hunter2" not in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "url", ["redis://:hunter2@127.0.0.1:1/0", "http://:hunter2@h/", "hunter2", "redis://h:x/"]
)
def test_an_unreachable_broker_is_named_without_its_password(url: str) -> None:
    with pytest.raises(preflight.Refused, match="REDIS_URL=") as refused:
        preflight.check_broker(url)
    assert ":hunter2" not in str(refused.value)
    assert "embedded Valkey" in str(refused.value)


def test_every_address_of_a_name_must_be_free(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        found = [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))
            for address in ("127.0.0.2", "127.0.0.1")
        ]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
        with pytest.raises(preflight.Refused, match=f"Port {port} on localhost is in use"):
            preflight.check_address("localhost", port)


def test_a_database_that_is_too_old_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight, "OLDEST_POSTGRES", 999)
    url = "postgresql://kilter:hunter2@here/kilter"
    with pytest.raises(preflight.Refused, match="Kilter needs 999 or later") as refused:
        preflight.check_database(settings.DATABASES["default"], url)
    assert "hunter2" not in str(refused.value)
