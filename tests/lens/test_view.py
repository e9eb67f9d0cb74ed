"""What the page is told: the numbers of `agent.plan`, live scenes, sentences for wrong requests."""

import json

import numpy as np
import pytest

import grasp
from grasp.errors import UsageError
from grasp.lens.curves import MOST_POINTS, curves
from grasp.lens.view import View
from grasp.runs import Run

SCENE = {
    "agent": [0.5, 0.5],
    "objects": [[0.15, 0.8], [0.8, 0.75], [0.6, 0.15]],
    "left": [True, True, True],
    "order": [2, 0, 1],
}


def raw(answer):
    """The observation as the environment gives it."""
    observation = np.array(answer["observation"], np.float32)
    if not answer["goal"]:
        return observation
    return {"observation": observation, "desired_goal": np.array(answer["goal"], np.float32)}


def at(view, decision=0, passing=False, **spec):
    asked = {"spec": {"start": 0, **spec}, "at": decision, "passing": passing}
    return json.loads(json.dumps(view.moment(asked), allow_nan=False))


def temperature_of(agent):
    """The tau that the agent plans with: relative to the running spread of Q."""
    made = agent.compiled.agent
    assert made.relative_temperature
    return made.planner.temperature * float(agent.compiled.arrays.q_spread)


@pytest.mark.parametrize("name", ["collect", "pendulum", "point_mass", "uct"])
def test_the_numbers_are_those_of_agent_plan(request, name):
    run = request.getfixturevalue(f"{name}_run")
    view, agent = View(run), grasp.load(run.path)
    for start in range(3):
        for decision in range(2):
            answer = at(view, decision, start=start)
            plan = agent.plan(raw(answer))
            assert answer["plan"]["q_values"] == [float(q) for q in plan.q_values]
            assert answer["plan"]["policy"] == [float(p) for p in plan.policy]
            assert answer["plan"]["value"] == float(plan.value)
            actions = [agent.world.stretched(action).tolist() for action in plan.actions]
            assert answer["plan"]["actions"] == actions
            assert answer["chosen"] == int(np.argmax(plan.policy))
            if name == "uct":  # its tree is the model's, not the paths that it took
                assert view.facts()["planner_depth"] == 0
                continue
            # Two programs that were compiled apart may round Q differently, and softmax(Q / tau)
            # shows it 1 / tau times larger.
            rounding = 8 * float(np.finfo(np.float32).eps) * float(np.abs(plan.q_values).max())
            for node, q, policy in zip(answer["tree"], plan.q_values, plan.policy, strict=True):
                assert node["q"] == pytest.approx(float(q), abs=1e-5)
                slack = 1e-5 + rounding / temperature_of(agent)
                assert node["policy"] == pytest.approx(float(policy), abs=slack)


def test_a_dragged_object_is_what_the_agent_sees(collect_view):
    before = at(collect_view, scene=SCENE, passing=True)
    moved = SCENE | {"objects": [[0.3, 0.2], [0.8, 0.75], [0.6, 0.15]]}
    after = at(collect_view, scene=moved, passing=True)
    assert np.allclose(before["observation"][:2], [0.5, 0.5])
    assert np.allclose(after["observation"][2:4], [0.3, 0.2])
    assert after["scene"]["objects"][0] == [0.3, 0.2]
    assert np.allclose(np.reshape(after["goal"], (3, 3)).argmax(-1), [2, 0, 1])
    assert before["plan"]["actions"] != after["plan"]["actions"]
    for path in after["paths"]:
        assert np.allclose(path[0], [0.5, 0.5])


def test_an_episode_from_a_scene_begins_there_and_goes_on(collect_view):
    taken = SCENE | {"left": [True, True, False]}
    start, end = (at(collect_view, decision, scene=taken) for decision in (0, -1))
    assert start["scene"]["left"] == [True, True, False]
    assert end["over"]
    assert end["scene"]["order"] == [2, 0, 1]


def test_the_order_changes_the_goal_and_nothing_else(collect_view):
    one, other = (at(collect_view, order=order) for order in ([0, 1, 2], [2, 1, 0]))
    assert one["observation"] == other["observation"]
    assert one["goal"] != other["goal"]


def test_paths_lead_where_the_option_goes(collect_view):
    answer = at(collect_view)
    for path, action in zip(answer["paths"], answer["plan"]["actions"], strict=True):
        assert np.linalg.norm(np.subtract(path[-1], action)) <= 0.8 * 0.15 + 1e-6
    assert [node["aim"] for node in answer["tree"]] == answer["plan"]["actions"]


def test_passing_requests_leave_the_episode_alone(collect_view):
    before = at(collect_view, 1, start=4)
    for x in (0.1, 0.5, 0.9):
        at(collect_view, scene=SCENE | {"agent": [x, 0.5]}, passing=True)
    assert at(collect_view, 1, start=4) == before


