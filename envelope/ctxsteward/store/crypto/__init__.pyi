from .hash_chain import Chain as Chain, Link as Link, follows as follows
from .keyring import (
    AddressKey as AddressKey,
    CheckableKeys as CheckableKeys,
    KeyFileMissing as KeyFileMissing,
    Keys as Keys,
    MasterKeys as MasterKeys,
    SealKey as SealKey,
    address_of as address_of,
    check_keys as check_keys,
    code as code,
    file_keys as file_keys,
    memory_keys as memory_keys,
    subject_of as subject_of,
)
from .signatures import is_signed as is_signed, signed_data as signed_data
from .vault import (
    DataKey as DataKey,
    Vault as Vault,
    VaultBlob as VaultBlob,
    derived_subject as derived_subject,
    session_of as session_of,
)
