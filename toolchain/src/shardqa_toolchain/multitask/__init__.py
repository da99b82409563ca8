"""One network for several tasks: their labels, their data and how well it does them."""
