"""Rings for the payloads of views: the extension point, and the two that come with ivme."""

from __future__ import annotations

from ivme.algebra.covariance import Covariance, CovarianceElement
from ivme.algebra.relational import Listing, Relational
from ivme.algebra.ring import Element, Ring

__all__ = ["Covariance", "CovarianceElement", "Element", "Listing", "Relational", "Ring"]
