"""Tenants and their members."""

from typing import Any

import django_filters
from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.api.v1.permissions import given, viewer
from portal.api.v1.schema import refusals
from tenants import selectors, services
from tenants.choices import Role
from tenants.errors import InvalidValueError
from tenants.models import Membership, Tenant, TenantQuerySet


class TenantSerializer(serializers.Serializer[Tenant]):
    """A team; tenants form a tree."""

    slug = serializers.SlugField()
    name = serializers.CharField()
    parent = serializers.SerializerMethodField(  # type: ignore[assignment]
        help_text="null = at the top of what you may see."
    )
    fair_weight = serializers.FloatField()
    queue_priority = serializers.IntegerField(
        help_text="Who has a higher one is served first of what nobody else claims."
    )
    preemption_fence = serializers.BooleanField(help_text="Jobs below evict nobody outside.")
    created_at = serializers.DateTimeField()

    def get_parent(self, tenant: Tenant) -> str | None:
        """Return the parent's slug where the viewer may see the parent."""
        visible = self.context["visible_ids"]
        return tenant.parent.slug if tenant.parent and tenant.parent_id in visible else None


class TenantInputSerializer(serializers.Serializer[Any]):
    """A new tenant."""

    slug = serializers.SlugField(max_length=63)
    name = serializers.CharField(max_length=200)
    parent = serializers.SlugField(  # type: ignore[assignment]
        required=False, allow_null=True
    )
    fair_weight = serializers.FloatField(required=False, default=1.0, min_value=0)


class TenantChangeSerializer(serializers.Serializer[Any]):
    """What is to change of a tenant."""

    name = serializers.CharField(required=False, max_length=200)
    parent = serializers.SlugField(  # type: ignore[assignment]
        required=False, allow_null=True
    )
    fair_weight = serializers.FloatField(required=False, min_value=0)
    queue_priority = serializers.IntegerField(required=False, min_value=0)
    preemption_fence = serializers.BooleanField(required=False)


class MemberSerializer(serializers.Serializer[Membership]):
    """A person's role in a tenant; it holds in all tenants below too."""

    user = serializers.CharField(source="user.username")
    role = serializers.ChoiceField(choices=Role.choices)


class MemberInputSerializer(serializers.Serializer[Any]):
    """Who gets which role."""

    user = serializers.CharField()
    role = serializers.ChoiceField(choices=Role.choices)


class TenantFilter(django_filters.FilterSet):  # type: ignore[misc]
    """What a list of tenants can be narrowed to."""

    name = django_filters.CharFilter(lookup_expr="icontains")
    parent = django_filters.CharFilter(field_name="parent__slug")


class TenantList(generics.ListAPIView[Tenant]):
    """The tenants that you may see; POST makes one."""

    serializer_class = TenantSerializer
    filterset_class = TenantFilter

    def get_queryset(self) -> TenantQuerySet:
        rows: TenantQuerySet = selectors.tenant_list(viewer=self.request.user).order_by("slug")
        return rows

    def get_serializer_context(self) -> dict[str, Any]:
        return {**super().get_serializer_context(), **_context(self.request)}

    @extend_schema(
        request=TenantInputSerializer, responses={201: TenantSerializer, **refusals(400, 403)}
    )
    def post(self, request: Request) -> Response:
        """Make a tenant, below `parent` or at the top of the tree."""
        data = given(request, ("slug", "name", "parent", "fair_weight"))
        tenant = services.tenant_create(
            actor=viewer(request),
            slug=data.get("slug", ""),
            name=data.get("name", ""),
            parent=_parent(request, data.get("parent")),
            fair_weight=data.get("fair_weight", 1.0),
        )
        return Response(_shown(request, tenant.slug), status=201)


