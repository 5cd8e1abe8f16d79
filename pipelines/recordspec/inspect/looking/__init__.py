"""Looking at records, with or without a spec for them."""
