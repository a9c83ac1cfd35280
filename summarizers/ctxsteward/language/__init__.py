"""Words and rules of English and Chinese that every room reads by: lists, stems, sentences, units, numerals, values.

The lowest layer beside `schemas`. Lists are data (`data/*.yaml`, shape: `lists.schema.json`); `lists` loads them.
"""
