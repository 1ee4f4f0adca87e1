"""Why a tensor is sharded as it is, in sentences and as data."""
