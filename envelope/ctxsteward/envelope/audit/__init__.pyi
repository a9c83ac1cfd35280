from . import auditor as auditor
from .auditor import KINDS as KINDS, audit as audit
from .requests import not_governed as not_governed, sealed_request as sealed_request
