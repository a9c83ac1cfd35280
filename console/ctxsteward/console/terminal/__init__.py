"""What every command says and asks at a terminal: options, stores, tables, output, and errors told as one line."""
