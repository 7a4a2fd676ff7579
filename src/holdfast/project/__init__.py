"""The folder a user edits: compute targets, run configurations, dependency files, templates, the id.

Reads and writes files and runs nothing. Every reader returns what it read and all problems of the file.
"""
