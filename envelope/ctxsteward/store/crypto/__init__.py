"""Addresses, keys and ciphertext: who may read what, and what proves that nothing was changed."""
