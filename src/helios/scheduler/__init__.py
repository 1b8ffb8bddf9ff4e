"""Which requests run next, on which pages. Pure and deterministic; knows no tensors."""
