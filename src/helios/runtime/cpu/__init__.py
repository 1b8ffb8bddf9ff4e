"""The native CPU runtime: programs lowered to steps that run in C++ without Python."""
