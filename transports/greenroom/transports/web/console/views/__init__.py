"""The console's views, one module each: they fetch the values of their pages."""
