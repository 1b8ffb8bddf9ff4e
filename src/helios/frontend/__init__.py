"""Text and tokens: tokenizer, template, parsers, stops, output. Never scheduling."""
