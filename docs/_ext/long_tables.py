"""Long tables of the reference are folded: their page stays short, and a click opens them."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

#: Tables with more rows are folded.
MOST_ROWS = 12


class FoldedTables(SphinxTransform):
    """Put each long table into a `details` element."""

    default_priority = 800

    def apply(self, **_: Any) -> None:
        """Fold the tables of a page of the reference."""
        if not self.env.docname.startswith("reference/"):
            return
        for table in list(self.document.findall(nodes.table)):
            rows = sum(len(body) for body in table.findall(nodes.tbody))
            heads = list(table.findall(nodes.thead))  # lists of names in the reference have none
            if rows > MOST_ROWS and heads:
                head = [entry.astext() for entry in heads[0].findall(nodes.entry)]
                about = f"Table of {rows} rows: {', '.join(filter(None, head))}"
                before = f'<details class="long-table"><summary>{about}</summary>'
                index = table.parent.index(table)
                table.parent.insert(index, nodes.raw("", before, format="html"))
                table.parent.insert(index + 2, nodes.raw("", "</details>", format="html"))


def setup(app: Sphinx) -> dict[str, Any]:
    """Fold once a page is read."""
    app.add_transform(FoldedTables)
    return {"parallel_read_safe": True}
