"""What a tool surface costs: tokens, bits, the inefficiency that compares them, and the decision to constrain."""
