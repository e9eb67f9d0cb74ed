"""Ant-Gather (Section 3): walk a MuJoCo Ant to three apples among five bombs.

Gymnasium's Ant body on an open floor, objects at fixed places in a square of 8 m. An object is
gathered when the torso comes within 1 m of it, and is gone: an apple gives reward 1, a bomb 0. The
third apple ends the episode; so does a fall, with nothing: an ant on its side or its back has
fallen, one that leaps or sits has not. An episode is truncated after 500 steps of 50 ms. The ant
starts standing, anywhere in the square out of reach of the objects, turned any way.

    observation   x, y, z, orientation (4), 8 joints; velocities of all (14);
                  whether each of 3 apples and 5 bombs is still there              [37]

The velocities of the torso are those of MuJoCo's free joint: linear in the world's frame, angular
in the body's.
"""

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from grasp.environments.rendering import check_renderer, choose_renderer
from grasp.errors import EnvironmentFault
from grasp.figures import Scene

choose_renderer()  # which MuJoCo reads when it is imported

import mujoco  # noqa: E402

mj: Any = mujoco  # its compiled functions have no stubs

APPLES = np.array([[2.6, 1.6], [-2.7, 1.9], [0.2, -2.8]])
BOMBS = np.array([[0.1, 2.7], [-0.2, 0.3], [2.7, -1.2], [-2.4, -1.4], [3.0, 3.6]])
OBJECTS = np.concatenate([APPLES, BOMBS])  # [8, 2]
MARKS = "A" * len(APPLES) + "B" * len(BOMBS)
ARENA = 4.0  # metres from the middle to each side
CATCH = 1.0
LIMIT = 500  # steps
FRAMES = 5  # of physics per step
STRENGTH = 0.4  # share of the motors' torque that the options use
STEP = 0.05  # metres of a step at 1 m/s
FALL = 4.0  # what it costs while the options are learned
_BODY = 29  # numbers of the observation that are the body's
_READY = np.array([0.0, 1.0, 0.0, -1.0, 0.0, -1.0, 0.0, 1.0])  # joints of Gymnasium's ant at rest
_ALIKE = np.array([1.0, 1.0, 1.0, -1.0, 1.0, -1.0, 1.0, 1.0])  # all legs bend alike
_QUARTERS = np.array([1, 1j, -1, -1j])  # turns by a quarter, to the left
_BEGINNING_WITH = (2 * np.arange(4)[:, None] + np.arange(8)) % 8  # joints, by the leg that is first

PICTURED: dict[str, list[dict[str, Any]]] = {  # resets to look at: what differs along each row
    "start": [
        {"place": place, "heading": 0.0}
        for place in ([1.3, 0.2], [-1.3, 0.4], [-0.9, -3.4], [3.6, -3.0])
    ],
    "left": [
        {"place": [1.3, 0.2], "heading": 0.0, "left": [*apples, *[True] * len(BOMBS)]}
        for apples in ([0, 1, 1], [1, 0, 1], [1, 1, 0], [0, 0, 1])
    ],
}


