"""Benchmarks of Greenroom beside what people would use instead, with every answer checked.

`python -m bench` runs them; README.md says what each one measures.
"""
