"""SQL statements: `parse` reads a text into statements, `session` runs them on a database."""
