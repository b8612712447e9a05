"""The command line. spark-submit takes this file."""

from ivme.cli.app import app

__all__ = ["app"]

if __name__ == "__main__":
    app()
