from .context import author as author
