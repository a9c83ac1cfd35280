from . import auditor as auditor
from .auditor import audit as audit
from .differences import KINDS as KINDS
from .requests import sealed_request as sealed_request
