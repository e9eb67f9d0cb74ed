"""Several devices give the numbers of one; they are simulated on the host."""

import json
import os
import subprocess
import sys

import numpy as np

PROGRAM = """
import json, sys
import jax, numpy as np
from grasp.agents.agent import Sizes
from grasp.agents.compiled import CompiledAgent
from grasp.agents.grasp import Grasp
from grasp.planners.complete_tree import CompleteTree
from grasp.replay import Window

agent = Grasp(width=16, batch=12, window=2, updates_per_call=2, planner=CompleteTree(2, 0.5))
compiled = CompiledAgent(agent, Sizes(observation=3, goal=0, action=2), seed=0)
random = np.random.default_rng(0)
normal = lambda *shape: random.normal(size=shape).astype(np.float32)
windows = Window(
    normal(2, 12, 3, 3), np.zeros((2, 12, 3, 0), np.float32), np.tanh(normal(2, 12, 2, 2)),
    normal(2, 12, 2), np.ones((2, 12, 2), np.float32), np.ones((2, 12, 2), bool),
    np.zeros((2, 12), bool),
)
metrics = [compiled.update(windows, first) for first in (0, 2)]
leaves = jax.tree.leaves(compiled.arrays)
print(json.dumps({
    "devices": len(jax.devices()),
    "used": len(leaves[0].devices()),
    "value_loss": [float(m["train/value_loss"]) for m in metrics],
    "sums": [float(np.abs(np.asarray(leaf, np.float64)).sum()) for leaf in leaves],
}))
"""


def numbers(devices):
    flags = f"--xla_force_host_platform_device_count={devices}"
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=os.environ | {"XLA_FLAGS": flags},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def test_four_devices_give_the_numbers_of_one():
    one, four = numbers(1), numbers(4)
    assert (one["devices"], four["devices"], four["used"]) == (1, 4, 4)
    np.testing.assert_allclose(four["value_loss"], one["value_loss"], rtol=1e-5)
    np.testing.assert_allclose(four["sums"], one["sums"], rtol=1e-4)
