"""The console: pages on which people see what agents know, said and were told. Pages only read.

`endpoint` has the paths, `views` makes a page's values by asking the domain, `rendering` makes HTML of them
with `templates`, and `static_files` are the script and the styles, built from `transports/console`. `serving`
puts the interface below `/api/v1` and the console together.
"""
