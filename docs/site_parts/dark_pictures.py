"""Pictures that exist for dark pages, too: `images/NAME-dark.png` beside `images/NAME.png`; the theme shows one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.transforms import SphinxTransform


class DarkPictures(SphinxTransform):
    """Puts the dark picture behind the light one; the classes are those of furo."""

    default_priority = 100  # before Sphinx collects the files of images

    def apply(self, **kwargs: Any) -> None:
        """Do so for one page."""
        folder = Path(self.env.srcdir, self.env.docname).parent
        for image in list(self.document.findall(nodes.image)):
            name = image["uri"].removesuffix(".png") + "-dark.png"
            if image["uri"].endswith(".png") and (folder / name).is_file():
                dark = image.deepcopy()
                dark["uri"] = name
                image["classes"].append("only-light")
                dark["classes"].append("only-dark")
                image.replace_self([image, dark])


def setup(app: Any) -> dict[str, Any]:
    """Give Sphinx the transform."""
    app.add_transform(DarkPictures)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
