"""One row of a table that who runs the portal gives."""

from collections.abc import Callable
from typing import ClassVar, TypeVar

from django.db.models import Model
from drf_spectacular.utils import extend_schema
from rest_framework import generics
from rest_framework.request import Request
from rest_framework.response import Response

from portal.api.v1.permissions import AdminOrReadOnly, viewer
from portal.api.v1.schema import refusals

RowT = TypeVar("RowT", bound=Model)


class GivenDetail(generics.RetrieveDestroyAPIView[RowT]):
    """Everybody reads it, who runs the portal removes it."""

    permission_classes = [AdminOrReadOnly]
    forget: ClassVar[Callable[..., None]]
    """The service that removes it."""

    @extend_schema(responses={204: None, **refusals(403, 404)})
    def delete(self, request: Request, pk: int) -> Response:
        """Forget the row."""
        self.forget(actor=viewer(request), row=self.get_queryset().get(pk=pk))
        return Response(status=204)
