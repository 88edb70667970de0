"""The Django project and the only HTTP code."""
