"""Every address of the pages."""

from django.urls import path

from portal.pages import fairness, fleet, home, job, jobs, request, tokens

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
    path("me/tokens/", tokens.tokens, name="tokens"),
    path("me/tokens/<str:key>/revoke/", tokens.revoke, name="token-revoke"),
]
