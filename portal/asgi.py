"""HTTP and websockets through one door."""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
http = get_asgi_application()

from channels.auth import AuthMiddlewareStack  # noqa: E402 - needs the app registry
from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402
from channels.security.websocket import AllowedHostsOriginValidator  # noqa: E402

from portal.api.limits import BodyLimit  # noqa: E402
from portal.live.routing import websocket_urlpatterns  # noqa: E402
from portal.live.tokens import TokenDoor  # noqa: E402

watched = URLRouter(websocket_urlpatterns)
application = ProtocolTypeRouter(
    {
        "http": BodyLimit(http),
        "websocket": TokenDoor(
            AllowedHostsOriginValidator(AuthMiddlewareStack(watched)), scripts=watched
        ),
    }
)