@pytest.mark.parametrize("name", ["collect", "point_mass"])
def test_a_live_world_answers_every_move(request, name):
    view = View(request.getfixturevalue(f"{name}_run"))
    scene = at(view)["scene"]
    places = [[0.1 + 0.04 * step, 0.4] for step in range(20)]
    seen = [at(view, scene=scene | {"agent": place}, passing=True) for place in places]
    assert len({str(answer["plan"]["q_values"]) for answer in seen}) == len(places)


def test_rules_of_a_request(collect_view):
    rules = [{"since": 0}, {"since": 1, "force": 2}]
    answer = at(collect_view, -1, start=1, rules=rules)
    assert set(answer["heads"][1:]) <= {2}
    free = at(collect_view, 0, start=1)
    off = [{"since": 0, "off": [free["chosen"]]}]
    assert at(collect_view, 0, start=1, rules=off)["chosen"] != free["chosen"]


def test_comparing_names_every_rule(collect_view):
    results = collect_view.compare({"spec": {"start": 0}})["results"]
    names = [(tuple(result["rule"]["off"]), result["rule"]["force"]) for result in results]
    alone, without = [((), head) for head in range(3)], [((head,), None) for head in range(3)]
    assert names == [((), None), *alone, *without]
    assert results[0]["returned"] == pytest.approx(at(collect_view, -1)["returned"])


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        (None, "needs a spec"),
        ({"start": -1}, "whole number"),
        ({"start": 1.5}, "whole number"),
        ({"start": True}, "whole number"),
        ({"order": [0, 1]}, "each once"),
        ({"order": [0, 1, 1]}, "each once"),
        ({"order": "ABC"}, "each once"),
        ({"scene": [1]}, "agent, objects, left and order"),
        ({"scene": SCENE | {"agent": [0.5]}}, "from 0 to 1"),
        ({"scene": SCENE | {"agent": [0.5, 1.5]}}, "from 0 to 1"),
        ({"scene": SCENE | {"agent": [0.5, float("nan")]}}, "from 0 to 1"),
        ({"scene": SCENE | {"objects": [[0, 0]]}}, "three places"),
        ({"scene": SCENE | {"left": [False] * 3}}, "at least one"),
        ({"scene": SCENE | {"left": [1, 1, 1]}}, "three objects"),
        ({"rules": []}, "from 0 on"),
        ({"rules": [{"since": 1}]}, "from 0 on"),
        ({"rules": [{"since": 0, "force": 3}]}, "heads 0 to 2"),
        ({"rules": [{"since": 0, "off": [0, 1, 2]}]}, "at least one must stay on"),
        ({"rules": "all"}, "must be a list"),
    ],
)
def test_what_cannot_be_shown_is_refused_in_a_sentence(collect_view, spec, sentence):
    with pytest.raises(UsageError, match=sentence):
        collect_view.moment({"spec": spec})
    with pytest.raises(UsageError, match="number of a decision"):
        collect_view.moment({"spec": {}, "at": "last"})


def test_a_world_without_scenes_says_so(pendulum_run):
    view = View(pendulum_run)
    answer = at(view)
    assert answer["scene"] is None
    assert answer["frame"] or answer["no_frame"]
    assert not view.facts()["scenic"]
    with pytest.raises(UsageError, match="come with the start"):
        at(view, scene=SCENE)


def test_a_run_without_an_agent_to_show_still_has_its_curves(td3_run, tmp_path):
    assert "TD3 has no tree" in View(td3_run).facts()["problem"]
    assert View(td3_run).training()["curves"]["eval/return"]
    young = tmp_path / "young"
    young.mkdir()
    (young / "config.json").write_text((td3_run.path / "config.json").read_text())
    view = View(Run.existing(young))
    assert "no checkpoint yet" in view.facts()["problem"]
    assert view.training()["curves"] == {}
    assert view.training()["age"] is None


def test_curves_of_a_run_that_goes_on(collect_run, tmp_path):
    run = Run(tmp_path)
    run.claim(collect_run.config())
    for step in range(2000):
        row = {"environment_steps": step, "decisions": step, "affordances/chosen": [0.25, 0.75]}
        run.append(row | {"rollout/return": step / 2, "eval/return": float("nan")})
    with run.metrics_file.open("a") as file:
        file.write('{"environment_steps": 2000, "deci')  # as a process leaves it while it writes
    found = curves(run)
    assert found["environment_steps"] == 1999
    assert found["curves"].keys() == {"rollout/return"}
    points = found["curves"]["rollout/return"]
    assert len(points) <= MOST_POINTS
    assert points[-1] == [1999, 999.5]
    assert found["chosen"][-1] == [1999, 0.25, 0.75]
    assert 0 <= found["age"] < 60


def test_the_newest_checkpoint_is_loaded_on_demand(collect_run):
    view = View(collect_run)
    at(view)
    first = view._watched
    view.reload()
    assert view._watched is not first
    assert at(view)["index"] == 0


def test_a_released_agent_shows_its_card_and_its_curves(collect_run):
    view = View(Run.existing("collect-GA-4"))
    assert "greedy episodes" in view.facts()["card"]
    told = view.training()
    assert told["card"] == view.facts()["card"]
    assert told["curves"]["eval/success"][-1][1] > 0.8
    assert View(collect_run).facts()["card"] is None
