"""Which fragments an envelope is made of, and in which order: values and pure functions."""
