"""Everything that needs torch; the only place of the package that imports it."""
