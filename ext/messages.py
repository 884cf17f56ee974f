"""The core's messages as records of the standard `logging` module, logger `softneuro`."""

from __future__ import annotations

import atexit
import logging

from softneuro import _C

_LEVELS = (logging.DEBUG, logging.INFO, logging.WARNING)
_log = logging.getLogger("softneuro")


def to_logging() -> None:
    """Sends the core's messages to `logging` for as long as the interpreter lives."""
    _C.set_log_sink(lambda level, message: _log.log(_LEVELS[level], "%s", message))
    atexit.register(_C.set_log_sink, None)
