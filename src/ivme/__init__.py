"""ivme keeps the answers of queries fresh while the data changes."""
