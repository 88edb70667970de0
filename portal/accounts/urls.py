"""Sign-in, sign-out and the password; nobody signs up by themselves."""

from allauth.account import views
from django.urls import path

urlpatterns = [
    path("login/", views.login, name="account_login"),
    path("logout/", views.logout, name="account_logout"),
    path("password/change/", views.password_change, name="account_change_password"),
    path("password/set/", views.password_set, name="account_set_password"),
    path("reauthenticate/", views.reauthenticate, name="account_reauthenticate"),
]
