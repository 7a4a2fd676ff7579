"""How many examples the property tests of this folder try, where a test does not say so itself."""

import os

from hypothesis import settings

# All unit tests together are to take seconds. HOLDFAST_FUZZ=2000 tries more, here and on the random trees.
settings.register_profile("unit", max_examples=int(os.environ.get("HOLDFAST_FUZZ", "25")), deadline=None)
settings.load_profile("unit")
