"""How English and Chinese are read: word lists, stems, sentences, clauses, units, numerals, typed values, statements.

Every room that judges text reads it through this one: the summarizers, recall and cards of the envelope, the steward.
It stands directly above `schemas`. Lists are data (`data/*.yaml`, shape: `lists.schema.json`); `lists` loads them.
"""
