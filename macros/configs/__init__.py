"""Training configurations of other tools: pasted text → recipe, and recipe → such a text."""
