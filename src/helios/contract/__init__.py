"""What a server must know of a prepared model, and the words in which host and device speak."""
