"""The captured-program IR: op set, builder, verifier, text form and Protobuf form."""
