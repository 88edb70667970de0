"""Every address of version 1."""

from django.urls import path

from portal.api.v1 import jobs

urlpatterns = [
    path("jobs/", jobs.JobList.as_view(), name="jobs"),
    path("jobs/<uuid:uid>/", jobs.JobDetail.as_view(), name="job"),
    path("jobs/<uuid:uid>/log/", jobs.JobLog.as_view(), name="job-log"),
    path("jobs/<uuid:uid>/events/", jobs.JobEvents.as_view(), name="job-events"),
    path("jobs/<uuid:uid>/cancel/", jobs.JobCancel.as_view(), name="job-cancel"),
    path("jobs/<uuid:uid>/resubmit/", jobs.JobResubmit.as_view(), name="job-resubmit"),
]