class TenantDetail(APIView):
    """One tenant."""

    @extend_schema(responses={200: TenantSerializer, **refusals(404)})
    def get(self, request: Request, slug: str) -> Response:
        """Return the tenant."""
        return Response(_shown(request, slug))

    @extend_schema(
        request=TenantChangeSerializer, responses={200: TenantSerializer, **refusals(400, 403, 404)}
    )
    def patch(self, request: Request, slug: str) -> Response:
        """Rename, weigh, fence or move the tenant; all of it or nothing."""
        own = ("name", "fair_weight", "queue_priority", "preemption_fence")
        data = given(request, (*own, "parent"))
        tenant = selectors.tenant_get(viewer=request.user, slug=slug)
        with transaction.atomic():
            if data.keys() & set(own):
                services.tenant_update(
                    actor=viewer(request),
                    tenant=tenant,
                    name=data.get("name"),
                    fair_weight=data.get("fair_weight"),
                    queue_priority=data.get("queue_priority"),
                    preemption_fence=data.get("preemption_fence"),
                )
            if "parent" in data:
                parent = _parent(request, data["parent"])
                services.tenant_move(actor=viewer(request), tenant=tenant, parent=parent)
        return Response(_shown(request, slug))

    @extend_schema(responses={204: None, **refusals(403, 404, 409)})
    def delete(self, request: Request, slug: str) -> Response:
        """Delete a tenant that has nothing below it and never had a job."""
        tenant = selectors.tenant_get(viewer=request.user, slug=slug)
        services.tenant_delete(actor=viewer(request), tenant=tenant)
        return Response(status=204)


class MemberList(generics.ListAPIView[Membership]):
    """Who has a role in a tenant; POST gives one."""

    serializer_class = MemberSerializer
    filter_backends = ()

    def get_queryset(self) -> QuerySet[Membership]:
        tenant = selectors.tenant_get(viewer=self.request.user, slug=self.kwargs["slug"])
        return selectors.membership_list(viewer=self.request.user, tenant=tenant)

    @extend_schema(
        request=MemberInputSerializer, responses={200: MemberSerializer, **refusals(400, 403, 404)}
    )
    def post(self, request: Request, slug: str) -> Response:
        """Give a person a role, in place of the one they have in this tenant."""
        data = given(request, ("user", "role"))
        tenant = selectors.tenant_get(viewer=request.user, slug=slug)
        row = services.membership_set(
            actor=viewer(request),
            tenant=tenant,
            user=selectors.person_get(username=data.get("user"), field="user"),
            role=data.get("role", ""),
        )
        return Response(MemberSerializer(row).data)


class MemberDetail(APIView):
    """One person's role in a tenant."""

    @extend_schema(responses={204: None, **refusals(403, 404)})
    def delete(self, request: Request, slug: str, username: str) -> Response:
        """Take the role away; roles in tenants above stay."""
        tenant = selectors.tenant_get(viewer=request.user, slug=slug)
        row = selectors.membership_list(viewer=request.user, tenant=tenant).get(
            user__username=username
        )
        services.membership_remove(actor=viewer(request), tenant=tenant, user=row.user)
        return Response(status=204)


def _context(request: Request) -> dict[str, Any]:
    return {"visible_ids": selectors.tenant_ids_visible(viewer=request.user)}


def _shown(request: Request, slug: str) -> dict[str, Any]:
    tenant = selectors.tenant_get(viewer=request.user, slug=slug)
    return dict(TenantSerializer(tenant, context=_context(request)).data)


def _parent(request: Request, slug: object) -> Tenant | None:
    if slug is None:
        return None
    return visible_tenant(request, slug, field="parent")


def visible_tenant(request: Request, slug: object, *, field: str = "tenant") -> Tenant:
    """Return the tenant that a field of a body names.

    Raises:
        InvalidValueError: there is none, or the viewer may not know of it.
    """
    if isinstance(slug, str):
        rows = selectors.tenant_list(viewer=request.user)
        found: Tenant | None = rows.filter(slug=slug).first()
        if found is not None:
            return found
    raise InvalidValueError.of(
        field, _("There is no such tenant; GET /api/v1/tenants/ lists those that you see.")
    )
