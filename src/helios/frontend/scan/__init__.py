"""The streaming scanner: text that arrives in pieces, read by grammars written as coroutines."""
