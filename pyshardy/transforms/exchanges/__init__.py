"""Ops that need data of other shards: exchanges with neighbours, and replication where that is not possible."""
