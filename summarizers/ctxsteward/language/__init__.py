"""Reading English and Chinese: word lists, stems, sentences, clauses, units, numerals, typed values, statements.

The summarizers, recall and cards of the envelope, and the steward read text through this package. It depends on
`schemas` alone. The word lists are data (`data/*.toml`, shape: `lists.schema.json`), which `lists` loads.
"""
