"""How many examples the property tests of this folder try by default."""

import os

from hypothesis import settings

# All unit tests together should take seconds. HOLDFAST_FUZZ=2000 tries more, here and on the random trees.
settings.register_profile("unit", max_examples=int(os.environ.get("HOLDFAST_FUZZ", "25")), deadline=None)
settings.load_profile("unit")
