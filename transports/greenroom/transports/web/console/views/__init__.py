"""The console's views, one module each; a view fetches the values of its pages."""
