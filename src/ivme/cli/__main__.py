"""`python -m ivme.cli`."""

from ivme.cli.app import app

app()
