"""Answers addresses that do not exist, in the API's own form."""

from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import NotFound
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.views import APIView


@extend_schema(exclude=True)
class Missing(APIView):
    """404 for everything that no other address takes."""

    authentication_classes = ()
    permission_classes = [AllowAny]

    def initial(self, request: Request, *args: object, **kwargs: object) -> None:
        """Refuse whatever the method."""
        super().initial(request, *args, **kwargs)
        if not request.path.endswith("/"):
            raise NotFound(_("There is nothing here; every address ends with a slash."))
        raise NotFound(_("There is no such object, or you may not see it."))
