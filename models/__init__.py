"""The reader: from text to tokens, from tokens to logits, from logits to spans, and how it was made and is measured."""
