"""Which fragments an envelope is made of, in which order, and the envelope itself: values and pure functions."""
