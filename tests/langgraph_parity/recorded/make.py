"""Records the calls of a release of LangGraph in some random walks, for `test_pruned_deltas.py`.

    python -m venv old && old/bin/pip install langgraph==1.2.6 libs/core libs/speed libs/sqlite libs/langgraph
    PYTHONPATH=tests old/bin/python tests/langgraph_parity/recorded/make.py

Run it once for a release; a recording is never replaced.
"""

from importlib.metadata import version
from pathlib import Path

from langgraph_parity.recorded.recording import Recorder, save
from langgraph_parity.walks import walk

WALKS = 10

if __name__ == "__main__":
    recorders = [Recorder() for _ in range(WALKS)]
    for number, recorder in enumerate(recorders):
        walk(number, recorder, "thread")
    path = Path(__file__).with_name(f"langgraph-{version('langgraph')}.jsonl.gz")
    save(path, [recorder.lines for recorder in recorders])
