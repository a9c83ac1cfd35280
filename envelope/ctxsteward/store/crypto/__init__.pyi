from .addresses import AddressKey as AddressKey, address_of as address_of, code as code, subject_of as subject_of
from .hash_chain import Chain as Chain, Link as Link, follows as follows
from .keyring import (
    Keys as Keys,
    MasterKeys as MasterKeys,
    SealKey as SealKey,
    check_keys as check_keys,
    file_keys as file_keys,
    memory_keys as memory_keys,
)
from .vault import (
    DataKey as DataKey,
    Vault as Vault,
    VaultBlob as VaultBlob,
    derived_subject as derived_subject,
    session_of as session_of,
)
