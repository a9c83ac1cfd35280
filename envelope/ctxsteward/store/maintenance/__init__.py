"""Care of a store: is it whole (`fsck`), what can be mended (`repair`), what may go (`gc`), what is in it (`stats`)."""
