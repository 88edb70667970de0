"""Priority classes."""

from django.db.models import QuerySet
from rest_framework import generics, serializers

from scheduler.models import PriorityClass
from scheduler.selectors.jobs import priority_class_list


class PriorityClassSerializer(serializers.Serializer[PriorityClass]):
    """A named priority."""

    slug = serializers.SlugField()
    value = serializers.IntegerField(help_text="Higher goes first.")
    preemptible = serializers.BooleanField()
    is_default = serializers.BooleanField()


class PriorityClassList(generics.ListAPIView[PriorityClass]):
    """The priority classes, highest first."""

    serializer_class = PriorityClassSerializer

    def get_queryset(self) -> QuerySet[PriorityClass]:
        return priority_class_list()
