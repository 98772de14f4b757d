"""What the tests of `Rehearsal` share."""

import pytest

from dipedl.calibration import rehearsal


@pytest.fixture(scope="module")
def few_candidates():
    """Trees take a second to fit: `Rehearsal` mixes two candidates. Gives what mixes them all."""
    whole = rehearsal._other_classifiers

    def few(n, p, random_state):
        return {name: whole(n, p, random_state)[name] for name in ("linear", "kernel")}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rehearsal, "_other_classifiers", few)
        yield whole
