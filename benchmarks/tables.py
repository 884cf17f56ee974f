"""Tables of figures on the console."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.table import Table


def figures(title: str, header: Sequence[str], rows: Iterable[Sequence[str]] = ()) -> Table:
    """The first column is text, the others are figures."""
    table = Table(title=title)
    for index, column in enumerate(header):
        table.add_column(column, justify="right" if index else "left")
    for row in rows:
        table.add_row(*row)
    return table
