"""The bodies of requests and responses, as OpenAI's API words them."""
