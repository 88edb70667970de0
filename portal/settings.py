"""Configuration of the portal, by environment variables alone; the table stands in the README.

Nothing secret has a default: keys are generated into the data folder with mode 600.
"""

import os
import sys
from pathlib import Path

import django_stubs_ext
from csp.constants import NONE, SELF
from django.utils.translation import gettext_lazy as _

from portal.embedded import addresses
from portal.environment import Environment

django_stubs_ext.monkeypatch()

BASE_DIR = Path(__file__).resolve().parent.parent
env = Environment(os.environ)

DATA = addresses.data_folder(os.environ)
os.environ.setdefault("NUMBA_CACHE_DIR", str(addresses.compiled_folder(DATA)))
HOST = env.text("KILTER_HOST", "127.0.0.1")
PORT = env.whole("KILTER_PORT", 8000, low=1, high=65535)
IS_LOOPBACK = HOST in {"127.0.0.1", "::1", "localhost"}

SECRET_KEY = addresses.secret(DATA, "secret_key")
DEBUG = env.flag("KILTER_DEBUG", default=False)
ALLOWED_HOSTS = env.words("KILTER_ALLOWED_HOSTS", ["localhost", "127.0.0.1", "[::1]", HOST])
CSRF_TRUSTED_ORIGINS = env.words("KILTER_TRUSTED_ORIGINS")

INSTALLED_APPS = [
    "telemetry",
    "tenants",
    "scheduler",
    "portal",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "django.contrib.humanize",
    "allauth",
    "allauth.account",
    "auditlog",
    "channels",
    "crispy_forms",
    "crispy_bootstrap5",
    "csp",
    "django_filters",
    "django_htmx",
    "django_tables2",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "knox",
    "rest_framework",
    "tree_queries",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "auditlog.middleware.AuditlogMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "portal.accounts.middleware.SignInRequiredMiddleware",
    "portal.pages.middleware.GoneMiddleware",
]

ROOT_URLCONF = "portal.urls"
ASGI_APPLICATION = "portal.asgi.application"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "libraries": {
                "kilter": "portal.pages.templatetags.kilter",
                "jobs": "portal.pages.templatetags.jobs",
            },
            "context_processors": [
                "django.template.context_processors.request",
                "django.template.context_processors.i18n",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "portal.pages.shell.shell",
            ],
        },
    },
]

DATABASES = {
    "default": env.database("DATABASE_URL") or addresses.database_settings(DATA),
}
DATABASES["default"].setdefault("ATOMIC_REQUESTS", False)
DATABASE_OPTIONS = DATABASES["default"].setdefault("OPTIONS", {})
DATABASE_OPTIONS.setdefault("connect_timeout", 5)
DATABASE_POOL = {
    "min_size": 0,
    "max_size": env.whole("KILTER_DB_POOL", 10, low=1, high=1000),
    "timeout": 10,
}
# A command of manage.py ends soon, and says at once that no database answers.
if Path(sys.argv[0]).name != "manage.py":
    DATABASE_OPTIONS.setdefault("pool", DATABASE_POOL)

REDIS_URL = env.text("REDIS_URL") or addresses.redis_url(DATA)
CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": REDIS_URL,
        "KEY_PREFIX": "kilter",
    }
}
CHANNEL_LAYERS = {
    "default": {
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        "CONFIG": {"hosts": [REDIS_URL], "prefix": "kilter"},
    }
}

AUTHENTICATION_BACKENDS = [
    "django.contrib.auth.backends.ModelBackend",
    "allauth.account.auth_backends.AuthenticationBackend",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
ACCOUNT_ADAPTER = "portal.accounts.adapter.ClosedSignupAdapter"
ACCOUNT_LOGIN_METHODS = {"username"}
ACCOUNT_SIGNUP_FIELDS = ["username*", "password1*", "password2*"]
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_SESSION_REMEMBER = True
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "pages:home"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = env.flag("KILTER_HTTPS", default=False)
if env.flag("KILTER_HTTPS", default=False):
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "script-src": [SELF],
        "style-src": [SELF],  # plotly.js finds its own style sheet among ours: vendor/plotly
        "img-src": [SELF, "data:", "blob:"],
        "font-src": [SELF, "data:"],
        "connect-src": [SELF],
        "object-src": [NONE],
        "base-uri": [SELF],
        "frame-ancestors": [NONE],
        "form-action": [SELF],
    }
}

