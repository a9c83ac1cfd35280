"""HTML pages of a store. Each is one HTML file that loads nothing from another host."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .inspector import inspect_call as inspect_call
    from .site import Site as Site
    from .timeline import timeline_page as timeline_page
else:  # A name is loaded at its first use, so that the HTTP service starts without the steward's pages.
    import lazy_loader

    __getattr__, __dir__, __all__ = lazy_loader.attach(
        __name__,
        submod_attrs={"inspector": ["inspect_call"], "site": ["Site"], "timeline": ["timeline_page"]},
    )
