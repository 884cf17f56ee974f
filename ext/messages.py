"""The core's messages as records of the standard `logging` module, logger `softneuro`, and option `verbose`."""

from __future__ import annotations

import atexit
import logging

from softneuro import _C

PROGRESS = 15  # between DEBUG and INFO
_LEVELS = (logging.DEBUG, PROGRESS, logging.INFO, logging.WARNING)
_VERBOSE = {1: logging.INFO, 2: PROGRESS, 3: logging.DEBUG}
_log = logging.getLogger("softneuro")
logging.addLevelName(PROGRESS, "PROGRESS")


def to_logging() -> None:
    """Sends the core's messages to `logging` for as long as the interpreter lives."""
    _C.set_log_sink(lambda level, message: _log.log(_LEVELS[level], "%s", message))
    atexit.register(_C.set_log_sink, None)


def show(verbose: int) -> None:
    """Sends softneuro's log to standard error, unless the program has set up logging itself.

    `verbose` is the option: 0 changes nothing, 1 shows results, 2 progress, 3 every candidate.
    """
    if verbose == 0:
        return
    if not _log.hasHandlers():
        _log.addHandler(logging.StreamHandler())
    if _log.getEffectiveLevel() > _VERBOSE[verbose]:
        _log.setLevel(_VERBOSE[verbose])
