"""Pages of the web as documents: fetched within bounds, from public addresses of one host, as its robots.txt allows."""
