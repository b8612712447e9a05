"""Lengths of time, as pipeline files have them."""

from __future__ import annotations

import re
from datetime import timedelta

from ivme.errors import PipelineError

_DELAY = re.compile(r"(\d+) *(second|minute|hour|day|week)s?", re.IGNORECASE | re.ASCII)


def read_delay(text: str) -> timedelta:
    """A length of time as a file has it.

    >>> read_delay("90 minutes")
    datetime.timedelta(seconds=5400)
    """
    found = _DELAY.fullmatch(text.strip())
    if found is None:
        raise PipelineError(f"a delay is a number of seconds, minutes, hours, days or weeks; it is {text!r}")
    return timedelta(**{f"{found[2].lower()}s": int(found[1])})
