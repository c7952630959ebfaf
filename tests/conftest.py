"""What every test module needs before it is imported."""

import pytest
from hypothesis import settings

# The suite is a package, so that pytest would not explain its asserts by itself.
pytest.register_assert_rewrite("threadmark_conformance")

# A busy machine is no failure, and a failure is one on every machine.
settings.register_profile("threadmark", deadline=None, derandomize=True)
settings.load_profile("threadmark")