LANGUAGE_CODE = "en"
LANGUAGES = [("en", _("English")), ("zh-hans", _("Simplified Chinese"))]
LOCALE_PATHS = [BASE_DIR / "locale"]
USE_I18N = True
USE_TZ = True
TIME_ZONE = "UTC"
DISPLAY_TIME_ZONE = env.text("KILTER_TIME_ZONE", "UTC")

STATIC_URL = "static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
STATIC_ROOT = DATA / "static"
# `up` collects a copy, which stays whole while files change around a running server. Where there
# is none, as in tests, and while developing, they are served from where they lie.
WHITENOISE_USE_FINDERS = DEBUG or not (STATIC_ROOT.is_dir() and any(STATIC_ROOT.iterdir()))
WHITENOISE_AUTOREFRESH = DEBUG

CRISPY_ALLOWED_TEMPLATE_PACKS = CRISPY_TEMPLATE_PACK = "bootstrap5"
DJANGO_TABLES2_TEMPLATE = "parts/table.html"
DATA_UPLOAD_MAX_MEMORY_SIZE = 1024 * 1024

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "portal.api.v1.auth.TokenAuthentication",
        "portal.api.v1.auth.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_PARSER_CLASSES": ["portal.api.v1.auth.StrictJSONParser"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PAGINATION_CLASS": "portal.api.v1.pagination.Pages",
    "DEFAULT_FILTER_BACKENDS": ["django_filters.rest_framework.DjangoFilterBackend"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "portal.api.v1.errors.handle",
    "UNAUTHENTICATED_USER": "django.contrib.auth.models.AnonymousUser",
}
REST_KNOX = {"AUTH_HEADER_PREFIX": "Token", "TOKEN_LIMIT_PER_USER": None}
TOKEN_DAYS = env.whole("KILTER_TOKEN_DAYS", 90, low=1, high=3650)
SPECTACULAR_SETTINGS = {
    "ENUM_NAME_OVERRIDES": {
        "StrategyEnum": "scheduler.choices.STRATEGY_NAMES",
        "TopologyLevelEnum": "scheduler.choices.TopologyLevel",
    },
    "TITLE": "Kilter",
    "DESCRIPTION": "Ask for compute, see why it waits, watch it run.",
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "COMPONENT_SPLIT_REQUEST": True,
}

CELERY_BROKER_URL = addresses.celery_url(REDIS_URL)

# The local executor runs people's commands as processes of this machine.
LOCAL_EXECUTOR = env.flag("KILTER_LOCAL_EXECUTOR", default=IS_LOOPBACK)
LOCAL_RUN_AS = env.text("KILTER_LOCAL_RUN_AS")
PRIVATE_FOLDERS = [DATA, addresses.run_folder(DATA)]  # what no job may see
LOG_CAP_MIB = env.whole("KILTER_LOG_CAP_MIB", 64, low=1, high=65536)
JOB_KEEP_DAYS = env.whole("KILTER_JOB_KEEP_DAYS", 30, low=1, high=3650)
SAMPLE_S = env.number("KILTER_SAMPLE_S", 5.0, low=0.5, high=3600)
SAMPLE_KEEP_DAYS = env.whole("KILTER_SAMPLE_KEEP_DAYS", 7, low=1, high=3650)
ROLLUP_KEEP_DAYS = env.whole("KILTER_ROLLUP_KEEP_DAYS", 400, low=1, high=3650)
DEMO_CLOCK_SCALE = env.number("KILTER_DEMO_CLOCK_SCALE", 30.0, low=0.1, high=10000)
CYCLE_TIMER_S = env.number("KILTER_CYCLE_TIMER_S", 5.0, low=0.5, high=3600)
NODE_LOST_AFTER_S = env.number("KILTER_NODE_LOST_AFTER_S", 60.0, low=5, high=86400)

LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s %(message)s"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": env.choice("KILTER_LOG_LEVEL", "INFO", LOG_LEVELS)},
}
