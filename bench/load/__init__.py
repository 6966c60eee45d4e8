"""A load generator for MCP servers: `python -m bench load --help`.

The command (`command`) starts workers (`worker`), each with its share of the clients and of the
rate. A worker sends what templates (`templates`) and the plan (`plan`) say, times and judges the
answers, and tells every second what came of it; the command adds that up (`outcome`).
"""
