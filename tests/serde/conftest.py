"""The tests of the serializer share specimens and a notion of sameness; both are imported as
`serde.<module>`.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
