"""The core file: envelope, frames, locations, reader, writer, logical store, trust."""
