"""The toolchain makes readers: it trains, shrinks, checks, calibrates, measures and packages them."""
