"""What every test module needs before it is imported."""

import pytest

# The suite is a package, so that pytest would not explain its asserts by itself.
pytest.register_assert_rewrite("threadmark.conformance")
