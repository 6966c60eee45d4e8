"""The console's views: a module each, which asks the domain for what its pages show."""
