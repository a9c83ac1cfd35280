"""Parts that commands share: options, stores, tables, output, and one-line error messages."""
