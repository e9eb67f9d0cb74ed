"""The command as a user types it: names, refusals with exit codes, a run up to its picture."""

import json
import subprocess
import sys

import pytest

from grasp.__main__ import main
from grasp.agents import AGENTS, agent_named, check_agent, description, rebuilt
from grasp.agents.td3 import TD3
from grasp.errors import UsageError, says_out_of_memory
from grasp.session import typed

SMALL = [
    "--steps", "90", "--evaluate-every", "60", "--evaluation-episodes", "1", "--log-every", "30",
    "--width", "8", "--batch", "8", "--warm-up", "40",
]  # fmt: skip


def refused(capsys, *arguments, code=2):
    """The one sentence that a wrong command is answered with."""
    try:
        status = main(list(arguments))
    except SystemExit as exit_:  # the parser's own refusals
        status = exit_.code
    error = capsys.readouterr().err
    assert status == code, error
    assert "Traceback" not in error
    return error


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["train", "GA4", "--task", "walker-walk"], "GA-4"),
        (["train", "GA-0", "--task", "walker-walk"], "K is at least 1"),
        (["train", "UCT-0", "--task", "walker-walk"], "try UCT-50"),
        (["train", "UCT-3", "--task", "walker-walk"], "3 trajectories for 4"),
        (["train", "GA--3", "--task", "walker-walk"], "K is at least 1"),
        (["train", "GA-4", "--task", "walker-wakl"], "did you mean walker-walk"),
        (["train", "GA-4", "--task", "gym:Pendulum-v9"], "Pendulum"),
        (["train", "GA-4", "--task", "gym:CartPole-v1"], "needs a Box"),
        (["check-env", "gym:nowhere_at_all:Hover-v0"], "gym:MODULE:ID"),
        (["train", "GA-4"], "--task"),
        (["train"], "no agent given"),
        (["train", "GA-4", "--task", "walker-walk", "--widht", "8"], "--width"),
        (["train", "GA-4", "--task", "walker-walk", "--planner.depth", "0"], "at least 1"),
        (["train", "GA-4", "--task", "walker-walk", "--planner.temperature", "0"], "above 0"),
        (["train", "GA-4", "--task", "walker-walk", "--steps", "-1"], "at least 1"),
        (["train", "GA-4", "--task", "walker-walk", "--steps", "many"], "steps"),
        (["train", "GA-4", "--task", "walker-walk", "--batch", "0"], "1 to 10,000"),
        (["train", "GA-4", "--task", "walker-walk", "--width", "99999"], "1 to 10,000"),
        (["train", "TD3", "--task", "walker-walk", "--width", "99999"], "1 to 10,000"),
        (["train", "GA-4", "--task", "walker-walk", "--head-layers", "101"], "0 to 100"),
        (["train", "GA-4", "--task", "walker-walk", "--discount", "1.5"], "between 0 and 1"),
        (["train", "GA-4", "--task", "walker-walk", "--roots-per-window", "9"], "have 2 states"),
        (["train", "GA-4", "--task", "walker-walk", "--unroll", "2"], "n = 1 decisions"),
        (["train", "GA-4", "--task", "walker-walk", "--preset", "papper"], "paper"),
        (["train", "GA-4", "--task", "walker-walk", "--wandb"], "grasp-rl[wandb]"),
        (["evaluate", "nowhere"], "no run directory"),
        (["evaluate", "nowhere", "--episodes", "0"], "at least 1"),
        (["look", "nowhere"], "no run directory"),
        (["look", "nowhere", "--starts", "0"], "at least 1"),
        (["lens", "nowhere"], "no run directory"),
        (["figure", "nowhere"], "nowhere is not there"),
        (["export", "nowhere"], "no run directory"),
        (["train", "GA-4", "--task", "collect", "--pixels"], "cannot be seen from pixels"),
        (["train", "GA-4", "--task", "pixels:walker-wakl"], "walker-walk"),
        (["train", "GA-4", "--task", "walker-walk", "--image-size", "60"], "multiple of 16"),
        (["tarin"], "train"),
        ([], ""),
    ],
)
def test_bad_input_gets_one_clear_sentence(capsys, tmp_path, monkeypatch, arguments, hint):
    monkeypatch.chdir(tmp_path)
    assert hint in refused(capsys, *arguments)
    assert not list(tmp_path.rglob("config.json"))


