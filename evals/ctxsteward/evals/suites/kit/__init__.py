"""What suites are made of: scenarios, scores, talk, pasted content, profiles, and playing a scenario through the
builder.
"""
