"""An episode as an mp4: the world, and beside it what the planner considered.

One line for each of the K affordances: its action as bars from -1 to 1, its Q, and the share that
the policy gives it; the head that was chosen is framed. The panel stays while a decision lasts.
"""

import contextlib
import importlib.util
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from grasp.agents.agent import Decision
from grasp.agents.compiled import CompiledAgent
from grasp.environments.boundary import Boundary
from grasp.errors import DiskFault, UsageError
from grasp.evaluation import Heads, chosen
from grasp.figures import COLOURS
from grasp.files import disk

SIDE = 256  # pixels of the world's picture, and the panel's height
PANEL = 320  # pixels of the panel's width
LONGEST = 10_000  # decisions; an environment may have no end of its own


def film(
    agent: CompiledAgent, world: Boundary, seed: int, path: Path, heads: Heads = "greedy"
) -> int:
    """Play one episode into a file; returns its frames. The world is made to render."""
    environment: Any = world.environment
    panel = np.zeros((SIDE, PANEL, 3), np.uint8)
    with disk(path), _writer(path, _speed(environment)) as write:

        def shoot() -> None:
            nonlocal taken
            write(np.concatenate([picture(world), panel], axis=1))
            taken += 1

        taken = 0
        observation, goal = world.reset(seed)
        environment.watch = shoot  # an action that lasts is seen step by step
        try:
            for step in range(LONGEST):
                decision = agent.act_greedily(observation[None], goal[None], step)
                actions, head = chosen(decision, heads, agent.seed, step)
                panel = drawn_panel(decision, actions[0], int(head[0]))
                if step == 0:
                    shoot()
                before = taken
                outcome = world.step(actions[0])
                if taken == before:  # an environment of plain actions does not call
                    shoot()
                observation, goal = outcome.observation, outcome.goal
                if outcome.ended:
                    break
        finally:
            environment.watch = None
    return taken


def picture(world: Boundary) -> np.ndarray:
    """The world as it stands [SIDE, SIDE, 3], in a square."""
    from PIL import Image, ImageOps

    frame: Any = world.environment.render()
    if not isinstance(frame, np.ndarray) or frame.ndim != 3 or frame.dtype != np.uint8:
        raise UsageError(
            f"{world.name} draws no picture of itself; a video needs one with "
            "render_mode rgb_array: height x width x 3 of uint8"
        )
    return np.asarray(ImageOps.pad(Image.fromarray(frame[..., :3]), (SIDE, SIDE)))


def drawn_panel(decision: Decision, action: np.ndarray, head: int) -> np.ndarray:
    """The heads of one decision [SIDE, PANEL, 3]; an agent without a plan has its action alone."""
    from PIL import Image, ImageDraw

    image = Image.new("RGB", (PANEL, SIDE), "white")
    pen = ImageDraw.Draw(image)
    plan = decision.plan
    actions = action[None] if plan is None else np.asarray(plan.actions)[0]  # [K, action]
    line = (SIDE - 24) / max(len(actions), 1)
    columns = {"head": 8, "action": 48} | ({} if plan is None else {"Q": 216, "policy": 256})
    for title, left in columns.items():
        pen.text((left, 6), title, "black")
    for index, proposed in enumerate(actions):
        top, colour = 24 + index * line, COLOURS[index % len(COLOURS)]
        if index == head:
            pen.rectangle((2, top, PANEL - 3, top + line - 2), outline=colour, width=2)
        pen.text((12, top + line / 2 - 6), str(index), fill=colour)
        _bars(pen, proposed, (48, top + 4, 190, top + line - 6), colour)
        if plan is not None:
            value, share = (
                float(np.asarray(part)[0, index]) for part in (plan.q_values, plan.policy)
            )
            pen.text((204, top + line / 2 - 6), f"{value:.3f}", "black")
            pen.text((260, top + line / 2 - 6), f"{share:.0%}", "black")
    return np.asarray(image)


def _bars(pen: Any, action: np.ndarray, box: tuple[float | int, ...], colour: str) -> None:
    """Each number of an action as a bar from the middle of the box to its left or right."""
    left, top, right, bottom = box
    middle, height = (left + right) / 2, (bottom - top) / len(action)
    pen.line((middle, top, middle, bottom), fill="#999999")
    for index, number in enumerate(np.clip(action, -1, 1)):
        end = middle + float(number) * (right - left) / 2
        y = top + index * height
        pen.rectangle(
            (min(middle, end), y, max(middle, end), max(y + height - 2, y + 1)), fill=colour
        )


def _speed(environment: Any) -> int:
    """Frames per second, at which the environment says it is seen in real time."""
    return int(environment.metadata.get("render_fps") or 30)


@contextlib.contextmanager
def _writer(path: Path, speed: int) -> Iterator[Callable[[np.ndarray], None]]:
    """A function that adds a frame [SIDE, SIDE + PANEL, 3] to an mp4.

    ffmpeg is called directly: imageio's writer forks, which JAX warns of.
    """
    check_video()
    from imageio_ffmpeg import get_ffmpeg_exe

    path.parent.mkdir(parents=True, exist_ok=True)
    raw = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{SIDE + PANEL}x{SIDE}", "-r", str(speed)]
    coded = ["-c:v", "libx264", "-pix_fmt", "yuv420p", "-crf", "20"]
    command = [get_ffmpeg_exe(), "-y", "-loglevel", "error", *raw, "-i", "-", *coded, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as ffmpeg:
        assert ffmpeg.stdin is not None  # pipes were asked for
        assert ffmpeg.stderr is not None
        into = ffmpeg.stdin
        yield lambda frame: _send(into, frame)
        with contextlib.suppress(BrokenPipeError):
            into.close()
        said = ffmpeg.stderr.read().decode(errors="replace").strip()
    if ffmpeg.returncode:
        raise DiskFault(f"{path} could not be written: {said.splitlines()[-1] if said else ffmpeg}")


def _send(into: Any, frame: np.ndarray) -> None:
    with contextlib.suppress(BrokenPipeError):  # why ffmpeg left is said at the end
        into.write(np.ascontiguousarray(frame).data)


def check_video() -> None:
    """Refuse before any episode is played where nothing can write a video."""
    if not importlib.util.find_spec("imageio_ffmpeg"):
        raise UsageError(
            "a video needs imageio-ffmpeg; install the extra: pip install 'grasp-rl[video]'"
        )
