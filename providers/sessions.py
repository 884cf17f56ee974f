"""Sessions with the provider first."""

from __future__ import annotations

import os
from typing import Any

import softneuro
from softneuro.option_texts import option_texts
from softneuro.providers import library, report


def session(model: str | os.PathLike[str] | bytes, sess_options: Any = None, **options: Any) -> Any:
    """An onnxruntime.InferenceSession whose supported regions run through softneuro, the rest on the CPU provider.

    Args:
        model: path, or the model's bytes.
        sess_options: onnxruntime.SessionOptions to start from, left as they are. Providers in them are not used.
        options: by name; `softneuro.option_table()` lists them. `threads` is by default what `sess_options` says,
            otherwise the physical cores.

    Raises:
        Error: an option is unknown or out of range, or onnxruntime is missing or too old.
        Exception: what InferenceSession raises, for instance for a corrupt model.
    """
    texts = option_texts(options)
    softneuro._C.parse_options(texts)  # names and ranges
    onnxruntime = library.runtime()
    library.register()
    settings = sess_options if sess_options is not None else onnxruntime.SessionOptions()
    if "threads" not in texts and settings.intra_op_num_threads > 0:
        texts["threads"] = str(settings.intra_op_num_threads)
    log = report.new_file()
    own = (library.get_ep_name(), {**texts, "report": str(log)})
    source = model if isinstance(model, bytes) else os.fspath(model)
    try:
        # An error is to be seen, neither while the session is made nor at a run tried again elsewhere.
        made = onnxruntime.InferenceSession(source, settings, providers=[own], enable_fallback=0)
    except BaseException:
        log.unlink(missing_ok=True)
        raise
    made.disable_fallback()
    report.remember(made, log)
    return made
