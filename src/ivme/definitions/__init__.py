"""What a database defines and how that changes: tables, views, functions, the clock, plans that follow their use."""
