"""Parts of other people's frameworks: each module needs its library, and nothing else of shardqa's needs any."""
