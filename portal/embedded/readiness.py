"""Ask the web server whether a request would succeed."""

import http.client
from http import HTTPStatus

ASK_S = 5.0
EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}  # noqa: S104 - compared only


def is_ready(host: str, port: int, *, name: str) -> bool:
    """Say whether GET /readyz answers 200 there.

    Args:
        host: the address that the server listens on.
        port: its port.
        name: what the portal is called, one of ALLOWED_HOSTS.
    """
    connection = http.client.HTTPConnection(EVERYWHERE.get(host, host), port, timeout=ASK_S)
    try:
        connection.request("GET", "/readyz", headers={"Host": name})
        return connection.getresponse().status == HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
