"""Figures, pure: rows in, a plotly figure as a plain dict out. No Django, no database, no clock."""
