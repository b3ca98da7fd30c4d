"""What the workflows in .github/workflows run: judge a stranger's preview, publish it elsewhere, say so in a comment.

Nothing but Python's standard library, because the machine that holds the tokens installs nothing.
"""