class AntGather(gymnasium.Env):
    """The primitive environment; its actions are the torques of the eight joints."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 20}
    counted = ("apples", "bombs", "fell")  # of an episode's last info, for `grasp evaluate`
    action_space = gymnasium.spaces.Box(-1, 1, (8,), np.float32)
    observation_space = gymnasium.spaces.Box(-1000, 1000, (37,), np.float32)

    def __init__(self, render_mode: str | None = None):
        self.render_mode = render_mode
        self.model = _arena().compile()
        self.data = mj.MjData(self.model)
        self.left = np.ones(len(OBJECTS), bool)
        self.steps = 0
        self._renderer: Any = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        """A new start; `options` may fix `place` (x, y), `heading` (radians) and `left`, which of
        the objects are there.
        """
        super().reset(seed=seed)
        fixed = options or {}
        place, heading = self._place(), self.np_random.uniform(-np.pi, np.pi)
        place, heading = fixed.get("place", place), float(fixed.get("heading", heading))
        mj.mj_resetData(self.model, self.data)
        turned = [np.cos(heading / 2), 0, 0, np.sin(heading / 2)]
        joints = _READY + self.np_random.uniform(-0.1, 0.1, 8)
        self.data.qpos[:] = [*place, 0.75, *turned, *joints]
        self.data.qvel[:] = 0.1 * self.np_random.normal(size=14)
        mj.mj_forward(self.model, self.data)
        self.left = np.array(fixed.get("left", np.ones(len(OBJECTS))), bool)
        self.steps = 0
        return self._observation(), self._info(fell=False)

    def step(self, action: np.ndarray):
        self.data.ctrl[:] = np.clip(action, -1, 1)
        warnings = self.data.warning.number.sum()
        mj.mj_step(self.model, self.data, nstep=FRAMES)
        self.steps += 1
        if self.data.warning.number.sum() > warnings or not np.isfinite(self.data.qacc).all():
            raise EnvironmentFault("the physics of ant-gather became unstable")
        near = np.hypot(*(OBJECTS - self.data.qpos[:2]).T) <= CATCH  # [8]
        apples = int((near & self.left)[: len(APPLES)].sum())
        self.left &= ~near
        success, fell = not self.left[: len(APPLES)].any(), self.fallen(self._body())
        truncated = not (success or fell) and self.steps >= LIMIT
        info = self._info(fell)
        return self._observation(), float(apples), bool(success or fell), truncated, info

    @staticmethod
    def fallen(body: np.ndarray) -> Any:
        """Whether a body [..., 29] is tilted by a quarter turn or more."""
        x, y = body[..., 4], body[..., 5]
        return 1 - 2 * (x**2 + y**2) < 0  # how far its own up points upwards

    def get_state(self) -> dict[str, Any]:
        physics = np.zeros(mj.mj_stateSize(self.model, mj.mjtState.mjSTATE_INTEGRATION))
        mj.mj_getState(self.model, self.data, physics, mj.mjtState.mjSTATE_INTEGRATION)
        return {"physics": physics, "left": self.left.copy(), "steps": self.steps}

    def set_state(self, state: dict[str, Any]) -> np.ndarray:
        """Put an episode back; returns its current observation."""
        physics = np.asarray(state["physics"], float)
        mj.mj_setState(self.model, self.data, physics, mj.mjtState.mjSTATE_INTEGRATION)
        mj.mj_forward(self.model, self.data)
        mj.mj_setState(self.model, self.data, physics, mj.mjtState.mjSTATE_INTEGRATION)
        self.left, self.steps = np.asarray(state["left"], bool).copy(), int(state["steps"])
        return self._observation()

    def render(self) -> np.ndarray:
        """From above; what was gathered is gone."""
        check_renderer()
        if self._renderer is None:
            self._renderer = mj.Renderer(self.model, 480, 480)
        for index, there in enumerate(self.left):
            self.model.site_rgba[index, 3] = 1.0 if there else 0.0
        self._renderer.update_scene(self.data, camera="above")
        return self._renderer.render()

    pictured = PICTURED

    def scene(self) -> Scene:
        """The square as the unit square: apples A, bombs B."""
        return Scene(_in_unit(self.data.qpos[:2]), _in_unit(OBJECTS), self.left.copy(), (), MARKS)

    def options_to_objects(self) -> np.ndarray:
        """The options that go to the objects, to arrive at rest [8, 4]."""
        return np.hstack([OBJECTS, np.zeros((len(OBJECTS), 2))])

    def place(self, observation: np.ndarray) -> np.ndarray:
        """Where in the scene an observation has the ant."""
        return _in_unit(observation[:2])

    def close(self) -> None:
        if self._renderer is not None:
            self._renderer.close()
            self._renderer = None

    def _place(self) -> np.ndarray:
        """Anywhere in the square from where nothing is gathered yet."""
        while True:
            place = self.np_random.uniform(-ARENA, ARENA, 2)
            if (np.hypot(*(OBJECTS - place).T) > CATCH).all():
                return place

    def _info(self, fell: bool | np.bool) -> dict[str, Any]:
        gathered = ~self.left
        return {
            "success": bool(gathered[: len(APPLES)].all()),
            "apples": int(gathered[: len(APPLES)].sum()),
            "bombs": int(gathered[len(APPLES) :].sum()),
            "fell": bool(fell),
        }

    def _body(self) -> np.ndarray:
        return np.concatenate([self.data.qpos, self.data.qvel])

    def _observation(self) -> np.ndarray:
        return np.concatenate([self._body(), self.left]).astype(np.float32)


def _arena() -> Any:
    """Gymnasium's ant with the objects as marks that nothing collides with."""
    source = Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets" / "ant.xml"
    spec = mj.MjSpec.from_file(str(source))
    for index, place in enumerate(OBJECTS):
        apple = index < len(APPLES)
        spec.worldbody.add_site(
            name=f"{'apple' if apple else 'bomb'}{index}",
            pos=[*place, 0.3],
            size=[0.3, 0.3, 0.3],
            rgba=[0.0, 0.62, 0.45, 1] if apple else [0.84, 0.37, 0.0, 1],
        )
    spec.worldbody.add_camera(name="above", pos=[0, 0, 11], quat=[1, 0, 0, 0])
    return spec


