"""PostgreSQL's wire protocol: psql, drivers and tools for PostgreSQL read and change a database of ivme."""
