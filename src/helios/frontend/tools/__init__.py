"""Tool calls: grammars for families of syntaxes, each described by data."""
