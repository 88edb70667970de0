"""Properties try the same cases in every run, so that a commit is as green today as tomorrow.

`pytest --hypothesis-profile=search` looks at new ones each time.
"""

from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("search", deadline=None)
settings.load_profile("repeatable")