class WalkThere:
    """The option space (x, y, u, v): come within half a metre of a place, with a velocity.

    The velocity is what the policy is asked to arrive with; the option ends at the place whatever
    the velocity.
    """

    task = "ant-gather"
    space: gymnasium.spaces.Box = gymnasium.spaces.Box(
        np.array([-ARENA, -ARENA, -0.5, -0.5], np.float32),
        np.array([ARENA, ARENA, 0.5, 0.5], np.float32),
    )
    cap = 250  # 12.5 seconds
    outputs = 8
    final: Any = None
    near = 0.5  # metres

    def body(self, observation: np.ndarray) -> np.ndarray:
        return observation[..., :_BODY]

    def achieved(self, body: np.ndarray) -> np.ndarray:
        return np.concatenate([body[..., :2], body[..., 15:17]], axis=-1)

    def inputs(self, body: np.ndarray, option: np.ndarray) -> np.ndarray:
        """The place, the velocity and the body's own motion as the ant sees them, all of order one.

        The body is the same after a quarter turn, so it always walks with the front of its four
        sides that faces the place: a policy for one quarter of the directions is one for all.
        """
        front, quarter = self._facing(body, option)
        own = _QUARTERS[-quarter]  # turns a vector of the body's frame
        place, asked = _plane(option, 0) - _plane(body, 0), _plane(option, 2)
        place, asked, moves = place * front, asked * front, _plane(body, 15) * front
        distance = np.abs(place)
        w, x, y, z = (body[..., index] for index in (3, 4, 5, 6))
        tilt = 2 * (x * z - w * y + 1j * (y * z + w * x)) * own  # the world's up, seen from inside
        turns = 0.3 * _plane(body, 18) * own
        seen = np.empty((*np.shape(distance), 33))
        for index, pair in ((0, place / 4), (2, place / (distance + 0.1)), (5, asked), (8, tilt),
                            (11, moves), (14, turns)):  # fmt: skip
            seen[..., index], seen[..., index + 1] = pair.real, pair.imag
        seen[..., 4] = np.tanh(distance)
        seen[..., 7] = body[..., 2] - 0.55
        seen[..., 10] = 1 - 2 * (x**2 + y**2)
        seen[..., 13] = body[..., 17]
        seen[..., 16] = 0.3 * body[..., 20]
        seen[..., 17:25] = _rolled(body[..., 7:15] * _ALIKE, quarter)
        seen[..., 25:] = 0.1 * _rolled(body[..., 21:29] * _ALIKE, quarter)
        return np.clip(seen, -5, 5)

    def from_front(self, body: np.ndarray, option: np.ndarray, output: np.ndarray) -> np.ndarray:
        """Torques of the joints, from those that the network puts out for the sides as it sees
        them.
        """
        return _rolled(output, -self._facing(body, option)[1]) * _ALIKE

    def to_front(self, body: np.ndarray, option: np.ndarray, torques: np.ndarray) -> np.ndarray:
        """The other way round."""
        return _rolled(torques * _ALIKE, self._facing(body, option)[1])

    def _facing(self, body: np.ndarray, option: np.ndarray) -> tuple[Any, Any]:
        """What turns a vector of the world's frame to the front, as a complex number, and which of
        the four sides is the front: the one that faces the place.
        """
        w, x, y, z = (body[..., index] for index in (3, 4, 5, 6))
        heading = np.arctan2(2 * (w * z + x * y), 1 - 2 * (y**2 + z**2))
        bearing = np.angle(_plane(option, 0) - _plane(body, 0)) - heading
        quarter = np.round(bearing / (np.pi / 2)).astype(np.int64) % 4
        return np.exp(-1j * heading) * _QUARTERS[-quarter], quarter

    def reached(self, body: np.ndarray, option: np.ndarray) -> np.ndarray | np.bool:
        return self._distance(body, option) <= self.near

    def failed(self, body: np.ndarray) -> np.ndarray | np.bool:
        return AntGather.fallen(body)

    def reward(self, body: np.ndarray, after: np.ndarray, option: np.ndarray) -> Any:
        """Two for each metre nearer, and no more for walking faster than 1 m/s, which ends on its
        back; at the place one, less a fifth of the error of the velocity in m/s; a fall costs four.
        """
        progress = self._distance(body, option) - self._distance(after, option)
        error = np.hypot(*np.moveaxis(after[..., 15:17] - option[..., 2:], -1, 0))
        arrived = np.where(self.reached(after, option), 1 - np.minimum(error, 3) / 5, 0)
        return 2 * np.minimum(progress, STEP) + arrived - np.where(self.failed(after), FALL, 0)

    def primitive(self, output: np.ndarray) -> np.ndarray:
        return STRENGTH * np.roll(output, 2, axis=-1)  # the motors begin with the fourth leg

    def _distance(self, body: np.ndarray, option: np.ndarray) -> Any:
        return np.hypot(option[..., 0] - body[..., 0], option[..., 1] - body[..., 1])


def _in_unit(place: np.ndarray) -> np.ndarray:
    return place / (2 * ARENA) + 0.5


def _plane(vector: np.ndarray, index: int) -> Any:
    """Two numbers of a vector as one of the complex plane, where a turn is a product."""
    return vector[..., index] + 1j * vector[..., index + 1]


def _rolled(legs: np.ndarray, quarter: Any) -> np.ndarray:
    """The joints [..., 8] of four legs, beginning with leg `quarter`."""
    order = _BEGINNING_WITH[quarter]
    return legs[order] if legs.ndim == 1 else np.take_along_axis(legs, order, axis=-1)
