"""Every address of live pages."""

from channels.generic.websocket import AsyncWebsocketConsumer
from django.urls import path, re_path

from portal.live import consumers


class MissingConsumer(AsyncWebsocketConsumer):
    """Refuses addresses that do not exist."""

    async def connect(self) -> None:
        """Refuse."""
        await self.close(code=4404)


websocket_urlpatterns = [
    path("ws/fleet/<slug:cluster>/", consumers.FleetConsumer.as_asgi()),
    path("ws/fairness/<slug:cluster>/", consumers.FairnessConsumer.as_asgi()),
    path("ws/jobs/", consumers.JobsConsumer.as_asgi()),
    path("ws/jobs/<uuid:uid>/", consumers.JobConsumer.as_asgi()),
    re_path("", MissingConsumer.as_asgi()),
]
