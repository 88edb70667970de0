"""Every address of version 1."""

from django.urls import path

from portal.api.v1 import (
    clusters,
    decisions,
    devices,
    fairness,
    jobs,
    learnt,
    me,
    nodes,
    pairings,
    placements,
    priority_classes,
    quotas,
    tenants,
    throughputs,
    usage,
)

urlpatterns = [
    path("jobs/", jobs.JobList.as_view(), name="jobs"),
    path("jobs/<uuid:uid>/", jobs.JobDetail.as_view(), name="job"),
    path("jobs/<uuid:uid>/log/", jobs.JobLog.as_view(), name="job-log"),
    path("jobs/<uuid:uid>/events/", jobs.JobEvents.as_view(), name="job-events"),
    path("jobs/<uuid:uid>/cancel/", jobs.JobCancel.as_view(), name="job-cancel"),
    path("jobs/<uuid:uid>/resubmit/", jobs.JobResubmit.as_view(), name="job-resubmit"),
    path("placements/", placements.PlacementList.as_view(), name="placements"),
    path("decisions/", decisions.DecisionList.as_view(), name="decisions"),
    path("usage/", usage.UsageView.as_view(), name="usage"),
    path("fairness/", fairness.FairnessView.as_view(), name="fairness"),
    path(
        "priority-classes/", priority_classes.PriorityClassList.as_view(), name="priority-classes"
    ),
    path("clusters/", clusters.ClusterList.as_view(), name="clusters"),
    path("clusters/<slug:slug>/", clusters.ClusterDetail.as_view(), name="cluster"),
    path("clusters/<slug:slug>/policy/", clusters.ClusterPolicy.as_view(), name="cluster-policy"),
    path("nodes/", nodes.NodeList.as_view(), name="nodes"),
    path("nodes/<int:pk>/", nodes.NodeDetail.as_view(), name="node"),
    path("nodes/<int:pk>/cordon/", nodes.NodeAction.as_view(action="cordon"), name="node-cordon"),
    path("nodes/<int:pk>/drain/", nodes.NodeAction.as_view(action="drain"), name="node-drain"),
    path(
        "nodes/<int:pk>/uncordon/",
        nodes.NodeAction.as_view(action="uncordon"),
        name="node-uncordon",
    ),
    path("devices/", devices.DeviceList.as_view(), name="devices"),
    path("tenants/", tenants.TenantList.as_view(), name="tenants"),
    path("tenants/<slug:slug>/", tenants.TenantDetail.as_view(), name="tenant"),
    path("tenants/<slug:slug>/members/", tenants.MemberList.as_view(), name="members"),
    path(
        "tenants/<slug:slug>/members/<str:username>/",
        tenants.MemberDetail.as_view(),
        name="member",
    ),
    path("quotas/", quotas.QuotaList.as_view(), name="quotas"),
    path("quotas/<int:pk>/", quotas.QuotaDetail.as_view(), name="quota"),
    path("learnt-throughputs/", learnt.LearntThroughputList.as_view(), name="learnt-throughputs"),
    path("pairings/", pairings.PairingList.as_view(), name="pairings"),
    path("pairings/<int:pk>/", pairings.PairingDetail.as_view(), name="pairing"),
    path("throughputs/", throughputs.ThroughputList.as_view(), name="throughputs"),
    path("throughputs/<int:pk>/", throughputs.ThroughputDetail.as_view(), name="throughput"),
    path("me/", me.Me.as_view(), name="me"),
    path("me/tokens/", me.TokenList.as_view(), name="tokens"),
    path("me/tokens/<slug:key>/", me.TokenDetail.as_view(), name="token"),
]
