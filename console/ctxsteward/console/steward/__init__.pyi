from .context import StewardContext as StewardContext, author as author, profiles_in as profiles_in
from .records import LedgerView as LedgerView, records_at as records_at