@pytest.mark.parametrize(
    "arguments",
    [
        ["train", "GA4", "--task", "walker-walk"],
        ["train", "GA-0", "--task", "walker-walk"],
        ["train", "GA-4", "--task", "walker-wakl"],
        ["evaluate", "nowhere"],
        ["lens", "nowhere"],
        ["--help"],
        ["--version"],
    ],
)
def test_what_can_be_refused_without_jax_is(arguments):
    program = (
        "import sys\nfrom grasp.__main__ import main\n"
        f"main({arguments!r})\n"
        "sys.exit(1 if 'jax' in sys.modules or 'dm_control' in sys.modules else 0)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_a_replay_larger_than_memory_is_one_sentence(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    train = ["train", "TD3", "--task", "gym:Pendulum-v1", "--replay-capacity", str(10**15)]
    assert main(train) == 71
    assert "not enough memory" in capsys.readouterr().err


def test_only_memory_that_runs_out_is_called_so():
    assert says_out_of_memory(MemoryError())
    assert says_out_of_memory(RuntimeError("INTERNAL: Out of memory allocating 4000 bytes."))
    assert not says_out_of_memory(RuntimeError("generator exhausted"))


def test_a_run_from_the_command_line_to_its_picture(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    train = ["train", "GA-2", "--task", "gym:Pendulum-v1", *SMALL]
    assert main(train) == 0
    printed = capsys.readouterr()
    assert "GA-2 on gym:Pendulum-v1: return -" in printed.out
    assert "heads" in printed.err
    run = tmp_path / "runs" / "gym-Pendulum-v1-GA-2-seed0"
    assert (run / "curve.png").stat().st_size > 5_000
    config = json.loads((run / "config.json").read_text())
    assert config["agent"]["num_affordances"] == 2
    assert config["agent"]["width"] == 8

    assert main([*train, "--steps", "120"]) == 0  # the last flag counts: the run goes on
    assert "continuing at step 90" in capsys.readouterr().err
    assert "another configuration" in refused(capsys, *train, "--width", "16")

    assert main(["evaluate", str(run), "--episodes", "2", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert len(result["returns"]) == 2
    assert sum(result["heads"].values()) == pytest.approx(1)
    assert main(["evaluate", str(run), "--episodes", "1", "--which", "best"]) == 0
    assert "over 1 greedy episodes" in capsys.readouterr().out

    assert main(["export", str(run)]) == 0
    table = tmp_path / "results" / "gymnasium" / "Pendulum-v1" / "GA-2-seed0.csv"
    lines = table.read_text().splitlines()
    assert lines[0] == "environment_steps,decisions,return,success"
    assert [line.split(",")[0] for line in lines[1:]] == ["60", "90", "120"]
    facts = json.loads(table.with_suffix(".json").read_text())
    assert {"command", "version", "hours", "evaluation_episodes", "action_repeat"} <= facts.keys()
    assert facts["configuration"]["agent"]["width"] == 8
    assert main(["figure", "results/gymnasium"]) == 0
    assert (tmp_path / "results" / "gymnasium" / "curves.png").stat().st_size > 5_000


@pytest.mark.parametrize("place", [["--run", "/tmp/a b/c"], ["--run=/tmp/a b/c"], []])
def test_a_run_remembers_its_command_without_its_folder(place):
    command = typed(["train", "GA-4", *place, "--task", "walker-walk", "--steps", "10"])
    assert command == "grasp train GA-4 --task walker-walk --steps 10"


@pytest.mark.parametrize("name", [*AGENTS, "GA-6", "SA-17", "RND-SA-2"])
def test_every_name_makes_its_agent(name):
    agent = agent_named(name)
    assert rebuilt(json.loads(json.dumps(description(agent)))) == agent
    if name == "TD3":
        papers = agent_named(name, "paper")
        assert (papers.actor_learning_rate, papers.critic_learning_rate) == (1e-4, 1e-3)
        assert (papers.width, papers.target_rate, papers.policy_delay) == (512, 0.005, 2)
        return
    kind, _, number = name.rpartition("-")
    if kind in ("UCT", "GUMBEL"):
        paths = {"UCT": "trajectories", "GUMBEL": "simulations"}[kind]
        assert getattr(agent.planner, paths) == int(number)
        assert (agent.affordances, agent.num_affordances) == ("goal", 4)
        return
    assert agent.num_affordances == int(number)
    assert (agent.affordance_learning_rate == 0) == name.startswith("RND")
    reads = {"GA": "goal", "SA": "state", "A": "none"}[name.removeprefix("RND-").partition("-")[0]]
    assert agent.affordances == reads


@pytest.mark.parametrize("name", ["GA", "GA-", "ga_4", "XY-4", "GA-4-RND", "GA-4.5", ""])
def test_what_is_no_name_is_refused(name):
    with pytest.raises(UsageError, match="agents: GA-1"):
        check_agent(name)


def test_the_paper_preset_is_what_the_paper_states():
    agent = agent_named("GA-4", "paper")
    assert (agent.planner.depth, agent.relative_temperature) == (2, False)
    assert (agent.width, agent.discount, agent.replay_capacity) == (512, 0.99, 200_000)
    assert (agent.affordance_learning_rate, agent.model_learning_rate) == (1e-3, 1e-4)
    assert (agent.target_period, agent.target_rate) == (1_000, 1.0)
    assert agent.roots_per_window == agent.window + 1
    assert (agent.consistency, agent.noise_start, agent.noise_end, agent.greedy_share) == (
        0,
        0,
        0,
        0,
    )
    assert not agent.layer_norm
    assert not agent.normalise_observations
    assert (agent.trace, agent.head_layers) == (1, 2)
    assert agent_named("SA-3", "paper").head_layers == 2
    assert agent_named("SA-3", "paper").planner.depth == 3
    assert agent_named("RND-A-8", "paper").affordance_learning_rate == 0


def test_presets_are_what_their_runs_were_made_with():
    suite, options = agent_named("GA-4"), agent_named("GA-4", options=True, task="collect")
    assert (suite.trace, suite.planner.temperature, suite.decisions_per_update) == (0, 0.1, 1)
    assert (suite.normalise_layers, options.normalise_layers) == (True, False)
    assert (suite.learning_rate_end, options.learning_rate_end) == (0.05, 1)
    images = agent_named("GA-4", images=True)
    assert (images.learning_rate_end, images.learning_rate_hold) == (0.1, 15_000)
    for agent, heads_learn, centring in [(suite, (1.2e-3, 2), 0.01), (images, (3e-4, 1), 0)]:
        assert (agent.affordance_learning_rate, agent.affordance_period) == heads_learn
        assert (agent.model_learning_rate, agent.centring) == (1e-3, centring)
    weights = [(agent.consistency, agent.value_weight) for agent in (suite, images, options)]
    assert weights == [(10, 0.3), (1, 1), (1, 1)]
    assert (options.model_learning_rate, options.centring) == (1e-3, 0)
    assert options.affordance_period == 1
    assert (suite.noise_decisions, options.noise_decisions) == (25_000, 50_000)
    assert (suite.noise_end, options.noise_end) == (0.25, 0.1)
    assert (options.trace, options.planner.temperature, options.decisions_per_update) == (1, 0.5, 4)
    assert agent_named("GA-4", "paper").decisions_per_update == 1
    td3, on_options = agent_named("TD3"), agent_named("TD3", options=True, task="collect")
    assert (td3.decisions_per_update, td3.warm_up, td3.normalise_observations) == (1, 10_000, True)
    assert (td3.width, td3.batch, on_options.width, on_options.batch) == (256, 100, 512, 256)
    assert (td3.actor_learning_rate, on_options.actor_learning_rate) == (1e-3, 1e-4)
    assert (on_options.warm_up, on_options.normalise_observations) == (1_000, False)
    assert agent_named("TD3", "paper") == TD3()
    ant = {"options": True, "task": "ant-gather"}
    assert {agent_named(name, **ant).decisions_per_update for name in ("GA-4", "TD3")} == {1}
    assert (suite.window, options.window, agent_named("GA-4", "paper").window) == (1, 3, 3)
    assert {agent_named(name).window for name in ("UCT-50", "GUMBEL-16", "SA-3")} == {3}
    heads = agent_named("SA-3", options=True, task="collect")
    assert (heads.head_layers, heads.planner.depth, heads.planner.temperature) == (1, 3, 0.1)


def test_td3_runs_by_the_same_command(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["train", "TD3", "--task", "gym:Pendulum-v1", *SMALL]) == 0
    assert "TD3 on gym:Pendulum-v1: return -" in capsys.readouterr().out
    assert main(["evaluate", "runs/gym-Pendulum-v1-TD3-seed0", "--episodes", "1"]) == 0


@pytest.mark.parametrize(("steps", "told"), [("300", True), ("301", False)])
def test_a_run_too_short_to_learn_says_so(capsys, tmp_path, monkeypatch, steps, told):
    monkeypatch.chdir(tmp_path)
    train = ["train", "TD3", "--task", "gym:Pendulum-v1", *SMALL, "--warm-up", "300"]
    assert main([*train, "--steps", steps]) == 0
    assert ("learning begins after --warm-up 300" in capsys.readouterr().err) == told


def test_unknown_kinds_in_a_configuration_are_refused():
    with pytest.raises(UsageError, match="no agent or planner of kind 'Evil'"):
        rebuilt({"kind": "Evil"})
