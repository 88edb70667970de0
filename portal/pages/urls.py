"""Every address of the pages."""

from django.urls import path

from portal.pages import (
    audit,
    clusters,
    fairness,
    fleet,
    given,
    home,
    job,
    jobs,
    nodes,
    quotas,
    request,
    tenant,
    tenants,
    tokens,
    usage,
)

app_name = "pages"
urlpatterns = [
    path("", home.home, name="home"),
    path("jobs/", jobs.jobs, name="job-list"),
    path("jobs/new/", request.job_new, name="job-new"),
    path("jobs/new/estimate/", request.job_estimate, name="job-estimate"),
    path("jobs/<uuid:uid>/", job.job_detail, name="job-detail"),
    path("jobs/<uuid:uid>/cancel/", job.cancel, name="job-cancel"),
    path("jobs/<uuid:uid>/resubmit/", job.resubmit, name="job-resubmit"),
    path("fleet/", fleet.fleet_index, name="fleet-index"),
    path("fleet/<slug:slug>/", fleet.fleet, name="fleet"),
    path("fairness/", fairness.fairness_index, name="fairness-index"),
    path("fairness/<slug:slug>/", fairness.fairness, name="fairness"),
    path("usage/", usage.usage, name="usage"),
    path("usage/csv/", usage.usage_csv, name="usage-csv"),
    path("admin/tenants/", tenants.tenants, name="admin-tenants"),
    path("admin/tenants/<slug:slug>/", tenant.tenant, name="admin-tenant"),
    path("admin/tenants/<slug:slug>/update/", tenant.update, name="admin-tenant-update"),
    path("admin/tenants/<slug:slug>/move/", tenant.move, name="admin-tenant-move"),
    path("admin/tenants/<slug:slug>/delete/", tenant.delete, name="admin-tenant-delete"),
    path("admin/tenants/<slug:slug>/members/", tenant.member_set, name="admin-member-set"),
    path(
        "admin/tenants/<slug:slug>/members/<str:username>/remove/",
        tenant.member_remove,
        name="admin-member-remove",
    ),
    path("admin/tenants/<slug:slug>/people/", tenant.person_new, name="admin-person-new"),
    path("admin/quotas/", quotas.quotas, name="admin-quotas"),
    path("admin/quotas/<int:pk>/remove/", quotas.quota_remove, name="admin-quota-remove"),
    path(
        "admin/quotas/<slug:slug>/<slug:tenant>/<str:flavor>/edit/",
        quotas.quota_edit,
        name="admin-quota-edit",
    ),
    path(
        "admin/quotas/<slug:slug>/<slug:tenant>/<str:flavor>/save/",
        quotas.quota_save,
        name="admin-quota-save",
    ),
    path("admin/nodes/", nodes.nodes, name="admin-nodes"),
    path(
        "admin/nodes/<slug:slug>/<str:name>/<slug:action>/", nodes.node_act, name="admin-node-act"
    ),
    path("admin/audit/", audit.audit, name="admin-audit"),
    path("admin/clusters/", clusters.clusters, name="admin-clusters"),
    path("admin/pairings/<int:pk>/remove/", given.pairing_remove, name="admin-pairing-remove"),
    path(
        "admin/throughputs/<int:pk>/remove/",
        given.throughput_remove,
        name="admin-throughput-remove",
    ),
    path("me/tokens/", tokens.tokens, name="tokens"),
    path("me/tokens/<str:key>/revoke/", tokens.revoke, name="token-revoke"),
]
