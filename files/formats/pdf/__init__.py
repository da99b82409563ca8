"""PDF: pages as lines with their places on the page, tables found among them, lines joined into paragraphs."""
