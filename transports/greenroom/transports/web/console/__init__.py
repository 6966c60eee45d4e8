"""The console: pages on which people read what agents know, wrote and received.

`endpoint` has the paths, and combines the console with the interface below `/api/v1`. `views` asks the domain
for the values of a page, and `rendering` makes HTML of the values with `templates`. `static_files` has the
script and the styles, built from `transports/console`.
"""
