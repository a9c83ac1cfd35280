"""Addresses, keys, encryption, signatures, and chains that prove that stored data is unchanged."""
