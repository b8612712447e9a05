"""The demonstration: a network of flights, kept fresh by a pipeline on local Spark (`ivme demo flights`)."""
