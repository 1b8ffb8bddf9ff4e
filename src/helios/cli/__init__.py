"""The `helios` command; one file per subcommand."""
