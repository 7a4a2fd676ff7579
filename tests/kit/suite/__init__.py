"""How the suite itself runs, as plugins of pytest.

`containment`: everything that a session starts ends with it. `time_limit`: a test that hangs is ended, with the stacks
of its processes. `moments`: when faults strike. `missing_parts`: what this machine lacks, and the command that installs
it. `proven`: tests of the kit run if it has changed. `progress`: what a person sees meanwhile.
"""
