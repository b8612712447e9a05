"""Databases behind a server: `ivme.connect`, asyncio, DB-API and SQLAlchemy."""
