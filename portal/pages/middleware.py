"""What somebody else removed meanwhile does not exist: the pages answer as the REST API does."""

import logging
from collections.abc import Callable

from django.core.exceptions import ObjectDoesNotExist
from django.http import HttpRequest, HttpResponse
from django.views.defaults import page_not_found

logger = logging.getLogger(__name__)


class GoneMiddleware:
    """Answers 404 where a service finds no row any more that the page had looked up."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self._get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """Return the page for what does not exist, None for any other exception."""
        if not isinstance(exception, ObjectDoesNotExist):
            return None
        logger.warning("gone meanwhile path=%s what=%s", request.path, exception)
        return page_not_found(request, exception)
