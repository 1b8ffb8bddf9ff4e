"""Generated Protobuf bindings of proto/helios/v1; `make proto` writes them."""
