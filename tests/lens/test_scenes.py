"""Worlds put into a scene by hand see that scene."""

import numpy as np
import pytest

from grasp.environments import make
from grasp.environments.boundary import Boundary
from grasp.environments.point_mass import PLACES, SIDE
from grasp.errors import UsageError
from grasp.lens import scenes
from grasp.lens.scenes import Layout
from worlds import Counting

FIXED = tuple((float(x), float(y)) for x, y in PLACES / SIDE + 0.5)


def boundary(name):
    return Boundary(make(name), name)


def test_collect_sees_the_layout():
    world = boundary("collect")
    world.reset(0)
    objects = ((0.1, 0.2), (0.9, 0.8), (0.5, 0.6))
    wanted = Layout((0.25, 0.75), objects, (True, False, True), (1, 0, 2))
    observation, goal = scenes.arrange(world, wanted)
    np.testing.assert_allclose(observation[:8], [0.25, 0.75, *np.ravel(objects)], atol=1e-6)
    assert observation[8:].tolist() == [1, 0, 1]
    assert goal.reshape(3, 3).argmax(-1).tolist() == [1, 0, 2]
    told = scenes.described(world.environment.unwrapped.scene(), movable=True)
    assert scenes.layout({name: told[name] for name in Layout._fields}) == wanted
    assert scenes.aim(world, np.array([0.3, 0.4])) == [0.3, 0.4]


def test_point_mass_sees_the_mass_and_keeps_its_places():
    world = boundary("point-mass")
    world.reset(0)
    wanted = Layout((0.75, 0.25), FIXED, (True, True, False), (2, 0, 1))
    observation, goal = scenes.arrange(world, wanted)
    np.testing.assert_allclose(observation, [0.15, -0.15, 0, 0, 1, 0, 0], atol=1e-6)
    assert goal.reshape(3, 3).argmax(-1).tolist() == [2, 0, 1]
    scene = world.environment.unwrapped.scene()
    np.testing.assert_allclose(scene.agent, [0.75, 0.25], atol=1e-6)
    assert scene.left.tolist() == [True, True, False]
    outcome = world.step(world.squeezed(np.array([0.15, -0.1, 0, 0])))  # it can go on from there
    assert outcome.duration > 1
    np.testing.assert_allclose(scenes.aim(world, np.array([0.15, -0.3, 0, 0])), [0.75, 0])
    with pytest.raises(UsageError, match="only the mass can be moved"):
        scenes.arrange(world, wanted._replace(objects=((0.1, 0.1), *FIXED[1:])))
    assert not scenes.objects_move(world)


def test_the_mass_stays_within_its_walls():
    world = boundary("point-mass")
    world.reset(0)
    wanted = Layout((1.0, 0.0), FIXED, (True, True, True), (0, 1, 2))
    observation, _ = scenes.arrange(world, wanted)
    assert np.abs(observation[:2]).max() < SIDE / 2


def test_other_worlds_cannot_be_arranged():
    world = Boundary(Counting(), "counting")
    assert not scenes.is_scenic(world)
    assert scenes.aim(world, np.zeros(2)) is None
    wanted = Layout((0.5, 0.5), FIXED, (True, True, True), (0, 1, 2))
    with pytest.raises(UsageError, match="collect and point-mass can"):
        scenes.arrange(world, wanted)
